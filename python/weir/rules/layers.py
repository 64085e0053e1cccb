# SPDX-License-Identifier: Apache-2.0
"""All layers: what each takes, within which bounds, and what memory it needs.

A layer is declared in native/layers/<name>/layer.toml. The build makes layers.json of the package
from all of them (tools/layers.py). Rules are checked against it, docs/reference/layers.md is made
from it. What a layer does with its arguments is described in its own page,
native/layers/<name>/README.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from weir._native import LAYERS, library_path
from weir.rules.model import Layer
from weir.rules.values import BLOCK

MOST_DIRECTORIES = 16
MOST_LAYERS = 10  # of a user's stack; two more are left for the event layers of a trace


@dataclass(frozen=True)
class Argument:
    """One argument. ``default`` is the compiled value; None: none is passed on, and the layer
    takes ``otherwise`` (None: the argument has no effect where it is left out).

    Kinds: size (a number alone is blocks of 4 KiB), bytes (a number alone is bytes), count,
    fraction (0 to 1), flag, choice, errno, directory (absolute), directories (with commas
    between), file (a name ending in .zip).
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
    otherwise: str | None = None


@dataclass(frozen=True)
class Memory:
    """The product of the arguments ``of``, for each ``per`` (file, rank, node).

    ``twice_if``: what makes it twice as much. ``multiple``: the last argument of ``of``, summed
    over a ``multiple_per``, is rounded up to a multiple of it.
    """

    of: tuple[str, ...]
    per: str
    twice_if: str = ""
    multiple: int = 1
    multiple_per: str = ""


@dataclass(frozen=True)
class Order:
    """Layers above or below a layer. ``mistake``: the message; {above}, {below}: the two layers."""

    layers: tuple[str, ...]
    mistake: str


@dataclass(frozen=True)
class Kind:
    """A kind of layer.

    ``never_below``: layers that must not stand above it. ``only_below``: all that may stand below.
    ``transforms``: the bytes on disk are not the program's. ``one_opening``: two openings of a file
    do not see each other's writes. ``found_by_name``: calls on names, such as stat, are the layer's
    too. ``sweep``: its stack in ``weir bench layers --sweep``. ``statistics``: what it counts of a
    file, by name, each with its meaning.
    """

    name: str
    summary: str
    positional: tuple[Argument, ...] = ()
    options: tuple[Argument, ...] = ()
    memory: Memory | None = None
    repeatable: bool = False
    instead_of: tuple[str, ...] = ()  # what other systems call something like it
    never_below: Order | None = None
    only_below: Order | None = None
    transforms: bool = False
    one_opening: bool = False
    found_by_name: bool = False
    sweep: str | None = None
    statistics: Mapping[str, str] = field(default_factory=dict)

    def option(self, name: str) -> Argument | None:
        return next((o for o in self.options if o.name == name), None)

    def memory_of(self, layer: Layer, buffers: int | None = None) -> int:
        """Bytes for one ``memory.per``, of a layer with all its arguments. ``buffers``: in the
        place of the last argument."""
        if self.memory is None:
            return 0
        given = {
            argument.name: value
            for argument, value in zip(self.positional, layer.args, strict=True)
        }
        values = [given[name] for name in self.memory.of]
        return math.prod(values if buffers is None else [*values[:-1], buffers])


_EVERYWHERE = {"EIO", "EINTR"}
# What each call documents (open(2), read(2), ...): a fault may be none that a program could not
# meet without weir.
ERRNOS: dict[str, frozenset[str]] = {
    "any": frozenset(_EVERYWHERE),
    "read": frozenset(_EVERYWHERE | {"EAGAIN", "EBADF", "EINVAL", "EISDIR", "ENOMEM", "ENXIO",
        "EOVERFLOW", "ESTALE", "ETIMEDOUT"}),
    "write": frozenset(
        _EVERYWHERE | {"EAGAIN", "EBADF", "EDQUOT", "EFBIG", "EINVAL", "ENOSPC", "ENXIO", "EPERM",
            "ESTALE", "ETIMEDOUT"}
    ),
    "open": frozenset(
        _EVERYWHERE
        | {"EACCES", "EBUSY", "EDQUOT", "EEXIST", "EINVAL", "EISDIR", "ELOOP", "EMFILE",
            "ENAMETOOLONG", "ENFILE", "ENODEV"}
        | {"ENOENT", "ENOMEM", "ENOSPC", "ENOTDIR", "ENXIO", "EOVERFLOW", "EPERM", "EROFS",
            "ESTALE", "ETXTBSY"}
    ),
    "close": frozenset(_EVERYWHERE | {"EBADF", "EDQUOT", "ENOSPC"}),
    "fsync": frozenset(_EVERYWHERE | {"EBADF", "EDQUOT", "EINVAL", "ENOSPC", "EROFS"}),
    "truncate": frozenset(_EVERYWHERE | {"EACCES", "EBADF", "EFBIG", "EINVAL", "EPERM", "EROFS",
        "ETXTBSY"}),
}


def _argument(table: dict) -> Argument:
    return Argument(**{**table, "choices": tuple(table["choices"])})


def _kind(table: dict) -> Kind:
    memory, never, only = (table.get(key) for key in ("memory", "never_below", "only_below"))
    return Kind(
        table["name"],
        table["summary"],
        tuple(_argument(one) for one in table["arguments"]),
        tuple(_argument(one) for one in table["options"]),
        Memory(**{**memory, "of": tuple(memory["of"])}) if memory else None,
        table.get("repeatable", False),
        tuple(table.get("instead_of", ())),
        Order(tuple(never["layers"]), never["mistake"]) if never else None,
        Order(tuple(only["layers"]), only["mistake"]) if only else None,
        table.get("transforms", False),
        table.get("one_opening", False),
        table.get("found_by_name", False),
        table.get("sweep"),
        {one["name"]: one["help"] for one in table["statistics"]},
    )


@cache
def kinds() -> dict[str, Kind]:
    """All layers by name, in the order of lists. Raises LibraryMissing."""
    tables = json.loads(library_path(LAYERS).read_text())
    return {table["name"]: _kind(table) for table in tables}


# FFIO's word for no layer at all, as a stack of its own.
NOTHING = "none"
