# SPDX-License-Identifier: Apache-2.0
"""House rules that any text file keeps. The forbidden words are put together here so that this file
keeps them too."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest
from weir_process import run
from weir_sources import ROOT, RULES, functions, is_code, none, source_files, text_files, text_of

LIMITS = RULES["limits"]

UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3]) + r")\b")
MACHINE_PATH = re.compile(r"(?<![\w.>}])/(?:"
    + "|".join(["wo" + "rk", "ro" + "ot", "ho" + r"me/\w+"]) + ")/")
REGISTRY = re.compile(
    "|".join(["py" + r"pi\.org", "python" + r"hosted", r"deb\.deb" + "ian", r"archive\.ubu" + "ntu",
        r"conda\." + "io"])
)
BINARY_MAGIC = (b"\x7fELF", b"!<arch>", b"\x1f\x8b", b"MZ")
MAX_FILE_BYTES = 1_000_000


def lines_matching(pattern: re.Pattern) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:80]}"
        for name, text in text_files()
        for number, line in enumerate(text.split("\n"), 1)
        if pattern.search(line)
    ]


def test_code_names_its_licence_in_the_first_lines():
    missing = [
        str(name)
        for name, text in text_files()
        if text and is_code(name, text)
        and "SPDX-License-Identifier: Apache-2.0" not in "".join(text.split("\n")[:3])
    ]
    none(missing)


def test_no_file_is_too_long():
    code = [(n, t.count("\n")) for n, t in text_files() if is_code(n, t) and n.suffix != ".def"]
    none([(str(name), lines) for name, lines in code if lines > LIMITS["file_lines"]])


def test_no_function_is_too_long():
    found = [pair for name, text in text_files() if is_code(name, text)
        for pair in functions(name, text)]
    assert len(found) > 50, "the search for functions finds hardly any"
    none([f"{what}: {lines} lines" for what, lines in found if lines > LIMITS["function_lines"]])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.cc", "int f(int a,\n      int b) {\n" + "  a++;\n" * 80 + "}\n"),
        ("a.cc", "namespace x {\nstruct S {\n  int a;\n};\nvoid\nf() {\n" + "  a++;\n" * 80
            + "}\n}\n"),
        ("a.h", "class C {\n public:\n  int f(int a) const {\n" + "    a++;\n" * 80 + "  }\n};\n"),
        ("a.py", "def f():\n" + "    x = 1\n" * 80),
        ("a.sh", "f() {\n" + "  true\n" * 80 + "}\n"),
        ("a.F90", "  pure integer function f(x)\n" + "  x = 1\n" * 80 + "  end function f\n"),
    ],
)
def test_a_long_function_is_found_in_each_language(name, text):
    assert [lines for _, lines in functions(Path(name), text) if lines > 70], list(
        functions(Path(name), text))


def test_nothing_is_left_unfinished():
    none(lines_matching(UNFINISHED))


def test_no_path_of_one_machine():
    none(lines_matching(MACHINE_PATH))


def test_no_package_registry_is_named():
    none(lines_matching(REGISTRY))


def test_no_trailing_blanks_and_no_tabs_but_in_makefiles():
    tabs = [hit for hit in lines_matching(re.compile(r"\t"))
        if not hit.startswith(("Makefile", "LICENSE"))]
    none(lines_matching(re.compile(r"[ \t]+$")) + tabs)


def test_nothing_compiled_is_committed():
    found = []
    for name in source_files():
        path = ROOT / name
        with open(path, "rb") as file:
            magic = file.read(8)
        if magic.startswith(BINARY_MAGIC) or name.suffix in (".pyc", ".o", ".so", ".a", ".mod"):
            found.append(f"{name}: compiled or packed")
        if path.stat().st_size > MAX_FILE_BYTES:
            found.append(f"{name}: {path.stat().st_size} bytes")
    none(found)


def test_links_between_documents_lead_somewhere():
    broken = []
    for name, text in text_files():
        if name.suffix != ".md":
            continue
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)",
                re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.S)):
            if "://" not in target and not (ROOT / name.parent / target).exists():
                broken.append(f"{name}: {target}")
    none(broken)


def test_news_fragments_begin_with_their_kind():
    fragments = [n for n in source_files() if n.parts[0] == "changes" and n.name != "README.md"]
    assert fragments
    wrong = [str(n) for n in fragments if not re.match(r"(added|changed|fixed|removed): \S",
        text_of(n) or "")]
    none(wrong)


def test_reference_pages_are_what_the_code_says():
    done = run([sys.executable, ROOT / "tools" / "gen_docs.py", "--check"])
    assert done.returncode == 0, done.stderr


def test_every_operation_and_function_is_on_its_page():
    operations = (ROOT / "docs/reference/operations.md").read_text()
    functions_page = (ROOT / "docs/reference/seen.md").read_text()
    assert operations.count("\n| ") > 100 and "| 84 | `fread` | stdio | reads |" in operations
    assert "`pwritev64v2`" in functions_page


def literal_lines(text: str) -> set[int]:
    """Numbers of the lines of Python that a literal makes long: programs, tables, messages. Not
    those of docstrings."""
    found, documentation = set(), set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            documentation.add(body[0].value)
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant)
                and isinstance(node.value, str)):
            spans = node.end_lineno > node.lineno or node.end_col_offset > LIMITS["columns"]
            if spans and node not in documentation:
                found.update(range(node.lineno, node.end_lineno + 1))
    return found


def block_lines(text: str) -> set[int]:
    """Numbers of the lines of Markdown that are not prose: code, tables, headings, addresses."""
    found, fenced = set(), False
    for number, line in enumerate(text.split("\n"), 1):
        fence = line.lstrip().startswith(("```", "~~~"))
        if fenced or fence or line.startswith(("    ", "|", "#", "[", "<", "!")) or "](" in line:
            found.add(number)
        fenced ^= fence
    return found


def lines_too_long(name: Path, text: str) -> list[int]:
    """Lines beyond the last column, but those that a literal makes long."""
    beyond = {n for n, line in enumerate(text.split("\n"), 1) if len(line) > LIMITS["columns"]}
    if not beyond:
        return []
    if name.suffix == ".py":
        return sorted(beyond - literal_lines(text))
    if name.suffix == ".md":
        return sorted(beyond - block_lines(text))
    literal = re.compile(r'"(?:[^"\\]|\\.)*"' + r"|'(?:[^'\\]|\\.)*'" + r"|`[^`]*`")
    lines = text.split("\n")
    for one in re.finditer(r'R"(\w*)\(.*?\)\1"', text, re.DOTALL):
        first = text.count("\n", 0, one.start()) + 1
        beyond -= set(range(first, first + one.group().count("\n") + 1))
    return [n for n in sorted(beyond) if not any(one.start() < LIMITS["columns"] < one.end()
            for one in literal.finditer(lines[n - 1]))]


WIDE = {".py", ".cc", ".h", ".c", ".def", ".f90", ".F90", ".js", ".css", ".md"}


def test_lines_end_before_the_last_column():
    none([f"{name}:{n}" for name, text in text_files() if name.suffix in WIDE
            and "golden" not in name.parts for n in lines_too_long(name, text)])


@pytest.mark.parametrize(("name", "text", "found"), [
    ("a.py", "x = 1  # " + "word " * 20, [1]),
    ("a.py", '"""Words.\n\n' + "word " * 21 + '"""\n', [3]),
    ("a.py", "x = '''\n" + "word " * 21 + "'''\n", []),
    ("a.cc", "// " + "word " * 20, [1]),
    ("a.cc", 'say("' + "word " * 20 + '");', []),
    ("a.md", "word " * 21 + "\n\n    " + "code " * 21 + "\n\n| " + "cell | " * 20, [1]),
])
def test_a_long_line_is_found_in_each_language(name, text, found):
    assert lines_too_long(Path(name), text) == found
