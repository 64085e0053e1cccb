# SPDX-License-Identifier: Apache-2.0
"""Every function of native/hook/table.def that belongs to libc is called, by its own name and on a
real file, and what the trace then holds is compared record by record; and everything these programs
get, print and write is the same without weir.

The cases and their expectations are in tests/programs/seen_*.c; tests/programs/seen.h says how they
are written."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from decode import ERROR, Record, read_trace

HERE = Path(__file__).parent
PROGRAMS = sorted(p.stem for p in (HERE / "programs").glob("seen_*.c"))
TABLE = HERE.parent / "native" / "hook" / "table.def"
TEXT = "alpha beta\ngamma 42\nlast\n"
# Functions that only newer C libraries have.
MAY_BE_MISSING = re.compile(
    r"__isoc23_|_Fork$|execveat$|close_range$|closefrom$|renameat2$|statx$|preadv2$|pwritev2$|\w+64v2$|gets$"
)
# A library that finds libc before weir.
LIBRARY = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int read_file(const char *file, char *to, int n) {
  int fd = open(file, O_RDONLY);
  int got = read(fd, to, n);
  close(fd);
  FILE *f = fopen(file, "r");
  got += fread(to, 1, n, f);
  fclose(f);
  return got;
}
"""


@dataclass
class Case:
    symbol: str
    name: str
    expected: str


@dataclass
class Outcome:
    """What a program left behind: the results it wrote, its exit status, the files of its
    directory."""

    results: str
    status: tuple[int, str, str]
    files: dict[str, bytes | str]


def compile_program(cc, name: str) -> Path:
    header = (HERE / "programs" / "seen.h").read_text().replace("#pragma once", "")
    source = (HERE / "programs" / f"{name}.c").read_text().replace('#include "seen.h"', "")
    return cc(header + source, "-fno-builtin", name=name)  # fputs stays fputs


def cases_of(execute, program: Path) -> list[Case]:
    return [Case(*line.split("\t")) for line in execute([program]).ok().stdout.splitlines()]


def contents(directory: Path) -> dict[str, bytes | str]:
    found: dict[str, bytes | str] = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        found[name] = f"-> {path.readlink()}" if path.is_symlink() else "directory" if path.is_dir(
            ) else path.read_bytes()
    return found


class Seen:
    """One program run twice in directories of its own, without weir and with it."""

    def __init__(self, name: str, tmp: Path, preload: Path, cc, execute):
        program = compile_program(cc, name)
        library = cc(LIBRARY, "-shared", "-fPIC", name="seen_library.so")
        self.cases = cases_of(execute, program)
        self.directory = tmp / "traced"
        steps = tmp / "steps"
        steps.mkdir()
        tracing = {"LD_PRELOAD": str(preload), "WEIR_TRACE_DIR": str(steps), "WEIR_LEVEL": "trace"}
        self.bare = self.run(execute, program, library, tmp / "bare", {})
        self.traced = self.run(execute, program, library, self.directory, tracing)
        self.trace = read_trace(steps)
        self.missing = set(re.findall(r"^(\S+) missing$", self.traced.results, re.M))

    def run(self, execute, program: Path, library: Path, directory: Path,
            env: dict[str, str]) -> Outcome:
        (directory / "sub").mkdir(parents=True)
        for case in self.cases:
            (directory / case.name).write_text(TEXT)
        (directory / "sub" / "a").write_text("a")
        (directory / "sub" / "b").write_text("b")
        results = directory.with_suffix(".results")
        done = execute([program, results], cwd=directory, env={**env, "SEEN_LIBRARY": str(library)})
        return Outcome(results.read_text(), (done.returncode, done.stdout, done.stderr),
            contents(directory))

    def between_marks(self) -> dict[str, list[Record]]:
        """The records of each case, in the order they were kept; those of results and marks left
        out."""
        main = min(self.trace.processes)
        found: dict[str, list[Record]] = {}
        at = None
        for record in self.trace.records:
            mark = re.fullmatch(re.escape(str(self.directory)) + r"/(begin|end)/(.+)", record.file)
            if record.process != main or record.file.endswith(".results"):
                continue
            if mark:
                at = found.setdefault(mark[2], []) if mark[1] == "begin" else None
            elif at is not None:
                at.append(record)
        return found

    def describe(self, record: Record, own: str) -> str:
        """The record in the language of the expectations."""
        words = [record.op]
        if record.size:
            words.append(str(record.size))
        if record.offset is not None:
            words.append(f"@{record.offset}")
        if record.flags & ERROR:
            words.append(f"error={errno.errorcode.get(record.error, record.error)}")
        words += [word for word in ("short", "below", "nested") if getattr(record, word)]
        file = record.file.removeprefix(str(self.directory) + "/") or "-"
        if not fnmatchcase(file, own):
            words.append(f"on={file}")
        return " ".join(words)

    def ends_of(self, case: str) -> list[str]:
        marks = {r.process for r in self.trace.records
            if r.file == f"{self.directory}/child/{case}"}
        return [f"child end={self.trace.processes[number].end_kind}" for number in marks]


def matches(expected: str, found: str) -> bool:
    """Word by word; the file name of the expectation is a pattern."""
    want, have = sorted(expected.split(" ")), sorted(found.split(" "))
    return len(want) == len(have) and all(
        fnmatchcase(h, w) if w.startswith("on=") else h == w
        for w, h in zip(want, have, strict=True)
    )


def difference(seen: Seen, case: Case, records: list[Record]) -> str | None:
    pattern = re.match(r"\[(.*?)\] ", case.expected)
    own = pattern[1] if pattern else case.name
    text = case.expected.removeprefix(pattern[0]) if pattern else case.expected
    expected = [part.strip() for part in text.split(";") if part.strip()]
    found = [seen.describe(record, own) for record in records] + seen.ends_of(case.name)
    if len(expected) == len(found) and all(matches(e, f)
            for e, f in zip(expected, found, strict=True)):
        return None
    return (
        f"{case.name}: expected {'; '.join(expected)}\n{' ' * len(case.name)}     found "
        f"{'; '.join(found)}"
    )


@pytest.fixture(scope="module", params=PROGRAMS)
def seen(request, tmp_path_factory, preload, cc, execute) -> Seen:
    return Seen(request.param, tmp_path_factory.mktemp(request.param), preload, cc, execute)


def test_each_call_leaves_the_records_it_should(seen):
    found = seen.between_marks()
    assert seen.trace.records and seen.cases
    checked = [case for case in seen.cases if case.name not in seen.missing]
    wrong = [difference(seen, case, found.get(case.name, [])) for case in checked]
    assert [text for text in wrong if text] == [], "\n" + "\n".join(text for text in wrong if text)


def test_only_functions_of_newer_libraries_are_missing(seen):
    assert [name for name in seen.missing if not MAY_BE_MISSING.match(name)] == []


def test_the_program_gets_and_makes_the_same_without_weir(seen):
    assert seen.traced.results.splitlines() == seen.bare.results.splitlines()
    assert seen.traced.status == seen.bare.status
    assert seen.traced.status[0] == 0
    assert seen.traced.files == seen.bare.files


def test_nothing_was_lost(seen):
    assert [p for p in seen.trace.processes.values() if p.lost_events or p.failures] == []


def test_every_row_of_the_table_has_a_case(cc, execute):
    rows = set(re.findall(r"^WEIR_HOOKED\((\w+), c,", TABLE.read_text(), re.M))
    cases = {case.symbol for name in PROGRAMS
        for case in cases_of(execute, compile_program(cc, name))}
    assert len(rows) > 150
    assert sorted(rows - cases) == []
    assert sorted(cases - rows) == []
