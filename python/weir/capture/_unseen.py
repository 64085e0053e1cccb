# SPDX-License-Identifier: Apache-2.0
"""Programs that the loader will not put weir's library into, found among the words of a command:
those behind a launcher too."""

from __future__ import annotations

import mmap
import os
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence

from weir.capture._command import CannotStart, find_program

_PROGRAM_HEADER = struct.Struct("<IIQQQQ")  # the beginning of Elf64_Phdr, elf(5)
_PROGRAM_HEADER_OF_INTERPRETER = 3  # PT_INTERP
_DEEPEST_SCRIPT = 5
REFUSES = (
    "it is built with AddressSanitizer, whose library ends a program into which another library is "
    "preloaded; to allow that, add verify_asan_link_order=0 to ASAN_OPTIONS"
)
# of gcc and clang, in the table of strings
_FIRST_LIBRARIES = (b"\0libasan.so.", b"\0libclang_rt.asan")
# of weir's library, linked into a static program
WRAP_MARK = b"WEIR_TRACE_DIR must be an absolute path"


def unseen_programs(command: Sequence[str],
        environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Words that are programs into which no library can be preloaded, each with the reason. Of
    files that are no programs only the head is read."""
    for number, word in enumerate(dict.fromkeys(command)):
        try:
            path = find_program(word, environ) if number == 0 or "/" in word else ""
            why = _reason(path) if path else None
            if path and why is None and refuses_preloads(path, environ):
                why = REFUSES
        except (CannotStart, OSError):
            continue
        if why is not None:
            yield word, why


def _reason(path: str) -> str | None:
    about = os.stat(path)
    if not stat.S_ISREG(about.st_mode) or not about.st_mode & 0o111:
        return None
    with open(path, "rb") as file:
        head = file.read(4096)
    if foreign := foreign_loader(path):
        return foreign
    if not head.startswith(b"\x7fELF\x02\x01") or len(head) < 64:
        return None
    if (about.st_mode & stat.S_ISUID and about.st_uid != os.geteuid()) or (about.st_mode
            & stat.S_ISGID and about.st_gid != os.getegid()):
        return "it is setuid or setgid"
    entry = struct.unpack_from("<Q", head, 24)[0]
    kinds = [kind for kind, _, _ in _parts(head)]
    is_program = entry != 0 and len(kinds) == struct.unpack_from("<H", head, 56)[0]
    if not is_program or _PROGRAM_HEADER_OF_INTERPRETER in kinds or _has_wrap_archive(path):
        return None
    return "it is statically linked"


def why_without_library(program: str, environ: Mapping[str, str]) -> str | None:
    """Why the program of a command is to be started without weir's library; None if it is not."""
    try:
        return foreign_loader(find_program(program, environ))
    except (CannotStart, OSError):
        return None


def foreign_loader(path: str) -> str | None:
    """Why the loader of the program, or of a script's interpreter, cannot load weir's library; None
    if it can, or there is none. LD_PRELOAD would end such a program (native/hook/foreign.h)."""
    for _ in range(_DEEPEST_SCRIPT):
        with open(path, "rb") as file:
            head = file.read(4096)
        if not head.startswith(b"#!"):
            return _of_elf(path, head)
        words = head[2:].split(b"\n")[0].split()
        if not words or not os.path.isfile(words[0]):
            return None
        path = os.fsdecode(words[0])
    return None


def _parts(head: bytes) -> Iterator[tuple[int, int, int]]:
    """Kind, place and bytes of each part of a 64-bit ELF file that its first bytes list."""
    table = struct.unpack_from("<Q", head, 32)[0]
    size, count = struct.unpack_from("<HH", head, 54)
    for at in range(table, table + size * count, size or 1):
        if at + _PROGRAM_HEADER.size <= len(head):
            kind, _, offset, _, _, length = _PROGRAM_HEADER.unpack_from(head, at)
            yield kind, offset, length


def _of_elf(path: str, head: bytes) -> str | None:
    if head.startswith(b"\x7fELF\x01"):
        return "it is a 32-bit program"
    if not head.startswith(b"\x7fELF\x02\x01") or len(head) < 64:
        return None
    for kind, offset, length in _parts(head):
        if kind == _PROGRAM_HEADER_OF_INTERPRETER:
            with open(path, "rb") as file:
                file.seek(offset)
                loader = os.fsdecode(file.read(min(length, 4096)).rstrip(b"\0"))
            name = os.path.basename(loader)
            if "musl" in name or "uClibc" in name or name.startswith("linker"):
                return f"it is linked with another C library than glibc ({loader})"
    return None


def refuses_preloads(path: str, environ: Mapping[str, str]) -> bool:
    """Whether the ELF file is linked with the library of AddressSanitizer, which ends the program
    unless that library is the first one."""
    if "verify_asan_link_order=0" in environ.get("ASAN_OPTIONS", ""):
        return False
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
            return any(whole.find(name) >= 0 for name in _FIRST_LIBRARIES)


def _has_wrap_archive(path: str) -> bool:
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
        return whole.find(WRAP_MARK) >= 0
