# SPDX-License-Identifier: Apache-2.0
"""What tune knows of its runs, in OUT/tune.json: written after each run, so that an interrupted
tune goes on where it was."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from weir._errors import InputError, StorageError, UsageError
from weir._files import complete_file
from weir.tune.keep import Result
from weir.tune.outputs import Output
from weir.tune.runs import Done, Figures, FileCost

FILE = "tune.json"
FORMAT = 3


@dataclass(frozen=True)
class Failure:
    """A run in which the command failed. rules: paths of those in force; setting: of a search."""

    rules: tuple[str, ...]
    status: int
    setting: dict[str, str] = field(default_factory=dict)


@dataclass
class State:
    """command, directory: what is tuned; fingerprint: of the directory at first. dropped: rules
    that are not used any more, with the reason."""

    command: list[str]
    directory: str
    fingerprint: str
    cautions: bool = False
    vary: dict[str, list[str]] = field(default_factory=dict)
    runs: list[Done] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    result: Result | None = None  # of --keep

    @property
    def attempts(self) -> int:
        """Runs that were begun and ended, well or not."""
        return len(self.runs) + len(self.failures)

    def write(self, out: Path) -> None:
        """Raises StorageError."""
        made = {"format": FORMAT, **asdict(self)}
        try:
            with complete_file(out / FILE, sync=True) as file:
                file.write(json.dumps(made, indent=1).encode("ascii"))
        except OSError as error:
            raise StorageError(f"{out / FILE}: cannot be written: {error.strerror}") from error


def read(out: Path) -> State | None:
    """None where tune has not begun. Raises InputError for a file that is not its own."""
    path = out / FILE
    try:
        data = json.loads(path.read_bytes())
        if data.pop("format") != FORMAT:
            raise ValueError("another format")
        data["runs"] = [_done(one) for one in data["runs"]]
        data["failures"] = [Failure(tuple(one["rules"]), one["status"], one["setting"])
            for one in data["failures"]]
        if data["result"] is not None:
            data["result"] = Result(**{key: tuple(value) if isinstance(value, list) else value
                for key, value in data["result"].items()})
        return State(**data)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not written by weir tune ({error}); remove it, or name another "
                         f"directory with -o") from error


def _done(data: dict[str, Any]) -> Done:
    figures = data["figures"]
    figures["by_rule"] = {rule: FileCost(**cost) for rule, cost in figures["by_rule"].items()}
    outputs = {path: Output(**one) for path, one in data["outputs"].items()}
    return Done(data["number"], data["kind"], tuple(data["rules"]), Figures(**figures), outputs,
        data["setting"])


def begin(out: Path, wanted: State) -> State:
    """That of an earlier call for the same command, else the one that is wanted. Raises UsageError
    when the directory belongs to another command, InputError when the user's files changed."""
    known = read(out)
    if known is None:
        return wanted
    if any(getattr(known, key) != getattr(wanted, key)
            for key in ("command", "directory", "cautions", "vary")):
        raise UsageError(f"{out}: holds the runs of another command, directory, --allow or --vary: "
                         f"{' '.join(known.command)}; name another with -o")
    if known.result is not None and known.result.is_moving:
        return known  # some of the files are those of the run by now
    if known.fingerprint != wanted.fingerprint:
        raise InputError(f"{known.directory}: its files changed since {out} was begun, so runs are "
                         f"not comparable; name another directory with -o (--keep changes them as "
                         f"well)")
    return known
