# SPDX-License-Identifier: Apache-2.0
"""Rules with the layer stage from what a run did with its files: the transfer matrix says which
only travel from step to step."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from weir.analysis.patterns import find_patterns
from weir.report.flow.compute import CARRIED, OUTPUT, SCRATCH, FileFlow

_DRAIN = {CARRIED: "never", SCRATCH: "never", OUTPUT: "async"}
_WHY = {
    CARRIED: "written in one step and read in a later one, then used by nobody: stays on the tier",
    SCRATCH: "made and read within one step: stays on the tier",
    OUTPUT: "written and not read again: goes to its place in the background",
}


@dataclass(frozen=True)
class Suggestion:
    """One rule. path: a pattern of rules; paths: the files that it is for; others: files of another
    role that it would match, for which it cannot be used."""

    role: str
    path: str
    paths: tuple[str, ...]
    bytes_written: int
    bytes_read: int
    others: tuple[str, ...]

    @property
    def files(self) -> int:
        return len(self.paths)


def suggestions(files: Sequence[FileFlow], cwd: str) -> list[Suggestion]:
    """What is carried, scratch or output, most bytes first; a file that is updated in place, or is
    there before the run, is left where it is."""
    paths = [os.path.normpath(os.path.join(cwd, file.file)) for file in files]
    kinds = [_kind(file) for file in files]
    made = []
    for pattern in find_patterns(paths, kinds):
        role = files[pattern.members[0]].role
        if role not in _DRAIN or not _written(files, pattern.members):
            continue
        path = rule_pattern(pattern.text, [paths[i] for i in pattern.members])
        members = set(pattern.members)
        others = tuple(sorted(paths[i] for i in range(len(files)) if i not in members
            and kinds[i] != kinds[pattern.members[0]] and fits(paths[i], path)))
        uses = [use for i in members for use in files[i].uses if use is not None]
        made.append(Suggestion(role, path, tuple(paths[i] for i in pattern.members),
            sum(u.bytes_written for u in uses),
            sum(u.bytes_read for u in uses), others))
    return sorted(made, key=lambda one: -one.bytes_written - one.bytes_read)


def _kind(file: FileFlow) -> str:
    """Patterns are of files that get the same rule."""
    return _DRAIN.get(file.role, "place") + file.role * (file.role in _DRAIN)


def _written(files: Sequence[FileFlow], members: Iterable[int]) -> bool:
    return any(use.bytes_written for i in members for use in files[i].uses if use is not None)


def rule_pattern(text: str, paths: Sequence[str]) -> str:
    """The pattern in the words of rules; one path as it is. `*` and `?` in names of several are
    left: they match these as well."""
    if len(paths) == 1:
        return exactly(paths[0])
    return re.sub(r"<[A-Z][0-9]*>", "*", _in_brackets(r"[\[\\]", text))


def exactly(path: str) -> str:
    """The pattern that this path alone fits (docs/formats/rules.md)."""
    return _in_brackets(r"[*?\[\\]", path)


def _in_brackets(which: str, text: str) -> str:
    """A backslash hides what is behind it, also within brackets."""
    return re.sub(which, lambda m: r"\\" if m[0] == "\\" else f"[{m[0]}]", text)


def fits(path: str, pattern: str) -> bool:
    """Whether a rule with this pattern is for the path; fnmatch of Python takes a backslash for
    itself."""
    return fnmatchcase(path, pattern.replace(r"\\", "[\\]"))


def rules_text(made: Sequence[Suggestion], tier: Path, run: str) -> str:
    """A file of rules, with the reason of each."""
    lines = [f"# Rules for the files of {run}, by `weir stage suggest`. The roles are those of",
        "# this run: a program that was not traced, such as an archive job, may need a file that",
        "# stays on the tier. Then change its drain to \"end\" or \"async\".", ""]
    for one in made:
        size = f"{one.bytes_written / 1e6:.3f} MB written, {one.bytes_read / 1e6:.3f} MB read"
        lines.append(f"# {one.files} file{'s' * (one.files != 1)}, {size}:")
        lines.append(f"# {_WHY[one.role]}")
        rule = ['[[rule]]', f'path = "{_quoted(one.path)}"',
            f'stack = "stage:tier={tier}:drain={_DRAIN[one.role]}"']
        if one.others:
            lines.append(f"# not used: the pattern also matches files of another use, such as "
                         f"{one.others[0]}")
            rule = [f"# {line}" for line in rule]
        lines += [*rule, ""]
    if not made:
        lines.append("# No file is written that a later step alone reads, or nobody.")
    return "\n".join(lines).rstrip() + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
