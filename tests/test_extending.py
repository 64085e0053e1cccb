# SPDX-License-Identifier: Apache-2.0
"""docs/extending.md, followed in a copy of the tree: tools/new makes a layer and a table, nothing else is edited."""

from __future__ import annotations

import json
import os
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest
from weir_process import run
from weir_sources import ROOT, source_files

# The flags of make build: the compiler's cache has all objects but those that a new part changes.
BUILD = [
    "-G",
    "Ninja",
    "--log-level=WARNING",
    "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
    "-DWEIR_WERROR=ON",
    "-DWEIR_TESTS=OFF",
    "-DWEIR_WORKLOADS=OFF",
]
LIBRARIES = (
    "native/preload/libweir-preload.so",
    "native/reader/libweir-reader.so",
    "declared/layers.json",
)

pytestmark = [
    pytest.mark.slow,  # builds the preload library and the reader
    pytest.mark.timeout(900),
    pytest.mark.skipif(not shutil.which("ninja"), reason="ninja is not installed"),
]


class Copy:
    """A copy of the source tree with an environment of its own."""

    def __init__(self, root: Path):
        self.root, self.build, self.bin = root, root / "build" / "native", root / ".venv" / "bin"
        for name in source_files():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        run([sys.executable, "-m", "venv", "--without-pip", root / ".venv"]).ok()
        # The packages of this environment, but for its editable install of weir.
        path = [str(root / "python"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
        [packages] = (root / ".venv").glob("lib/python*/site-packages")
        (packages / "copy.pth").write_text("\n".join(path) + "\n")
        self.weir = self.bin / "weir"
        self.weir.write_text(
            f"#!{self.bin}/python\nimport sys\nfrom weir.cli import main\nsys.exit(main())\n"
        )
        self.weir.chmod(0o755)

    def make(self) -> None:
        """Build what a new layer changes, and put it where the package looks for it."""
        run(["cmake", "-S", self.root, "-B", self.build, *BUILD], timeout=120).ok()
        run(
            ["cmake", "--build", self.build, "--target", "weir_preload", "weir_reader", "--", "-v"],
            timeout=800,
        ).ok()
        carried = self.root / "python" / "weir" / "_lib"
        carried.mkdir(exist_ok=True)
        for library in LIBRARIES:
            shutil.copy(self.build / library, carried)
        for asset in (ROOT / "python" / "weir" / "_lib").glob("uPlot*"):
            shutil.copy(asset, carried)

    def python(self, *arguments: object, timeout: int = 120):
        return run([self.bin / "python", *arguments], cwd=self.root, timeout=timeout)


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Copy:
    return Copy(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def layer(copy) -> list[str]:
    """Layer `tally`, made and built; the files that are there since."""
    before = {path for path in copy.root.rglob("*") if path.is_file()}
    copy.python("tools/new", "layer", "tally").ok()
    made = {path for path in copy.root.rglob("*") if path.is_file()} - before
    copy.make()
    return sorted(
        str(path.relative_to(copy.root)) for path in made if "__pycache__" not in path.parts
    )


def test_a_new_layer_is_a_directory_and_no_other_line(copy, layer):
    assert layer == [
        f"native/layers/tally/{name}" for name in ("layer.toml", "tally.cc", "test_tally.py")
    ]
    changed = [
        name
        for name in source_files()
        if (ROOT / name).read_bytes() != (copy.root / name).read_bytes()
    ]
    assert changed == []


def test_a_program_runs_under_a_new_layer_and_the_report_shows_it(copy, layer, tmp_path):
    rules, step, file = tmp_path / "rules.toml", tmp_path / "run", tmp_path / "a.dat"
    rules.write_text('[[rule]]\nname = "*.dat"\nstack = "tally"\n')
    program = (
        "import os, sys\nfd = os.open(sys.argv[1], 65)\nfor _ in range(3): os.write(fd, b'weir')\n"
    )
    run(
        [
            copy.weir,
            "run",
            "--rules",
            rules,
            "--trace",
            step,
            "--",
            sys.executable,
            "-c",
            program,
            file,
        ]
    ).ok()
    assert file.read_bytes() == b"weir" * 3
    table = (
        run([copy.weir, "report", step, "--tables", "layers"], env={"COLUMNS": "160"}).ok().stdout
    )
    assert "tally" in table and "passed" in table
    [layered] = json.loads(run([copy.weir, "report", step, "--json"]).ok().stdout)["layers"]
    assert {"layer": "tally", "name": "passed", "unit": "requests", "value": 3} in layered[
        "statistics"
    ]


def test_rules_and_pages_follow_the_declaration(copy, layer):
    refused = run([copy.weir, "assign", "-F", "tally:1", "f:x"], cwd=copy.root)
    assert "tally takes no arguments without a name" in refused.stderr
    copy.python("tools/gen_docs.py").ok()
    assert (
        "\n## tally\n\n`tally`: passes all requests on."
        in (copy.root / "docs/reference/layers.md").read_text()
    )


def test_the_tests_of_all_layers_take_a_new_one(copy, layer):
    for tests in (
        ["tests/rules/test_layers_table.py"],
        ["tests/properties/test_sequences.py", "--operations", "2000"],
    ):
        done = copy.python(
            "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, "-k", "tally", timeout=300
        ).ok()
        assert " passed" in done.stdout and "failed" not in done.stdout


def test_the_skeletons_own_test_says_what_to_do_next(copy, layer):
    done = copy.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "native/layers/tally")
    assert done.returncode == 1 and "1 failed, 1 passed" in done.stdout
    assert "assert here what tally changes" in done.stdout


@pytest.fixture(scope="module")
def table(copy, layer) -> set[str]:
    """Table `ranks`, made; the files that are there or changed since."""
    before = {path: path.read_bytes() for path in copy.root.rglob("*.*") if path.is_file()}
    copy.python("tools/new", "table", "ranks").ok()
    after = {path: path.read_bytes() for path in copy.root.rglob("*.*") if path.is_file()}
    changed = {path for path, text in after.items() if before.get(path) != text}
    return {str(path.relative_to(copy.root)) for path in changed if path.suffix != ".pyc"}


def test_a_new_table_is_a_directory_and_its_entries_in_two_lists(copy, table):
    made = {"__init__.py", "compute.py", "table.py", "test_ranks.py"}
    assert table == {f"python/weir/report/ranks/{name}" for name in made} | {
        "python/weir/report/registry.py",
        "tools/rooms.toml",
    }


def test_a_new_table_is_in_the_report_the_query_and_the_pages(copy, table, tmp_path):
    step = tmp_path / "run"
    run([copy.weir, "trace", "-o", step, "--", "cp", "/etc/hostname", tmp_path / "b"]).ok()
    report = [copy.weir, "report", step]
    assert "Calls of each rank" in run([*report, "--tables", "ranks"]).ok().stdout
    assert "calls, bytes and time of each rank" in run([*report, "--tables", "list"]).ok().stdout
    [row] = json.loads(run([*report, "--json"]).ok().stdout)["ranks"]
    run([*report, "--html", tmp_path / "page.html"]).ok()
    assert "Calls of each rank" in (tmp_path / "page.html").read_text()
    asked = run([copy.weir, "query", step, "SELECT bytes, calls FROM ranks", "--format", "json"])
    assert json.loads(asked.ok().stdout) == [{"bytes": row["bytes"], "calls": row["calls"]}]
    copy.python("tools/gen_docs.py").ok()
    assert "\n## ranks\n" in (copy.root / "docs/reference/query.md").read_text()


def test_the_skeleton_of_a_table_follows_the_house_rules_and_says_what_to_do_next(copy, table):
    done = copy.python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "python/weir/report/ranks"
    )
    assert done.returncode == 1 and "1 failed, 1 passed" in done.stdout
    assert "assert here what ranks shows" in done.stdout
    copy.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/tidy/test_rooms.py").ok()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["layer", "Tally"], "no name of a layer"),
        (["layer", "bufa"], "exists"),
        (["table", "files"], "exists"),
        (["layer"], "write tools/new layer|table NAME"),
        (["x", "y"], "write tools/new"),
    ],
)
def test_what_tools_new_refuses(arguments, message):
    before = os.listdir(ROOT / "native" / "layers")
    refused = run([sys.executable, ROOT / "tools" / "new", *arguments])
    assert refused.returncode == 2 and message in refused.stderr
    assert os.listdir(ROOT / "native" / "layers") == before
