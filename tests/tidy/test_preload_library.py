# SPDX-License-Identifier: Apache-2.0
"""What the built preload library is: nothing that could harm or depend on the program it is loaded
into."""

from __future__ import annotations

import re
import runpy

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from weir_sources import ROOT

TABLE = ROOT / "native" / "hook" / "table.def"
# libpthread, libdl and librt are parts of libc since glibc 2.34 and separate files of it before.
ALLOWED_LIBRARIES = {
    "libc.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
}  # fmt: skip
DF_STATIC_TLS, DF_1_NODELETE = 0x10, 0x8
CPP_RUNTIME = re.compile(
    r"^(_Zn|_Zd|_ZS|_ZNS|_ZTV|__cxa_(?!finalize|atexit)|__gxx|_Unwind|__dynamic_cast)")


class Library:
    """The facts of one ELF file that the tests below ask for."""

    def __init__(self, path):
        with open(path, "rb") as file:
            elf = ELFFile(file)
            dynamic = next(s for s in elf.iter_sections() if isinstance(s, DynamicSection))
            tags = list(dynamic.iter_tags())
            self.needed = {tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"}
            self.tags = {tag.entry.d_tag: tag.entry.d_val for tag in tags}
            symbols = list(elf.get_section_by_name(".dynsym").iter_symbols())
            self.exported = {s.name for s in symbols if s.name and s["st_shndx"] != "SHN_UNDEF"}
            self.imported = {s.name for s in symbols if s.name and s["st_shndx"] == "SHN_UNDEF"}
            self.local = {
                s.name: s["st_size"]
                for table in elf.iter_sections()
                if isinstance(table, SymbolTableSection)
                for s in table.iter_symbols()
            }
            self.executable_stack = any(
                p["p_type"] == "PT_GNU_STACK" and p["p_flags"] & 1 for p in elf.iter_segments()
            )
            self.word = elf.elfclass // 8


@pytest.fixture(scope="module")
def library(preload) -> Library:
    return Library(preload)


def hooked() -> set[str]:
    """The hooks of functions that every process has. One that lacks a function must not find it in
    weir's library."""
    reference = runpy.run_path(str(ROOT / "tools" / "gen_docs.py"))
    newer = set(re.findall(r"^WEIR_NEWER\((\w+)\)", TABLE.with_name("newer.def").read_text(), re.M))
    return {name for name, of in reference["hooked"](TABLE.read_text()) if of == "c"} - newer


def test_it_needs_libc_alone(library):
    assert library.needed <= ALLOWED_LIBRARIES


def test_it_needs_nothing_of_the_cpp_library_or_mpi(library):
    assert [s for s in sorted(library.imported) if CPP_RUNTIME.match(s) or re
        .match(r"P?MPI_|mpi_|pmpi_", s)] == []


def test_it_exports_the_hooks_of_libc_and_what_libweir_and_clients_look_for_and_nothing_else(
        library):
    assert len(hooked()) > 100
    assert library.exported == hooked() | {"weir_output_event", "weir_phase_event"}


def test_thread_local_storage_costs_no_call(library):
    assert "__tls_get_addr" not in library.imported
    assert library.tags.get("DT_FLAGS", 0) & DF_STATIC_TLS


def test_it_is_never_unloaded(library):
    assert library.tags.get("DT_FLAGS_1", 0) & DF_1_NODELETE


def test_it_has_one_constructor_and_one_destructor(library):
    """One of each is the compiler's own (frame_dummy, __do_global_dtors_aux)."""
    assert library.tags.get("DT_INIT_ARRAYSZ", 0) // library.word <= 2
    assert library.tags.get("DT_FINI_ARRAYSZ", 0) // library.word <= 2
    assert [name for name in library.local if name.startswith(("_GLOBAL__sub_I",
        "__cxx_global_var_init"))] == []


def test_its_code_is_not_rewritten_and_its_stack_not_executable(library):
    assert "DT_TEXTREL" not in library.tags
    assert not library.executable_stack
