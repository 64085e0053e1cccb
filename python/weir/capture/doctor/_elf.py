# SPDX-License-Identifier: Apache-2.0
"""What of a program's ELF file decides whether a preloaded library sees its I/O. Reads the file;
runs nothing of it."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from dataclasses import dataclass, field

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection, DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from weir._errors import InputError
from weir.capture._unseen import WRAP_MARK
from weir.capture.doctor._direct import Candidate, candidates, direct_io_calls

_LARGEST_SCAN_BYTES = 512 << 20
_LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-x86-64.so.2",
    "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")


@dataclass(frozen=True)
class Elf:
    """Facts read from one ELF file. ``libraries``: all that the loader would map, name to path or
    None if not found."""

    path: str
    bits: int
    machine: str
    kind: str  # ET_EXEC, ET_DYN, ...
    interpreter: str | None
    has_entry: bool
    needed: tuple[str, ...] = ()
    imports: frozenset[str] = frozenset()
    defined: frozenset[str] = frozenset()
    is_go: bool = False
    text_marks: frozenset[str] = frozenset()
    direct_calls: Counter[str] = field(default_factory=Counter)
    libraries: dict[str, str | None] = field(default_factory=dict)

    @property
    def is_static(self) -> bool:
        return self.interpreter is None

    def uses(self, *prefixes: str) -> list[str]:
        """The libraries, direct or not, whose name starts with one of the prefixes."""
        names = dict.fromkeys([*self.needed, *self.libraries])
        return [name for name in names if os.path.basename(name).startswith(prefixes)]


_MARKS = {
    "libgfortran": b"Fortran runtime error: ",
    "glibc": b"GLIBC_TUNABLES",
    "intel_fortran": b"forrtl: ",
    "weir": WRAP_MARK,
}


def is_elf(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def _list_libraries(path: str) -> dict[str, str | None]:
    """What the loader would map, asked of the loader of this machine, which then runs nothing of
    the program."""
    loader = next((name for name in _LOADERS if os.path.exists(name)), None)
    if loader is None:
        return {}
    clean = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "LD_AUDIT", "LD_DEBUG")}
    # as ldd does; --list gives up at the first library that is missing
    clean["LD_TRACE_LOADED_OBJECTS"] = "1"
    try:
        done = subprocess.run(
            # $ORIGIN is where the file lies, whatever links lead to it
            [loader, os.path.realpath(path)],
            env=clean,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    result: dict[str, str | None] = {}
    for line in done.stdout.splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if arrow:
            result[name] = None if rest.startswith("not found") else rest.rsplit(" (", 1)[0]
    return result


def _symbols(elf: ELFFile) -> tuple[set[str], set[str]]:
    imports: set[str] = set()
    defined: set[str] = set()
    for section in elf.iter_sections():
        if not isinstance(section, SymbolTableSection):
            continue
        for symbol in section.iter_symbols():
            if symbol.name:
                (imports if symbol["st_shndx"] == "SHN_UNDEF" else defined).add(symbol.name)
    return imports, defined


def _needed(elf: ELFFile) -> list[str]:
    for part in (*elf.iter_segments(), *elf.iter_sections()):
        if isinstance(part, (DynamicSegment, DynamicSection)):
            return [tag.needed for tag in part.iter_tags("DT_NEEDED")]
    return []


def _scan(elf: ELFFile) -> tuple[list[Candidate], set[str]]:
    places: list[Candidate] = []
    marks: set[str] = set()
    for segment in elf.iter_segments("PT_LOAD"):
        if segment["p_filesz"] > _LARGEST_SCAN_BYTES:
            continue
        data = segment.data()
        marks |= {name for name, text in _MARKS.items() if text in data}
        if segment["p_flags"] & 1:
            places += candidates(data, segment["p_vaddr"])
    return places, marks


def read_elf(path: str) -> Elf:
    """Raises InputError when the file is damaged, OSError when it cannot be read."""
    try:
        with open(path, "rb") as file:
            elf = ELFFile(file)
            interpreter = next((s.get_interp_name() for s in elf.iter_segments("PT_INTERP")), None)
            facts = {
                "bits": elf.elfclass,
                "machine": elf.get_machine_arch(),
                "kind": elf["e_type"],
                "interpreter": interpreter,
                "has_entry": elf["e_entry"] != 0,
            }
            if elf.elfclass != 64 or elf["e_machine"] != "EM_X86_64":
                return Elf(path, **facts)
            imports, defined = _symbols(elf)
            places, marks = _scan(elf)
            is_go = any(elf.get_section_by_name(name) for name in (".go.buildinfo", ".gopclntab",
                ".note.go.buildid"))
            needed = tuple(_needed(elf))
    except (ELFError, AssertionError, LookupError, AttributeError, TypeError,
            ValueError) as error:  # pyelftools raises all of them
        raise InputError(
            f"{path}: its ELF headers are damaged ({error or type(error).__name__}); build or copy "
            f"it again") from error
    return Elf(
        path,
        **facts,
        needed=needed,
        imports=frozenset(imports),
        defined=frozenset(defined),
        is_go=bool(is_go),
        text_marks=frozenset(marks),
        direct_calls=direct_io_calls(path, places) if interpreter and not is_go else Counter(),
        libraries=_list_libraries(path) if interpreter else {},
    )
