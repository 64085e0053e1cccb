# SPDX-License-Identifier: Apache-2.0
"""IOR and mdtest on each MPI, with their own checks of what was written and read."""

from __future__ import annotations

from harness.model import Step, Suite
from harness.run import tree_version

_LAUNCH = {
    "openmpi": ("mpirun.openmpi", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"),
    "mpich": ("mpirun.mpich",),
}
# -W and -R compare each byte after writing and when reading; -G is the seed of the bytes.
_CHECKED = ("-w", "-r", "-W", "-R", "-k", "-G", "17")
_IOR = {
    "posix-shared": ("-a", "POSIX", "-t", "64k", "-b", "1m", "-s", "3"),
    "posix-own": ("-a", "POSIX", "-F", "-t", "1000", "-b", "100000", "-s", "2"),
    "posix-strided": ("-a", "POSIX", "-t", "4096", "-b", "4096", "-s", "64", "-C"),
    "posix-fsync": ("-a", "POSIX", "-e", "-Y", "-t", "16k", "-b", "128k"),
    "mpiio-shared": ("-a", "MPIIO", "-t", "64k", "-b", "1m", "-s", "2"),
    "mpiio-collective": ("-a", "MPIIO", "-c", "-t", "10k", "-b", "100k", "-s", "5"),
    "mpiio-own": ("-a", "MPIIO", "-F", "-t", "32k", "-b", "320k"),
}


def _steps(place):
    for mpi, launch in _LAUNCH.items():
        programs = place.tree / mpi / "src"
        start = (*launch, "-n", "3")
        for name, options in _IOR.items():
            output = f"{mpi}-{name}.dat"
            command = (*start, str(programs / "ior"), *_CHECKED, *options, "-o", output)
            yield Step(f"{mpi} {name}", command, _checked, time_limit_s=90)
        options = ("-n", "40", "-w", "3901", "-e", "3901", "-W", "-R", "-d", f"{mpi}.md")
        for name, more in (("mdtest", ()), ("mdtest own", ("-u",)),
                ("mdtest tree", ("-z", "2", "-b", "3"))):
            command = (*start, str(programs / "mdtest"), *options, *more)
            yield Step(f"{mpi} {name}", command, _checked, time_limit_s=90)


def _checked(ended):
    """IOR and mdtest print what they found wrong, and may end with 0 all the same."""
    wrong = any(word in ended.output for word in ("FAILED comparison", "incorrect", "ERROR",
        "WARNING: Incorrect"))
    return {"": "pass" if ended.status == 0 and not wrong else "fail"}


SUITE = Suite(
    name="ior",
    title="IOR (POSIX and MPI-IO, each byte checked) and mdtest, 3 ranks, Open MPI and MPICH",
    steps=_steps,
    version=tree_version,
    packages=("openmpi-bin", "mpich"),
    tree="ior",
    needs=("openmpi/src/ior", "mpich/src/ior", "openmpi/src/mdtest", "mpich/src/mdtest"),
    outputs=("*.dat*",),
)
