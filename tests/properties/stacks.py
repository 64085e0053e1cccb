# SPDX-License-Identifier: Apache-2.0
"""The stacks whose runs must be those without layers, in the compiled form of rules. Blocks are small, so that files have many."""

from __future__ import annotations

import os

from model import Block

PASSING = "delay:op=any:us=1:jitter_us=0:rate=1:seed=1|system"
STACKS = {
    "trace": "",
    "passing": PASSING,
    "bufa-small": "bufa:4096:2:always=1|system",
    "bufa": "bufa:65536:4|system",
    "gather": "gather:65536:4:always=1|system",
    "global": "global:65536:4:always=1|system",
    "global-vain": "global:4096:8:always=1:vain_blocks=1|system",  # reads bypass it
    "keep": "keep:files=8:always=1|system",
    "keep-bufa": "keep:files=4:valid_ms=1:always=1|bufa:8192:3:always=1|system",
    "stripe": "stripe:dirs=@a,@b,@c:unit=4096|system",
    "cos": "cos:8192|system",
    "bufa-events": "event|bufa:8192:3:always=1|event|system",
}
TRACED = ("trace", "bufa-events")


# What the pages of layers say that they cannot do.
# stripe, cos: what the kernel would do by itself (map, reserve, copy, find holes, count bytes to read) it would do to what lies on disk; a copy of a
# descriptor where a stream may stand is refused, streams of wide characters are plain ones, O_DIRECT asks for what pieces are not.
NOT_TRANSFORMED = frozenset(("mmap", "fallocate", "posix_fallocate", "sendfile", "copy_range", "sync_range", "fionread", "dup", "dup2", "putwc", "getwc"))
# One who had a file open while it was empty and not striped goes on with the index.
# A forked child, and a program that is given a descriptor, see the index.
FLAVOURS_OF = {"stripe": ("posix", "stdio", "threads"), "cos": ("posix", "stdio", "mixed", "threads")}
# Two openings of one blocked file do not follow each other, and a killed rank leaves one without an end.
ALONE = frozenset(("cos",))


def leaves_out(stack: str, operation) -> bool:
    """Whether the operation is none for this stack (a name of STACKS)."""
    if stack not in ("stripe", "cos"):
        return False
    if operation == ("end", 3):
        return stack in ALONE
    if isinstance(operation, Block):
        return operation.head != "par"
    if operation[0] == "@":
        return leaves_out(stack, operation[2])
    name = operation[0]
    flags = operation[3] if name == "open" else 0
    empty = flags & os.O_CREAT and flags & os.O_ACCMODE == os.O_RDONLY
    return name in NOT_TRANSFORMED or bool(flags & os.O_DIRECT or empty) or (name == "lseek" and operation[3] in (os.SEEK_DATA, os.SEEK_HOLE))
