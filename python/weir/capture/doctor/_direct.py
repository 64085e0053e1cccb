# SPDX-License-Identifier: Apache-2.0
"""System calls that a program's machine code makes itself, past the C library.

The two bytes of the instruction also occur by chance, within other instructions and in tables. So
places where they stand behind something that sets a number of an I/O call are candidates, and a
disassembler decides, where there is one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

# System calls that move or name data.
IO_CALLS = {
    0: "read",
    1: "write",
    2: "open",
    17: "pread64",
    18: "pwrite64",
    19: "readv",
    20: "writev",
    40: "sendfile",
    257: "openat",
    295: "preadv",
    296: "pwritev",
    326: "copy_file_range",
    425: "io_uring_setup",
    426: "io_uring_enter",
}
_SYSCALL = b"\x0f\x05"
_WINDOW_BYTES = 24  # how far in front of the instruction its number may be set
_SET_NUMBER = re.compile(rb"(?:\xb8|\x48\xc7\xc0)(..\x00\x00)", re.S)  # mov $number, %eax or %rax
_SET_ZERO = re.compile(rb"\x31\xc0|\x33\xc0")  # xor %eax, %eax: number 0, read

_RUN_UP_BYTES = 256  # disassembly that begins within an instruction falls into step long before
# an instruction that the end cuts off would be shown as a byte, and its rest as another
_RUN_OUT_BYTES = 16
_MOST_ASKED = 64
_LONGEST_S = 10.0
_LINE = re.compile(r"^\s*([0-9a-f]+):\t(\S+)\s*(.*?)\s*(?:[#<].*)?$")
_NUMBER_OPERANDS = re.compile(r"^\$0x([0-9a-f]+),%[er]ax$")
_ZERO = {("xor", "%eax,%eax"), ("xor", "%rax,%rax"), ("sub", "%eax,%eax"), ("sub", "%rax,%rax")}
_CLOBBERS = re.compile(
    r"^(call|ret|jmp|syscall|cpuid|mul|imul|div|idiv|cltq|cwtl|cqto|lods|xchg|cmpxchg|rdtsc|leave|hlt|ud2|\(bad\)|\.byte)"
)
_INTO_NUMBER = re.compile(r"(?:^|,)%(?:rax|eax|ax|al|ah)$")
_ONLY_READ = ("cmp", "test", "push", "bt ", "nop")


@dataclass(frozen=True)
class Candidate:
    """``address``: of the instruction. ``sure``: its number is set in five bytes or more, which
    chance seldom makes."""

    address: int
    call: str
    sure: bool


def candidates(code: bytes, address: int = 0) -> list[Candidate]:
    """Where code that is loaded at an address may make a system call of I/O."""
    found = []
    at = code.find(_SYSCALL)
    while at >= 0:
        before = code[max(0, at - _WINDOW_BYTES) : at]
        numbers = [(m.start(), int.from_bytes(m.group(1), "little"), True)
            for m in _SET_NUMBER.finditer(before)]
        numbers += [(m.start(), 0, False) for m in _SET_ZERO.finditer(before)]
        if numbers:
            _, number, sure = max(numbers)
            if number in IO_CALLS:
                found.append(Candidate(address + at, IO_CALLS[number], sure))
        at = code.find(_SYSCALL, at + 2)
    return found


def number_set(lines: list[tuple[str, str]]) -> int | None:
    """What instructions, as (mnemonic, operands), leave in the register of the number; None if that
    cannot be said."""
    for mnemonic, operands in reversed(lines):
        if (mnemonic, operands) in _ZERO:
            return 0
        given = _NUMBER_OPERANDS.match(operands)
        if given and mnemonic.startswith("mov"):
            return int(given.group(1), 16)
        if _CLOBBERS.match(mnemonic):
            return None
        if _INTO_NUMBER.search(operands) and not mnemonic.startswith(_ONLY_READ):
            return None
    return None


def _disassembled(objdump: str, path: str, address: int) -> list[tuple[int, str, str]] | None:
    """(address, mnemonic, operands) around an address, from some way before it; None when objdump
    could not tell."""
    begin, end = max(0, address - _RUN_UP_BYTES), address + _RUN_OUT_BYTES
    command = [objdump, "-d", "--no-show-raw-insn", f"--start-address={begin:#x}",
        f"--stop-address={end:#x}", os.path.abspath(path)]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LONGEST_S,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode != 0:
        return None
    matches = [_LINE.match(line) for line in done.stdout.splitlines()]
    return [(int(m.group(1), 16), m.group(2), m.group(3)) for m in matches if m]


def _confirmed(objdump: str, path: str, candidate: Candidate) -> str | None:
    """The call that is really made there, if one of I/O is."""
    lines = _disassembled(objdump, path, candidate.address)
    if lines is None:
        return candidate.call if candidate.sure else None
    if not any(line[:2] == (candidate.address, "syscall") for line in lines):
        return None
    number = number_set([(mnemonic, operands) for at, mnemonic, operands in lines
        if at < candidate.address])
    return IO_CALLS.get(number) if number is not None else None


def direct_io_calls(path: str, found: Iterable[Candidate]) -> Counter[str]:
    """The calls among candidates in a program, by name. Where there is no objdump only what is sure
    counts.

    Of very many candidates the surest are looked at: a program that makes its own calls shows in
    those.
    """
    objdump = shutil.which("objdump")
    if objdump is None:
        return Counter(c.call for c in found if c.sure)
    calls: Counter[str] = Counter()
    deadline = time.monotonic() + _LONGEST_S
    for candidate in sorted(found, key=lambda c: not c.sure)[:_MOST_ASKED]:
        call = _confirmed(objdump, path, candidate)
        if call:
            calls[call] += 1
        if time.monotonic() > deadline:
            break
    return calls
