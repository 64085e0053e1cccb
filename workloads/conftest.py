# SPDX-License-Identifier: Apache-2.0
"""The four workloads of known cases for tests: their programs, the line of results, and the data
that their files must hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import decode
import numpy as np
import pytest
from weir_fixtures import NATIVE_BUILD
from weir_mpi import Mpi
from weir_process import Completed


@dataclass(frozen=True)
class Case:
    """``case("scf", 4, "--dir", d)`` runs a program with one MPI and returns its line of results,
    numbers by name."""

    mpi: Mpi
    preload_env: object

    def program(self, name: str) -> Path:
        path = NATIVE_BUILD / "workloads" / name / self.mpi.name / f"weir-{name}"
        if not path.exists():
            pytest.skip(f"{path} is not built: run `make build`")
        return path

    def start(self, name: str, ranks: int, *options: object, env: dict | None = None) -> Completed:
        return self.mpi.run(ranks, self.program(name), *options, env=env)

    def __call__(self, name: str, ranks: int, *options: object,
            env: dict | None = None) -> dict[str, float]:
        return results(self.start(name, ranks, *options, env=env).ok().stdout, name)

    def traced(self, step: str, name: str, ranks: int, *options: object,
            env: dict | None = None) -> decode.Trace:
        """The same under the preload library; what it recorded."""
        variables = self.preload_env(step, WEIR_BUDGET="64M")
        self.start(name, ranks, *options, env={**variables, **(env or {})}).ok()
        return decode.read_trace(variables["WEIR_TRACE_DIR"])


def results(text: str, name: str) -> dict[str, float]:
    (line,) = (line for line in text.splitlines() if line.startswith(f"{name}: ranks="))
    return {key: float(value) for key, value in (word.split("=") for word in line.split()[1:])}


@pytest.fixture
def case(mpi, preload_env) -> Case:
    return Case(mpi, preload_env)


def words(stream: int, first: int, count: int) -> np.ndarray:
    """workload_word of common/workload.h, written anew."""
    with np.errstate(over="ignore"):
        x = (np.uint64(stream << 40) ^ np.arange(first, first + count,
            dtype=np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return x ^ x >> np.uint64(31)


@pytest.fixture(scope="session")
def pattern():
    """``pattern(stream, first, count)``: 64-bit words that the C workloads write."""
    return words
