# SPDX-License-Identifier: Apache-2.0
"""The stacks whose runs must be those without layers, in the compiled form of rules.

Each layer declares its own (native/layers/<name>/layer.toml, [tests]). Blocks are small, so that
files have many.
"""

from __future__ import annotations

import os

from model import Block
from weir_layers import DECLARED

DECLARED_STACKS = [
    (name, stack, layer)
    for layer in DECLARED
    for name, stack in layer["tests"].get("sequences", {}).items()
]
STACKS = {"trace": ""} | {name: stack for name, stack, _ in DECLARED_STACKS}
TRACED = tuple(name for name, stack in STACKS.items() if "event" in stack or not stack)
FLAVOURS_OF = {
    name: layer["tests"]["flavours"] for name, _, layer in DECLARED_STACKS
    if "flavours" in layer["tests"]
}
# Two openings of one file do not follow each other, and a killed rank leaves one without an end.
ALONE = frozenset(name for name, _, layer in DECLARED_STACKS if layer.get("one_opening"))
NEED_CLOSE = frozenset(
    name for name, _, layer in DECLARED_STACKS if layer["tests"].get("needs_close"))
TRANSFORMS = frozenset(name for name, _, layer in DECLARED_STACKS if layer.get("transforms"))

# What the kernel would do by itself (map, reserve, copy, find holes, count bytes to read) it would
# do to what lies on disk; a copy of a descriptor where a stream may stand is refused, streams of
# wide characters are plain ones, O_DIRECT asks for what pieces are not.
NOT_TRANSFORMED = frozenset(("mmap", "fallocate", "posix_fallocate", "sendfile", "copy_range",
    "sync_range", "fionread", "dup", "dup2", "putwc", "getwc"))

# A file that needs its close lies in memory of another file system until then, and its descriptor
# for writing alone can be read; a mapping that outlives all descriptors sees no later opening.
NOT_IN_MEMORY = frozenset(("copy_range", "sendfile", "mmap"))

def leaves_out(stack: str, operation) -> bool:
    """Whether the operation is none for this stack (a name of STACKS)."""
    if stack in NEED_CLOSE:
        if isinstance(operation, Block):  # another program does not know whose memory it is
            return operation.head in ("exec", "spawn") and any(
                inner[0] in ("fstat", "read", "readv", "readv2", "pread")
                for inner in operation.body)
        if operation[0] == "@":
            return leaves_out(stack, operation[2])
        # O_NOFOLLOW is an open file's no more when it has become a real one (F_GETFL).
        direct = operation[0] == "open" and operation[3] & (os.O_DIRECT | os.O_NOFOLLOW)
        # contents that were stored are data throughout
        holes = operation[0] == "lseek" and operation[3] in (os.SEEK_DATA, os.SEEK_HOLE)
        return operation == ("end", 3) or operation[0] in NOT_IN_MEMORY or bool(direct) or holes
    if stack not in TRANSFORMS:
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
    return name in NOT_TRANSFORMED or bool(flags & os.O_DIRECT or empty) or (name == "lseek"
        and operation[3] in (os.SEEK_DATA, os.SEEK_HOLE))
