# SPDX-License-Identifier: Apache-2.0
"""``weir doctor PROGRAM``: what a trace of this program will show, and what it cannot."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator

from weir._errors import InputError
from weir.capture._command import word
from weir.capture.doctor._elf import Elf, is_elf, read_elf
from weir.capture.doctor._finding import FINDING, FINE, NOTE, Finding

_DEEPEST_SCRIPT = 5
_OTHER_FORTRAN = {
    "libifcore": "Intel Fortran",
    "libpgf90": "PGI Fortran",
    "libnvf": "NVIDIA Fortran",
    "libFortranRuntime": "LLVM Flang",
    "libflang_rt": "LLVM Flang",
    "libf90": "Cray Fortran",
    "libfi.so": "Cray Fortran",
}


def find(program: str) -> str:
    """The file a shell would start for this name. Raises InputError with what is wrong with it."""
    if "/" in program or os.path.exists(program) and shutil.which(program) is None:
        path = program
    else:
        path = shutil.which(program) or ""
        if not path:
            raise InputError(
                f"{program}: not found in PATH; name the file with its directory, for example "
                f"./{program}")
    if not os.path.exists(path):
        raise InputError(f"{path}: no such file")
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise InputError(f"{path}: not a regular file")
    return path


def _access(path: str) -> Iterator[Finding]:
    mode = os.stat(path)
    if not mode.st_mode & 0o111:
        yield Finding("executable", FINDING, f"{path} is not executable: chmod +x {word(path)}")
    elevated = [
        f"set{what}id of {what} {owner}"
        for what, bit, owner, own in (
            ("user", stat.S_ISUID, mode.st_uid, os.geteuid()),
            ("group", stat.S_ISGID, mode.st_gid, os.getegid()),
        )
        if mode.st_mode & bit and owner != own
    ]
    elevated = [text.replace("setuserid", "setuid").replace("setgroupid", "setgid")
        for text in elevated]
    if elevated:
        yield Finding(
            "privileged", FINDING,
            f"{' and '.join(elevated)}: the loader ignores LD_PRELOAD, so nothing of it will be "
            f"seen"
        )
    elif mode.st_mode & (stat.S_ISUID | stat.S_ISGID):
        yield Finding("privileged", NOTE,
            "setuid or setgid: nothing will be seen when somebody else than its owner runs it")
    try:
        capable = bool(os.getxattr(path, "security.capability"))
    except OSError:
        capable = False
    if capable and os.geteuid() != 0:
        yield Finding(
            "capabilities", FINDING,
            "has file capabilities: the loader ignores LD_PRELOAD, so nothing of it will be seen"
        )
    elif capable:
        yield Finding("capabilities", NOTE,
            "has file capabilities: nothing will be seen when another user than root runs it")


def _loadable(elf: Elf) -> Finding:
    """Whether the loader will put weir's library into the program at all: everything else depends
    on it."""
    if elf.bits != 64 or elf.machine != "x64":
        return Finding(
            "architecture", FINDING,
            f"a {elf.bits}-bit program for {elf.machine}; weir's library is for 64-bit x86-64: not "
            f"seen at all"
        )
    if elf.kind == "ET_DYN" and elf.interpreter is None and not elf.has_entry:
        return Finding("linkage", NOTE,
            "a shared library: its calls are seen when a dynamically linked program loads it")
    if elf.kind not in ("ET_EXEC", "ET_DYN"):
        return Finding("linkage", FINDING, "an object or core file, not a program")
    if elf.is_go and elf.is_static:
        return Finding("linkage", FINDING,
            "a Go program, which makes its system calls itself: not seen at all")
    if elf.is_static and "weir" in elf.text_marks:
        return Finding(
            "linkage", NOTE,
            "statically linked with weir's static wrapper library: its calls of the C library are "
            "seen; Fortran statements and MPI_Init are not",
        )  # fmt: skip
    if elf.is_static:
        library = "" if "glibc" in elf.text_marks else " without glibc (musl, for example)"
        return Finding(
            "linkage",
            FINDING,
            f"statically linked{library}: not seen at all; link it dynamically to see it (without "
            f"-static), or "
            "with `weir wrap-flags`",
        )
    if "musl" in (elf.interpreter or ""):
        return Finding("linkage", FINDING,
            "linked with musl: weir's library needs glibc, and the program runs without it, "
            "not seen")
    return Finding("linkage", FINE, "dynamically linked: its calls of the C library are seen")


def _missing_libraries(elf: Elf) -> Iterator[Finding]:
    missing = [name for name, path in elf.libraries.items() if path is None]
    if missing:
        yield Finding("libraries", FINDING,
            f"will not start here: {', '.join(missing)} not found; load its modules or set "
            f"LD_LIBRARY_PATH")


def _fortran(elf: Elf) -> Iterator[Finding]:
    if elf.uses("libgfortran"):
        yield Finding("fortran", FINE,
            "gfortran with its shared library: READ, WRITE, OPEN and CLOSE statements are seen")
    elif "_gfortran_st_write" in elf.defined or "libgfortran" in elf.text_marks:
        yield Finding(
            "fortran",
            FINDING,
            "gfortran's library is linked statically: its system calls are seen, statements and "
            "units are not; link without "
            "-static-libgfortran",
        )
    others = dict.fromkeys(name for prefix, name in _OTHER_FORTRAN.items() if elf.uses(prefix))
    if "intel_fortran" in elf.text_marks:
        others["Intel Fortran"] = None
    for name in others:
        yield Finding("fortran", NOTE,
            f"{name}: its system calls are seen; statements and units are seen of gfortran alone")


def _mpi(elf: Elf) -> Iterator[Finding]:
    if elf.uses("libmpi.so.40", "libmpi.so.20", "libmpi.so.80", "libopen-rte", "libopen-pal"):
        name = "Open MPI"
    elif elf.uses("libmpich", "libmpi_cray", "libmpi_gnu",
            "libmpi_intel") or elf.uses("libmpi.so.12"):
        name = "MPICH or one derived from it"
    elif elf.uses("libmpi"):
        name = "an MPI that weir does not know by name"
    elif {"ompi_mpi_init", "opal_init"} & elf.defined:
        yield Finding("mpi", NOTE,
            "Open MPI is linked statically: the rank is taken from the launcher's environment")
        return
    elif {"MPID_Init", "MPIDI_CH3_Init", "MPIR_Init_thread_impl", "MPII_Init_thread"} & elf.defined:
        yield Finding("mpi", NOTE,
            "MPICH is linked statically: the rank is taken from the launcher's environment")
        return
    else:
        yield Finding("mpi", NOTE, "no MPI: without a launcher it counts as rank 0 of 1")
        return
    yield Finding("mpi", FINE, f"{name}: rank and size are seen")


def _bypasses(elf: Elf) -> Iterator[Finding]:
    if elf.is_go:
        yield Finding("go", FINDING,
            "a Go program: it makes its own system calls; only what its C parts do is seen")
    if elf.uses("liburing"):
        yield Finding("io_uring", NOTE,
            "uses io_uring by liburing: requests are seen as they are submitted, with the bytes "
            "asked for; their ends are not")
    elif any(name.startswith("io_uring_") for name in elf.imports | elf.defined):
        yield Finding(
            "io_uring",
            FINDING,
            "uses io_uring without liburing.so: open and close of its files are seen, the requests "
            "are not, and the bytes the kernel "
            "counts do not have them either",
        )
    calls = elf.direct_calls
    if calls and not elf.is_go:
        which = ", ".join(f"{name} ({number})" for name, number in sorted(calls.items()))
        yield Finding("direct_calls", FINDING,
            f"machine code that looks like system calls past the C library, not seen: {which}")
    if elf.imports & {"__overflow", "__uflow"}:
        yield Finding("inlined_stdio", NOTE,
            "has getc_unlocked or putc_unlocked inlined: characters that they move are not seen")
    if "syscall" in elf.imports:
        yield Finding("syscall", NOTE,
            "calls syscall(): open, read, write and their like made that way are seen, other calls "
            "are not")
    if elf.imports & {"mmap", "mmap64"}:
        yield Finding("mmap", NOTE,
            "maps memory: of mapped files the mmap is seen, the bytes are not")
    if elf.imports & {"dlopen", "dlmopen"}:
        text = "loads libraries while it runs: their calls are seen, with RTLD_DEEPBIND too"
        if "dlmopen" in elf.imports:
            text = (
                "uses dlmopen: what it loads into a namespace of its own is not seen; other loaded "
                "libraries are"
            )
        yield Finding("dlopen", NOTE, text)
    if elf.uses("libasan"):
        yield Finding(
            "sanitizer",
            FINDING,
            "linked with the address sanitizer, which ends the program unless it is the first "
            "library: set ASAN_OPTIONS=verify_asan_link_order=0, "
            "or build without -fsanitize=address",
        )


def examine_elf(path: str) -> list[Finding]:
    """What of one ELF program will be seen. Raises InputError when it is damaged."""
    elf = read_elf(path)
    loadable = _loadable(elf)
    if loadable.status == NOTE:  # a shared library
        return [loadable]
    findings = [loadable, *_access(path)]
    if loadable.status == FINE:
        for part in (_missing_libraries, _fortran, _mpi, _bypasses):
            findings += part(elf)
    return findings


def _interpreter(path: str) -> str | None:
    """The command in the first line of a script, with /usr/bin/env looked through; None when it
    names none."""
    with open(path, "rb") as file:
        line = file.readline(4096)
    if not line.startswith(b"#!"):
        return None
    words = os.fsdecode(line[2:].strip()).split()
    if words and os.path.basename(words[0]) == "env":
        rest = [w for w in words[1:] if not w.startswith("-") and "=" not in w]
        return rest[0] if rest else None
    return words[0] if words else None


def _is_shell_text(path: str) -> bool:
    """Whether a file without a first line that names an interpreter may be a script: it is
    executable, and text."""
    if not os.stat(path).st_mode & 0o111:
        return False
    with open(path, "rb") as file:
        begin = file.read(4096)
    odd = sum(byte < 32 and byte not in b"\t\n\r\f\v\b\033" or byte == 127 for byte in begin)
    try:
        begin.decode()
    except UnicodeDecodeError as error:
        if error.start < len(begin) - 3:  # else it is a letter that the read has cut
            odd += sum(byte >= 128 for byte in begin)
    return b"\0" not in begin[:256] and odd * 10 <= len(begin)


def examine_program(program: str, depth: int = 0) -> list[Finding]:
    """Everything about a program or script, in the order of importance. Raises InputError if there
    is no such file."""
    path = find(program)
    try:
        if os.stat(path).st_size == 0:
            return [Finding("script", FINDING, f"{path} is empty"), *_access(path)]
        if is_elf(path):
            return [Finding("program", NOTE, path), *examine_elf(path)]
        interpreter = _interpreter(path)
        data = interpreter is None and not _is_shell_text(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if data:
        return [Finding("program", FINDING,
            f"{path} is neither an ELF program nor a script: it cannot be run"), *_access(path)]
    shown = interpreter or "/bin/sh"
    result = [
        Finding("script", FINE,
            f"{path} is a script for {shown}: that and every program it starts is recorded, each "
            f"by itself"),
        *_access(path),
    ]
    if depth >= _DEEPEST_SCRIPT:
        return [*result, Finding("interpreter", FINDING,
            f"{shown}: scripts that name scripts, without end")]
    try:
        return result + examine_program(shown, depth + 1)
    except InputError as error:
        return [*result, Finding("interpreter", FINDING,
            f"its interpreter cannot be used: {error}")]
