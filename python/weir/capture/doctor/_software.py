# SPDX-License-Identifier: Apache-2.0
"""What is installed that matters to traced programs, and in which version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from weir.capture._environment import idle_environment
from weir.capture.doctor._finding import FINDING, FINE, NOTE, Finding

_VERSION = re.compile(r"\d+(?:\.\d+)+")

# name, the commands that print its version, what their output must contain to be it
_ASKED = (
    ("Open MPI", (["ompi_info", "--version"], ["mpirun.openmpi", "--version"],
        ["mpirun", "--version"]), r"Open MPI|OpenRTE"),
    ("MPICH", (["mpichversion"], ["mpiexec.hydra", "--version"], ["mpirun.mpich", "--version"]),
        r"MPICH|HYDRA"),
    ("Slurm", (["srun", "--version"],), r"slurm"),
    ("gfortran", (["gfortran", "--version"],), r"GNU Fortran"),
    ("ecCodes", (["codes_info", "-v"],), r""),
    ("netCDF", (["nc-config", "--version"],), r"netCDF"),
    ("strace", (["strace", "-V"],), r"strace"),
)

# First releases that are not known to write wrong data; the report is open-mpi/ompi #12718.
_OMPIO_SOUND = {4: (4, 1, 7), 5: (5, 0, 6)}
_OMPIO_REPORT = "open-mpi/ompi #12718"


def ask(command: list[str], timeout_s: float = 10) -> str:
    """What a command prints, on either stream; empty when it is not there or fails to answer in
    time."""
    path = shutil.which(command[0])
    if path is None:
        return ""
    try:
        done = subprocess.run(
            [path, *command[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            env=idle_environment(os.environ),
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout + done.stderr


def versions() -> Iterator[tuple[str, str | None]]:
    """(name, version or None) of each piece of software."""
    for name, commands, mark in _ASKED:
        found = None
        for command in commands:
            text = ask(command)
            match = _VERSION.search(text) if re.search(mark, text) else None
            if match:
                found = match.group()
                break
        yield name, found


def software() -> list[Finding]:
    found = list(versions())
    result = [
        Finding(f"software.{name}", FINE if version else NOTE,
            f"{name} {version or 'is not installed'}") for name, version in found
    ]
    open_mpi = dict(found)["Open MPI"]
    return result + ([ompio(open_mpi)] if open_mpi else [])


def _io_component() -> str | None:
    """The MPI-IO component the user chose for Open MPI: by the environment, else in the user's
    parameter file."""
    chosen = os.environ.get("OMPI_MCA_io")
    if chosen:
        return chosen
    parameters = Path.home() / ".openmpi" / "mca-params.conf"
    try:
        lines = parameters.read_text(errors="replace").splitlines()
    except OSError:
        return None
    values = [m.group(1) for line in lines if (m := re.match(r"\s*io\s*=\s*(\S+)", line))]
    return values[-1] if values else None


def ompio(version: str) -> Finding:
    """Whether this Open MPI writes collective output with OMPIO in a version known to corrupt it.
    """
    number = tuple(int(part) for part in version.split("."))
    chosen = _io_component()
    if chosen and ("romio" in chosen or "^ompio" in chosen):
        return Finding("ompio", FINE,
            f"Open MPI writes MPI-IO output through {chosen}, not through OMPIO")
    sound = _OMPIO_SOUND.get(number[0])
    if sound is None and number[0] > max(_OMPIO_SOUND) or sound is not None and number >= sound:
        return Finding(
            "ompio",
            NOTE,
            f"Open MPI {version} uses OMPIO; versions before 4.1.7 and 5.0.6 wrote wrong "
            f"collective output ({_OMPIO_REPORT}): "
            "compare an output once with that of OMPI_MCA_io=romio321 or romio341",
        )
    component = "romio341" if number[0] >= 5 else "romio321"
    return Finding(
        "ompio",
        FINDING,
        f"Open MPI {version} writes collective output (PnetCDF, parallel HDF5) through OMPIO, "
        f"which can corrupt it without a "
        f"message ({_OMPIO_REPORT}): set OMPI_MCA_io={component}. This has nothing to do with "
        f"tracing",
    )
