# SPDX-License-Identifier: Apache-2.0
"""The matcher of the preload library, in libweir-reader.so (native/reader/weir_rules.h)."""

from __future__ import annotations

import ctypes as c
import functools
import os

from weir._native import load_reader
from weir.rules.forms.compiled import compile_rules
from weir.rules.mistakes import Place
from weir.rules.model import ACCESSES, FORMS, SYSTEM, Conditions, Rule, RuleSet

# The bits of weir::rules::Misfit.
MISFITS = (
    "name", "path", "dir", "mode", "ranks", "fortran", "unit", "access", "form", "size", "fstype",
)  # fmt: skip
LONGEST_KIND = 64


class OpenOf(c.Structure):
    _fields_ = [
        ("path", c.c_char_p), ("file_system", c.c_char_p), ("size_bytes", c.c_uint64),
        ("flags", c.c_int32), ("rank", c.c_int32), ("unit", c.c_int32),
        ("fortran", c.c_int32), ("access", c.c_int32), ("form", c.c_int32),
    ]  # fmt: skip


@functools.cache
def _library() -> c.CDLL:
    """Raises weir._native.LibraryMissing, LibraryStale."""
    library = load_reader()
    library.weir_rules_misfits.restype = c.c_int64
    library.weir_rules_misfits.argtypes = [c.c_char_p, c.POINTER(OpenOf)]
    library.weir_rules_fits.argtypes = [c.c_char_p, c.c_char_p]
    library.weir_rules_file_system.argtypes = [c.c_char_p, c.c_char_p, c.c_uint64]
    return library


@functools.lru_cache(maxsize=4096)
def _compiled(when: Conditions) -> bytes:
    return os.fsencode(compile_rules(RuleSet((Rule(Place("explained"), when, (SYSTEM,)),))))


def misfits_of(
    when: Conditions, path: str, flags: int, size: int, fstype: str, *,
    rank: int | None, fortran: bool, unit: int | None, access: str | None, form: str | None,
) -> list[str]:  # fmt: skip
    """The words of MISFITS for which the open does not meet the conditions."""
    asked = OpenOf(
        os.fsencode(path), os.fsencode(fstype), size, flags, -1 if rank is None else rank,
        -1 if unit is None else unit, fortran, _number(ACCESSES, access), _number(FORMS, form),
    )  # fmt: skip
    found = _library().weir_rules_misfits(_compiled(when), asked)
    if found < 0:
        raise ValueError(f"{when} does not compile to a rule")
    return [word for bit, word in enumerate(MISFITS) if found >> bit & 1]


def is_compiled(text: str) -> bool:
    """Whether the text has rules or hints and the matcher takes it."""
    return _library().weir_rules_misfits(os.fsencode(text), OpenOf(b"/", b"")) >= 0


def _number(words: tuple[str, ...], word: str | None) -> int:
    return 0 if word is None else words.index(word) + 1


def fits(pattern: str, name: str) -> bool:
    """Whether the pattern fits the whole name."""
    return bool(_library().weir_rules_fits(os.fsencode(pattern), os.fsencode(name)))


def file_system_of(path: str) -> str:
    """The file system of a file, or of the directory it would be made in; "" if not known."""
    kind = c.create_string_buffer(LONGEST_KIND)
    _library().weir_rules_file_system(os.fsencode(path), kind, LONGEST_KIND)
    return os.fsdecode(kind.value)
