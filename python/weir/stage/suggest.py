# SPDX-License-Identifier: Apache-2.0
"""Rules with the layer stage from what a run did with its files: the transfer matrix says which
travel from step to step.

Whether a file is wanted after the run cannot be seen in a trace, but for one that the run removes:
it alone may stay on a tier. All others arrive at their place."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from weir.analysis.names import escaped, toml_string
from weir.analysis.patterns import find_patterns
from weir.report.flow.compute import CARRIED, OUTPUT, SCRATCH, FileFlow

DRAIN = {CARRIED: "async", SCRATCH: "never", OUTPUT: "async"}
_DIGITS = "0123456789"
_WHY = {
    CARRIED: "written in one step and read in a later one: read from the tier, and brought to its "
             "place in the background",
    SCRATCH: "made, read and removed by the run: stays on the tier",
    OUTPUT: "goes to its place in the background",
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
    files = [_by_end(file) for file in files]
    paths = [os.path.normpath(os.path.join(cwd, file.file)) for file in files]
    kinds = [_kind(file) for file in files]
    made = []
    for pattern in find_patterns(paths, kinds):
        role = files[pattern.members[0]].role
        if role not in DRAIN or not _written(files, pattern.members):
            continue
        path = rule_pattern(pattern.text, [paths[i] for i in pattern.members])
        members = set(pattern.members)
        others = tuple(sorted(paths[i] for i in range(len(files)) if i not in members
            and DRAIN.get(files[i].role) != DRAIN[role] and fits(paths[i], path)))
        uses = [use for i in members for use in files[i].uses if use is not None]
        made.append(Suggestion(role, path, tuple(paths[i] for i in pattern.members),
            sum(u.bytes_written for u in uses),
            sum(u.bytes_read for u in uses), others))
    return sorted(made, key=lambda one: -one.bytes_written - one.bytes_read)


def _by_end(file: FileFlow) -> FileFlow:
    """Scratch is what the run removes itself, whatever step reads it; what is made and read within
    a step and stays is a result."""
    if file.role not in (CARRIED, SCRATCH):
        return file
    if file.removed and not file.has_other_names:
        return replace(file, role=SCRATCH)
    return replace(file, role=CARRIED if file.role == CARRIED else OUTPUT)


def _kind(file: FileFlow) -> str:
    """Patterns are of files that get the same rule."""
    return DRAIN.get(file.role, "place") + file.role * (file.role in DRAIN)


def _written(files: Sequence[FileFlow], members: Iterable[int]) -> bool:
    return any(use.bytes_written for i in members for use in files[i].uses if use is not None)


def rule_pattern(text: str, paths: Sequence[str]) -> str:
    """The pattern in the words of rules; one path as it is. `*` and `?` in names of several are
    left: they match these as well."""
    if len(paths) == 1:
        return exactly(paths[0])
    return re.sub(r"<[A-Z][0-9]*>", "*", _in_brackets(r"[\[\\]", text))


def narrow_pattern(paths: Sequence[str]) -> str:
    """A pattern that fits fewer other paths, part by part: what its names begin with, a digit where
    numbers follow, and their extension. "": the paths are in directories of different depth."""
    parts = [path.split("/") for path in paths]
    if len({len(one) for one in parts}) != 1:
        return ""
    return "/".join(_narrow_part(sorted(set(names))) for names in zip(*parts))


def _narrow_part(names: Sequence[str]) -> str:
    if len(names) == 1:
        return exactly(names[0])
    begin = os.path.commonprefix(names).rstrip(_DIGITS)
    rests = [name[len(begin):] for name in names]
    end = os.path.commonprefix([rest[:0:-1] for rest in rests])[::-1]
    end = end[end.find("."):] if "." in end else ""
    first = "[0-9]" if all(rest[:1] in _DIGITS and rest for rest in rests) else (
        "" if begin or any(rest.startswith(".") for rest in rests) else "[!.]")
    return f"{exactly(begin)}{first}*{exactly(end)}"


def exactly(path: str) -> str:
    """The pattern that this path alone fits (docs/formats/rules.md)."""
    return _in_brackets(r"[*?\[\\]", path)


def _in_brackets(which: str, text: str) -> str:
    """A backslash hides what is behind it, also within brackets. A byte that is no character of
    UTF-8 cannot stand in a file of rules: ? is any byte."""
    made = re.sub(which, lambda m: r"\\" if m[0] == "\\" else f"[{m[0]}]", text)
    return "".join("?" if 0xDC80 <= ord(one) <= 0xDCFF else one for one in made)


def fits(path: str, pattern: str) -> bool:
    """Whether a rule with this pattern is for the path; fnmatch of Python takes a backslash for
    itself."""
    return fnmatchcase(path, pattern.replace(r"\\", "[\\]"))


def rules_text(made: Sequence[Suggestion], tier: Path, run: str) -> str:
    """A file of rules, with the reason of each."""
    lines = [f"# Rules for the files of {escaped(run)}, by `weir stage suggest`."]
    if any(one.role == SCRATCH for one in made):
        lines += ["# A file that a run does not remove stays on the tier under drain=never, where",
            "# a program without these rules does not find it."]
    lines.append("")
    for one in made:
        size = f"{one.bytes_written / 1e6:.3f} MB written, {one.bytes_read / 1e6:.3f} MB read"
        lines.append(f"# {one.files} file{'s' * (one.files != 1)}, {size}:")
        lines.append(f"# {_WHY[one.role]}")
        rule = ['[[rule]]', f"path = {toml_string(one.path)}",
            f"stack = {toml_string(f'stage:tier={tier}:drain={DRAIN[one.role]}')}"]
        if one.others:
            lines.append(f"# not used: the pattern also matches files of another use, such as "
                         f"{escaped(one.others[0])}")
            rule = [f"# {line}" for line in rule]
        lines += [*rule, ""]
    if not made:
        lines.append("# No file is written that a later step alone reads, or nobody.")
    return "\n".join(lines).rstrip() + "\n"
