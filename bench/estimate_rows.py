# SPDX-License-Identifier: Apache-2.0
"""The results of bench/estimates.py, and the file that has them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Labels:
    """What a result is of. round: of held-out cases, "": the model has been fitted to the case.
    load: of the machine as the case began, over one minute; None: not written down."""

    case: str
    place: str
    round: str = ""
    load: float | None = None


@dataclass(frozen=True, kw_only=True)
class Row(Labels):
    """One rule of a case. low, high, obtained: I/O seconds of all ranks that it saves."""

    finding: str
    stack: str
    low: float
    high: float
    obtained: float
    requests_before: int
    requests_after: int
    kept: bool

    @property
    def is_within(self) -> bool:
        """Never of a rule that matched no file: the files had other names in the runs with it."""
        is_met = self.kept or self.requests_after > 0
        return is_met and self.low <= self.obtained <= self.high

    @property
    def width(self) -> float:
        """Of the range, over its middle."""
        return 2 * (self.high - self.low) / max(self.high + self.low, 1e-9)

    @property
    def text(self) -> str:
        return (f"{self.case:<11}{self.place:<8}{self.finding:<20}{self.stack:<28}"
            f"{self.low:8.3f} {self.high:8.3f} {self.obtained:8.3f} "
            f"{'within' if self.is_within else 'OUT':<7}{self.requests_before:>8}"
            f"{self.requests_after:>8} {'kept' if self.kept else 'dropped'}")


@dataclass(frozen=True, kw_only=True)
class Whole(Labels):
    """A case. low, high: seconds of the run that its rules were expected to save together. gain:
    mean of the wall seconds that each run with rules is shorter than the plain one beside it, with
    an interval of 90 %. delay: by I/O (critical time; I/O time where that is not known). runs:
    plain ones, those with rules."""

    plain_s: float
    tuned_s: float | None
    low: float
    high: float
    sentence: str
    findings: Sequence[str] = ()
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    plain_delay_s: float | None = None
    tuned_delay_s: float | None = None
    runs: Sequence[int] = ()

    @property
    def saved_s(self) -> float | None:
        if self.tuned_s is None:
            return None
        return self.plain_s - self.tuned_s if self.gain is None else self.gain

    @property
    def delay_saved_s(self) -> float | None:
        if self.plain_delay_s is None or self.tuned_delay_s is None:
            return None
        return self.plain_delay_s - self.tuned_delay_s

    @property
    def verdict(self) -> str:
        """Of wall time. Where the interval of what was obtained reaches into the range, the runs do
        not tell whether it was right."""
        if self.saved_s is None:
            return ""
        if self.low <= self.saved_s <= self.high:
            return "within"
        if self.gain_low is None or self.gain_high is None:
            return "outside"
        return "unsure" if self.gain_low <= self.high and self.gain_high >= self.low else "outside"

    @property
    def is_delay_within(self) -> bool:
        return self.delay_saved_s is not None and self.low <= self.delay_saved_s <= self.high

    @property
    def width(self) -> float:
        """Of the range, over its middle."""
        return 2 * (self.high - self.low) / max(self.high + self.low, 1e-9)

    @property
    def text(self) -> str:
        after = "-" if self.tuned_s is None else f"{self.tuned_s:.3f}"
        saved = "" if self.saved_s is None or self.delay_saved_s is None else (
            f" saved {self.saved_s:.3f}, of delay {self.delay_saved_s:.3f},")
        return (f"{self.case:<11}{self.place:<8}wall {self.plain_s:.3f} -> {after};{saved} "
            f"expected {self.low:.3f} to {self.high:.3f} {self.verdict}; load {self.load}; "
            f"{self.sentence}")


@dataclass(frozen=True, kw_only=True)
class Failed(Labels):
    """A case without figures."""

    why: str

    @property
    def text(self) -> str:
        return f"{self.case:<11}{self.place:<8}FAILED: {self.why}"


class Results:
    """All cases so far. path: the file that has them after each case; None: they are printed
    alone."""

    def __init__(self, path: Path | None, resume: bool = False) -> None:
        self.path = path
        self.rows: list[Row] = []
        self.wholes: list[Whole] = []
        self.failures: list[Failed] = []
        if resume and path is not None and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        data = json.loads(path.read_text())
        self.rows += [Row(**one) for one in data["rows"]]
        self.wholes += [Whole(**one) for one in data["wholes"]]
        self.failures += [Failed(**one) for one in data.get("failures", [])]

    def has(self, case: str, place: str) -> bool:
        """Whether the case was run to its end."""
        return any((one.case, one.place) == (case, place) for one in self.wholes)

    def add(self, rows: Sequence[Row], whole: Whole) -> None:
        self.rows += rows
        self.wholes.append(whole)
        self._forget_failure(whole)
        self._write(*rows, whole)

    def add_failure(self, failed: Failed) -> None:
        self._forget_failure(failed)
        self.failures.append(failed)
        self._write(failed)

    def _forget_failure(self, again: Labels) -> None:
        self.failures = [one for one in self.failures
            if (one.case, one.place) != (again.case, again.place)]

    def _write(self, *new: Row | Whole | Failed) -> None:
        """Another file takes the place of the one that is there, which an interrupt leaves whole.
        """
        for one in new:
            print(one.text, flush=True, file=sys.stderr if isinstance(one, Failed) else sys.stdout)
        if self.path is not None:
            made = self.path.with_name(f".{self.path.name}.{os.getpid()}")
            made.write_text(self.json())
            made.replace(self.path)

    def json(self) -> str:
        return json.dumps({key: [asdict(one) for one in getattr(self, key)]
            for key in ("rows", "wholes", "failures")}, indent=1)


def read(sources: Sequence[str]) -> Results:
    """All results of files of --json."""
    found = Results(None)
    for one in sources:
        found._read(Path(one))
    return found
