# SPDX-License-Identifier: Apache-2.0
"""Includes and imports follow the arrows of tools/rooms.toml."""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from weir_sources import RULES, none, source_files, statements, text_of

NATIVE, PYTHON, LIMITS = RULES["native"], RULES["python"], RULES["limits"]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def is_test(name: Path) -> bool:
    return name.stem.endswith("_test") or name.stem.startswith("test_")


def room_of(path: str, rooms: dict) -> str | None:
    """The room with the longest path above a file or module, or None.

    Paths are from native/ or python/weir/.
    """
    above = [name for name in rooms if f"{path}/".startswith(f"{name}/")]
    return max(above, key=len, default=None)


def may_use(room: str, other: str, rooms: dict) -> bool:
    """Whether a file of one room may include or import one of another."""
    allowed = rooms[room]["may_use"]
    return other in {room, *allowed} or other.startswith(
        tuple(name for name in allowed if name.endswith("/"))
    )


def native_violations(name: Path, text: str) -> list[str]:
    """What a file native/<room>/... includes that its room may not."""
    room = room_of(name.relative_to("native").as_posix(), NATIVE)
    if room is None:
        return [f"{name}: room {name.parent} is not in tools/rooms.toml"]
    rule, found = NATIVE[room], []
    for kind, target in INCLUDE.findall(text):
        if kind == '"':
            other = room_of(target, NATIVE)
            if other is None:
                found.append(f'{name}: "{target}" is not written from native/ or names no room')
            elif not may_use(room, other, NATIVE) and not is_test(name):
                found.append(f"{name}: {room} may not use {target}")
            elif other != room and NATIVE[other].get("root"):
                found.append(f"{name}: nobody includes a composition root ({target})")
        elif rule["dialect"] and not is_test(name) and not target.endswith(".h"):
            if target not in LIMITS["dialect_headers"]:
                found.append(f"{name}: <{target}> is not in the dialect")
    return found


def python_violations(name: Path, text: str) -> list[str]:
    """What a module python/weir/<room>... imports of weir that its room may not."""
    path = name.relative_to("python/weir").with_suffix("").as_posix()
    imported = [target for target in _weir_imports(name, statements(text)[1])
        if not target.startswith("_")]
    if path == "__init__":
        return [f"{name}: weir/__init__.py imports weir.{target}" for target in imported]
    if is_test(name) or "conftest" in name.stem:
        return []
    if path == "__main__":
        return [f"{name}: imports weir.{t}" for t in imported if room_of(t, PYTHON) != "cli"]
    room = room_of(path, PYTHON)
    if room is None:
        return [f"{name}: weir.{path} is in no room of tools/rooms.toml"]
    return [
        f"{name}: weir.{room} may not import weir.{target}"
        for target in imported
        if not may_use(room, room_of(target, PYTHON) or target, PYTHON)
    ]


def _weir_imports(name: Path, imports: list[ast.Import | ast.ImportFrom]) -> list[str]:
    """Paths from python/weir of what is imported; of `from weir.a import b`: a/b."""
    package = list(name.parts[1:-1])
    targets = []
    for node in imports:
        if isinstance(node, ast.Import):
            targets += [alias.name.split(".") for alias in node.names]
        else:
            base = package[: len(package) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            targets += [base + [alias.name] for alias in node.names]
    return ["/".join(t[1:]) for t in targets if t and t[0] == "weir" and len(t) > 1]


def _module(name: Path) -> str:
    return ".".join(name.parts[1:]).removesuffix(".py").removesuffix(".__init__")


def _imported_modules(name: Path, known: set[str]) -> set[str]:
    """Modules of weir that a module imports, for types alone too; a package is its __init__.py."""
    found = set()
    for node in statements(text_of(name) or "")[1]:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            package = list(name.parts[1:-1])[: len(name.parts) - 1
                - node.level] if node.level else []
            base = ".".join(package + (node.module.split(".") if node.module else []))
            names = {f"{base}.{alias.name}" for alias in node.names}
            found |= names & known
            if names - known:
                found.add(base)
    return (found & known) - {_module(name)}


def test_native_includes_follow_the_arrows():
    files = [f for f in source_files() if f.parts[0] == "native"
        and f.suffix in (".cc", ".h", ".c", ".def")]
    assert files
    none([v for f in files for v in native_violations(f, text_of(f) or "") if len(f.parts) > 2])


def test_python_imports_follow_the_arrows():
    files = [f for f in source_files() if f.parts[:2] == ("python", "weir") and f.suffix == ".py"]
    assert files
    none([v for f in files for v in python_violations(f, text_of(f) or "")])


def test_mpi_headers_stay_where_mpi_is_linked():
    found = [
        str(f)
        for f in source_files()
        if f.suffix in (".c", ".cc", ".h")
        and not any(f.is_relative_to(directory) for directory in LIMITS["mpi_headers"])
        and any(target == "mpi.h" for _, target in INCLUDE.findall(text_of(f) or ""))
    ]
    none(found)


def test_the_arrows_have_no_cycle():
    top: dict[str, set[str]] = {}
    for name, rule in NATIVE.items():
        uses = {other.split("/")[0] for other in rule["may_use"]} - {name.split("/")[0]}
        top.setdefault(name.split("/")[0], set()).update(uses)
    TopologicalSorter(top).prepare()
    for rooms in (NATIVE, PYTHON):
        uses = {name: {other for other in rooms if may_use(name, other, rooms)} for name in rooms}
        TopologicalSorter({name: used - {name} for name, used in uses.items()}).prepare()


def test_no_modules_import_each_other_in_a_circle():
    modules = {_module(f): f for f in source_files() if f.parts[:2] == ("python", "weir")
        and f.suffix == ".py"}
    imported = {module: _imported_modules(f, set(modules)) for module, f in modules.items()}
    assert "weir.trace" in imported["weir.analysis.step"]  # an import is seen
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        none([" imports ".join(reversed(error.args[1]))])


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("native/base/x.cc", '#include "trace/log.h"\n', "may not use"),
        ("native/reader/x.cc", '#include "preload/main.h"\n', "may not use"),
        ("native/reader/x_test.cc", '#include "preload/main.h"\n', "composition root"),
        ("native/base/x.cc", "#include <vector>\n", "dialect"),
        ("native/base/x.cc", '#include "clock.h"\n', "written from native/"),
        ("native/nowhere/x.cc", "", "not in tools/rooms.toml"),
    ],
)
def test_a_wrong_include_is_found(name, text, problem):
    assert problem in " ".join(native_violations(Path(name), text))


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("python/weir/trace/x.py", "from weir.report import tables\n",
            "may not import weir.report/tables"),
        ("python/weir/trace/x.py", "from ..cli import main\n", "may not import weir.cli"),
        ("python/weir/analysis/x.py", "import weir.cli.main\n", "may not import weir.cli"),
        ("python/weir/analysis/x.py", "from weir import capture\n", "may not import weir.capture"),
        ("python/weir/__init__.py", "from . import trace\n", "imports weir.trace"),
        ("python/weir/report/frame/x.py", "from weir.report.files.table import FILES\n",
            "may not import weir.report/files"),
        ("python/weir/report/files/x.py", "import weir.report.registry\n",
            "may not import weir.report/registry"),
        ("python/weir/nowhere.py", "", "in no room of tools/rooms.toml"),
    ],
)
def test_a_wrong_import_is_found(name, text, problem):
    assert problem in " ".join(python_violations(Path(name), text))


def test_right_ones_are_not():
    assert native_violations(Path("native/trace/x.cc"),
        '#include <atomic>\n#include "base/clock.h"\n') == []
    assert python_violations(Path("python/weir/report/x.py"),
        "from ..analysis import a\nimport weir\n") == []
