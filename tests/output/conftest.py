# SPDX-License-Identifier: Apache-2.0
"""The model without physics (model.c), run with libweir of the build."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import weir_one_rank
from weir_forks import Forks, can_fork


class Ran:
    """The errors of each rank: ``said[rank]`` is a list of (call, code, message)."""

    def __init__(self, done):
        self.done = done
        self.said: dict[int, list[tuple[str, str, str]]] = {}
        for rank, call, code, message in re.findall(r"^rank (\d+): (\w+): (WEIR_E_\w+): (.*)$",
                done.stdout, re.M):
            self.said.setdefault(int(rank), []).append((call, code, message))

    def fine(self) -> Ran:
        assert not self.said, self.said
        self.done.ok()
        return self

    def codes(self, rank: int) -> list[str]:
        return [code for _, code, _ in self.said.get(rank, [])]


class Model:
    """``model(ranks, mode="servers", kind="scatter", WEIR_OUTPUT_GROUPS=2)``: capitals are
    environment, the rest options."""

    def __init__(self, mpi, build: Path, root: Path, directory: Path):
        self.mpi, self.directory, self.root = mpi, directory, root
        self.libraries = build / "lib" / mpi.name
        if not (self.libraries / "libweir.so").exists():
            pytest.skip(f"libweir is not built for {mpi.name}: cmake says which package it needs")
        flags = (f"-I{root / 'include'}", f"-L{self.libraries}", f"-Wl,-rpath,{self.libraries}",
            "-lweir")
        self.program_source = Path(__file__).parent / "model.c"
        self.program = mpi.cc(self.program_source, *flags, name="model")

    def __call__(self, ranks: int, mode: str = "serial", survive: bool = False, limit_s: int = 60,
            **options: object) -> Ran:
        env = {key: str(value) for key, value in options.items() if key.isupper()}
        env |= {"WEIR_OUTPUT_MODE": mode, "WEIR_OUTPUT_TIME_LIMIT_S": str(limit_s), **self.mpi.env}
        arguments = [f"{key}={value}" for key, value in options.items() if not key.isupper()]
        command = self.mpi.launch(ranks, self.program, "", *arguments)
        if survive:  # the launcher does not end the others when one is killed
            command.insert(1,
                {"openmpi": "--enable-recovery", "mpich": "-disable-auto-cleanup"}[self.mpi.name])
        from weir_process import run

        return Ran(run(command, timeout=120, env=env, cwd=self.directory))


@pytest.fixture
def model(mpi, native_build, root, tmp_path) -> Model:
    return Model(mpi, native_build, root, tmp_path)


@pytest.fixture
def misuse(model):
    """``misuse(mode, ranks, "mistake")``: the errors of each rank; see misuse.c."""
    from weir_process import run

    flags = (f"-I{model.root / 'include'}", f"-L{model.libraries}", f"-Wl,-rpath,{model.libraries}",
        "-lweir", "-lm")
    program = model.mpi.cc(Path(__file__).parent / "misuse.c", *flags, name="misuse")

    def go(mode: str, ranks: int, mistake: str, limit_s: int = 20) -> Ran:
        env = {**model.mpi.env, "WEIR_OUTPUT_MODE": mode, "WEIR_OUTPUT_TIME_LIMIT_S": str(limit_s)}
        return Ran(run(model.mpi.launch(ranks, program, mistake), timeout=90, env=env,
            cwd=model.directory))

    return go


@pytest.fixture(scope="session")
def forks():
    one = Forks(Path(weir_one_rank.__file__))
    yield one
    one.close()


@pytest.fixture
def one_rank(mpi, native_build, forks, execute, tmp_path):
    """``one_rank({"put": "o.nc", ...}, {"get": "o.nc", ...})``: of each job the error, or ""; see
    weir_one_rank.py. Keywords are environment. What was printed: ``one_rank.stderr``. The model is
    forked from a process that has imported numpy, unless the environment is one of
    interpreters."""
    libraries = native_build / "lib" / mpi.name
    if not (libraries / "libweir.so").exists():
        pytest.skip(f"libweir is not built for {mpi.name}")
    variable = "OMPI_COMM_WORLD_SIZE" if mpi.name == "openmpi" else "PMI_SIZE"
    env = {**mpi.env, "WEIR_OUTPUT_LIBRARIES": str(libraries.parent), variable: "1"}

    def call(*jobs: dict, **more: str) -> list[str]:
        keywords = {"cwd": tmp_path, "env": {**env, **more}, "timeout": 120}
        if can_fork(keywords["env"]):
            done = forks(json.dumps(jobs), **keywords).ok()
        else:
            done = execute([sys.executable, weir_one_rank.__file__, json.dumps(jobs)],
                **keywords).ok()
        call.stderr, call.command = done.stderr, done.args
        return json.loads(done.stdout.splitlines()[-1])

    return call
