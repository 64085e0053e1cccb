# SPDX-License-Identifier: Apache-2.0
"""Finding many-files: a directory gets many small files, each with a create and a close of its own.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

import numpy as np

from weir.advise.frame.bypass import UNNAMED
from weir.advise.frame.facts import Facts, File, Files
from weir.advise.frame.files import over
from weir.advise.frame.finding import Advice, Finding, Rule
from weir.advise.findings.small_requests.finding import is_interleaved
from weir.advise.frame.grouping import groups, opened_as, unusable
from weir.advise.frame.saving import Range, saved
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import amount, number, seconds

MANY = Limit("files that are written, of names that belong together", 64, "files",
    "chosen: fewer creates take less than a tenth of a second on a parallel file system")
A_DIRECTORY = Limit("of these in a directory, on average", 8, "files",
    "each directory gets an archive, which is a file itself")
SMALL = Limit("mean size of these files, at most", 1 << 20, "B",
    "one request of a parallel file system: of larger files the bytes decide, not the create")
SHARE = Limit("share of their I/O time in open, close and stat", 0.25, "share",
    "chosen: with less the writes decide, and layer bufa or stage cures these")
TINY = Limit("size of a file that several ranks may write in turn, at most", 64 << 10, "B",
    "one request: its open and close decide, and the layer shows ranks each other's bytes")
MISSING = Limit("share of their I/O time in stat and access of names that do not exist, at most",
    0.2, "share", "measured with unzip (22 %): the layer asks the file system twice for such a "
    "name, which may be a link, and the run became no shorter")
# Of the time of the calls under layer pack (its page: 16 ranks, 186 files, preset lustre: 0.21 of
# the time, 0.15 of the metadata requests).
REMAINS = Range(0.05, 0.5)
# The same of queries for names that do not exist yet, which the file system answers: those that
# follow links, and those that do not (git).
OF_FOLLOWED, OF_MISSING = Range(1.0, 2.2), Range(0.5, 1.2)
_FOLLOWING = ("stat", "fstatat", "statx", "access", "faccessat")
_QUERIES = (*_FOLLOWING, "lstat", "readlink")
CONTAINER = "weir-packed.zip"


def _candidates(files: Files) -> np.ndarray:
    way = files.write
    return (way.bytes > 0) & (way.span <= 4 * SMALL.value) & (files.of(UNNAMED)[0] == 0) & (
        (way.span <= TINY.value) | ~is_interleaved(way))


def _is_one(facts: Facts, file: File) -> bool:
    """A rename within the directory leaves a file packed, if the rule matches both names; one into
    another directory makes a real file."""
    opened = opened_as(file)
    is_beside = opened is file.path or posixpath.dirname(opened) == posixpath.dirname(file.path)
    return is_beside and not facts.is_local(file.path)


def _missing_s(files: Files, queries: Sequence[str]) -> np.ndarray:
    """Seconds of such of all queries as ask for a name that does not exist yet."""
    calls = files.of(_QUERIES)[0]
    return np.minimum(1.0, over(files.failed, calls)) * files.of(queries)[1] / 1e9


def _part(file: File, remains: Range, missing_s: float, followed_s: float) -> tuple[File, Range]:
    whole_s = file.ns / 1e9
    after = remains.times(whole_s - missing_s) + OF_FOLLOWED.times(followed_s)
    return file, saved(whole_s, after + OF_MISSING.times(missing_s - followed_s))


def _advice(facts: Facts, files: list[File]) -> Iterator[Advice]:
    metadata, every = facts.files.of_class("OCM"), facts.files
    missing = [_missing_s(every, queries) for queries in (_QUERIES, _FOLLOWING)]
    for group in groups(facts, files, by_last_names=True):
        at, count = every.places(group.paths), len(group.files)
        size, whole, calls, ns = (int(one[at].sum())
            for one in (every.write.bytes, every.ns, *metadata))
        directories = len({posixpath.dirname(path) for path in group.paths})
        is_many = count >= max(MANY.value, A_DIRECTORY.value * directories)
        if not is_many or size > SMALL.value * count or ns < SHARE.value * whole:
            continue
        missing_s, followed_s = (one[at].tolist() for one in missing)
        if sum(followed_s) > MISSING.value * whole / 1e9:
            continue
        remains = Range(REMAINS.low, min(1.0, REMAINS.high + directories / count))
        parts = [_part(one, remains, *its) for one, *its in
            zip(group.files, missing_s, followed_s)]
        yield Advice(
            "many-files", group.what, group.paths,
            f"{number(count)} files of {amount(size / count)} on average take "
            f"{seconds(whole / 1e9)}, of which {seconds(ns / 1e9)} in open, close and stat "
            f"({number(calls)} calls).",
            facts.saving(parts, int(0.85 * calls)),
            "Write one file for many times or fields; spread files over directories, one for each "
            "node.",
            Rule(group.pattern, f"pack:name={CONTAINER}",
                caution="the files are stored in an archive: programs without these rules read "
                        "them after `weir pack extract`",
                unusable=unusable(group)),
        )  # fmt: skip


def find(facts: Facts) -> Iterator[Advice]:
    files = [one for one in facts.among(_candidates(facts.files)) if _is_one(facts, one)]
    if len(files) >= MANY.value:
        yield from _advice(facts, files)


MANY_FILES = Finding(
    name="many-files",
    asks="Does a directory get many small files?",
    shrinks="I/O",
    limits=(MANY, A_DIRECTORY, SMALL, SHARE, TINY, MISSING),
    page="guide/pack.md",
    table="files",
    cure="pack",
    find=find,
)
