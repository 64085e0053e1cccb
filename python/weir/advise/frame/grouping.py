# SPDX-License-Identifier: Apache-2.0
"""Files that one finding is about, by pattern, as rules name them."""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weir.advise.frame.facts import Facts, File, Files
from weir.advise.frame.finding import Advice
from weir.analysis.patterns import find_patterns
from weir.report.files.last_names import columns_by_last_name
from weir.stage.suggest import exactly, fits, narrow_pattern, rule_pattern

# In names of temporary files: a process, six characters of mkstemp(3), eight of Python's tempfile,
# a UUID.
_CHANCE = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}|(?<=tmp)[a-z0-9_]{8}(?=$|\.)"
    r"|(?=[a-z]*[A-Z0-9])(?![A-Za-z]*[0-9]{3,}(?:$|\.))[A-Za-z0-9]{6}(?=$|\.)|[0-9]{3,}")
_REMOVES = ("unlink",)
MOST_OTHERS = 0.5  # for each file of a pattern; of more, names of numbers alone are patterns
FEW_RULES = 8  # in place of one that also matches other files, as many narrower ones at most


@dataclass(frozen=True)
class Group:
    """what: as tables show it; pattern: for a rule; others: paths that it would match as well."""

    what: str
    pattern: str
    files: tuple[File, ...]
    others: tuple[str, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(one.path for one in self.files)


def groups(facts: Facts, files: Sequence[File], alike: Collection[str] = (), *,
        by_last_names: bool = False) -> Iterator[Group]:
    """In the order of the files. alike: paths that a rule may match although the finding is not
    about them. by_last_names: the rule matches the last path of each file, too, and not only the
    one that it was opened by."""
    for group in _by_pattern(facts, files, alike, by_last_names, directories=True):
        if not group.others:
            yield group
            continue
        narrow = list(_by_pattern(facts, group.files, alike, by_last_names, directories=False))
        are_many = len(group.others) > MOST_OTHERS * len(group.files)
        yield from narrow if are_many or len(narrow) <= FEW_RULES else [group]


def find_by_pattern(candidates: Callable[[Facts, Files], np.ndarray],
        advice: Callable[[Facts, Group], Advice],
        are_enough: Callable[[Facts, Group], bool] = lambda facts, group: True,
        is_one: Callable[[Facts, File], bool] = lambda facts, file: True,
        ) -> Callable[[Facts], Iterator[Advice]]:
    """What most findings look for: files of a kind that no layer has yet, by pattern. candidates: a
    mask of all files, by what can be compared for all at once; is_one: what is left to ask of each
    of these."""

    def find(facts: Facts) -> Iterator[Advice]:
        files = facts.among(candidates(facts, facts.files))
        for group in groups(facts, [one for one in files if is_one(facts, one)]):
            if are_enough(facts, group):
                yield advice(facts, group)

    return find


def _by_pattern(facts: Facts, files: Sequence[File], alike: Collection[str],
        by_last_names: bool, directories: bool) -> Iterator[Group]:
    paths = [one.path if by_last_names else opened_as(one) for one in files]
    for pattern in find_patterns(paths, [0] * len(paths), directories=directories):
        members = [files[i] for i in pattern.members]
        own = {*(one.path for one in members), *alike}
        text = rule_pattern(pattern.text, [paths[i] for i in pattern.members])
        if by_last_names or any(map(_is_opened_again, members)):
            rule = _of_both_names(text, members)
            others = _others(facts, rule, own)
            if others and not by_last_names:
                used = [_most_used_as(facts, one) for one in members]
                text = text if len(used) > 1 else rule_pattern(used[0], used)
                rule = _without_chance(text, members)
                others = _others(facts, rule, own)
        else:
            rule = _without_chance(text, members)
            others = _others(facts, rule, own)
        if others:
            rule, others = _narrower(facts, rule, others, members, own, by_last_names)
        yield Group(facts.shown(pattern.text), rule, tuple(members), others)


def _narrower(facts: Facts, rule: str, others: tuple[str, ...], members: Sequence[File],
        own: Collection[str], by_last_names: bool) -> tuple[str, tuple[str, ...]]:
    """In place of a rule that matches other files as well, one that says what each part of a path
    begins with, where that one matches fewer: the chunks of a Zarr array, not its .zarray."""
    opened = [opened_as(one) for one in members]
    both = by_last_names or any(map(_is_opened_again, members))
    text = narrow_pattern([*opened, *(one.path for one in members)] if both else opened)
    narrow = text if both else _without_chance(text, members)
    left = _others(facts, narrow, own) if text else others
    return (narrow, left) if len(left) < len(others) else (rule, others)


def _others(facts: Facts, rule: str, own: Collection[str]) -> tuple[str, ...]:
    """Files that the rule matches as well. Of directories layers leave the calls alone."""
    missing, directories = facts.files.missing, facts.directories
    return () if rule in own else tuple(sorted(path for path in facts.files
        if path not in own and fits(path, rule)
        and path not in missing and path not in directories))


def _most_used_as(facts: Facts, file: File) -> str:
    """Of the names that the file had, the one under which most of its bytes moved."""
    columns, used = columns_by_last_name(facts.report)
    rows = columns.name == facts.report.names.number(file.path)
    moved: Counter[int] = Counter()
    for name, size in zip(used[rows].tolist(), columns.moved[rows].tolist()):
        moved[name] += size
    return facts.report.names[moved.most_common(1)[0][0]] if moved else file.path


def opened_as(file: File) -> str:
    """The path that a rule has to match. Output that was renamed was opened under another one."""
    also = file.totals.also if file.totals is not None else ()
    is_made = 0 < file.write.bytes >= file.read.bytes
    return also[0] if also and is_made else file.path


def _without_chance(rule: str, members: Sequence[File]) -> str:
    """Names that were only used until a file was complete, or removed, have parts that differ from
    run to run."""
    if not any(map(_is_temporary, members)):
        return rule
    directory, _, name = rule.rpartition("/")
    return f"{directory}/{_CHANCE.sub('*', name)}"


def without_chance_below(directory: str, rule: str) -> str:
    """A rule for files that a run makes and removes: so may be the directories below its own that
    they lie in (mkdtemp)."""
    begin = f"{directory.rstrip('/')}/"
    if not rule.startswith(begin):
        return rule
    return begin + "/".join(_CHANCE.sub("*", name) for name in rule[len(begin) :].split("/"))


def _is_temporary(file: File) -> bool:
    return opened_as(file) != file.path or file.of(_REMOVES)[0] > 0


def _is_opened_again(file: File) -> bool:
    """Whether it may have been opened by its last name, too, after it was renamed (db_load)."""
    return opened_as(file) != file.path and file.of_class("O")[0] > 1


def _of_both_names(rule: str, members: Sequence[File]) -> str:
    """The rule where it matches what the files were opened as, and their last names; else a pattern
    of all these, by what their names begin with, or else end with."""
    paths = [*(opened_as(one) for one in members), *(one.path for one in members)]
    if all(fits(path, rule) for path in paths):
        return rule
    begin = os.path.commonprefix(paths)
    directory, _, name = begin.rpartition("/")
    end = os.path.commonprefix([posixpath.basename(path)[::-1] for path in paths])[::-1]
    are_beside = all(posixpath.dirname(path) == directory for path in paths)
    return f"{exactly(directory)}/*{exactly(end)}" if are_beside and end and not name else (
        f"{exactly(begin)}*")


def unusable(group: Group) -> str:
    """Why its rule stands commented out: where it would change what other files are."""
    if not group.others:
        return ""
    return used_otherwise(group.others[0])


def used_otherwise(path: str) -> str:
    return f"the pattern also matches files of another use, such as {path}"
