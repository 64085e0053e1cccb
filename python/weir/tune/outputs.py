# SPDX-License-Identifier: Apache-2.0
"""What a run wrote, and whether another one wrote the same.

Files are compared by their bytes. Plain runs show which files have times in them: these are
compared by content (_content), and those that differ even so are named, not compared. Files that
not each plain run writes are counted.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weir.tune.workdir import Key, listing

_PIECE = 1 << 20
_TEXT_BYTES = 4 << 20  # of a file that is looked at as text
_STAMPS = re.compile(r"history|date|time_?stamp|created|modified", re.I)  # attributes of netCDF
_CDF, _HDF5, _ZIP = (b"CDF\x01", b"CDF\x02", b"CDF\x05"), b"\x89HDF\r\n\x1a\n", b"PK"
_NUMBERS = re.compile(rb"[0-9]+")
# In names of directories: numbers, and words of hexadecimal digits.
_CHANCE = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{8,}(?![0-9A-Za-z])|[0-9]+")


@dataclass(frozen=True)
class Output:
    """A file or symbolic link that a run made or changed. digest: of its bytes, or where the link
    leads to; content: of what it means without times, None for formats without."""

    bytes: int
    digest: str
    content: str | None


@dataclass(frozen=True)
class Difference:
    path: str
    why: str


def outputs_of(work: Path, before: Mapping[str, Key],
        containers: Iterable[str] = ()) -> dict[str, Output]:
    """By path. before: files that were there when the run began. containers: file names of archives
    of layer pack, whose members count as the files that they are."""
    found, names = {}, set(containers)
    for one in listing(work, follow=False):
        path = work / one.path
        if before.get(one.path) == one.key:
            continue
        if one.link is not None:
            found[one.path] = Output(0, f"link {one.link}", None)
        elif path.name in names:
            found |= _members(path, os.path.dirname(one.path))
        else:
            found[one.path] = _output(path)
    return found


def _members(path: Path, directory: str) -> dict[str, Output]:
    with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as scratch:
        made, member = {}, Path(scratch) / "member"
        for name in archive.namelist():
            member.write_bytes(archive.read(name))
            made[os.path.join(directory, name)] = _output(member)
        return made


def _digest(pieces: Iterable[bytes]) -> str:
    made = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        made.update(piece)
    return made.hexdigest()


def _output(path: Path) -> Output:
    with open(path, "rb") as file:
        head = file.read(8)
        file.seek(0)
        digest = _digest(iter(lambda: file.read(_PIECE), b""))
    return Output(path.stat().st_size, digest, _content(path, head))


def _content(path: Path, head: bytes) -> str | None:
    """Without times: variables of netCDF and HDF5, members of a ZIP archive, text with its numbers
    left out."""
    if head.startswith((*_CDF, _HDF5)):
        return _netcdf(path)
    if head.startswith(_ZIP) and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return repr(sorted((one.filename, one.CRC) for one in archive.infolist()))
    if path.stat().st_size <= _TEXT_BYTES and b"\0" not in head:
        text = path.read_bytes()
        if b"\0" not in text:
            return "text " + _digest([_NUMBERS.sub(b"0", text)])
    return None


def _netcdf(path: Path) -> str | None:
    """None where the library is not installed, or reads no such file."""
    try:
        import netCDF4
    except ImportError:
        return None
    try:
        with netCDF4.Dataset(str(path)) as data:
            return "netcdf " + _digest(_netcdf_parts(data))
    except (OSError, RuntimeError, ValueError):
        return None


def _netcdf_parts(group: object) -> Iterable[bytes]:
    yield _attributes(group)
    group.set_auto_maskandscale(False)  # type: ignore[attr-defined]
    for name, variable in sorted(group.variables.items()):  # type: ignore[attr-defined]
        yield f"{name} {variable.dtype} {variable.dimensions}".encode()
        yield _attributes(variable)
        yield variable[...].tobytes()
    for name, below in sorted(group.groups.items()):  # type: ignore[attr-defined]
        yield name.encode()
        yield from _netcdf_parts(below)


def _attributes(of: object) -> bytes:
    names = [one for one in of.ncattrs() if not _STAMPS.search(one)]  # type: ignore[attr-defined]
    return repr([(one, of.getncattr(one)) for one in names]).encode()  # type: ignore[attr-defined]


Outputs = Mapping[str, Output]


def shared(plains: Sequence[Outputs]) -> set[str]:
    """Files that each plain run writes."""
    return set.intersection(*(set(one) for one in plains))


def unsteady(plains: Sequence[Outputs]) -> set[str]:
    """Files that plain runs write differently, by their bytes."""
    return {path for path in shared(plains) if len({one[path].digest for one in plains}) > 1}


def not_compared(plains: Sequence[Outputs]) -> list[str]:
    """Files that plain runs write differently, times left out, or not each of them."""
    every = set().union(*plains)
    return sorted(every - shared(plains) | {path for path in unsteady(plains)
        if _content_of(plains, path) is None})


def _content_of(plains: Sequence[Outputs], path: str) -> str | None:
    """That of all plain runs; None where there is none, or more than one."""
    contents = {one[path].content for one in plains}
    return contents.pop() if len(contents) == 1 else None


def differences(plains: Sequence[Outputs], tuned: Outputs) -> list[Difference]:
    """What a run under rules did otherwise than all plain runs."""
    common, loose = shared(plains), unsteady(plains)
    found = [Difference(path, "it was not written") for path in common - tuned.keys()]
    for path in common & tuned.keys():
        if path not in loose:
            if plains[0][path].digest != tuned[path].digest:
                found.append(Difference(path, _other(plains[0][path], tuned[path])))
        elif _content_of(plains, path) not in (None, tuned[path].content):
            found.append(Difference(path, "its contents differ, times left out"))
    found += _of_names(plains, tuned, common)
    return sorted(found, key=lambda one: one.path)


def _other(plain: Output, tuned: Output) -> str:
    """How two differ."""
    is_link = [one.digest.startswith("link ") for one in (plain, tuned)]
    if is_link == [True, True]:
        return f"a {tuned.digest} instead of a {plain.digest}".replace("link ", "link to ")
    return "its bytes differ" if is_link == [False, False] else "a link in place of a file" \
        if is_link[1] else "a file in place of a link"


def _of_names(plains: Sequence[Outputs], tuned: Outputs, common: set[str]) -> list[Difference]:
    """Files whose names differ in each plain run are counted by directory; directories whose names
    differ count as one, numbers left out."""
    steady = set.intersection(*(set(map(os.path.dirname, one)) for one in plains))

    def counted(paths: Iterable[str]) -> Counter[str]:
        names = map(os.path.dirname, paths)
        return Counter(name if name in steady else _CHANCE.sub("*", name) for name in names)

    counts = [counted(one.keys() - common) for one in plains]
    mine = counted(tuned.keys() - common)
    most = Counter({name: max(one[name] for one in counts) for name in mine})
    found = [Difference(path, "it was written in addition") for path in tuned.keys() - common
        if any(mine[name] > most[name] for name in counted([path]))]
    for directory in set().union(*counts):
        fewest = min(one[directory] for one in counts)
        if mine[directory] < fewest:
            found.append(Difference(os.path.join(directory, "*"),
                f"{mine[directory]} files instead of {fewest} whose names differ in each run"))
    return found
