# SPDX-License-Identifier: Apache-2.0
"""Which calls on files failed, and why, without the searches that programs make by failing calls
(open and stat of names that do not exist).

A failed read, write, close or change of a file is listed with any error but _HARMLESS; what
programs try (opens, _TRIED) where the error is one of _STORAGE, or EACCES and EPERM of a file that
is written as well. The records alone have the error.
"""

from __future__ import annotations

import errno
from collections import Counter
from dataclasses import dataclass

import numpy as np

from weir.analysis.columns import Columns, has_class, has_name, merged
from weir.analysis.columns import rows as rows_of
from weir.analysis.names import NO_NAME
from weir.analysis.remote import pass_over_records
from weir.analysis.step import StepData
from weir.report.frame.build import Report, StepReport, figure
from weir.trace.events import read_events
from weir.trace.file import LOST
from weir.trace.ops import POSIX, STDIO, ops

_CHANGES = frozenset(
    "fsync fdatasync sync_file_range ftruncate truncate fallocate posix_fallocate msync syncfs "
    "aio_fsync fflush".split())
# Programs try copies inside the kernel first, and names that may be there.
_TRIED = frozenset("mkdir rename link symlink mknod sendfile sendfile_in copy_file_range "
    "copy_file_range_in splice splice_in".split())
_STORAGE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ESTALE,
    errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ETIMEDOUT})
_REFUSED = frozenset({errno.EACCES, errno.EPERM})
# A file system that lacks an operation, and a call that is made again.
_HARMLESS = frozenset({errno.EINTR, errno.EAGAIN, errno.EOPNOTSUPP, errno.ENOSYS, errno.EISDIR,
    errno.ENOTTY, errno.EINVAL, errno.EXDEV})
_MOST_RECORDS = 20_000_000  # of the processes with failed opens, which are many: a pass over them


@dataclass(frozen=True)
class Failure:
    """Calls of one operation on one file that failed alike. file: None where no names are kept;
    error: errno, None where the step has no records."""

    step: str
    file: str | None
    op: str
    error: int | None
    calls: int

    @property
    def is_write(self) -> bool:
        return any(one.name == self.op and one.op_class == "W" for one in ops().values())


@figure
def failures_of(report: Report) -> list[Failure]:
    """Of the chosen members; those with most calls first."""
    found = [one for step in report.steps for one in failures_of_step(step)]
    return sorted(found, key=lambda one: (not one.is_write, -one.calls, one.file or "", one.op))


@figure
def failures_of_step(step: StepReport) -> list[Failure]:
    data, failed = step.data, _failed(step.sums)
    if step.keeps_names:
        failed = failed.where(failed.name != NO_NAME)  # close of a number that is no descriptor
    sure = has_class("RWC" if step.keeps_names else "RW") | has_name(_CHANGES)
    sure &= ~has_name(_TRIED)
    if step.level != "trace":
        rows = rows_of(merged(failed.where(sure[failed.op]), "name", "op"))
        return [_made(step, (row.name, row.op, 0), row.errors) for row in rows]
    others = has_class("O") | has_name(_TRIED)
    wanted = np.zeros(256, bool)
    wanted[failed.op] = True
    wanted &= sure | others
    of_members = _failed(step.of_members)
    members = np.zeros(len(data.members), bool)
    members[of_members.member[wanted[of_members.op] & sure[of_members.op]]] = True
    opens = of_members.member[wanted[of_members.op] & others[of_members.op]]
    if sum(data.members[at].process.events for at in np.unique(opens).tolist()) <= _MOST_RECORDS:
        members[opens] = True
    names = frozenset(np.unique(failed.name[wanted[failed.op]]).tolist())
    written = step.sums.name[step.sums.by_code("W") & (step.sums.calls > step.sums.errors)]
    counts = _counted(data, wanted, members, names) if members.any() else Counter()
    its = set(written.tolist())
    return [_made(step, key, calls) for key, calls in counts.items()
        if _is_unusual(key[2], bool(sure[key[1]]), key[0] in its)]


def _made(step: StepReport, key: tuple[int, int, int], calls: int) -> Failure:
    """key: number of the name, operation and errno, 0 where it is not known."""
    name, op, error = key
    return Failure(step.name, None if name == NO_NAME else step.names[name], ops()[op].name,
        error or None, calls)


def _is_unusual(error: int, is_sure: bool, is_written: bool) -> bool:
    if is_sure:
        return error not in _HARMLESS
    return error in _STORAGE or (error in _REFUSED and is_written)


def _failed(columns: Columns) -> Columns:
    """Rows with calls that failed, at the lowest level seen, on files."""
    is_low = (columns.layer == POSIX) | (columns.layer == STDIO)
    return columns.where((columns.errors > 0) & is_low & columns.is_file)


@pass_over_records
def _counted(data: StepData, wanted: np.ndarray, members: np.ndarray,
        names: frozenset[int]) -> Counter[tuple[int, int, int]]:
    """Failed calls by number of the name, operation and errno. cost: a pass over the records of
    these members."""
    found: Counter[tuple[int, int, int]] = Counter()
    for index, file in enumerate(data.files):
        first = data.first_member(index)
        chosen = members[first : first + len(file.processes)]
        if not chosen.any():
            continue
        numbers = np.r_[data.name_numbers[index], np.int32(NO_NAME)]
        for events in read_events(file, data.lines[index].native(), wanted=wanted, chosen=chosen):
            at = np.flatnonzero((events["error"] != 0)
                & ((events["layer"] == POSIX) | (events["layer"] == STDIO)))
            text = events["text"][at]
            name = numbers[np.where(text == LOST, len(numbers) - 1, text)]
            kept = np.isin(name, list(names))
            found.update(zip(name[kept].tolist(), events["op"][at][kept].tolist(),
                events["error"][at][kept].tolist()))
    return found
