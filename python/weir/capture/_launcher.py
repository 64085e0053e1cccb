# SPDX-License-Identifier: Apache-2.0
"""Open MPI's mpirun does not carry the environment to other nodes: it must be given the variables
to export.

MPICH's hydra and Slurm's srun carry all of it. ``-x NAME`` belongs to one application of a command
line with several (``mpirun -n 1 a : -n 3 b``), so it is put in front of each.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from weir.capture._environment import PRELOAD_VARIABLE, forwarded_names, with_library

_OPEN_MPI = frozenset({"orterun", "prterun", "mpirun.openmpi", "mpiexec.openmpi", "prun"})
_ANY_MPI = frozenset({"mpirun", "mpiexec"})
# A list of variables in the environment excludes -x: mpirun refuses to start when it is given both.
_LIST_VARIABLE = "OMPI_MCA_mca_base_env_list"
_LIST_OPTION = "mca_base_env_list"


def is_open_mpi(program: str, environ: Mapping[str, str]) -> bool:
    """Whether a command is Open MPI's launcher: by its name or what the name links to, else by
    asking its version."""
    name = os.path.basename(program)
    if name in _OPEN_MPI:
        return True
    if name not in _ANY_MPI:
        return False
    path = shutil.which(program, path=environ.get("PATH", os.defpath))
    if path is None:
        return False
    target = os.path.basename(os.path.realpath(path))
    if target in _OPEN_MPI:
        return True
    if target not in _ANY_MPI:
        return False
    try:
        asked = subprocess.run(
            [path, "--version"], env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return "Open MPI" in asked.stdout or "OpenRTE" in asked.stdout


def _own_first(entry: str, library: str) -> str:
    name, equals, value = entry.partition("=")
    return (
        f"{name}={with_library(value, library)}" if equals and name == PRELOAD_VARIABLE else entry
    )


def _given_by_user(words: Sequence[str]) -> set[str]:
    """Variables that the options of one application pass with -x already."""
    end = words.index(":") if ":" in words else len(words)
    return {words[i + 1].partition("=")[0] for i in range(end - 1) if words[i] == "-x"}


def with_forwarding(command: Sequence[str], environ: Mapping[str, str],
        library: str) -> tuple[list[str], dict[str, str]]:
    """The command line and environment with which Open MPI's launcher carries weir's variables to
    each node.

    ``environ`` has weir's variables. An LD_PRELOAD that the command line itself gives to the ranks
    gets the library too.
    """
    names = forwarded_names(environ)
    if _LIST_VARIABLE in environ:
        listed = [entry for entry in environ[_LIST_VARIABLE].split(";") if entry]
        known = {entry.partition("=")[0] for entry in listed}
        listed = [_own_first(entry, library) for entry in listed] + [n for n in names
            if n not in known]
        return list(command), {**environ, _LIST_VARIABLE: ";".join(listed)}
    if any(_LIST_OPTION in word for word in command):
        # what the user lists there is what the ranks get; see the guide for clusters
        return list(command), dict(environ)
    result = [command[0]]
    at_start = True
    for position, word in enumerate(command[1:], 1):
        if at_start:
            given = _given_by_user(command[position:])
            for name in names:
                if name not in given:
                    result += ["-x", name]
            at_start = False
        if command[position - 1] == "-x":
            word = _own_first(word, library)
        result.append(word)
        at_start = word == ":"
    return result, dict(environ)
