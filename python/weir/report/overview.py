# SPDX-License-Identifier: Apache-2.0
"""The first screen of `weir report`: what was found in three sentences, the steps, the files that
matter, what was not seen, and which tables show more."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import islice

from weir.advise.advise import findings_of
from weir.advise.text import finding_line
from weir.analysis.names import matches
from weir.analysis.patterns import PATTERN_LEGEND
from weir.report.ahead import read_ahead
from weir.report.files.groups import FileGroup, file_groups
from weir.report.flow.table import FLOW
from weir.report.frame.amounts import plain
from weir.report.frame.build import Report
from weir.report.frame.figures import decimals, megabytes, rate
from weir.report.frame.kind import ALL, Options
from weir.report.frame.table import Table, wrapped
from weir.report.notes import LEFT_OUT, SHOWN_BY, notes
from weir.report.registry import KINDS
from weir.report.sentences import heading, is_grave, sentences
from weir.report.steps.table import step_table
from weir.report.wall.critical import critical_by_file, critical_by_group

MOST_SENTENCES = 3
MOST_FINDINGS = 3
MOST_FILES = 10
MOST_STEPS = 10
MOST_NOTES = 3
CRITICAL_SHARE = 0.05  # of the run: from here on critical time decides the order of files
LEAST = 0.0005  # in the unit of the table: what takes less shows as 0
SHORT_NS = 100_000_000  # times that are all shorter are shown in ms


def overview(report: Report, options: Options) -> Iterator[Table | str]:
    """At most two screens. options: by, top, threshold_ns and pattern choose the files; width is
    that of the screen."""
    read_ahead(report, accesses=FLOW.is_quick(report))
    head, groups, found = heading(report), file_groups(report), notes(report)
    grave = [note for note in found if is_grave(note)]
    for note in grave:
        yield from wrapped(f"note: {note}", options.width)
    if grave:
        yield ""
    facts = " · ".join(filter(None, (head["facts"], head["who"]))).replace(" · ", ", ")
    said = textwrap.fill(f"{head['run']}: {facts}", options.width, subsequent_indent="  ",
        break_on_hyphens=False)
    yield plain(said)
    yield ""
    for sentence in islice(sentences(report, groups), MOST_SENTENCES):
        yield plain(textwrap.fill(sentence, options.width, break_on_hyphens=False))
    yield from _findings(report, options)
    yield _step_table(report)
    files = _file_table(report, groups, options)
    if files.rows:
        yield files
    yield from notes_below(found, options, MOST_NOTES)
    yield "\nMore tables"
    yield from _more(report, options)


def _findings(report: Report, options: Options) -> Iterator[str]:
    """What `weir advise` has more of, those that are worth most. Of many ranks and files the
    command alone: findings need a pass over all records, which the rest of the overview does not.
    """
    if not FLOW.is_quick(report):
        yield "\nFindings: weir advise RUN (takes long for so many ranks and files)"
        return
    found = findings_of(report).advices
    if not found:
        return
    yield f"\nFindings ({min(len(found), MOST_FINDINGS)} of {len(found)}; weir advise RUN prints " \
          "all, with what cures them)"
    for one in found[:MOST_FINDINGS]:
        yield plain(textwrap.fill(finding_line(one), options.width, initial_indent="- ",
            subsequent_indent="  ", break_on_hyphens=False, break_long_words=False))


def notes_below(found: list[str], options: Options, most: int | None = None) -> Iterator[str]:
    """Notes that do not stand above the figures, and what these leave out. most: of each."""
    left_out = [note.removeprefix(LEFT_OUT).removesuffix(SHOWN_BY) for note in found
        if note.startswith(LEFT_OUT)]
    others = [note for note in found if not is_grave(note) and not note.startswith(LEFT_OUT)]
    for title, listed in (("Notes", others), (f"Left out of these figures{SHOWN_BY}", left_out)):
        if listed:
            yield f"\n{title}"
            yield from _listed(listed, options, len(listed) if most is None else most)


def _listed(found: list[str], options: Options, most: int) -> Iterator[str]:
    hidden = len(found) - most
    more = [f"{hidden} more {'note' if hidden == 1 else 'notes'}: --tables "
            f"all"] if hidden > 0 else []
    wrapped = textwrap.TextWrapper(
        options.width, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False,
        break_long_words=False
    )
    yield from map(wrapped.fill, found[:most] + more)


def _step_table(report: Report) -> Table:
    """Of many steps those with the most I/O time, in the order of the run."""
    whole = step_table(report)
    if len(whole.rows) <= MOST_STEPS:
        return whole
    most = sorted(range(len(report.steps)), key=lambda at: -report.steps[at].all.ns)[:MOST_STEPS]
    kept = tuple(whole.rows[at] for at in sorted(most))
    return Table(f"Steps with the most I/O time ({MOST_STEPS} of {len(whole.rows)}; --tables "
                 f"steps)", whole.columns, kept, whole.groups, whole.footer)


def _file_table(report: Report, groups: list[FileGroup], options: Options) -> Table:
    """Groups of files by critical time where that explains a part of the run, else by I/O time; or
    by the key that was asked for."""
    critical = critical_by_file(report)
    costs = critical_by_group(groups, critical)
    explains = sum(critical.values()) >= CRITICAL_SHARE * report.wall_ns and bool(critical)
    keys = {
        "time": lambda one: (-costs[one] * explains, -one.ns, -one.bytes, one.name),
        "mb": lambda one: (-one.bytes, one.name),
        "rate": lambda one: (-rate(one.bytes, one.ns), one.name),
        "calls": lambda one: (-one.calls, one.name),
        "file": lambda one: one.name,
    }
    wanted = options.pattern
    kept = [
        one
        for one in sorted(groups, key=keys[options.by])
        if one.ns >= options.threshold_ns
        and (wanted is None or any(matches(path, wanted) for path in one.members))
    ]
    top = MOST_FILES if options.top is None else options.top or None
    columns = ("critical",) * bool(critical) + ("I/O", "MB", "Calls", "files", "<use",
        "<File, or files of one pattern")
    unit, unit_ns = ("ms", 1e6) if max((one.ns for one in kept[:top]), default=0) < SHORT_NS else (
        "s", 1e9)
    listed = kept
    if options.by == "time" and options.top is None and wanted is None:
        listed = [one for one in kept if max(one.ns, costs[one]) >= LEAST * unit_ns] or kept
    cells = [_cells(one, costs[one] if critical else None, unit_ns) for one in listed[:top]]
    less = len(kept) - len(listed) if len(listed) <= len(cells) else 0
    by = {"time": "critical time, then by I/O time" if explains else "I/O time"}.get(options.by,
        options.by)
    if critical and not explains and options.by == "time":
        by += f" (critical time is below {CRITICAL_SHARE:.0%} of the run)"
    return Table(
        f"Files by {by} ({len(cells)} of {len(kept)} lines)" if len(cells) < len(kept)
        else f"Files by {by}",
        columns,
        tuple(cells),
        ((unit, 1 + bool(critical)), ("", 5)),
        remarks=(*_legend(bool(critical), cells), *[f"not listed: {less} with less than {LEAST} "
            f"{unit}; --top 0 lists all"] * bool(less)),
    )


def _legend(has_critical: bool, cells: list[tuple[str, ...]]) -> Iterator[str]:
    if has_critical:
        yield "critical: time by which I/O on the file delays the run"
    yield "use: r bytes were read, w written; empty: neither (open, stat, ...)"
    if any(row[-3] != "1" for row in cells):
        yield PATTERN_LEGEND.replace("one line", "one line and use")


def _cells(one: FileGroup, critical_ns: int | None, unit_ns: float) -> tuple[str, ...]:
    times = [f"{ns / unit_ns:.3f}" for ns in (critical_ns, one.ns) if ns is not None]
    return (*times, decimals(megabytes(one.bytes)), str(one.calls), str(one.files), one.use,
        one.name)


def _more(report: Report, options: Options) -> Iterator[str]:
    """Which option shows what."""
    found = [kind for kind in KINDS if kind.has_more(report)]
    name = max(len(kind.name) for kind in found) + 2
    for kind in found:
        yield textwrap.fill(kind.shows, options.width, initial_indent=f"  {kind.name:<{name}}",
            subsequent_indent=" " * (name + 2))
    yield f"\nPrint them: weir report RUN --tables NAME,NAME (or {ALL}); a page: --html FILE"
