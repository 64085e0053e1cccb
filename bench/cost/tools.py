# SPDX-License-Identifier: Apache-2.0
"""The tools whose cost is compared, and what makes a program run under each."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

BARE = "bare"


@dataclass(frozen=True)
class Tool:
    """`prefix` and `environment` get an empty directory for what the tool writes."""

    name: str
    prefix: Callable[[Path], list[str]] = lambda directory: []
    environment: Callable[[Path], dict[str, str]] = lambda directory: {}
    share: float = 1.0  # of the loop's calls: slow tools make fewer
    in_memory: bool = False  # its directory lies on tmpfs
    is_weir: bool = False
    beside: bool = False  # it works in a process of its own: CPU time in the loop does not show it
    fields: dict = field(default_factory=dict)


def weir(library: Path, level: str, in_memory: bool = False) -> Tool:
    def environment(directory: Path) -> dict[str, str]:
        return {"LD_PRELOAD": str(library), "WEIR_TRACE_DIR": str(directory), "WEIR_LEVEL": level}

    name = f"weir {level}" + (" (tmpfs)" if in_memory else "")
    return Tool(name, environment=environment, in_memory=in_memory, is_weir=True,
        fields={"level": level})


def without_mpi(library: Path) -> Tool:
    """weir trace --no-mpi."""
    traced = weir(library, "trace")
    return Tool("weir trace --no-mpi",
        environment=lambda directory: {**traced.environment(directory), "WEIR_MPI": "0"},
        is_weir=True)


def strace() -> Tool:
    return Tool("strace -f", prefix=lambda directory: ["strace", "-f", "-o",
        str(directory / "out")], share=0.02, beside=True)


def dftracer(libraries: Path) -> Tool:
    def environment(directory: Path) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(libraries / "libdftracer_preload.so"),
            "LD_LIBRARY_PATH": str(libraries),
            "DFTRACER_ENABLE": "1",
            "DFTRACER_INIT": "PRELOAD",
            "DFTRACER_DATA_DIR": "all",
            "DFTRACER_LOG_FILE": str(directory / "trace"),
        }

    return Tool("dftracer", environment=environment, share=0.1)


def darshan(library: Path) -> Tool:
    def environment(directory: Path) -> dict[str, str]:
        return {"LD_PRELOAD": str(library), "DARSHAN_ENABLE_NONMPI": "1",
            "DARSHAN_LOGFILE": str(directory / "log.darshan")}

    return Tool("darshan", environment=environment)


def install_dftracer(venv: Path) -> tuple[Path | None, str]:
    """Its library directory, or why there is none. Installs into an environment of its own, once.
    """
    found = sorted(venv.glob("lib/python3*/site-packages/dftracer/lib64"))
    if not found:
        for command in ([sys.executable, "-m", "venv", venv],
                [venv / "bin/python", "-m", "pip", "install", "--quiet", "dftracer"]):
            done = subprocess.run(command, capture_output=True, text=True, timeout=900)
            if done.returncode != 0:
                return None, "does not install here: " + (done.stderr.strip().split("\n")[-1]
                    or f"status {done.returncode}")
        found = sorted(venv.glob("lib/python3*/site-packages/dftracer/lib64"))
    return (found[0], "") if found else (None, "its package has no preload library")


def available(library: Path, bench, with_dftracer: bool,
        venv: Path) -> tuple[list[Tool], dict[str, str]]:
    """The tools to run, bare first, and for those that cannot: why."""
    chosen = [Tool(BARE), weir(library, "summary"), weir(library, "detail"), weir(library, "trace")]
    absent: dict[str, str] = {}
    if bench.memory is not None:
        chosen.append(weir(library, "trace", in_memory=True))
    else:
        absent["weir trace (tmpfs)"] = "there is no /dev/shm to write in"
    if shutil.which("strace"):
        chosen.append(strace())
    else:
        absent["strace -f"] = "not installed"
    if with_dftracer:
        libraries, why = install_dftracer(venv)
        if libraries is not None:
            chosen.append(dftracer(libraries))
        else:
            absent["dftracer"] = why
    else:
        absent["dftracer"] = "not asked for (--dftracer)"
    found = [p for p in os.environ.get("DARSHAN_PRELOAD", "").split(":") if p and Path(p).exists()]
    if found:
        chosen.append(darshan(Path(found[0])))
    else:
        absent["darshan"] = (
            "no distribution packages its run-time library; name one in DARSHAN_PRELOAD to compare "
            "with it"
        )
    return chosen, absent
