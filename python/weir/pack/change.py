# SPDX-License-Identifier: Apache-2.0
"""Commands that write: real files, a new directory, one container of several."""

from __future__ import annotations

import fcntl
import os
import struct
import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from weir._errors import InputError, StorageError
from weir.pack.archive import Container
from weir.pack.records import OWNER, OWNER_NAME, Record, central, local, tail

_OFD_SETLK, _PIECE, _RUN = 37, 4 << 20, 1 << 20  # fcntl.F_OFD_SETLK of Python 3.12


def _check_name(record: Record) -> None:
    if "/" in record.name or record.name in (".", "..") or "\0" in record.name:
        raise InputError(f"{record.name!r} is no file name: the archive is damaged")


def _runs(records: Iterable[Record], most: int) -> list[list[Record]]:
    """Records that lie together in the container and are read at once: up to `most`, and _RUN
    bytes."""
    runs: list[list[Record]] = []
    for record in sorted(records, key=lambda one: one.data_offset):
        if runs and len(runs[-1]) < most and record.end - runs[-1][0].data_offset <= _RUN:
            runs[-1].append(record)
        else:
            runs.append([record])
    return runs


def _extract_run(container: Container, run: list[Record], directory: Path,
        descriptor: int) -> list[str]:
    """What is wrong with files of it."""
    begin = run[0].data_offset
    data = container.read_at(begin, run[-1].end - begin)
    found = (_extract_one(record, data[record.data_offset - begin : record.end - begin], directory,
        descriptor) for record in run)
    return [wrong for wrong in found if wrong]


def _extract_one(record: Record, data: bytes, directory: Path, descriptor: int) -> str | None:
    """Writes one file; what is wrong with it, or None. descriptor: of the directory, so that the
    file system is not asked for it again."""
    if zlib.crc32(data) != record.crc:
        return f"{record.name} differs from its checksum: not extracted"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        fd = os.open(record.name, flags, record.mode | 0o200, dir_fd=descriptor)
    except FileExistsError:
        return f"{directory / record.name} exists: not extracted"
    try:
        while data:
            data = data[os.write(fd, data) :]
        if record.mode & 0o200 == 0:
            os.fchmod(fd, record.mode)
        os.utime(fd, ns=(record.mtime_ns, record.mtime_ns))
    finally:
        os.close(fd)
    return None


def extract(path: str | os.PathLike[str], directory: Path | None = None,
        names: Iterable[str] = (), jobs: int = 16, part: int = 0,
        parts: int = 1) -> tuple[int, list[str]]:
    """Makes real files of packed ones in `directory` (the container's own), `jobs` at a time; of
    `parts` processes that do so together, this is number `part`. How many, and what was left out
    and why. Existing files stay.

    Raises InputError, StorageError.
    """
    with Container(path) as container:
        files = container.files()
        wanted = list(names) or sorted(files)
        if missing := [name for name in wanted if name not in files]:
            raise InputError(f"{path} has no file {missing[0]!r}; see weir pack ls")
        wanted = wanted[part::parts]
        where = directory or container.path.resolve().parent
        for name in wanted:
            _check_name(files[name])
        try:
            where.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(where, os.O_RDONLY | os.O_DIRECTORY)
            try:
                runs = _runs((files[name] for name in wanted), max(1, len(wanted) // (4 * jobs)))
                with ThreadPoolExecutor(jobs) as pool:
                    results = list(pool.map(lambda run: _extract_run(container, run, where,
                        descriptor), runs))
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StorageError(f"cannot write into {where}: {error.strerror}") from None
    wrong = [text for result in results for text in result]
    return len(wanted) - len(wrong), wrong


def _lock(container: Container) -> None:
    range_ = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
    try:
        fcntl.fcntl(container.file, _OFD_SETLK, range_)
    except OSError:
        raise InputError(
            f"{container.path} is in use: wait until the job that writes to it has ended"
        ) from None


def _end_with(container: Container, files: Iterable[Record], at: int) -> int:
    rows = [central(record) for record in files]
    data = b"".join(rows)
    data += tail(len(rows), len(data), at)
    fd = container.file.fileno()
    done = 0
    try:
        while done < len(data):
            done += os.pwrite(fd, data[done:], at + done)
        os.ftruncate(fd, at + len(data))
        os.fsync(fd)
    except OSError as error:
        raise StorageError(f"cannot write {container.path}: {error.strerror}") from None
    return len(rows)


def repair(path: str | os.PathLike[str]) -> tuple[int, bool]:
    """Writes a new directory from the records behind the last of them, where it is missing, and
    ends the container there: what follows a killed process had reserved, for the directory too, so
    that there is room for it on a full disk. Number of files, and whether one was written.

    Raises InputError (no container, in use), StorageError.
    """
    with Container(path, "r+b") as container:
        _lock(container)
        container.size_bytes = os.fstat(container.file.fileno()).st_size
        found = container.directory()
        if found is not None:
            return len(found), False
        files = container.scan().values()
        return _end_with(container, files, container.records_end), True


def merge(paths: Iterable[str | os.PathLike[str]], output: Path) -> int:
    """One container of several, as those of the nodes of a job. Of files with one name the newest
    counts. Number of files.

    Raises InputError, StorageError.
    """
    if output.exists():
        raise InputError(f"{output} exists; name a new archive")
    containers = [Container(path) for path in paths]
    newest: dict[str, tuple[Container, Record]] = {}
    for container in containers:
        for name, record in container.files().items():
            if name not in newest or newest[name][1].mtime_ns < record.mtime_ns:
                newest[name] = (container, record)
    first = Record(OWNER_NAME.decode(), 0, 0, 0, 0, 0, 0, 0, 0, OWNER)
    partial = output.with_name(f"{output.name}.{os.getpid()}.partial")
    try:
        with open(partial, "xb", buffering=_PIECE) as out:
            out.write(local(first))
            rows, at = [], first.header_bytes
            for sequence, (container, record) in enumerate(newest.values(), 1):
                moved = record.at(at, sequence)
                out.write(local(moved))
                _copy(container, record, out)
                rows.append(central(moved))
                at = moved.end
            data = b"".join(rows)
            out.write(data + tail(len(rows), len(data), at))
        os.link(partial, output)
    except OSError as error:
        raise StorageError(f"cannot write {output}: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)
        for container in containers:
            container.file.close()
    return len(newest)


def _copy(container: Container, record: Record, out) -> None:
    if container.crc(record) != record.crc:
        raise InputError(f"{record.name} of {container.path} differs from its checksum")
    offset = record.data_offset
    while offset < record.end:
        part = container.read_at(offset, min(_PIECE, record.end - offset))
        out.write(part)
        offset += len(part)
