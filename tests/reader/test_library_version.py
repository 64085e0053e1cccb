# SPDX-License-Identifier: Apache-2.0
"""A native reader library beside Python files that it was not built for."""

from __future__ import annotations

import shutil

import pytest

from weir import _native
from weir._native import READER, READER_DECLARATIONS, LibraryStale, library_directory
from weir.cli import _main


@pytest.fixture
def package(tmp_path, root, monkeypatch):
    """Where the package seems to lie: its declarations, and the libraries of this one."""
    for name in READER_DECLARATIONS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / "python" / "weir" / name, tmp_path / name)
    (tmp_path / "_lib").symlink_to(library_directory())
    monkeypatch.setattr(_native, "__file__", str(tmp_path / "_native.py"))
    return tmp_path


def load():
    return _native.load_reader.__wrapped__()


@pytest.mark.parametrize("name", READER_DECLARATIONS)
def test_declarations_of_another_version_are_refused_in_a_line(package, name):
    assert load().weir_reader_built_for()
    with open(package / name, "a") as declared:
        declared.write("LAYOUTS = {}\n")
    with pytest.raises(LibraryStale) as raised:
        load()
    assert str(raised.value) == (
        f"{package / '_lib' / READER}: built for another version of the Python files beside it; "
        f"run `make build` in the source tree or reinstall weir-io")
    assert _main.status_of(raised.value) == _main.BAD_INPUT


def test_a_library_from_before_the_check_is_refused(package, cc):
    (package / "_lib").unlink()
    (package / "_lib").mkdir()
    library = cc("int weir_reader_abi(void) { return 5; }", "-shared", "-fPIC")
    shutil.copy(library, package / "_lib" / READER)
    with pytest.raises(LibraryStale, match="built for another version"):
        load()
