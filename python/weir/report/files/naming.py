# SPDX-License-Identifier: Apache-2.0
"""Which file a name stands for, and when: files that are renamed, exchanged, linked, and symbolic
links to them.

A file is reported by a number: that of its name where the name never changed hands, one of its own
otherwise. At a timestamp a name stands for what the namings before it made of it. Directories that
are renamed or linked take the names below them along. `..` in a name is taken by its words, where
no symbolic link is known before it.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from weir.analysis.columns import Columns, distinct
from weir.analysis.names import NO_NAME, NameTable, fold
from weir.trace.ops import op_named

RENAME, EXCHANGE, LINK, SYMLINK, UNLINK = "rename", "exchange", "link", "symlink", "unlink"
_LINKS_IN_A_ROW = 40  # as many as the kernel follows
_EVER = -(2**64)  # before all timestamps


class Naming(NamedTuple):
    """At a timestamp (ns since 1970): kind, the name that was there before (of a symbolic link its
    target), the new name."""

    at_ns: int
    kind: str
    old: str
    new: str


def is_naming(columns: Columns) -> np.ndarray:
    """Mask of what namings() reads."""
    return (columns.op == op_named("naming").value) & (columns.name != NO_NAME)


def is_unlink(columns: Columns) -> np.ndarray:
    """Mask of what unlinked() reads."""
    return (columns.op == op_named(UNLINK).value) & (columns.name != NO_NAME)


def namings(columns: Columns, names: NameTable,
        at_ns: Mapping[int, Sequence[int]] | None = None) -> list[Naming]:
    """Of one step, docs/formats/trace.md section 3.3. at_ns: timestamps of all that have records,
    by name; where there are none, of one that was made several times by one process the first and
    the last."""
    made = []
    rows = columns.where(is_naming(columns))
    for name, calls, first, last in zip(*(getattr(rows, key).tolist()
            for key in ("name", "calls", "first_ns", "last_ns"))):
        timestamps = (at_ns or {}).get(name) or {first, last if calls > 1 else first}
        kind, _, rest = names[name].partition("\n")
        old, _, new = rest.partition("\n")
        if kind not in (RENAME, EXCHANGE, LINK, SYMLINK) or not new.startswith("/"):
            continue  # damaged
        new = fold(new)
        old = posixpath.normpath(posixpath.join(posixpath.dirname(new),
            old)) if kind == SYMLINK else fold(old)
        made += [Naming(at, kind, old, new) for at in timestamps]
    return sorted(set(made))


def unlinked(columns: Columns, names: NameTable) -> list[Naming]:
    """Names that went, the last time."""
    rows = columns.where(is_unlink(columns) & (columns.calls > columns.errors))
    return [Naming(last, UNLINK, names[name], "") for name, last in zip(rows.name.tolist(),
        rows.last_ns.tolist())]


class _Link(NamedTuple):
    target: str


class Files:
    """The files behind the names. opened: whether a name was opened behind a timestamp: one that is
    not stands, where it still moves bytes, for the descriptor that was opened before, whatever the
    file is called now."""

    def __init__(self, made: Sequence[Naming], used: Iterable[str], names: NameTable,
            opened: Callable[[str, int], bool]):
        self._names, self._opened = names, opened
        # since when, what
        self._bound: dict[str, list[tuple[int, int | _Link]]] = defaultdict(list)
        self._last_name: dict[int, str] = {}
        # Names that a file was given and did not lose, the last one last. A file may have thousands
        # of links.
        self._names_of: dict[int, dict[str, None]] = defaultdict(dict)
        self._made = 0
        self._left: set[str] = set()  # names that nobody opens any more, where no file is
        used = sorted(set(used))
        every = sorted(_with_contents(made, used))
        self._targets = {one.old for one in every if one.kind == SYMLINK}
        links = {one.new for one in made if one.kind == SYMLINK}
        for name in used:
            if "/.." in name and (plain := posixpath
                    .normpath(name)) != name and not links.intersection(_directories(name)):
                self._bound[name].append((_EVER, _Link(plain)))
                self._targets.add(plain)
        for one in every:
            self._take(one)

    @property
    def all_plain(self) -> bool:
        """Whether each name stands for one file of its own, always."""
        return not self._bound

    def is_plain(self, name: str) -> bool:
        """Whether the name stands for one file of its own, always."""
        return name not in self._bound

    def timestamps(self, name: str) -> list[int]:
        """When the name began to stand for something else, rising."""
        found, waiting, seen = set(), [name], set()
        while waiting:
            one = waiting.pop()
            if one not in seen:
                seen.add(one)
                found |= {at for at, _ in self._bound.get(one, ()) if at != _EVER}
                waiting += [what.target for _, what in self._bound.get(one, ())
                    if isinstance(what, _Link)]
        return sorted(found)

    def at(self, name: str, at_ns: int) -> tuple[int, str]:
        """The file that a name stands for at a timestamp, and its name without symbolic links."""
        for _ in range(_LINKS_IN_A_ROW):
            bound = self._bound.get(name, ())
            before = bisect_left(bound, at_ns, key=lambda one: one[0])
            what = bound[before - 1][1] if before else self._names.number(name)
            if not isinstance(what, _Link):
                return what, name
            name = what.target
        return self._names.number(name), name

    def last_name(self, file: int) -> str:
        return self._last_name.get(file) or self._names[file]

    def _take(self, one: Naming) -> None:
        at, kind, old, new = one
        of_old, of_new = self._what(old, at), self._what(new, at)
        if kind == SYMLINK:
            self._bind(new, at, _Link(old))
        elif kind == UNLINK:
            if old in self._bound and not isinstance(of_old, _Link):
                self._lose(old, of_old)
                self._leave(old, at)
        elif of_old != of_new:  # renaming one link of a file to another one does nothing
            if kind == LINK:
                self._bind(new, at, of_old)
                self._keep(old, at, of_old)
                return
            if not isinstance(of_new, _Link):
                self._lose(new, of_new)
            self._bind(new, at, of_old)
            if not isinstance(of_old, _Link):
                self._lose(old, of_old)
            if kind == EXCHANGE:
                self._bind(old, at, of_new)
            else:
                self._leave(old, at)

    def _what(self, name: str, at: int) -> int | _Link:
        if name in self._left:
            return self._another()
        bound = self._bound.get(name, ())
        before = bisect_left(bound, at + 1, key=lambda one: one[0])
        return bound[before - 1][1] if before else self._names.number(name)

    def _leave(self, name: str, at: int) -> None:
        """The name is free: what is opened under it is another file."""
        if name in self._targets or self._opened(name, at):
            self._bind(name, at, self._another())
        else:
            what = self._what(name, at)
            self._bound[name].append((at, what))
            self._left.add(name)
            if not isinstance(what, _Link):
                self._last_name.setdefault(what, name)

    def _keep(self, name: str, at: int, what: int | _Link) -> None:
        """The file got one name more. It is called what it was until it loses that name."""
        if name not in self._bound:
            self._bind(name, at, what)
        elif not isinstance(what, _Link):
            self._last_name[what] = name

    def _lose(self, name: str, what: int) -> None:
        """One name of several went: the file has the others. The only one stays the last one."""
        names = self._names_of[what]
        names.pop(name, None)
        if names and self._last_name.get(what) == name:
            self._last_name[what] = next(reversed(names))

    def _another(self) -> int:
        self._made -= 1
        return NO_NAME + self._made

    def _bind(self, name: str, at: int, what: int | _Link) -> None:
        self._left.discard(name)
        self._bound[name].append((at, what))
        if not isinstance(what, _Link):
            self._last_name[what] = name
            self._names_of[what].pop(name, None)
            self._names_of[what][name] = None


def files_behind(
    made: Sequence[Naming], columns: Sequence[Columns], opens: Sequence[Columns], names: NameTable
) -> Files:
    """The files behind the names in the columns of all steps. opens: rows of each process, where
    there are namings."""
    opened: dict[int, int] = {}
    for one in opens if made else ():
        opens = one.where(one.by_code("O") & (one.calls > one.errors))
        for name, last in zip(opens.name.tolist(), opens.last_ns.tolist()):
            opened[name] = max(last, opened.get(name, last))
    used = {names[number] for one in columns for number in distinct(one.name).tolist()
        if number != NO_NAME}
    return Files(made, used, names, lambda name, at: opened.get(names.number(name), _EVER) > at)


def _with_contents(made: Iterable[Naming], used: list[str]) -> list[Naming]:
    """Namings of directories become those of the names in them that were used."""
    found = []
    for one in made:
        below = [] if one.kind == UNLINK else _below(one.new, used) + (_below(one.old, used)
            if one.kind in (RENAME, EXCHANGE) else [])
        for rest in dict.fromkeys(below):
            old = posixpath.normpath(one.old + rest) if one.kind == SYMLINK else one.old + rest
            found.append(one._replace(old=old, new=one.new + rest))
        if not below:
            found.append(one)
    return found


def _directories(name: str) -> list[str]:
    """All that the name leads through, up to the last `..`."""
    parts = name[: name.rindex("/..")].split("/")
    return ["/".join(parts[:count]) for count in range(2, len(parts) + 1)]


def _below(directory: str, used: list[str]) -> list[str]:
    """What follows the directory in names below it."""
    # "0" comes right behind "/"
    begin, end = (bisect_left(used, directory + mark) for mark in ("/", "0"))
    return [name[len(directory) :] for name in used[begin:end]]
