# SPDX-License-Identifier: Apache-2.0
"""The name that a file had last, for each row of the columns: what is written as out.tmp and
renamed to out.nc is I/O on out.nc.

Which file a name stands for, and when, weir.report.files.naming tells. A row that lies before and
after its name was given to another file is parted by the records; where there are none it counts
for the file that had the name when it began.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from weir.analysis.columns import INTEGERS, Columns, distinct, merged
from weir.analysis.names import NO_NAME, NameTable
from weir.analysis.remote import pass_over_records
from weir.analysis.step import StepData
from weir.report.files.naming import (
    Files, Naming, files_behind, is_naming, is_unlink, namings, unlinked
)  # fmt: skip
from weir.report.frame.build import Report, StepReport, figure
from weir.trace.events import read_events
from weir.trace.file import LOST
from weir.trace.ops import BELOW, ERROR, EVENTS, NESTED, OF_OUTPUT, op_named

# In a step: of more, the first and the last one of each process stand for all with the same names.
_MOST_NAMINGS = 100_000
_KEYS = ("member", "name", "op", "layer", "flags")
# Of a step, timestamps by name: rows of what was done with each name until the first timestamp,
# then until the next one, ..., numbered as pieces_of() counts them, in place of names.
Split = Callable[[dict[int, list[int]]], Columns]


@dataclass(frozen=True)
class Named:
    """Rows of columns, and for each the number of the name that its file had last."""

    columns: Columns
    last: np.ndarray

    def by_last(self, mask: np.ndarray, known: Columns | None = None) -> tuple[Columns, np.ndarray]:
        """The rows that the mask chooses, under their last names; and the names under which they
        were recorded. known: these rows, where somebody has them already."""
        chosen = self.columns.where(mask) if known is None else known
        return replace(chosen, name=self.last[mask]), chosen.name


def last_names(columns: Columns, behind: Files, names: NameTable,
        split: Split | None = None) -> Named:
    """split: asked for names that a row has before and after another file got them."""
    cuts = cuts_of(columns, behind, names)
    if not cuts:
        return Named(columns, columns.name)

    def last_at(number: int, at: int) -> int:
        return names.number(behind.last_name(behind.at(names[number], at)[0]))

    last, several = columns.name.copy(), set()
    rows = np.flatnonzero(np.isin(columns.name, list(cuts)))
    for row, number, first, end in zip(rows.tolist(), *(getattr(columns, key)[rows].tolist()
            for key in ("name", "first_ns", "last_ns"))):
        last[row] = last_at(number, first)
        if any(first <= at < end and last_at(number, at + 1) != last[row] for at in cuts[number]):
            several.add(number)
    if split is None or not several:
        return Named(columns, last)
    cuts = {number: cuts[number] for number in sorted(several)}
    return _parted(Named(columns, last), cuts, split(cuts), last_at)


def cuts_of(columns: Columns, behind: Files, names: NameTable) -> dict[int, list[int]]:
    """By number of a name that stood for several files: the timestamps at which it began to stand
    for another one."""
    if behind.all_plain:
        return {}
    texts = {number: names[number] for number in distinct(columns.name).tolist()
        if number != NO_NAME}
    return {number: timestamps for number, text in texts.items() if not behind.is_plain(text)
        and (timestamps := behind.timestamps(text))}


def pieces_of(cuts: dict[int, list[int]]) -> list[tuple[int, int]]:
    """Name of each piece, and the last timestamp before it ends or, of the last piece of a name,
    one behind the last cut."""
    return [(number, at) for number, timestamps in cuts.items() for at in (*timestamps,
        timestamps[-1] + 1)]


@pass_over_records
def split_by_records(data: StepData, cuts: dict[int, list[int]]) -> Columns:
    """A Split of a step. cost: a pass over all records, a batch at a time."""
    begins = dict(zip(cuts, np.cumsum([0, *(len(timestamps) + 1 for timestamps in cuts.values())])
        .tolist()))
    found = Columns.empty()
    for index, file in enumerate(data.files):
        numbers = data.name_numbers[index]
        is_wanted, first = np.isin(numbers, list(cuts)), data.first_member(index)
        ranks = np.array([one.number for one in data.members[first : first + len(file.processes)]],
            np.int32)
        for events in read_events(file, data.lines[index].native()) if is_wanted.any() else ():
            at = np.flatnonzero((events["text"] != LOST) & (events["layer"] < EVENTS))
            at = at[is_wanted[events["text"][at]]]
            if len(at):
                one = {key: column[at] for key, column in events.items()}
                pieces = _pieces(numbers[one["text"]], one["start_ns"], cuts, begins)
                made = _columns(one, first, ranks, pieces,
                    file.array("texts")["is_file"][one["text"]] != 0)
                found = merged(Columns.joined([found, made]), *_KEYS)
    return found


def _pieces(numbers: np.ndarray, start_ns: np.ndarray, cuts: dict[int, list[int]],
        begins: dict[int, int]) -> np.ndarray:
    pieces = np.zeros(len(numbers), np.int32)
    for number in distinct(numbers).tolist():
        of = numbers == number
        pieces[of] = begins[number] + np.searchsorted(np.array(cuts[number], np.int64),
            start_ns[of])
    return pieces


def _columns(events: dict[str, np.ndarray], first: int, ranks: np.ndarray, pieces: np.ndarray,
        is_file: np.ndarray) -> Columns:
    failed = (events["flags"] & ERROR) != 0
    return Columns(
        member=events["process"].astype(np.int32) + np.int32(first), rank=ranks[events["process"]],
        name=pieces, op=events["op"],
        layer=events["layer"], flags=events["flags"] & np.uint8(BELOW | NESTED | OF_OUTPUT),
        is_file=is_file,
        calls=np.ones(len(failed), np.int64), bytes=np.where(failed, 0, events["bytes"])
        .astype(np.int64), ns=events["duration_ns"],
        errors=failed.astype(np.int64), first_ns=events["start_ns"], last_ns=events["start_ns"]
        + events["duration_ns"],
    )  # fmt: skip


def _parted(whole: Named, cuts: dict[int, list[int]], pieces: Columns,
        last_at: Callable[[int, int], int]) -> Named:
    """All rows of the names in cuts give way to their pieces. What no record tells counts where the
    row began."""
    is_cut = np.isin(whole.columns.name, list(cuts))
    made = pieces_of(cuts)
    of_piece = np.array([number for number, _ in made], np.int32)
    last = np.array([last_at(number, at) for number, at in made], np.int32)[pieces.name]
    pieces = replace(pieces, name=of_piece[pieces.name])
    rows = merged(whole.columns.where(is_cut), *_KEYS)
    place = {key: row
        for row, key in enumerate(zip(*(getattr(rows, key).tolist() for key in _KEYS)))}
    rest = {figure: getattr(rows, figure).copy() for figure in INTEGERS}
    ns, earliest = pieces.ns.copy(), {}
    for piece, key in enumerate(zip(*(getattr(pieces, key).tolist() for key in _KEYS))):
        row = place.get(key)
        if row is not None:
            earliest.setdefault(row, piece)
            for figure in INTEGERS:
                rest[figure][row] -= getattr(pieces, figure)[piece]
    for row, piece in earliest.items():
        if rest["calls"][row] == 0:  # what rounding left
            ns[piece] += rest["ns"][row]
            rest["ns"][row] = 0
    rows = replace(rows, **rest)
    left = rows.where((rows.calls != 0) | (rows.ns != 0))
    of_left = [last_at(number, at) for number, at in zip(left.name.tolist(),
        left.first_ns.tolist())]
    return Named(
        Columns.joined([whole.columns.where(~is_cut), replace(pieces, ns=ns), left]),
        np.concatenate([whole.last[~is_cut], last, np.array(of_left, np.int32)]),
    )


@pass_over_records
def naming_times(data: StepData, wanted: frozenset[int]) -> dict[int, list[int]]:
    """When each of these namings (numbers of their names) was made. cost: a pass over all records.
    """
    found: dict[int, list[int]] = {number: [] for number in wanted}
    naming = op_named("naming").value
    for index, file in enumerate(data.files):
        numbers = data.name_numbers[index]
        is_wanted = np.isin(numbers, list(wanted))
        for events in read_events(file, data.lines[index].native()) if is_wanted.any() else ():
            at = np.flatnonzero((events["op"] == naming) & (events["text"] != LOST))
            at = at[is_wanted[events["text"][at]]]
            for number, start in zip(numbers[events["text"][at]].tolist(),
                    events["start_ns"][at].tolist()):
                found[number].append(start)
    return found


@figure
def namings_of(step: StepReport) -> tuple[Naming, ...]:
    """Names that files were given in the step, and lost, by whomever."""
    rows = step.data.where(is_naming)
    has_records = step.level == "trace"
    often = frozenset(rows.name[rows.calls > 2].tolist() if has_records else ())
    is_recorded = often and rows.calls.sum() <= _MOST_NAMINGS
    given = namings(rows, step.names, naming_times(step.data, often) if is_recorded else None)
    return (*given, *(unlinked(step.data.where(is_unlink), step.names) if given else ()))


@figure
def files_of_names(report: Report) -> Files:
    """The files behind all names of the run."""
    made = [one for step in report.steps for one in namings_of(step)]
    opens = [_opens(step) for step in report.steps] if made else []
    return files_behind(made, [step.sums for step in report.steps], opens, report.names)


def _opens(step: StepReport) -> Columns:
    return step.data.where(
        lambda some: step.choice.rows(step.data, some) & some.by_code("O"))


@figure
def last_names_of(report: Report) -> list[Named]:
    """Of each step: all that its processes did, and the name that each file had last in the run;
    ranks of a file whose name is its own are added up. Where names stand for one file after the
    other within a step at level trace, this costs a pass over its records."""
    behind = files_of_names(report)

    def of(step: StepReport) -> Named:
        by_file = step.data.sums.by_file
        cuts = cuts_of(by_file, behind, report.names)
        if not cuts:
            return Named(by_file, by_file.name)
        whole = step.data.where(lambda some: np.isin(some.name, list(cuts)))
        columns = Columns.joined([whole, by_file.where(~np.isin(by_file.name, list(cuts)))])
        return last_names(columns, behind, report.names, _split(step))

    return [of(step) for step in report.steps]


def row_names_of(report: Report) -> list[Named]:
    """The same, with a row for each process and file, of the chosen ranks and launchers."""
    behind = files_of_names(report)

    def of(step: StepReport) -> Named:
        if report.choice.rank is None:
            return last_names(step.data.columns, behind, report.names, _split(step))
        found = last_names(step.data.where(lambda some: step.with_launchers[some.member]), behind,
            report.names, _split(step))
        chosen = step.with_launchers[found.columns.member]  # records of others were parted, too
        return Named(found.columns.where(chosen), found.last[chosen])

    return [of(step) for step in report.steps]


def _split(step: StepReport) -> Split | None:
    return partial(split_by_records, step.data) if step.level == "trace" else None


@figure
def renamed_of(report: Report) -> list[np.ndarray]:
    """Of each step: numbers of names whose file had another one last, rising, and of those; for
    tables whose rows cannot be parted in time. A name that several files had is not there."""
    found = []
    for one in last_names_of(report):
        of_renamed = np.isin(one.columns.name, one.columns.name[one.columns.name != one.last])
        pairs = np.unique(np.stack([one.columns.name[of_renamed], one.last[of_renamed]]), axis=1)
        names, first, count = np.unique(pairs[0], return_index=True, return_counts=True)
        found.append(np.stack([names[count == 1], pairs[1][first[count == 1]]]))
    return found


def by_last_number(names: np.ndarray, renamed: np.ndarray) -> np.ndarray:
    """Numbers of names, with those that have one in `renamed` replaced by it."""
    if not renamed.shape[1]:
        return names
    at = np.minimum(np.searchsorted(renamed[0], names), renamed.shape[1] - 1)
    return np.where(renamed[0][at] == names, renamed[1][at], names)


@figure
def columns_by_last_name(report: Report) -> tuple[Columns, np.ndarray]:
    """The report's columns with each file's last name, and the name that was used in each row."""
    named = zip(report.steps, last_names_of(report))
    parts = []
    for step, one in named:
        known = step.sums if one.columns is step.data.sums.by_file else None
        parts.append(one.by_last(report.choice.rows(step.data, one.columns), known))
    used = np.concatenate([used for _, used in parts] or [np.empty(0, np.int32)])
    return Columns.joined([columns for columns, _ in parts]), used
