# SPDX-License-Identifier: Apache-2.0
"""docs/extending.md, followed in a copy of the tree: tools/new makes each part, nothing else is
edited."""

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

TARGETS = (
    "weir_preload",
    "weir_reader",
    "weir_output_check",
    "output_format_test",
    "output_format_raw_test",
)
# The flags of make build: the compiler's cache has all objects but those that a new part changes.
BUILD = [
    "-G",
    "Ninja",
    "--log-level=WARNING",
    "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
    "-DWEIR_WERROR=ON",
    "-DWEIR_WORKLOADS=OFF",
]
LIBRARIES = (
    "native/preload/libweir-preload.so",
    "native/reader/libweir-reader.so",
    "lib/libweir-output-check.so",
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
        """Build what the new parts change, and put it where the package looks for it."""
        run(["cmake", "-S", self.root, "-B", self.build, *BUILD], timeout=120).ok()
        run(
            ["cmake", "--build", self.build, "--target", *TARGETS, "--", "-v"],
            timeout=800,
        ).ok()
        tides = ["-S", self.root / "workloads" / "tides", "-B", self.build / "workloads" / "tides"]
        run(["cmake", *tides, "-G", "Ninja", "--log-level=WARNING"], timeout=120).ok()
        run(["cmake", "--build", tides[-1]], timeout=120).ok()
        carried = self.root / "python" / "weir" / "_lib"
        carried.mkdir(exist_ok=True)
        for library in LIBRARIES:
            shutil.copy(self.build / library, carried)
        for asset in (ROOT / "python" / "weir" / "_lib").glob("uPlot*"):
            shutil.copy(asset, carried)

    def python(self, *arguments: object, timeout: int = 120):
        return run([self.bin / "python", *arguments], cwd=self.root, timeout=timeout)

    def pytest(self, *arguments: object):
        return self.python("-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, timeout=300)


PARTS = {
    "layer": ["tally"],
    "hook": ["ssize_t tee(int fd, int other, size_t count, unsigned flags)", "splice"],
    "table": ["nodes"],
    "finding": ["many-calls"],
    "command": ["how-many"],
    "workload": ["tides"],
    "format": ["raw"],
}
# The files that a part makes, and the lists that get an entry.
FILES = {
    "layer": {f"native/layers/tally/{name}" for name in ("layer.toml", "tally.cc",
        "test_tally.py")},
    "hook": {"native/hook/posix/tee.cc", "tests/programs/seen_tee.c", "native/hook/table.def"},
    "table": {
        *(f"python/weir/report/nodes/{name}.py" for name in ("__init__", "compute", "table")),
        "python/weir/report/nodes/test_nodes.py",
        "python/weir/report/registry.py",
        "tools/rooms.toml",
    },
    "finding": {
        *(f"python/weir/advise/findings/many_calls/{name}.py" for name in ("__init__", "finding",
            "test_many_calls")),
        "python/weir/advise/findings/registry.py",
    },
    "command": {
        "python/weir/cli/how_many_command.py",
        "python/weir/cli/test_how_many_command.py",
        "python/weir/cli/_app.py",
    },
    "workload": {
        *(f"workloads/tides/{name}" for name in ("CMakeLists.txt", "README.md", "tides.c")),
        "workloads/tides/tests/test_tides.py",
    },
    "format": {
        "native/output/format/raw/raw.cc",
        "native/output/format/raw/raw_test.cc",
        "native/output/format/formats.def",
    },
}


def contents(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Copy:
    """The copy with one new part of each kind; `changed`: the files that each has touched."""
    copy = Copy(tmp_path_factory.mktemp("tree"))
    copy.changed = {}
    before = contents(copy.root)
    for part, arguments in PARTS.items():
        copy.python("tools/new", part, *arguments).ok()
        after = contents(copy.root)
        copy.changed[part] = {name for name in after if before.get(name) != after[name]}
        before = after
    return copy


@pytest.fixture(scope="module")
def built(copy) -> Copy:
    copy.make()
    return copy


@pytest.mark.parametrize("part", PARTS)
def test_a_new_part_is_its_files_and_its_entries_in_lists(copy, part):
    assert copy.changed[part] == FILES[part]


def test_the_skeletons_follow_the_house_rules(copy):
    tidy = [f"tests/tidy/test_{name}.py" for name in ("rooms", "sources", "words")]
    copy.pytest(*tidy, "-k", "not page and not pages and not compiled").ok()


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("tests", "counts", "says"),
    [
        ("native/layers/tally", "1 failed, 1 passed", "assert here what tally changes"),
        ("tests/test_hooks_seen.py -k seen_tee", "1 failed, 3 passed", "what the trace must have"),
        ("python/weir/report/nodes", "1 failed, 1 passed", "assert here what nodes shows"),
        ("python/weir/advise/findings/many_calls", "1 failed, 1 passed",
            "many-calls finds"),
        ("python/weir/cli/test_how_many_command.py", "1 failed, 2 passed", "what weir how-many"),
        ("workloads/tides", "1 failed, ", "assert here what tides does"),
    ],
)
def test_the_test_of_a_skeleton_says_what_to_do_next(built, tests, counts, says):
    done = built.pytest(*tests.split())
    assert done.returncode == 1 and counts in done.stdout, done.stdout + done.stderr
    assert says in done.stdout


@pytest.mark.campaign
def test_a_program_runs_under_a_new_layer_and_the_report_shows_it(built, tmp_path):
    rules, step, file = tmp_path / "rules.toml", tmp_path / "run", tmp_path / "a.dat"
    rules.write_text('[[rule]]\nname = "*.dat"\nstack = "tally"\n')
    program = (
        "import os, sys\nfd = os.open(sys.argv[1], 65)\nfor _ in range(3): os.write(fd, b'weir')\n"
    )
    run(
        [
            built.weir,
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
        run([built.weir, "report", step, "--tables", "layers"], env={"COLUMNS": "160"}).ok().stdout
    )
    assert "tally" in table and "passed" in table
    [layered] = json.loads(run([built.weir, "report", step, "--json"]).ok().stdout)["layers"]
    assert {"layer": "tally", "name": "passed", "unit": "requests", "value": 3} in layered[
        "statistics"
    ]


@pytest.mark.campaign
def test_rules_and_pages_follow_the_declaration(built):
    refused = run([built.weir, "assign", "-F", "tally:1", "f:x"], cwd=built.root)
    assert "tally takes no arguments without a name" in refused.stderr
    built.python("tools/gen_docs.py").ok()
    assert (
        "\n## tally\n\n`tally`: passes all requests on."
        in (built.root / "docs/reference/layers.md").read_text()
    )


@pytest.mark.campaign
def test_the_tests_of_all_layers_take_a_new_one(built):
    for tests in (
        ["tests/rules/test_layers_table.py"],
        ["tests/properties/test_sequences.py", "--operations", "2000"],
    ):
        done = built.pytest(*tests, "-k", "tally").ok()
        assert " passed" in done.stdout and "failed" not in done.stdout


@pytest.mark.campaign
def test_a_new_table_is_in_the_report_the_query_and_the_pages(built, tmp_path):
    step = tmp_path / "run"
    run([built.weir, "trace", "-o", step, "--", "cp", "/etc/hostname", tmp_path / "b"]).ok()
    report = [built.weir, "report", step]
    assert "Calls of each rank" in run([*report, "--tables", "nodes"]).ok().stdout
    assert "calls, bytes and time of each rank" in run([*report, "--tables", "list"]).ok().stdout
    [row] = json.loads(run([*report, "--json"]).ok().stdout)["nodes"]
    run([*report, "--html", tmp_path / "page.html"]).ok()
    assert "Calls of each rank" in (tmp_path / "page.html").read_text()
    asked = run([built.weir, "query", step, "SELECT bytes, calls FROM nodes", "--format", "json"])
    assert json.loads(asked.ok().stdout) == [{"bytes": row["bytes"], "calls": row["calls"]}]
    built.python("tools/gen_docs.py").ok()
    assert "\n## nodes\n" in (built.root / "docs/reference/query.md").read_text()


@pytest.mark.campaign
def test_a_new_hook_is_in_the_trace_and_on_its_page(built, tmp_path):
    step = tmp_path / "run"
    program = "import ctypes, os; ctypes.CDLL(None).tee(os.open('/etc/hostname', 0), 1, 4, 0)"
    run([built.weir, "trace", "-o", step, "--", sys.executable, "-c", program]).ok()
    query = "SELECT error FROM events WHERE op = 'splice'"
    asked = run([built.weir, "query", step, query, "--format", "json"])
    assert len(json.loads(asked.ok().stdout)) == 1
    built.python("tools/gen_docs.py").ok()
    assert "`tee`" in (built.root / "docs/reference/seen.md").read_text()


@pytest.mark.campaign
def test_a_new_command_and_a_new_finding_are_on_their_pages(built):
    assert "how-many" in run([built.weir, "--help"]).ok().stdout
    built.python("tools/gen_docs.py").ok()
    assert "## many-calls" in (built.root / "docs/reference/findings.md").read_text()
    assert "weir how-many" in (built.root / "docs/reference/commands.md").read_text()


@pytest.mark.campaign
def test_a_new_format_is_tested_like_all_others_and_says_what_to_do_next(built):
    tests = built.build / "native" / "output"
    # The formats of netCDF need a module that is not built here.
    passed = run([tests / "output_format_test", "--gtest_filter=*/raw"], timeout=60).ok().stdout
    assert "[  PASSED  ] 7 tests." in passed
    own = run([tests / "output_format_raw_test"], timeout=60)
    assert own.returncode == 1 and "[  PASSED  ] 1 test." in own.stdout, own.stdout
    assert "assert here what a file of raw has" in own.stdout


@pytest.mark.campaign
def test_a_new_format_is_in_the_configuration_and_on_its_page(built, tmp_path):
    config = tmp_path / "output.toml"
    config.write_text('[stream.history]\nformat = "raw"\n')
    check = [built.weir, "output", "check", config]
    assert "format       raw" in run(check).ok().stdout
    config.write_text('[stream.history]\nformat = "raw"\ncompression = "zstd:3"\n')
    assert "format 'raw' has no compression" in run(check).stderr
    built.python("tools/gen_docs.py").ok()
    assert "| `raw` | a header" in (built.root / "docs/reference/formats.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["layer", "Tally"], "no name of a layer"),
        (["layer", "bufa"], "exists"),
        (["table", "files"], "exists"),
        (["layer"], "write tools/new layer NAME"),
        (["x", "y"], "write tools/new layer|hook|table|finding|command|workload|format"),
        (["hook", "int fsync(int fd)", "fsync"], "fsync has a hook"),
        (["hook", "int f", "fsync"], "no declaration of a function"),
        (["hook", "int f(double x)", "fsync"], "first parameter"),
        (["hook", "char *f(int fd)", "fsync"], "returns a pointer"),
        (["hook", "int f(int fd)", "nothing"], "no operation of layer posix"),
        (["command", "trace"], "exists"),
        (["finding", "small-requests"], "exists"),
        (["workload", "blocks"], "exists"),
    ],
)
def test_what_tools_new_refuses(arguments, message):
    before = os.listdir(ROOT / "native" / "layers")
    refused = run([sys.executable, ROOT / "tools" / "new", *arguments])
    assert refused.returncode == 2 and message in refused.stderr
    assert os.listdir(ROOT / "native" / "layers") == before
