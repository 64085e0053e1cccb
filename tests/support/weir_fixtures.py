# SPDX-License-Identifier: Apache-2.0
"""The fixtures tests share: the command, the preload library, compilers and MPI implementations.

Every process a fixture starts has a time limit, a session of its own that is killed whole when the
limit passes, no standard input, and an environment without WEIR_* and LD_PRELOAD of the caller.
"""

from __future__ import annotations

import collections
import gc
import os
import sys
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from weir_compile import Compiler
from weir_forks import Forks, can_fork
from weir_mpi import IMPLEMENTATIONS, Mpi
from weir_process import DEFAULT_TIMEOUT_S, Completed, limit, run

ROOT = Path(__file__).resolve().parents[2]
WORK = {"slow": 50, "mpi": 5, "programs": 2}  # of a test, beside 1 of others
# Fixtures, and modules, of tests that start programs.
STARTING = {"any_workload", "cc", "cluster", "cxx", "driver", "execute", "fc", "glusterfs", "mpi",
    "native_build", "player", "preload", "testfs", "weir"}  # fmt: skip
READING = ("report", "query", "compare", "export", "advise")
STARTING_MODULES = ("subprocess", "weir_process")
NATIVE_BUILD = Path(os.environ.get("WEIR_TEST_BUILD", ROOT / "build" / "native"))


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true",
        help="also what is marked campaign, and many more repetitions where moments are random")
    parser.addoption("--operations", type=int, default=100_000,
        help="operations of tests/properties, over all stacks")
    parser.addoption("--seed", type=int, default=1, help="of the sequences of tests/properties")


def pytest_configure(config):
    """Settings of Open MPI for all launches, and of Hypothesis.

    Each worker has a session directory of its own: of two launchers that make and remove the common
    one at the same time, one fails with "File exists". Looking for fabrics takes MPI_Init 0.2 s.
    The launcher ends the ranks of a failed job with SIGTERM and waits a second before SIGKILL.

    Hypothesis limits no time: on a busy machine an example may take any.
    """
    settings.register_profile("busy", deadline=None, print_blob=True,
        suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("busy")
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    for name, value in {
        "orte_tmpdir_base": os.path.join(tempfile.gettempdir(), f"weir-mpi-{worker}"),
        "pml": "ob1", "odls_base_sigkill_timeout": "0",
    }.items():  # fmt: skip
        os.environ.setdefault(f"OMPI_MCA_{name}", value)


def pytest_collection_modifyitems(config, items):
    """Select what runs without --slow, give every time limit patience, begin with long files: the
    last of them would run beside nothing."""
    for item in items:
        if mark := item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(limit(mark.args[0])), append=False)
        if starts_programs(item):
            item.add_marker(pytest.mark.programs)
    if not config.getoption("--slow"):
        left = [item for item in items if runs_with_slow_alone(item)]
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]
    work = collections.Counter()
    for item in items:
        work[item.path] += next((n for name, n in WORK.items() if item.get_closest_marker(name)), 1)
    items.sort(key=lambda item: -work[item.path])


def pytest_terminal_summary(terminalreporter):
    """The first failure of what was repeated and passed then (option --reruns)."""
    repeated = terminalreporter.getreports("rerun")
    if repeated:
        terminalreporter.section("failed once, and repeated")
    for report in repeated:
        terminalreporter.write_line(report.nodeid)
        terminalreporter.write_line(report.longreprtext)


def pytest_collection_finish():
    """The garbage collector need not look through all tests again and again."""
    gc.collect()
    gc.freeze()


def starts_programs(item) -> bool:
    named = vars(item.module).values()
    return not STARTING.isdisjoint(item.fixturenames) or any(
        getattr(one, "__module__", None) in STARTING_MODULES
        or getattr(one, "__name__", None) in STARTING_MODULES for one in named)  # fmt: skip


def runs_with_slow_alone(item) -> bool:
    """Campaigns, and of a test that any MPI implementation serves all but one of them: tests, or
    cases of a test, have them in turn."""
    if item.get_closest_marker("campaign"):
        return True
    callspec = getattr(item, "callspec", None)
    if not item.get_closest_marker("any_mpi") or not callspec or "mpi" not in callspec.params:
        return False
    name = item.nodeid.replace(callspec.params["mpi"], "MPI")
    names = sorted(IMPLEMENTATIONS)
    return callspec.params["mpi"] != names[zlib.crc32(name.encode()) % len(names)]


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the source tree."""
    return ROOT


@pytest.fixture(scope="session")
def native_build() -> Path:
    """The directory of the CMake build; native/<room>/ and workloads/<name>/ lie in it."""
    if not NATIVE_BUILD.is_dir():
        pytest.skip(f"no native build in {NATIVE_BUILD}: run `make build`")
    return NATIVE_BUILD


@pytest.fixture(scope="session")
def preload() -> Path:
    """libweir-preload.so of the installed package, or of the build that WEIR_TEST_BUILD names."""
    from weir import _native

    if "WEIR_TEST_BUILD" in os.environ:
        return NATIVE_BUILD / "native" / "preload" / _native.PRELOAD

    return _native.library_path(_native.PRELOAD)


@pytest.fixture(scope="session")
def weir():
    """``weir("report", run, "--json")`` runs the command and returns what came of it; it raises on
    no exit status.

    Keywords: timeout (seconds), env (added to the clean environment; None removes a variable), cwd,
    input. Notes and tables of verbs that only read are not folded at 80 columns, unless env has
    COLUMNS. Commands are forked from processes of the session (weir_forks.py);
    ``execute([sys.executable, "-m", "weir", ...])`` starts an interpreter.
    """
    command = Path(sys.executable).parent / "weir"
    if not command.exists():
        pytest.fail(f"{command} does not exist: run `make build`, and pytest from the same "
                    f"environment")

    forks: list[Forks] = []

    def call(*arguments, **keywords) -> Completed:
        words = tuple(str(argument) for argument in arguments)
        if words and words[0] in READING:
            keywords["env"] = {"COLUMNS": "1000", **(keywords.get("env") or {})}
        if not can_fork(keywords.get("env")):
            return run([command, *words], **keywords)
        if not forks:
            forks.append(Forks(command))
        return forks[0](*words, **{"timeout": DEFAULT_TIMEOUT_S, **keywords})

    yield call
    for one in forks:
        one.close()


@pytest.fixture(scope="session")
def execute():
    """``execute([program, argument], timeout=60, env={...}, cwd=...)``: any command, with the same
    care."""
    return run


@pytest.fixture
def tmp_run(tmp_path) -> Path:
    """The path of a run directory that does not exist yet."""
    return tmp_path / "run"


@pytest.fixture
def preload_env(preload, tmp_path):
    """``preload_env("step", level="trace", WEIR_BUDGET="1M")`` makes the step's directory and
    returns the variables that trace a program into it without the launcher;
    ``env["WEIR_TRACE_DIR"]`` is the directory. All programs are one step, as with the launcher;
    ``WEIR_LAUNCH=None`` leaves it to the library which of them belong together."""

    def variables(step: str = "main", level: str = "trace", **more: str | None) -> dict[str, str]:
        directory = tmp_path / "run" / step
        directory.mkdir(parents=True, exist_ok=True)
        return {"WEIR_TRACE_DIR": str(directory), "WEIR_LEVEL": level, "WEIR_LAUNCH": "0",
            "LD_PRELOAD": str(preload), **more}

    return variables


@pytest.fixture(scope="session")
def cc() -> Compiler:
    """``cc("int main(void){...}", "-O2", name="x")`` compiles C and returns the program's path."""
    return Compiler("gcc", ".c")


@pytest.fixture(scope="session")
def cxx() -> Compiler:
    """The same for C++."""
    return Compiler("g++", ".cc")


@pytest.fixture(scope="session")
def fc() -> Compiler:
    """The same for Fortran, free form, preprocessed."""
    return Compiler("gfortran", ".F90")


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.mpi) for name in IMPLEMENTATIONS])
def mpi(request) -> Mpi:
    """Each MPI implementation in turn: ``mpi.cc(source)``, ``mpi.fc(source)``, ``mpi.launch(4,
    program)``, ``mpi.env``."""
    chosen = IMPLEMENTATIONS[request.param]
    missing = chosen.missing()
    if missing:
        pytest.skip(f"{chosen.name} is not installed here: no {', '.join(missing)}")
    return chosen


@pytest.fixture
def testfs(tmp_path_factory):
    """``testfs("lustre", data_us=0)`` mounts the test file system (preset ``direct`` if none is
    named) and returns an object with ``path``, ``backing``, ``stats()``, ``reset()``,
    ``control(hang=5)``, ``unmount()``; all end with the test. ``testfs(backing=first.backing,
    bucket="x")`` is a second node of the same server."""
    if not os.path.exists("/dev/fuse"):
        pytest.skip("no /dev/fuse here: this kernel or container has no FUSE")
    from weir_testfs import Mounts

    mounts = Mounts(tmp_path_factory.mktemp("testfs"))
    yield mounts
    mounts.close()


@pytest.fixture(scope="session")
def glusterfs():
    """A mounted GlusterFS of two bricks in memory with shards of 4 MiB: ``path`` and ``bricks``;
    one for the whole session."""
    from weir_glusterfs import GlusterFs, why_not

    if reason := why_not():
        pytest.skip(reason)
    cluster = GlusterFs()
    yield cluster
    cluster.close()
