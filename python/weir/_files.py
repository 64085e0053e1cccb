# SPDX-License-Identifier: Apache-2.0
"""Writing a file that has its name when it is complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

OWNER_ALONE = 0o600


_STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")


def _is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether it is a name of an open descriptor: replacing that would replace a link of the system
    by a file."""
    names = [os.path.abspath(path), os.readlink(path) if os.path.islink(path) else ""]
    return any(name.startswith(_STREAMS) for name in names)


@contextmanager
def complete_file(path: str | os.PathLike[str], permissions: int | None = None,
        sync: bool = False) -> Iterator[BinaryIO]:
    """A file to write into, which takes the place of `path` at the end of the block, or never when
    the block raises.

    permissions: None for those of any new file. What is no plain file (/dev/null, a named pipe),
    and what is open already (/dev/stdout), is then written to as it is. sync: the bytes are on the
    disk before the name. Raises OSError.
    """
    if permissions is None and (_is_stream(path) or os.path.exists(path)
            and not os.path.isfile(path)):  # fmt: skip
        with open(path, "wb") as stream:
            yield stream
        return
    # A name of its own length: that of the file may be as long as the system permits.
    unfinished = os.path.join(os.path.dirname(os.path.abspath(path)),
        f".weir-{os.urandom(8).hex()}.new")
    opened = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666 if permissions is None
        else OWNER_ALONE)
    try:
        with open(opened, "wb") as stream:
            yield stream
            stream.flush()
            if permissions not in (None, OWNER_ALONE):
                os.fchmod(opened, permissions)
            if sync:
                os.fsync(opened)
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise
