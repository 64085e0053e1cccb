# SPDX-License-Identifier: Apache-2.0
"""The table of all layers: what each takes, within which bounds, and what memory it needs.

Rules are checked against it, docs/reference/layers.md is made from it. What a layer does with its arguments is said in
its own page, native/layers/<name>/README.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from weir.rules.model import Layer
from weir.rules.values import BLOCK

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
MOST_DIRECTORIES = 16
MOST_LAYERS = 10  # of a user's stack; two more are left for the event layers of a trace


@dataclass(frozen=True)
class Argument:
    """One argument. ``default`` is the compiled value; None: none is passed on, and the layer decides.

    Kinds: size (a number alone is blocks of 4 KiB), bytes (a number alone is bytes), count,
    fraction (0 to 1), flag, choice, errno, directories (absolute, with commas between).
    """

    name: str
    kind: str
    default: str | None
    help: str
    low: int = 0
    high: int = (1 << 63) - 1
    choices: tuple[str, ...] = ()
    required: bool = False
    step: int = BLOCK  # a size is a multiple of it


@dataclass(frozen=True)
class Kind:
    """A kind of layer. ``memory`` gives bytes and what they are for (file, rank, node) of a layer with all its arguments."""

    name: str
    summary: str
    positional: tuple[Argument, ...] = ()
    options: tuple[Argument, ...] = ()
    memory: Callable[[Layer], tuple[int, str]] | None = None
    repeatable: bool = False
    instead_of: tuple[str, ...] = field(default=())  # what other systems call something like it

    def option(self, name: str) -> Argument | None:
        return next((o for o in self.options if o.name == name), None)


OPERATIONS = ("any", "read", "write", "open", "close", "fsync", "truncate")
_EVERYWHERE = {"EIO", "EINTR"}
# What each call documents (open(2), read(2), ...): a fault may be none that a program could not meet without weir.
ERRNOS: dict[str, frozenset[str]] = {
    "any": frozenset(_EVERYWHERE),
    "read": frozenset(_EVERYWHERE | {"EAGAIN", "EBADF", "EINVAL", "EISDIR", "ENOMEM", "ENXIO", "EOVERFLOW", "ESTALE", "ETIMEDOUT"}),
    "write": frozenset(
        _EVERYWHERE | {"EAGAIN", "EBADF", "EDQUOT", "EFBIG", "EINVAL", "ENOSPC", "ENXIO", "EPERM", "ESTALE", "ETIMEDOUT"}
    ),
    "open": frozenset(
        _EVERYWHERE
        | {"EACCES", "EBUSY", "EDQUOT", "EEXIST", "EINVAL", "EISDIR", "ELOOP", "EMFILE", "ENAMETOOLONG", "ENFILE", "ENODEV"}
        | {"ENOENT", "ENOMEM", "ENOSPC", "ENOTDIR", "ENXIO", "EOVERFLOW", "EPERM", "EROFS", "ESTALE", "ETXTBSY"}
    ),
    "close": frozenset(_EVERYWHERE | {"EBADF", "EDQUOT", "ENOSPC"}),
    "fsync": frozenset(_EVERYWHERE | {"EBADF", "EDQUOT", "EINVAL", "ENOSPC", "EROFS"}),
    "truncate": frozenset(_EVERYWHERE | {"EACCES", "EBADF", "EFBIG", "EINVAL", "EPERM", "EROFS", "ETXTBSY"}),
}


def _buffers(per: str) -> Callable[[Layer], tuple[int, str]]:
    return lambda layer: (layer.args[0] * layer.args[1], per)


def _size(default: int, help_: str, high: int = GIB) -> Argument:
    return Argument("bytes", "size", str(default), help_, BLOCK, high)


def _count(default: int, help_: str, high: int = 4096) -> Argument:
    return Argument("buffers", "count", str(default), help_, 1, high)


_OP = Argument("op", "choice", "any", "which calls", choices=OPERATIONS)
# Which calls: the same for each layer of faults.
_CHOSEN = (
    Argument("rate", "fraction", "1", "share of these calls, 0 to 1"),
    Argument("seed", "count", "1", "of the random numbers that choose the calls"),
    Argument("first", "bytes", None, "first byte of the file that a call must touch"),
    Argument("last", "bytes", None, "last one"),
    Argument("after", "count", None, "only after so many matching calls"),
    Argument("times", "count", None, "so many times, then no more", 1),
)

_SHARED = (
    Argument("always", "flag", None, "1: never bypasses a file, also where it cannot help; for tests"),
    Argument("patience_ms", "count", None, "for so long a writer without room waits while no rank writes", 0, 60_000),
)

KINDS: tuple[Kind, ...] = (
    Kind("event", "records what passes it in the trace", repeatable=True),
    Kind(
        "bufa",
        "asynchronous buffering: reads ahead, writes behind",
        (_size(MIB, "size of a buffer, and of requests below", 256 * MIB), _count(4, "buffers of an open file", 256)),
        (
            Argument("direct", "flag", None, "O_DIRECT for the requests below"),
            Argument("always", "flag", None, "1: never bypasses a file, also where it cannot help; for tests"),
        ),
        _buffers("open file"),
        instead_of=("cache", "cachea", "blankx", "iobuf", "buffa"),
    ),
    Kind(
        "cos",
        "blocked sequential files as on Cray",
        (_size(48 * BLOCK, "size of the buffer", 64 * MIB),),
        memory=lambda layer: (layer.args[0], "open file"),
        instead_of=("blocked", "cosblocked"),
    ),
    Kind(
        "global",
        "a cache that all ranks of a job share",
        (_size(2 * MIB, "size of a block, and of requests below"), _count(2, "blocks for each rank")),
        (
            *_SHARED,
            Argument("vain_blocks", "count", None, "blocks loaded in vain, for the node and each opening, before reads bypass it", 0, 1 << 20),
        ),
        memory=_buffers("rank"),
        instead_of=("glio", "shared"),
    ),
    Kind(
        "gather",
        "requests of a node's ranks gathered, sorted and merged into full stripes",
        (_size(MIB, "size of a stripe"), _count(16, "stripes for each node")),
        _SHARED,
        memory=_buffers("node"),
        instead_of=("gas", "collect", "aggregate"),
    ),
    Kind(
        "keep",
        "keeps descriptors and metadata of files that are opened and asked for again and again",
        options=(
            Argument("files", "count", None, "files kept open after their close", 1, 250),
            Argument("bytes", "size", None, "memory for what is appended", BLOCK, GIB),
            Argument("valid_ms", "count", None, "for so long a name is believed to be the same file on other nodes", 0, 3600000),
            Argument("always", "count", None, "1: also where the system opens files in a few microseconds, and with more files in turn than places", 0, 1),
        ),
    ),
    Kind(
        "stripe",
        "one logical file over several directories",
        options=(
            Argument("dirs", "directories", None, "the directories, 2 to 16", required=True),
            Argument("unit", "size", str(MIB), "bytes in one directory before the next is used", BLOCK, GIB),
        ),
        instead_of=("disk", "partition", "raid0"),
    ),
    Kind(
        "hints",
        "stripes of files that are made on Lustre",
        options=(
            Argument("striping_factor", "count", None, "targets; 65535: all", 1, 65535),
            Argument("striping_unit", "size", None, "bytes on one target before the next is used", 64 * KIB, GIB, step=64 * KIB),
        ),
        instead_of=("lustre", "setstripe"),
    ),
    Kind(
        "error",
        "makes calls fail",
        options=(
            _OP,
            Argument("errno", "errno", "EIO", "what they fail with"),
            *_CHOSEN,
        ),
        repeatable=True,
        instead_of=("fault", "fail", "inject"),
    ),
    Kind(
        "delay",
        "makes calls slower",
        options=(
            _OP,
            Argument("us", "count", "300", "microseconds that are added", 0, 60_000_000),
            Argument("jitter_us", "count", None, "up to so many more, at random", 0, 60_000_000),
            *_CHOSEN,
        ),
        repeatable=True,
        instead_of=("latency", "sleep", "slow"),
    ),
    Kind(
        "short",
        "makes reads and writes transfer less than was asked for",
        options=(
            Argument("op", "choice", "any", "which calls", choices=("any", "read", "write")),
            Argument("bytes", "bytes", None, "at most so many; else a random number", 1),
            *_CHOSEN,
        ),
        repeatable=True,
        instead_of=("partial",),
    ),
    Kind("system", "the system's calls; ends every stack", instead_of=("syscall", "posix", "sys", "f77", "unix")),
)
KIND_OF = {kind.name: kind for kind in KINDS}
# FFIO's word for no layer at all, as a stack of its own.
NOTHING = "none"
