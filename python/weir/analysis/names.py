# SPDX-License-Identifier: Apache-2.0
"""Names over all processes and nodes of a run: one name of a file, one number; and its ranks."""

from __future__ import annotations

import posixpath
import re
import threading
from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np

from weir.analysis.ranks import RankNames

NO_NAME = -1
_LOCK = threading.Lock()  # of all tables: they are sent to other processes
_FOLDED = re.compile(r"/(?:\.?/)+")


def fold(name: str) -> str:
    """The name with `//` and `/./` folded. `..` stays: behind a symbolic link it is not what it
    seems."""
    if not name.startswith("/"):
        return name
    folded = _FOLDED.sub("/", name)
    if folded.endswith("/."):
        folded = folded[:-1]
    return folded.rstrip("/") or "/"


def is_utf8(name: str) -> bool:
    """Whether all of it is characters: bytes that are none come as surrogates."""
    return name.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in name)


def matches(name: str, pattern: str) -> bool:
    """A shell pattern that fits the whole name or its end after a `/`; a plain word fits anywhere.
    """
    if not any(c in pattern for c in "*?["):
        return pattern in name
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"*/{pattern}")


def shown(name: str, cwd: str | None) -> str:
    """The path as tables show it: relative when it lies below the step's working directory; in
    quotes, with escapes, where it would not be seen as it is: blank at an end, or with control
    characters."""
    if cwd and cwd != "/" and name.startswith(cwd.rstrip("/") + "/"):
        name = name[len(cwd.rstrip("/")) + 1 :]
    if name.isprintable() and name == name.strip() and not name.startswith('"'):
        return name
    return '"' + escaped(name.replace("\\", r"\\").replace('"', r"\"")) + '"' if name else name


def escaped(text: str) -> str:
    """With its control characters escaped."""
    return text if text.isprintable() else "".join(one if one.isprintable() else _escaped(one)
        for one in text)


def toml_string(text: str) -> str:
    """A basic string of TOML."""
    made = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in made) + '"'


def _escaped(character: str) -> str:
    """A control character must not reach the terminal, nor break a line of a table."""
    return character.encode("unicode_escape").decode("ascii")


def is_mpi_segment(not_a_file: str) -> bool:
    """Whether the name of what is no file is that of memory that an MPI library shares: a path, and
    none of the kernel's (native/wire/paths.h declares which names are no files)."""
    trees = ("/dev", "/proc", "/sys")
    is_kernels = not_a_file.startswith(tuple(f"{tree}/" for tree in trees)) or not_a_file in trees
    return not_a_file.startswith("/dev/shm/") or (not_a_file.startswith("/") and not is_kernels)


class NameTable:
    """Numbers of names of files in the order in which they were first met; and those of ranks."""

    def __init__(self) -> None:
        self.ranks = RankNames()
        self.names: list[str] = []
        self._at: dict[str, int] = {}
        self._recorded: dict[str, int] = {}

    def recorded(self, text: str) -> int:
        """The number of a name as it was recorded."""
        number = self._recorded.get(text)
        if number is None:
            number = self._recorded[text] = self.number(fold(text))
        return number

    def all_recorded(self, texts: Sequence[str]) -> np.ndarray:
        """recorded() of each; most are those of other nodes, too."""
        numbers = list(map(self._recorded.get, texts))
        return np.array([self.recorded(text) if number is None else number
            for text, number in zip(texts, numbers)] if None in numbers else numbers, np.int32)

    def number(self, name: str) -> int:
        at = self._at.get(name)
        if at is None:
            with _LOCK:  # threads that read records meet names that were lost
                at = self._at.setdefault(name, len(self.names))
                if at == len(self.names):
                    self.names.append(name)
        return at

    def __getitem__(self, number: int) -> str:
        return "(no file)" if number == NO_NAME else self.names[number]

    def base(self, number: int) -> str:
        return posixpath.basename(self[number])
