# SPDX-License-Identifier: Apache-2.0
"""``weir doctor`` without a program: can programs be traced on this machine, into this directory,
with what precision."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from weir._errors import InputError
from weir.capture._count import count_traces
from weir.capture._environment import idle_environment, tracing_variables
from weir.capture._launch import preload_library
from weir.capture._mounts import file_system_type
from weir.capture._run import trace_files
from weir.capture.doctor._finding import FINDING, FINE, NOTE, Finding

_PROBE_TIMEOUT_S = 30
_NETWORK_TYPES = ("nfs", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb", "fuse", "panfs", "pvfs",
    "wekafs", "9p", "afs")


def preload() -> list[Finding]:
    """The library is there, and a program under it leaves a trace: tried with a real one."""
    try:
        library = preload_library()
    except InputError as error:
        return [Finding("preload", FINDING, str(error))]
    program = shutil.which("cat")
    if program is None:
        return [Finding("preload", NOTE,
            f"{library} is there; not tried, because there is no `cat` to try it with")]
    with tempfile.TemporaryDirectory(prefix="weir-doctor-") as directory:
        target = os.path.join(directory, "probe.txt")
        Path(target).write_text("probe\n")
        clean = idle_environment(os.environ)
        variables = tracing_variables(clean, library, directory, "trace", 1 << 20)
        try:
            done = subprocess.run(
                [program, target],
                env={**clean, **variables},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PROBE_TIMEOUT_S,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return [Finding("preload", FINDING,
                f"{library}: a program under it did not run: {error}")]
        count = count_traces(trace_files(directory))
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode != 0 or done.stdout != b"probe\n":
        return [Finding("preload", FINDING,
            f"{library}: a program under it ended with {done.returncode}: {said}")]
    if count.processes != 1 or count.events == 0:
        return [Finding("preload", FINDING,
            f"{library}: a program under it left no trace: {said or 'and said nothing'}")]
    return [Finding("preload", FINE,
        f"{library} works: a program under it left {count.events} records")]


def clock() -> list[Finding]:
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        text = ""
    flags = set(re.search(r"^flags\s*:(.*)$", text, re.M).group(1).split()) if re.search(
        r"^flags\s*:", text, re.M) else set()
    if {"constant_tsc", "nonstop_tsc"} <= flags:
        return [Finding("clock", FINE,
            "the processor's time-stamp counter has a constant rate: weir takes times from it")]
    return [
        Finding("clock", NOTE,
            "the processor's time-stamp counter has no constant rate: weir takes times from "
            "CLOCK_MONOTONIC, which costs some ns more per call")
    ]


def kernel_figures() -> list[Finding]:
    try:
        text = Path("/proc/self/io").read_text()
    except OSError as error:
        why = error.strerror
    else:
        if "rchar" in text and "syscw" in text:
            return [Finding("proc_io", FINE,
                "/proc/self/io can be read: reports compare the bytes that the kernel counted with "
                "those that weir saw")]
        why = "does not have the figures"
    return [Finding("proc_io", NOTE,
        f"/proc/self/io: {why}; reports cannot state how many bytes weir did not see")]


def _existing(directory: str) -> str:
    directory = os.path.abspath(directory)
    while not os.path.isdir(directory):
        directory = os.path.dirname(directory)
    return directory


def trace_directory(run: str) -> list[Finding]:
    """What the trace will be written to: a shared mapping over space allocated beforehand must work
    there."""
    directory = _existing(run)
    name = f"{os.path.abspath(run)}"
    kind = file_system_type(directory)
    try:
        with tempfile.TemporaryFile(dir=directory, prefix=".weir-doctor-") as file:
            allocated = _allocate(file.fileno(), 1 << 16)
            os.ftruncate(file.fileno(), 1 << 16)
            with mmap.mmap(file.fileno(), 1 << 16) as data:
                data[0:4] = b"weir"
            free = os.statvfs(directory).f_bavail * os.statvfs(directory).f_frsize
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        return [Finding("trace_directory", FINDING,
            f"{name}: no trace can be written here ({kind or 'unknown'}): {why}; choose another "
            f"with -o")]
    result = [Finding("trace_directory", FINE,
        f"{name}: traces can be written here ({kind or 'unknown file system'}, {free / 1e9:.1f} GB "
        f"free)")]
    if allocated in (errno.EOPNOTSUPP, errno.ENOSYS):
        result.append(
            Finding("trace_directory.allocate", NOTE,
                f"{kind} has no fallocate: each piece of the trace is written with zeros first, "
                f"which costs a little")
        )
    elif allocated:
        result.append(Finding("trace_directory.allocate", FINDING,
            f"{name}: space cannot be allocated: {os.strerror(allocated)}"))
    if kind.startswith(_NETWORK_TYPES):
        result.append(
            Finding("trace_directory.network", NOTE,
                f"{kind} may be a network file system: a directory on a local disk or in memory "
                f"costs less")
        )
    return result


def _allocate(fd: int, size: int) -> int:
    """fallocate itself; posix_fallocate would fill in for a file system that has none. 0 or the
    errno."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_longlong, ctypes.c_longlong]
    return 0 if libc.fallocate(fd, 0, 0, size) == 0 else ctypes.get_errno()


def present_environment() -> list[Finding]:
    """What in the environment would act on traced programs."""
    result = []
    other = os.environ.get("LD_PRELOAD", "")
    if other:
        result.append(Finding("ld_preload", NOTE,
            f"LD_PRELOAD is set to {other}: weir's library is put in front of it"))
    if os.environ.get("WEIR_TRACE_DIR"):
        result.append(
            Finding("tracing", NOTE,
                f"this shell traces into {os.environ['WEIR_TRACE_DIR']}; weir env --off ends that")
        )
    return result


SEEN = (
    Finding(
        "seen",
        NOTE,
        "seen: calls of the C library by dynamically linked programs (POSIX, stdio), statements of "
        "gfortran programs, ranks under Open MPI and MPICH, all child processes",
    ),
    Finding(
        "unseen",
        NOTE,
        "not seen: static and setuid programs, direct system calls, Go programs, bytes moved "
        "through mapped memory, io_uring without liburing; "
        "for one program, run weir doctor PROGRAM",
    ),
)


def examine_machine(run: str) -> list[Finding]:
    """Everything about this machine and the directory of a run that does not exist yet."""
    from weir.capture.doctor._software import software

    return [*software(), *preload(), *clock(), *kernel_figures(), *trace_directory(run),
        *present_environment(), *SEEN]
