# SPDX-License-Identifier: Apache-2.0
"""Files that belong together: names that differ in numbers that vary together, used in the same
way."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from weir.analysis.names import shown
from weir.analysis.patterns import as_regex, find_patterns
from weir.report.files.compute import FileTotals, files_of
from weir.report.frame.build import Report, figure
from weir.report.frame.figures import decimals
from weir.report.frame.table import Table

TOP = 20
EXAMPLES = 2  # of file names, behind a pattern that does not tell them


@dataclass(frozen=True)
class FileGroup:
    """Files of one pattern; name: as it is shown, the file's own when it is alone. members: their
    paths."""

    name: str
    members: tuple[str, ...]
    ns: int
    calls: int
    bytes_read: int
    bytes_written: int

    @property
    def files(self) -> int:
        return len(self.members)

    @property
    def use(self) -> str:
        """r, w, rw, or nothing: whether bytes were read, written."""
        return "r" * bool(self.bytes_read) + "w" * bool(self.bytes_written)

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written


@figure
def file_groups(report: Report) -> list[FileGroup]:
    """All files, by pattern, those with the most I/O time first. Files that are read are never with
    files that are written."""
    every = files_of(report)
    patterns = find_patterns([one.file for one in every],
        [(one.bytes_read > 0, one.bytes_written > 0) for one in every])
    firsts = [every[one.members[0]].file for one in patterns]
    made = [
        _group(_shown(one.text, report.cwd), [every[i] for i in one.members],
            len(one.members) > 1 and _tells_no_names(one.text, firsts))
        for one in patterns
    ]
    return sorted(made, key=lambda one: (-one.ns, one.name))


def _shown(pattern: str, cwd: str | None) -> str:
    name = shown(pattern, cwd)
    return f"./{name}" if name.startswith("*") else name


def _tells_no_names(pattern: str, firsts: Sequence[str]) -> bool:
    """Whether file names of a pattern are worth examples: it ends in `*` alone, or fits files that
    are used otherwise and have a line of their own. firsts: a file of each line."""
    name = posixpath.basename(pattern)
    if "*" not in name:
        return False
    fits = as_regex(pattern).fullmatch
    return name == "*" or sum(fits(one) is not None for one in firsts) > 1


def _group(name: str, files: list[FileTotals], has_examples: bool) -> FileGroup:
    """Examples: different file names, of the files with most bytes."""
    if has_examples:
        first = sorted(files, key=lambda one: (-one.bytes, -one.ns, one.file))
        names = dict.fromkeys(shown(posixpath.basename(one.file), None) for one in first)
        name += f" ({', '.join(list(names)[:EXAMPLES])}{', ...' * (len(names) > EXAMPLES)})"
    ns, calls, read, written = (sum(getattr(one, key) for one in files)
        for key in ("ns", "calls", "bytes_read", "bytes_written"))
    return FileGroup(name, tuple(one.file for one in files), ns, calls, read, written)


def group_table(groups: list[FileGroup]) -> Table | None:
    """Nothing where every file is alone."""
    if all(one.files == 1 for one in groups):
        return None
    top = groups[:TOP]
    rows = tuple(
        (one.name, str(one.files),
            *(decimals(value) for value in (one.ns / 1e6, one.bytes_read / 1e6,
                one.bytes_written / 1e6)), str(one.calls))
        for one in top
    )
    of = f" ({len(top)} of {len(groups)})" if len(top) < len(groups) else ""
    return Table(f"Files that belong together{of}", ("<Files", "files", "ms", "MB read",
        "MB written", "Calls"), rows)
