# SPDX-License-Identifier: Apache-2.0
"""Each environment variable of weir is declared once: those of the library in python/weir/capture,
those of the source tree (WEIR_DEPS and its like) in docs/development.md."""

from __future__ import annotations

import re

from weir_sources import ROOT, none, source_files, text_files, text_of

from weir.capture._environment import VARIABLES

# WEIR_OK and WEIR_E_... are codes of include/weir/status.h.
READ_BY_LIBRARY = re.compile(r'"(WEIR_(?!OK"|E_)[A-Z_]+)"')
NAMED = re.compile(
    r'["\'](WEIR_(?!OK["\']|E_)[A-Z][A-Z0-9_]*)["\']|\$\{?(WEIR_[A-Z][A-Z0-9_]*)'
    r"|\benv(?:iron)?\W+(WEIR_[A-Z0-9_]+)"
)
SHELL_LIKE = (".py", ".sh", ".cc", ".h", ".c", ".f90", ".F90")


def test_the_library_reads_what_is_declared_and_nothing_else():
    native = [text_of(f) or "" for f in source_files() if f.parts[0] == "native"
        and f.suffix == ".cc" and not f.stem.endswith("_test")]
    read = {name for text in native for name in READ_BY_LIBRARY.findall(text)}
    assert read == {variable.name for variable in VARIABLES if not variable.command}


def test_every_variable_that_is_named_is_declared():
    declared = {variable.name for variable in VARIABLES}
    declared |= set(re.findall(r"WEIR_[A-Z_]+", (ROOT / "docs" / "development.md").read_text()))
    none(
        [
            f"{name}: {variable}"
            for name, text in text_files()
            if name.suffix in SHELL_LIKE or text.startswith("#!")
            for hit in NAMED.findall(text)
            for variable in hit
            if variable and variable not in declared
        ]
    )
