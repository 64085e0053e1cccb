# SPDX-License-Identifier: Apache-2.0
"""The environment of the preload library, declared once as data.

native/preload reads these variables, ``weir trace`` and ``weir env`` set them,
docs/reference/environment.md is made from this table. What they mean is decided here; what the
library makes of them is left to it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from weir._errors import UsageError

PRELOAD_VARIABLE = "LD_PRELOAD"
PRELOAD_LIBRARY = "libweir-preload.so"


@dataclass(frozen=True)
class Variable:
    """One environment variable. ``launcher``: set by ``weir trace`` and ``weir env``, so removed by
    ``weir env --off``. ``per_node``: has a value of its own on each node, so is never sent from one
    node to another. ``command``: the weir command reads it, the library does not."""

    name: str
    values: str
    default: str
    meaning: str
    launcher: bool = False
    per_node: bool = False
    command: bool = False


VARIABLES = (
    Variable(
        "WEIR_TRACE_DIR",
        "absolute path",
        "none: the library stays idle",
        "Directory of the step, which exists already; the trace file of each node is written into "
        "it.",
        launcher=True,
    ),
    Variable(
        "WEIR_LEVEL",
        "`summary`, `detail`, `trace`",
        "`trace`",
        "What is kept: counters per operation, counters per file and operation, or a record of "
        "every call.",
        launcher=True,
    ),
    Variable(
        "WEIR_BUDGET",
        "bytes, with K, M, G or T for powers of 1024; at least 64K",
        "`4G`",
        "The trace file of a node grows no further: past it the level steps down, and what no "
        "record was kept of is counted.",
        launcher=True,
    ),
    Variable(
        "WEIR_SHARE",
        "`group`, `all`",
        "the owner alone reads a trace",
        "Who else may read the trace file, which holds command lines and names of files; `weir "
        "trace --share` sets it.",
        launcher=True,
    ),
    Variable(
        "WEIR_LAUNCH",
        "0, or a number; behind it `+` until a launcher is met",
        "made by the library",
        "0: everything that is traced into the directory is one step. Else the run that a program "
        "belongs to: programs that are traced by "
        "WEIR_TRACE_DIR and LD_PRELOAD alone hand it on to those they start. Each mpirun (mpiexec, "
        "srun, ...) of a script is a step of its own, also behind "
        "`timeout`; what a script runs beside them belongs to the first; serial programs of one "
        "script, or of one command line, are one step, and those of two are two.",
        launcher=True,
    ),
    Variable(
        "WEIR_NODE",
        "a name without slashes",
        "the host's name",
        "Name of the node, and of its trace file. Lets one machine stand for several nodes.",
        per_node=True,
    ),
    Variable(
        "WEIR_MPI_SYNC",
        "0, 1, 2, ...",
        "`8`",
        "Barriers at MPI_Init and again at MPI_Finalize, from which the clocks of the nodes are "
        "aligned; 0: none.",
    ),
    Variable(
        "WEIR_MPI_WAIT_S",
        "0, 1, 2, ...",
        "`20`",
        "Seconds after which such a barrier at MPI_Init is given up: a rank that runs without weir "
        "never comes to it; 0: never.",
    ),
    Variable(
        "WEIR_MPI",
        "0, 1",
        "`1`",
        "0: what ranks wait for in MPI is not recorded ([MPI](mpi.md)); `weir trace --no-mpi` sets "
        "it.",
    ),
    Variable(
        "WEIR_CLOCK_SKEW_NS",
        "nanoseconds, may be negative",
        "`0`",
        "Added to each clock reading of the process: a fault to test the alignment of clocks with.",
        per_node=True,
    ),
    Variable(
        "WEIR_RULES",
        "text, at most 64 KiB",
        "no layers",
        "The rules of the run, compiled by `weir run`, `weir trace --rules` or `weir env --rules`; "
        "not written by hand.",
        launcher=True,
    ),
    Variable(
        "WEIR_NODE_RANKS",
        "1, 2, 3, ...",
        "all ranks of a node",
        "So many ranks of a job act as one node: lets one machine stand for several nodes to the "
        "layers that ranks share.",
    ),
    Variable(
        "WEIR_LOCK_WAIT_MS",
        "1, 2, 3, ...",
        "1000",
        "Milliseconds for which a rank waits for another one that lives and does not go on with "
        "what they share; then it goes past it. "
        "For one that is stopped 100 at most.",
    ),
    Variable(
        "WEIR_BETWEEN",
        "`mpi`, `off`",
        "the best there is",
        "How layer global shares blocks between nodes: `mpi`, by messages alone (MPI begins with "
        "MPI_THREAD_MULTIPLE), "
        "also between nodes that WEIR_NODE_RANKS makes and for programs that may make windows; "
        "`off`: each node reads for itself.",
    ),
    Variable(
        "WEIR_JOB",
        "a name",
        "the batch system's number of the job",
        "Programs of one job share on a node what their layers share: which files are open, what "
        "is yet to be written.",
    ),
    Variable(
        "WEIR_RUN_NUMBER",
        "a number; made by `weir run` and `weir trace`",
        "none: no run",
        "The run that a program with layers belongs to: bytes that could not be written are "
        "reported by this run, and by no other one of the job on the node.",
    ),
    Variable(
        "WEIR_ASSIGN_FILE",
        "path",
        "`FILENV`, else `.assign`",
        "The file that `weir assign` writes, and that `weir run` reads when no --rules are given.",
        command=True,
    ),
    Variable(
        "WEIR_EXCLUDE",
        "directories and shell patterns, with commas between them; `none`: without the default "
        "list",
        "none of its own",
        "Files that `weir report` and the other commands that read a run leave out besides "
        "[system files](tables.md#system-files); `--exclude` overrides it.",
        command=True,
    ),
    Variable(
        "WEIR_INCLUDE",
        "the same",
        "none",
        "Files that these commands count although they are on one of these lists; `--include` "
        "overrides it.",
        command=True,
    ),
    Variable(
        "WEIR_OUTPUT_CONFIG",
        "path",
        "none: mode serial",
        "libweir: the configuration of a program whose weir_init names none; see "
        "[output](output.md).",
    ),
    Variable(
        "WEIR_OUTPUT_LIBRARIES",
        "path",
        "the package's own",
        "Python's weir.output: the directory of `openmpi/libweir.so`, `mpich/libweir.so` and "
        "`libweir-output-check.so`.",
        command=True,
    ),
    *(
        Variable(f"WEIR_OUTPUT_{key.upper()}", values, "the configuration's",
            f"libweir: `{key}` of the configuration's `[output]`.")
        for key, values in (
            ("mode", "`serial`, `collective`, `servers`, `servers+parallel`"),
            ("groups", "1, 2, 3, ..."),
            ("servers_per_group", "1, 2, 3, ..."),
            ("placement", "`last`, `spread`, `nodes`"),
            ("aggregators", "0, 1, 2, ..."),
            ("transport", "`auto`, `shared`, `rma`, `two-sided`"),
            ("server_memory", "a size such as `256MiB`"),
            ("client_memory", "a size, or 0"),
            ("encode_threads", "1, 2, ..."),
            ("time_limit_s", "seconds"),
            ("sync", "`true`, `false`"),
            ("verbose", "`true`, `false`"),
        )
    ),
    Variable("WEIR_QUIET", "`1`", "messages", "The library writes nothing to standard error.",
        launcher=False),
)

LEVELS = ("summary", "detail", "trace")
SHARES = ("group", "all")
SMALLEST_BUDGET_BYTES = 64 << 10
_SUFFIXES = {"K": 10, "M": 20, "G": 30, "T": 40}


def check_level(level: str) -> str:
    """The level itself; raises UsageError when there is no such level."""
    if level not in LEVELS:
        raise UsageError(
            f"--level {level}: there is no such level; it is one of {', '.join(LEVELS)}")
    return level


def check_share(share: str | None) -> str | None:
    """The word itself; raises UsageError when there is no such group of readers."""
    if share not in (None, *SHARES):
        raise UsageError(
            f"--share {share}: there is no such choice; it is one of {', '.join(SHARES)}")
    return share


def parse_budget(text: str) -> int:
    """Bytes of a budget such as ``512M``; the suffixes are powers of 1024. Raises UsageError."""
    number, shift = text.strip(), 0
    for ending in ("iB", "B"):
        if len(number) > len(ending) and number.endswith(ending) and number[-len(ending) - 1].upper(
                ) in _SUFFIXES:
            number = number[: -len(ending)]
            break
    if number and number[-1].upper() in _SUFFIXES:
        shift = _SUFFIXES[number[-1].upper()]
        number = number[:-1]
    if not (number.isascii() and number.isdigit()):
        raise UsageError(
            f"--budget {text}: not a number of bytes; write for example 500000000, 512M or 4G")
    size = int(number) << shift
    if size < SMALLEST_BUDGET_BYTES:
        raise UsageError(f"--budget {text}: the smallest trace file that makes sense is 64K")
    if size >= 1 << 63:
        raise UsageError(f"--budget {text}: more than any file can hold")
    return size


def without_library(preload: str) -> str:
    """The value of LD_PRELOAD without weir's library; ld.so separates entries by colons or blanks.
    """
    entries = preload.replace(":", " ").split(" ")
    return ":".join(e for e in entries if e and os.path.basename(e) != PRELOAD_LIBRARY)


def with_library(preload: str, library: str) -> str:
    """The value of LD_PRELOAD with weir's library first, once."""
    rest = without_library(preload)
    return f"{library}:{rest}" if rest else library


def tracing_variables(
    environ: Mapping[str, str], library: str, directory: str, level: str, budget_bytes: int,
    share: str | None = None
) -> dict[str, str]:
    """What is to be set, beside what ``environ`` has, for programs to be traced into ``directory``.
    """
    # that of the step before does not last
    sharing = {"WEIR_SHARE": share or ""} if share or environ.get("WEIR_SHARE") else {}
    return {
        PRELOAD_VARIABLE: with_library(environ.get(PRELOAD_VARIABLE, ""), library),
        "WEIR_TRACE_DIR": directory,
        "WEIR_LEVEL": level,
        "WEIR_BUDGET": str(budget_bytes),
        "WEIR_LAUNCH": "0",
        **sharing,
    }


def rules_variables(environ: Mapping[str, str], library: str, rules: str) -> dict[str, str]:
    """What is to be set, beside what ``environ`` has, for programs to get the layers of these
    compiled rules."""
    return {PRELOAD_VARIABLE: with_library(environ.get(PRELOAD_VARIABLE, ""), library),
        "WEIR_RULES": rules}


def idle_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` as it was before weir: nothing of an outer ``weir trace`` or ``weir env`` is left
    in it."""
    launcher = {v.name for v in VARIABLES if v.launcher}
    kept = {k: v for k, v in environ.items() if k not in launcher}
    preload = without_library(kept.pop(PRELOAD_VARIABLE, ""))
    if preload:
        kept[PRELOAD_VARIABLE] = preload
    return kept


def forwarded_names(environ: Mapping[str, str]) -> list[str]:
    """The variables, of those ``environ`` has, that a launcher must carry to the other nodes."""
    return [n for n in (PRELOAD_VARIABLE, *(v.name for v in VARIABLES if not v.per_node
        and not v.command)) if n in environ]
