# SPDX-License-Identifier: Apache-2.0
"""Writes the page of docs/validation from the saved results."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from harness.compare import Difference, Known, find_differences, unstable_items
from harness.model import Mode, Result, Suite

_HEAD = (
    "# Programs and suites of others, with weir\n\n"
    "<!-- made by `make third-party` from the results of the last run; tests/third_party declares "
    "the suites -->\n\n"
    "Do programs of others give the same results with weir? Each test suite is run without weir "
    "(`plain`, `again`) and in the other modes of the table: traced, or with one layer on **all** "
    "files that it opens (`tiny`: with the smallest buffers). Compared are the exit status of each "
    "step, the result of each test, the bytes of the files that the suite leaves, and what it "
    "prints. What differs between two runs without weir is not compared. To run the suites: "
    "`make third-party` ([modes](../../tests/third_party/modes.toml), "
    "[options](../../tests/third_party/README.md)).\n"
)
_READ = (
    "\nA cell has the number of tests that passed, then `-N` if N items (tests, files, outputs) "
    "differ from the plain run for a known reason, and `!N` if N items differ without one. `.`: "
    "not run. A raised letter: measured with another build, named below the table.\n"
)
_LACKING = (
    "These runs were not made, or did not end: all suites in all modes take hours on two cores. "
    "`make third-party` makes them; it does not repeat a run that has a result of the same build."
)


@dataclass(frozen=True)
class Row:
    """A suite with all its results, by mode."""

    suite: Suite
    results: Mapping[str, Result]
    unstable: set[str]
    differences: list[Difference]


def make_row(suite: Suite, results: Mapping[str, Result], modes: Sequence[Mode],
        known: list[Known]):
    """The row of a suite; without results, or without a plain one, there is nothing to compare."""
    plain = results.get("plain")
    unstable = unstable_items(results[m.name] for m in modes if not m.uses_weir
        and m.name in results)
    found = []
    if plain and not plain.missing:
        for mode in modes:
            other = results.get(mode.name)
            if mode.uses_weir and other and not other.missing:
                found += find_differences(plain, unstable, other, known)
    return Row(suite, results, unstable, found)


@dataclass(frozen=True)
class Build:
    """A preload library that results were made with. letter: "" for the one of most runs."""

    weir: str
    runs: int
    letter: str = ""


def find_builds(rows: Sequence[Row]) -> dict[str, Build]:
    """The builds of all results by their digest; the first is the one of most runs."""
    ran = [r for row in rows for r in row.results.values() if r.library and not r.missing]
    names = {r.library: r.weir or "of unknown version" for r in ran}
    ordered = Counter(r.library for r in ran).most_common()
    return {
        library: Build(names[library], runs, "" if i == 0 else chr(ord("a") + (i - 1) % 26))
        for i, (library, runs) in enumerate(ordered)
    }


def _cell(row: Row, mode: Mode, builds: Mapping[str, Build]) -> str:
    result = row.results.get(mode.name)
    if result is None or result.missing:
        return "."
    counts = Counter(bool(d.cause) for d in row.differences if d.mode == mode.name)
    parts = [str(result.passes())]
    parts += [f"-{counts[True]}"] if counts[True] else []
    parts += [f"!{counts[False]}"] if counts[False] else []
    parts += [f"<sup>{builds[result.library].letter}</sup>"] if result.library and builds[
        result.library].letter else []
    return " ".join(parts)


def _table(rows: Sequence[Row], modes: Sequence[Mode], builds: Mapping[str, Build]) -> list[str]:
    lines = ["| suite | " + " | ".join(m.name for m in modes) + " |", "|---|" + "--:|" * len(modes)]
    for row in rows:
        plain = row.results.get("plain")
        if plain is None or plain.missing:
            why = plain.missing if plain else "no result"
            lines.append(f"| {row.suite.name} | not run: {why} " + "| " * (len(modes) - 1) + "|")
        else:
            lines.append(f"| {row.suite.name} | " + " | ".join(_cell(row, m, builds)
                for m in modes) + " |")
    return lines


def _letters(builds: Mapping[str, Build]) -> list[str]:
    marked = [f"{b.letter}: weir {b.weir}" for b in builds.values() if b.letter]
    return ["", "Builds: " + "; ".join(marked) + "."] if marked else []


def _is_in_matrix(suite: Suite, mode: Mode) -> bool:
    return not any(fnmatchcase(mode.name, pattern) for pattern in suite.leave_out)


def _suites(rows: Sequence[Row]) -> list[str]:
    lines = ["| suite | what it is | version | tests | files compared | left out of the comparison "
             "| plain, s |"]
    lines.append("|---|---|---|--:|--:|--:|--:|")
    for row in rows:
        plain = row.results.get("plain")
        if plain and not plain.missing:
            tests = sum(len(step.tests) for step in plain.steps.values())
            counts = f"{tests} | {len(plain.outputs)} | {len(row.unstable)} | {plain.seconds():.0f}"
            lines.append(f"| {row.suite.name} | {row.suite.title} | {plain.version} | {counts} |")
    return lines


def _step_of(item: str) -> str:
    """The step that an item belongs to; an output file is one of its own."""
    return item.partition("::")[0].partition(": ")[0]


def _join(values: Iterable[str], shown: int = 12) -> str:
    """The first values, and how many more there are."""
    every = sorted(set(values))
    more = len(every) - shown
    return ", ".join(every[:shown]) + (f" and {more} more" if more > 0 else "")


def _known_lines(found: Sequence[Difference]) -> list[str]:
    """One line for each suite and cause."""
    groups: dict[tuple[str, str], list[Difference]] = {}
    for d in found:
        groups.setdefault((d.suite, d.cause), []).append(d)
    lines = ["| suite | cause | items | in | modes |", "|---|---|--:|---|---|"]
    for (suite, cause), members in sorted(groups.items()):
        steps = _join(f"`{_step_of(d.item)}`" for d in members)
        lines.append(f"| {suite} | {cause} | {len(members)} | {steps} | "
                     f"{_join(d.mode for d in members)} |")
    return lines


def _unknown_lines(found: Sequence[Difference]) -> list[str]:
    """One line for each item, with what was found in its place."""
    groups: dict[tuple[str, str], list[Difference]] = {}
    for d in found:
        groups.setdefault((d.suite, d.item), []).append(d)
    lines = ["| suite | item without a known cause | plain | found | modes |",
        "|---|---|---|---|---|"]
    for (suite, item), members in sorted(groups.items()):
        shown = item.replace("|", "\\|")
        values = _join(d.found for d in members)
        row = (suite, f"`{shown}`", members[0].plain, values, _join(d.mode for d in members))
        lines.append("| " + " | ".join(row) + " |")
    return lines


def _differences(rows: Sequence[Row]) -> list[str]:
    found = [d for row in rows for d in row.differences]
    known = [d for d in found if d.cause]
    unknown = [d for d in found if not d.cause]
    tables = [_known_lines(known)] if known else []
    tables += [_unknown_lines(unknown)] if unknown else []
    if not tables:
        return ["None."]
    return [line for table in tables for line in (*table, "")][:-1]


def _left_out(rows: Sequence[Row]) -> list[str]:
    return [
        f"- {row.suite.name}, {pattern}: {why}."
        for row in rows
        for pattern, why in row.suite.leave_out.items()
    ]


def _without_result(rows: Sequence[Row], modes: Sequence[Mode]) -> list[str]:
    """The cells that are to be run and were not, or not since the suite or its sources were there.
    """
    lines = []
    for row in rows:
        ran = {name for name, result in row.results.items() if not result.missing}
        lacking = [m.name for m in modes if _is_in_matrix(row.suite, m) and m.name not in ran]
        if lacking:
            lines.append(f"- {row.suite.name}: {', '.join(lacking)}.")
    return lines


def _wrapped(line: str) -> str:
    """A paragraph or an item of a list in lines of at most 100 columns; rows of tables stay."""
    if line.startswith(("|", "<!--")):
        return line
    indent = "  " if line.startswith("- ") else ""
    return textwrap.fill(
        line, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def write_page(
    rows: Sequence[Row],
    modes: Sequence[Mode],
    still_open: Sequence[Mapping[str, str]] = (),
) -> str:
    """The whole page. still_open: seen outside of these runs."""
    found = [d for row in rows for d in row.differences]
    unknown = sum(not d.cause for d in found)
    ran = [r for row in rows for r in row.results.values() if not r.missing]
    compared = sum(len(r.items()) for r in ran if r.library)
    builds = find_builds(rows)
    measured = " and ".join(f"{b.weir} ({b.runs} runs)" for b in builds.values()) or "no build"
    matrix = sum(_is_in_matrix(row.suite, mode) for row in rows for mode in modes)
    summary = (
        f"Measured with weir {measured}: {len({r.suite for r in ran})} suites, {len(ran)} of "
        f"{matrix} runs (those without weir included), {compared:,} items compared, "
        f"**{len(found)} differences**, {unknown} of them without a known cause. Open differences "
        f"seen outside of these runs: {len(still_open)}."
    )
    parts = [_HEAD, summary, _READ, *_table(rows, modes, builds), *_letters(builds), "",
        "## The suites", "", *_suites(rows)]
    parts += ["", "## Differences", "", *_differences(rows)]
    if still_open:
        parts += ["", "## Open: seen in runs that are not in the table", ""]
        parts += [f"- {o['suite']}, {o['mode']}: {o['seen']}." for o in still_open]
    if left_out := _left_out(rows):
        parts += ["", "## Left out, with the reason", "", *left_out]
    if lacking := _without_result(rows, modes):
        parts += ["", "## Without a result", "", _LACKING, "", *lacking]
    return "\n".join(map(_wrapped, "\n".join(parts).splitlines())) + "\n"
