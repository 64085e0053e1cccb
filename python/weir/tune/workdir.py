# SPDX-License-Identifier: Apache-2.0
"""The directory that each run starts from: a copy of the user's, which no run changes.

Copies share blocks with the original where the file system can (ioctl_ficlone(2)). What a symbolic
link outside of the directory leads to is copied as well: a run must not reach the user's files.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from weir._errors import InputError, StorageError

NAME = ".weir-tune"  # begins the names of all that tune makes in the user's directory
RESERVE = 0.05  # of the file system that stays free
_FICLONE = 0x40049409  # linux/fs.h
Key = tuple[int, int, int]


@dataclass(frozen=True)
class Entry:
    """A file, link, or directory behind a link, of the user's directory. key: what changes when it
    is changed. source: where its data are; link: what a link of the copy says."""

    path: str  # from the directory
    bytes: int
    key: Key  # size, time of change of the contents in ns, inode
    source: str = ""
    link: str | None = None


def listing(directory: Path, leave_out: Collection[Path] = (), follow: bool = True,
        streams: Collection[tuple[int, int]] = ()) -> list[Entry]:
    """All files below, but for the directories of tune itself. follow: with what links outside of
    the directory lead to. streams: device and inode of files that are left out. Raises InputError
    for one that cannot be read, and for links that cannot be copied."""
    walk = _Walk(directory, {str(one) for one in leave_out}, follow, frozenset(streams))
    return sorted(walk.entries(str(directory), ""), key=lambda one: one.path)


def own_streams() -> set[tuple[int, int]]:
    """Device and inode of standard output and error of this process, which grow meanwhile."""
    made = set()
    for number in (1, 2):
        with suppress(OSError):
            state = os.fstat(number)
            made.add((state.st_dev, state.st_ino))
    return made


class _Walk:
    def __init__(self, directory: Path, leave_out: Collection[str], follow: bool,
            streams: Collection[tuple[int, int]]) -> None:
        self.leave_out, self.follow, self.streams = leave_out, follow, streams
        self.root = os.path.realpath(directory)
        self.known = {self.root: ""}  # directories and files by where the copy has them

    def entries(self, root: str, at: str) -> Iterator[Entry]:
        """Of a directory that the copy has at a path."""
        for above, names, files in os.walk(root, onerror=_cannot_read):
            names[:] = [one for one in names if not one.startswith(NAME)
                and os.path.join(above, one) not in self.leave_out]
            below = os.path.normpath(os.path.join(at, os.path.relpath(above, root)))
            if at:
                yield Entry(below, 0, (0, 0, 0), above)
            links = [one for one in names if os.path.islink(f"{above}/{one}")]
            for name in [*(one for one in files if not one.startswith(NAME)), *links]:
                yield from self._entry(os.path.join(above, name),
                    os.path.normpath(os.path.join(below, name)))

    def _entry(self, source: str, path: str) -> Iterator[Entry]:
        state = os.lstat(source)
        if stat.S_ISLNK(state.st_mode):
            yield from self._link(source, path, state)
        elif stat.S_ISREG(state.st_mode) and (state.st_dev, state.st_ino) not in self.streams:
            yield _file(source, path, state)

    def _link(self, source: str, path: str, state: os.stat_result) -> Iterator[Entry]:
        text, real = os.readlink(source), os.path.realpath(source)
        key = (state.st_size, state.st_mtime_ns, state.st_ino)
        target = self._in_copy(real)
        if not self.follow or target is not None:
            if target is not None and self._leaves(source, path, text):
                text = os.path.relpath(target or ".", os.path.dirname(path) or ".")
            yield Entry(path, 0, key, source, text)
            return
        if os.path.isdir(real):
            if f"{self.root}/".startswith(real.rstrip("/") + "/"):
                raise InputError(f"{source}: a link to {real}, which holds {self.root}: such a "
                                 f"directory cannot be copied; remove the link, or name another "
                                 f"directory with --dir")
            self.known[real] = path
            yield from self.entries(real, path)
        elif os.path.isfile(real):
            self.known[real] = path
            yield _file(real, path, os.stat(real))
        elif not os.path.lexists(real) and os.path.isdir(os.path.dirname(real)):
            raise InputError(f"{source}: a link to {real}, which does not exist: the command would "
                             f"write outside of its copy; remove the link")
        else:  # a device, or nothing that could be written
            yield Entry(path, 0, key, source, text)

    def _in_copy(self, real: str) -> str | None:
        """Where the copy has it."""
        for above, at in self.known.items():
            if real == above or real.startswith(above.rstrip("/") + "/"):
                return os.path.normpath(os.path.join(at, os.path.relpath(real, above)))
        return None

    def _leaves(self, source: str, path: str, text: str) -> bool:
        """Whether a link means another place, or passes one outside, when it is in the copy."""
        inside = os.path.normpath(os.path.join(os.path.dirname(path), text))
        return os.path.isabs(text) or inside.startswith("..") or not source.startswith(
            f"{self.root}/")


def _cannot_read(error: OSError) -> None:
    raise InputError(f"{error.filename}: cannot be read: {error.strerror}; weir tune copies all "
                     f"that the command works on") from error


def _file(source: str, path: str, state: os.stat_result) -> Entry:
    return Entry(path, state.st_size, (state.st_size, state.st_mtime_ns, state.st_ino), source)


def fingerprint(entries: list[Entry]) -> str:
    """Of all of them: whether the user's directory is what it was."""
    return hashlib.blake2b(repr([(e.path, e.key, e.link) for e in entries]).encode("utf-8",
        "surrogateescape"), digest_size=16).hexdigest()


def check_space(directory: Path, entries: list[Entry], made_bytes: int = 0,
        copies: int = 1) -> None:
    """Raises StorageError when copies have no room. made_bytes: of what the command writes."""
    needed = copies * (sum(one.bytes for one in entries) + made_bytes)
    usage = shutil.disk_usage(directory)
    room = usage.free - int(RESERVE * usage.total)
    if needed <= room:
        return
    largest = max(entries, key=lambda one: one.bytes, default=None)
    said = "" if largest is None else f"; the largest file is {largest.path}"
    raise StorageError(
        f"{directory}: a copy and the output need {needed:,} bytes; {usage.free:,} are free, but "
        f"weir tune leaves {RESERVE:.0%} of the file system free: {max(room, 0):,} can be used"
        f"{said}. Free space, or name with --dir the directory that the command writes to")


def make(source: Path, target: Path,
        entries: list[Entry]) -> dict[str, Key]:
    """A fresh copy; by path the key of each file in it. Raises StorageError."""
    remove(target)
    keys = {}
    try:
        target.mkdir(parents=True)
        for above, names, _ in os.walk(source):
            names[:] = [one for one in names if not one.startswith(NAME)]
            (target / os.path.relpath(above, source)).mkdir(exist_ok=True)
        for one in entries:
            _copy(one, target / one.path)
        behind = {one.path: one.source for one in entries if os.path.isdir(one.source)}
        for above, names, _ in os.walk(target, topdown=False):  # files in them change their times
            path = os.path.relpath(above, target)
            shutil.copystat(behind.get(path, source / path), above)
        for one in entries:
            state = os.lstat(target / one.path)
            keys[one.path] = (state.st_size, state.st_mtime_ns, state.st_ino)
    except OSError as error:
        remove(target)
        raise StorageError(f"{target}: the copy that a run starts from cannot be made: "
                           f"{error.strerror or error}") from error
    return keys


def remove(target: Path) -> None:
    """With whatever a run left there."""
    with suppress(FileNotFoundError):
        shutil.rmtree(target)


def _copy(one: Entry, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if one.link is not None:
        os.symlink(one.link, target)
    elif os.path.isdir(one.source):
        target.mkdir(exist_ok=True)
    else:
        _clone_or_copy(Path(one.source), target)
        shutil.copystat(one.source, target)


def _clone_or_copy(source: Path, target: Path) -> None:
    with open(source, "rb") as old, open(target, "wb") as new:
        try:
            fcntl.ioctl(new, _FICLONE, old.fileno())
            return
        except OSError:
            shutil.copyfileobj(old, new, 1 << 20)
        new.flush()
        with suppress(OSError):  # what a run reads comes from the file system, as at first
            os.fsync(new.fileno())
            os.posix_fadvise(new.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
