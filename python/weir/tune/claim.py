# SPDX-License-Identifier: Apache-2.0
"""Which weir tune a copy belongs to: a file beside it, DIR/.weir-tune-MARK.owner, names the
directory -o, and is locked while that weir tune runs. A killed one leaves both behind."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from weir._errors import StorageError
from weir.tune.keep import SUFFIX, result_directory
from weir.tune.workdir import NAME

OWNER = ".owner"
_MEMORY = Path("/dev/shm")


def mark_of(out: Path) -> str:
    """Part of the names of all that a weir tune with this -o makes elsewhere."""
    return hashlib.blake2b(os.fsencode(out), digest_size=6).hexdigest()


def work_directory(directory: Path, mark: str) -> Path:
    return directory / f"{NAME}-{mark}"


def tier(mark: str) -> Path:
    """For rules with the layer stage."""
    return _MEMORY / f"weir-tune-{mark}"


@contextmanager
def claimed(work: Path, out: Path) -> Iterator[None]:
    """Ended by whatever, the file stays as long as the copy or a result of --keep does. Raises
    StorageError."""
    path = work.with_name(f"{work.name}{OWNER}")
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(number, 0)
            os.pwrite(number, os.fsencode(out), 0)
        except OSError:
            os.close(number)
            raise
    except OSError as error:
        raise StorageError(f"{path}: cannot be written, and neither could the copy that runs work "
                           f"in: {error.strerror}") from error
    try:
        yield
    finally:
        if not work.exists() and not result_directory(work).exists():
            path.unlink(missing_ok=True)
        os.close(number)


@dataclass(frozen=True)
class Left:
    """What a weir tune left that does not run any more. out: its -o, None where that is not known.
    """

    work: Path
    out: str | None
    paths: tuple[Path, ...]

    @property
    def text(self) -> str:
        resumed = "" if self.out is None else (
            f" The same command with -o {self.out} continues it, and removes this copy at its end.")
        return (f"{self.work}: left by a weir tune that was interrupted.{resumed} To discard it: "
                f"rm -r {shlex.join(map(str, self.paths))}")


def left_behind(directory: Path, own: Path | None = None) -> Iterator[Left]:
    """In a directory, but for the copy of the caller. Where it is not known whether a weir tune
    still runs (a file system without locks) nothing is reported."""
    names = {one.name.removesuffix(OWNER).removesuffix(SUFFIX)
        for one in directory.glob(f"{NAME}-*") if one.is_dir() or one.name.endswith(OWNER)}
    for name in sorted(names):
        work = directory / name
        if work == own:
            continue
        owner = work.with_name(f"{name}{OWNER}")
        is_running, out = _owner(owner)
        if is_running:
            continue
        memory = tier(name.removeprefix(f"{NAME}-"))
        made = [work, result_directory(work), owner, *sorted(_MEMORY.glob(f"{memory.name}*"))]
        yield Left(work, out, tuple(one for one in made if one.exists()))


def _owner(path: Path) -> tuple[bool, str | None]:
    """Whether its weir tune runs, or may run; and -o of it."""
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False, os.fsdecode(file.read()) or None
    except FileNotFoundError:
        return False, None
    except OSError:
        return True, None
