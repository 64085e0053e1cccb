# SPDX-License-Identifier: Apache-2.0
"""The directory that each run starts from: a copy of the user's, which no run changes.

Copies share blocks with the original where the file system can (ioctl_ficlone(2)). Files that the
first run only read, and that are large, are symbolic links from then on.
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

NAME = ".weir-tune"  # of the directory in the user's one that runs work in
LINKED_BYTES = 16 << 20
RESERVE = 0.05  # of the file system that stays free
_FICLONE = 0x40049409  # linux/fs.h


@dataclass(frozen=True)
class Entry:
    """A file or link of the user's directory. key: what changes when it is changed."""

    path: str  # from the directory
    bytes: int
    key: tuple[int, int, int]  # size, time of change of the contents in ns, inode


def listing(directory: Path, leave_out: Collection[Path] = ()) -> list[Entry]:
    """All files below, but for the directories of tune itself. Raises InputError for one that
    cannot be read."""
    return sorted(_walk(directory, {str(one) for one in leave_out}), key=lambda one: one.path)


def _walk(directory: Path, leave_out: Collection[str]) -> Iterator[Entry]:
    def fail(error: OSError) -> None:
        raise InputError(f"{error.filename}: cannot be read: {error.strerror}; weir tune copies "
                         f"all that the command works on") from error

    for above, names, files in os.walk(directory, onerror=fail):
        names[:] = [one for one in names if not one.startswith(NAME)
            and os.path.join(above, one) not in leave_out]
        for name in [*files, *(one for one in names if os.path.islink(f"{above}/{one}"))]:
            path = os.path.join(above, name)
            state = os.lstat(path)
            if stat.S_ISREG(state.st_mode) or stat.S_ISLNK(state.st_mode):
                yield Entry(os.path.relpath(path, directory), state.st_size,
                    (state.st_size, state.st_mtime_ns, state.st_ino))


def fingerprint(entries: list[Entry]) -> str:
    """Of all of them: whether the user's directory is what it was."""
    return hashlib.blake2b(repr([(e.path, e.key) for e in entries]).encode("utf-8",
        "surrogateescape"), digest_size=16).hexdigest()


def check_space(directory: Path, entries: list[Entry], more_bytes: int = 0) -> None:
    """Raises StorageError when a copy has no room. more_bytes: of what the command writes."""
    needed = sum(one.bytes for one in entries) + more_bytes
    usage = shutil.disk_usage(directory)
    room = usage.free - int(RESERVE * usage.total)
    if needed <= room:
        return
    largest = max(entries, key=lambda one: one.bytes, default=None)
    said = "" if largest is None else f"; the largest file is {largest.path}"
    raise StorageError(
        f"{directory}: {needed:,} bytes to copy, and {max(room, 0):,} are free beside a reserve of "
        f"{RESERVE:.0%}{said}; free space, or name with --dir the directory that the command "
        f"writes to")


def make(source: Path, target: Path, entries: list[Entry],
        linked: Collection[str] = ()) -> dict[str, tuple[int, int, int]]:
    """A fresh copy; by path the key of each file in it. linked: paths that the command only reads.
    Raises StorageError."""
    remove(target)
    keys = {}
    try:
        target.mkdir(parents=True)
        for above, names, _ in os.walk(source):
            names[:] = [one for one in names if not one.startswith(NAME)]
            (target / os.path.relpath(above, source)).mkdir(exist_ok=True)
        for one in entries:
            _copy(source / one.path, target / one.path, one.path in linked)
        for above, names, _ in os.walk(target, topdown=False):  # files in them change their times
            shutil.copystat(source / os.path.relpath(above, target), above)
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


def _copy(source: Path, target: Path, is_linked: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        os.symlink(os.readlink(source), target)
    elif is_linked:
        os.symlink(source, target)
    else:
        _clone_or_copy(source, target)
        shutil.copystat(source, target)


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
