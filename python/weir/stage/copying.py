# SPDX-License-Identifier: Apache-2.0
"""Files copied between a tier and their real place. A file has its name when it is complete, on the
disk and equal to its source: its size and its CRC-32 are compared with those of what was read."""

from __future__ import annotations

import fcntl
import os
import stat
import threading
import time
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from weir._errors import InputError, NotThere, StorageError
from weir._files import OWNER_ALONE, complete_file

CHUNK_BYTES = 4 << 20
COPIES_AT_ONCE = 4
PERMISSIONS = 0o7777


@dataclass(frozen=True)
class Copy:
    """A regular file to copy, or a symbolic link or a directory to make again."""

    source: Path
    destination: Path
    about: os.stat_result


def files_below(source: Path, destination: Path) -> list[Copy]:
    """Everything in a directory, directories before what is in them. Raises InputError for what is
    no file, directory or link."""
    found = [_copy_of(source, destination)]
    if not stat.S_ISDIR(found[0].about.st_mode):
        raise InputError(f"{source}: not a directory")
    for place, directories, names in os.walk(source):
        below = Path(place).relative_to(source)
        for name in (*sorted(directories), *sorted(names)):
            found.append(_copy_of(Path(place, name), destination / below / name))
    return found


def one_file(source: Path, destination: Path) -> Copy:
    """Raises NotThere, and InputError when it is no regular file."""
    found = _copy_of(source.resolve() if source.is_symlink() else source, destination)
    if not stat.S_ISREG(found.about.st_mode):
        raise InputError(f"{source}: not a regular file")
    return found


def _copy_of(source: Path, destination: Path) -> Copy:
    try:
        about = source.lstat()
    except FileNotFoundError as error:
        raise NotThere(f"{source}: no such file") from error
    except OSError as error:
        raise InputError(f"{source}: cannot be read: {error.strerror}") from error
    if not (stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode)
            or stat.S_ISLNK(about.st_mode)):
        raise InputError(f"{source}: neither a file, a directory nor a link: it cannot be staged")
    return Copy(source, destination, about)


def size_of(copies: Iterable[Copy]) -> int:
    return sum(one.about.st_size for one in copies if stat.S_ISREG(one.about.st_mode))


class Progress:
    """Counts of a staging, shared by the threads that copy. `show` gets one line now and then."""

    def __init__(self, title: str, files: int, bytes: int, show: Callable[[str], None],
            check: Callable[[], None] = lambda: None) -> None:
        self._title, self._show, self.check = title, show, check
        self._all_files, self._all_bytes = files, bytes
        self._files = self._bytes = 0
        self._begin = self._shown = time.monotonic()
        self._lock = threading.Lock()

    def add(self, files: int = 0, bytes: int = 0) -> None:
        with self._lock:
            self._files += files
            self._bytes += bytes
            now = time.monotonic()
            if now - self._shown < 1 and self._files < self._all_files:
                return
            self._shown = now
            rate = self._bytes / max(now - self._begin, 1e-6)
            unit, words = _unit_of(self._all_bytes)
            places = 0 if unit == 1 else 1
            self._show(f"{self._title}: {self._files} of {self._all_files} files, "
                       f"{self._bytes / unit:.{places}f} of {self._all_bytes / unit:.{places}f} "
                       f"{words}, {_rate_text(rate)}")


def _unit_of(bytes: float) -> tuple[int, str]:
    """In which an amount has one digit at least before the point."""
    return next(((unit, words) for unit, words in ((10**6, "MB"), (10**3, "kB"))
        if bytes >= unit), (1, "bytes"))


def _rate_text(rate: float) -> str:
    unit, words = _unit_of(rate)
    return f"{rate / unit:.0f} {words}/s"


def _files_in(copies: list[Copy]) -> int:
    return sum(not stat.S_ISDIR(one.about.st_mode) for one in copies)


def copy_all(copies: list[Copy], title: str, show: Callable[[str], None],
        check: Callable[[], None] = lambda: None) -> int:
    """Copies them, several at once, and returns the bytes. Raises the first error when the others
    have ended. check: called now and then; what it raises ends the copying."""
    progress = Progress(title, _files_in(copies), size_of(copies), show, check)
    try:
        for directory in _directories_of(copies):
            directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(directory, error) from error
    with ThreadPoolExecutor(COPIES_AT_ONCE) as pool:
        running = [pool.submit(_copy_one, one, progress) for one in copies
            if not stat.S_ISDIR(one.about.st_mode)]
    for one_running in running:
        one_running.result()
    for one in reversed(copies):  # last: what is made in a directory changes its time
        if stat.S_ISDIR(one.about.st_mode):
            os.chmod(one.destination, one.about.st_mode & PERMISSIONS)
            os.utime(one.destination, ns=(one.about.st_atime_ns, one.about.st_mtime_ns))
    return size_of(copies)


def _directories_of(copies: list[Copy]) -> list[Path]:
    """Each that is copied, or that something is copied into, once."""
    return list(dict.fromkeys(
        one.destination if stat.S_ISDIR(one.about.st_mode) else one.destination.parent
        for one in copies))


def _cannot_write(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path}: cannot be written: {error.strerror}")


def _copy_one(one: Copy, progress: Progress) -> None:
    progress.check()
    try:
        if stat.S_ISLNK(one.about.st_mode):
            _copy_link(one)
        else:
            _copy_file(one, progress)
    except OSError as error:
        if isinstance(error, (StorageError, NotThere)):
            raise
        raise _cannot_write(one.destination, error) from error
    progress.add(files=1)


def _copy_link(one: Copy) -> None:
    """Over what is there, by rename, as for files."""
    unfinished = one.destination.with_name(f".weir-{os.urandom(8).hex()}.new")
    unfinished.symlink_to(os.readlink(one.source))
    try:
        os.replace(unfinished, one.destination)
    except BaseException:
        unfinished.unlink()
        raise


def _copy_file(one: Copy, progress: Progress) -> None:
    try:
        source = one.source.open("rb")
    except FileNotFoundError as error:
        raise NotThere(f"{one.source}: no such file") from error
    except OSError as error:
        raise InputError(f"{one.source}: cannot be read: {error.strerror}") from error
    if one.destination.is_dir():
        raise StorageError(f"{one.destination}: is a directory: name the file")
    with source, complete_file(one.destination, OWNER_ALONE) as out:
        size = checksum = 0
        while part := source.read(CHUNK_BYTES):
            out.write(part)
            checksum = zlib.crc32(part, checksum)
            size += len(part)
            progress.check()
            progress.add(bytes=len(part))
        out.flush()
        _check_unchanged(one, os.fstat(source.fileno()), size)
        # All of it comes to the disk by one fsync.
        os.fchmod(out.fileno(), one.about.st_mode & PERMISSIONS)
        os.utime(out.fileno(), ns=(one.about.st_atime_ns, one.about.st_mtime_ns))
        _check_written(one, out.fileno(), size, checksum)


def _check_unchanged(one: Copy, now: os.stat_result, size: int) -> None:
    if (now.st_size, now.st_mtime_ns) != (size, one.about.st_mtime_ns):
        raise InputError(f"{one.source}: was changed while it was copied; stage it when nothing "
                         f"writes it any more")


def _check_written(one: Copy, fd: int, size: int, checksum: int) -> None:
    """What was written is read back from the file system; its time of access stays."""
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    with suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NOATIME)
    found = at = 0
    while at < size and (part := os.pread(fd, CHUNK_BYTES, at)):
        found = zlib.crc32(part, found)
        at += len(part)
    at = os.fstat(fd).st_size if at == size else at
    if (at, found) != (size, checksum):
        raise StorageError(
            f"{one.destination}: {at} bytes with CRC-32 {found:08x} instead of {size} bytes with "
            f"{checksum:08x} of {one.source}: not staged; check the file system")
