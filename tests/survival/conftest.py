# SPDX-License-Identifier: Apache-2.0
"""Guests: small programs that do to the preload library what a stranger's process might."""

from __future__ import annotations

from pathlib import Path

import pytest
from weir_guest import Outcome

HERE = Path(__file__).parent
HEADER = HERE / "survive.h"


@pytest.fixture
def guest(cc):
    """``guest(source, *flags)`` compiles C behind survive.h; ``source`` is text or a name in
    programs/."""

    def compile_it(source: str, *flags: str, name: str = "guest") -> Path:
        text = source if "\n" in source else (HERE / "programs" / source).read_text()
        return cc(HEADER.read_text() + text, "-pthread", "-Wall", *flags, name=name)

    return compile_it


@pytest.fixture
def traced(execute, preload_env, tmp_path):
    """``traced([program, argument], level=..., WEIR_BUDGET=...)`` runs a program under the library
    in an empty directory."""

    def call(command, *, level="trace", step="main", timeout=60, cwd=None, input=None,
            **variables: str) -> Outcome:
        env = preload_env(step, level, **variables)
        if cwd is None:
            cwd = tmp_path / "cwd" / step
            cwd.mkdir(parents=True, exist_ok=True)
        done = execute(command, env=env, timeout=timeout, cwd=cwd, input=input)
        return Outcome(done, Path(env["WEIR_TRACE_DIR"]))

    return call
