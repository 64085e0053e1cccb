# SPDX-License-Identifier: Apache-2.0
"""The files of the source tree, and what tidy tests want to know of a file's text."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
NOT_SOURCE = {"build", ".venv", ".git", "_lib", "__pycache__"}
CODE_SUFFIXES = {".c", ".cc", ".h", ".def", ".map", ".f90", ".F90", ".py", ".cmake", ".sh", ".toml"}
RULES = tomllib.loads((ROOT / "tools" / "rooms.toml").read_text())


@cache
def source_files() -> tuple[Path, ...]:
    """All files that are or would be committed, relative to the root. Without git: all that are not
    built."""
    listing = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
    )
    if listing.returncode == 0:
        names = (Path(name) for name in listing.stdout.split("\0") if name)
    else:
        names = (p.relative_to(ROOT) for p in ROOT.rglob("*")
            if not NOT_SOURCE & set(p.relative_to(ROOT).parts))
    return tuple(sorted(name for name in names if (ROOT / name).is_file()))


@cache
def text_of(name: Path) -> str | None:
    """The file's text; None when it is not UTF-8 text."""
    data = (ROOT / name).read_bytes()
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def none(found: list) -> None:
    """Assert that nothing was found, and otherwise show all of it."""
    if found:
        pytest.fail("\n".join(str(item) for item in found), pytrace=False)


def text_files() -> Iterator[tuple[Path, str]]:
    for name in source_files():
        text = text_of(name)
        if text is not None:
            yield name, text


def is_code(name: Path, text: str) -> bool:
    """Whether the file is ours to compile or run, rather than prose or data."""
    return name.suffix in CODE_SUFFIXES or name.name in ("CMakeLists.txt",
        "Makefile") or text.startswith("#!")


@cache
def statements(text: str) -> tuple[list[tuple[str, int, int]], list[ast.Import | ast.ImportFrom]]:
    """Of a Python file: name, first and last line of each function; the imports."""
    functions, imports = [], []
    left: list[ast.AST] = [ast.parse(text)]
    while left:
        node = left.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions.append((node.name, node.lineno, node.end_lineno or node.lineno))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.append(node)
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            left += getattr(node, field, ())
    return functions, imports


def functions(name: Path, text: str) -> Iterator[tuple[str, int]]:
    """(what, number of lines) of each function found. C, C++ and shell: blocks that open and close
    in column one."""
    if name.suffix == ".py":
        for function, first, last in statements(text)[0]:
            yield f"{name}:{first} {function}", last - first + 1
    elif name.suffix in (".c", ".cc", ".h", ".sh") or text.startswith("#!/usr/bin/env bash"):
        yield from _brace_blocks(name, text)
        yield from _indented_blocks(name, text)
    elif name.suffix in (".f90", ".F90"):
        yield from _fortran_procedures(name, text)


def _brace_blocks(name: Path, text: str) -> Iterator[tuple[str, int]]:
    start, head = None, ""
    for number, line in enumerate(text.split("\n"), 1):
        if start is None:
            if line[:1].strip() and not line.startswith(("#", "//", "}", "/*")):
                head, first = line, number
            in_class = line is not head and head.rstrip().endswith("{")
            if line.rstrip().endswith("{") and head and not in_class and _opens_function(head + " "
                    + line):
                start = first
        elif line.startswith("}"):
            yield f"{name}:{start} {head.strip()[:60]}", number - start + 1
            start = None


def _indented_blocks(name: Path, text: str) -> Iterator[tuple[str, int]]:
    """Methods written within their class, and lambdas: closed by a brace in the column where their
    first line begins."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if line.lstrip().startswith(": "):  # members' initial values, four columns behind a head
            indent -= 4
        if indent <= 0 or not line.endswith("{") or line.count(")") != line.count("("):
            continue
        if re.match(r"\s*(\}|if|for|while|switch|else|do|catch|case|return)\b|\s*\}", line):
            continue
        closing = " " * indent + "}"
        for end in range(number + 1, len(lines)):
            if lines[end].startswith(closing):
                yield f"{name}:{number + 1} {line.strip()[:60]}", end - number + 1
                break


def _opens_function(head: str) -> bool:
    if re.match(r"\s*(inline |extern |typedef )*(namespace|struct|class|enum|union|extern\s*\"C\")",
            head):
        return "(" in head and ")" in head and not re.match(r"\s*(namespace|extern)", head)
    return "(" in head and not re.search(r"=\s*\{$", head.rstrip())


def _fortran_procedures(name: Path, text: str) -> Iterator[tuple[str, int]]:
    opening = re.compile(
        r"^\s*(?:(?:pure|elemental|recursive|impure|module)\s+)*(?:[\w()=*, "
        r"]+\s)?(subroutine|function)\s+(\w+)", re.I
    )
    stack: list[tuple[str, int]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"^\s*end\s*(subroutine|function)\b", line, re.I):
            if stack:
                what, start = stack.pop()
                yield f"{name}:{start} {what}", number - start + 1
        elif not line.lstrip().startswith("!") and (match := opening.match(line)):
            stack.append((match.group(2), number))
