# SPDX-License-Identifier: Apache-2.0
"""What a suite declares, what a mode is and what one run of a suite in a mode gave."""

from __future__ import annotations

import dataclasses
import json
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
ROOT = HERE.parents[1]


@dataclass(frozen=True)
class Mode:
    """One way to run a suite: without weir, traced at a level, or with a stack of layers on all
    files."""

    name: str
    level: str = ""
    stack: str = ""

    @property
    def uses_weir(self) -> bool:
        return bool(self.level or self.stack)


def read_modes(path: Path = HERE / "modes.toml") -> list[Mode]:
    return [Mode(**entry) for entry in tomllib.loads(path.read_text())["mode"]]


@dataclass(frozen=True)
class Ended:
    """How the command of a step ended: its exit status (negative: the signal) or "time limit"."""

    status: int | str
    output: str


Tests = dict[str, str]
Parser = Callable[[Ended], Tests]


def whole(ended: Ended) -> Tests:
    """The parser of a step that is one test: its exit status."""
    return {"": "pass" if ended.status == 0 else "fail"}


@dataclass(frozen=True)
class Step:
    """One command of a suite, run in the directory of the run.

    parse     splits the output into tests and their results
    prepare   True: it makes inputs, without weir, and is not compared
    compare_output  True: its standard output and error must be the same bytes in each mode
    """

    name: str
    command: tuple[str, ...]
    parse: Parser = whole
    env: Mapping[str, str] = field(default_factory=dict)
    prepare: bool = False
    compare_output: bool = False
    time_limit_s: float = 120


@dataclass(frozen=True)
class Place:
    """Where a run takes place: a directory of its own, the suite's built tree, the environment of
    PyPI's packages."""

    work: Path
    tree: Path | None
    python: Path
    downloads: Path


@dataclass(frozen=True)
class Suite:
    """A program or a suite of tests that others wrote.

    packages   Debian packages that it needs
    wheels     packages of PyPI that it needs, as pip names them; installed into
               build/third_party/venv
    sdists     source packages of PyPI whose tests it runs; unpacked into build/third_party/sdists
    tree       directory below WEIR_THIRD_PARTY_SOURCES with its sources, built as they say
    needs      files that the tree must hold; commands that must be found
    outputs    patterns of files below the directory of a run whose bytes are compared
    leave_out  modes in which it is not run, each with the reason
    """

    name: str
    title: str
    steps: Callable[[Place], Iterable[Step]]
    version: Callable[[Place], str]
    packages: tuple[str, ...] = ()
    wheels: tuple[str, ...] = ()
    sdists: tuple[str, ...] = ()
    tree: str = ""
    needs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    leave_out: Mapping[str, str] = field(default_factory=dict)


@dataclass
class StepResult:
    """What a step gave. output is the digest of what it printed, or "" where that is not compared.
    """

    status: int | str
    tests: Tests
    output: str = ""
    seconds: float = 0.0


@dataclass
class Result:
    """A suite in a mode. missing: why it was not run.

    library    digest of the preload library that was used; weir: the version that git gives its
    source
    """

    suite: str
    mode: str
    version: str = ""
    library: str = ""
    missing: str = ""
    steps: dict[str, StepResult] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    weir: str = ""

    def items(self) -> dict[str, str]:
        """All that is compared: key -> value. Exit status, tests, printed bytes and files."""
        found = {}
        for name, step in self.steps.items():
            found[f"{name}: exit status"] = str(step.status)
            found |= {f"{name}::{test}" if test else name: r for test, r in step.tests.items()}
            if step.output:
                found[f"{name}: output"] = step.output
        return found | {f"file {path}": digest for path, digest in self.outputs.items()}

    def passes(self) -> int:
        return sum(r == "pass" for step in self.steps.values() for r in step.tests.values())

    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps.values())

    def save(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{self.suite}.{self.mode}.json"
        path.with_suffix(".new").write_text(json.dumps(dataclasses.asdict(self), indent=1))
        os.replace(path.with_suffix(".new"), path)


def load_result(directory: Path, suite: str, mode: str) -> Result | None:
    """The saved result; None if there is none."""
    try:
        saved = json.loads((directory / f"{suite}.{mode}.json").read_text())
    except FileNotFoundError:
        return None
    saved["steps"] = {name: StepResult(**step) for name, step in saved["steps"].items()}
    return Result(**saved)
