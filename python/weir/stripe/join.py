# SPDX-License-Identifier: Apache-2.0
"""A striped file, found by its index, read piece by piece."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from weir._errors import InputError, NotThere, StorageError, UsageError
from weir._files import complete_file

FIRST_LINE = "weir stripe 1"
MOST_INDEX_BYTES = 16384


@dataclass(frozen=True)
class Striped:
    """unit_bytes in piece 0, the next unit_bytes in piece 1, and so on in turn."""

    path: Path
    unit_bytes: int
    pieces: tuple[Path, ...]

    def piece_sizes(self) -> list[int]:
        """Bytes of each piece. Raises NotThere when one is missing."""
        sizes = []
        for piece in self.pieces:
            try:
                sizes.append(piece.stat().st_size)
            except OSError as error:
                raise NotThere(f"{self.path}: its piece {piece} cannot be read: "
                               f"{error.strerror}") from error
        return sizes

    def size(self) -> int:
        """Bytes of the whole file: the least that has all bytes of all pieces."""
        most = 0
        for number, size in enumerate(self.piece_sizes()):
            if size:
                stripe, rest = divmod(size - 1, self.unit_bytes)
                most = max(most, (stripe * len(self.pieces) + number) * self.unit_bytes + rest + 1)
        return most


def read_index(path: str | os.PathLike[str]) -> Striped:
    """The index under a striped file's name. Raises InputError when the file is no index, NotThere
    when there is none."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            head = file.read(MOST_INDEX_BYTES + 1)
    except FileNotFoundError as error:
        raise NotThere(f"{path}: no such file") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    lines = head.decode("utf-8", "surrogateescape").splitlines()
    if len(head) > MOST_INDEX_BYTES or not lines or lines[0] != FIRST_LINE:
        raise InputError(f"{path}: no striped file (one begins with the line '{FIRST_LINE}')")
    unit, pieces = 0, []
    for number, line in enumerate(lines[1:], 2):
        word, _, value = line.partition(" ")
        if word == "unit_bytes" and value.isdigit() and int(value) > 0:
            unit = int(value)
        elif word == "piece" and value:
            pieces.append(Path(value))
        else:
            raise InputError(
                f"{path}, line {number}: expected 'unit_bytes N' or 'piece PATH', found {line!r}")
    if not unit or len(pieces) < 2:
        raise InputError(f"{path}: an index names a unit and two pieces or more")
    return Striped(path, unit, tuple(pieces))


def join(path: str | os.PathLike[str], output: str | os.PathLike[str] | None = None, *,
        remove: bool = False) -> int:
    """Write the whole file as a plain one: over the index, or to `output`, which must not exist.
    Bytes written.

    The plain file gets its name when it is complete. In place the pieces go then, as nothing would
    name them any more; with an output they stay, and the index, unless `remove`.
    """
    striped = read_index(path)
    target = striped.path if output is None else Path(output)
    if output is not None and target.exists():
        raise UsageError(f"{target} exists already; choose another name or remove it")
    size = striped.size()
    try:
        with complete_file(target, striped.path.stat().st_mode & 0o7777, sync=True) as out:
            _copy(striped, out.fileno(), size)
    except OSError as error:
        raise StorageError(error.errno, f"{target}: cannot be written: {error.strerror}") from error
    if remove or output is None:
        for old in (*striped.pieces, *(() if output is None else (striped.path,))):
            old.unlink()
    return size


def _copy(striped: Striped, out: int, size: int) -> None:
    os.truncate(out, size)
    count, unit = len(striped.pieces), striped.unit_bytes
    for number, piece in enumerate(striped.pieces):
        with piece.open("rb") as source:
            for stripe in range(number, -(-size // unit), count):
                part = source.read(unit)
                if part:
                    os.pwrite(out, part, stripe * unit)
