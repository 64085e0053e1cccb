# SPDX-License-Identifier: Apache-2.0
"""mpi4py of PyPI on each MPI, with the tests of files of its source package."""

from __future__ import annotations

import shlex

from harness import parse
from harness.model import Step, Suite

_VERSION = "4.1.2"
_LAUNCH = {
    "openmpi": (
        ("mpirun.openmpi", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "--mca", "io",
            "romio321"),
        {"MPI4PY_MPIABI": "openmpi", "MPI4PY_LIBMPI": "libmpi.so.40"},
    ),
    "mpich": (("mpirun.mpich",), {"MPI4PY_MPIABI": "mpich", "LD_LIBRARY_PATH": "lib"}),
}
# Open MPI's ROMIO ends by SIGSEGV in the nonblocking collective testIReadIWrite[At]All, and with it
# all tests behind: the patterns match all others.
_CHOSEN = {
    "openmpi": ("-k*.test[!I]*", "-k*.testI*[!l]"),
    "mpich": (),
}
# Each rank prints into a file of its own: lines of two ranks in one stream interleave, and tests
# get lost.
_RANK = 'eval "exec $TESTS" > rank${OMPI_COMM_WORLD_RANK:-$PMI_RANK}.log 2>&1'
_SCRIPT = f"""
rm -f rank*.log
"$@" bash -c '{_RANK}'
status=$?
for log in rank*.log; do sed -E "s/^(test\\w*) \\(/\\1 (${{log%.log}}./" $log; done
exit $status
"""


def _steps(place):
    tests = place.downloads / "mpi4py" / "test"
    # the wheel needs MPICH by the name of its own library, which Debian calls otherwise
    link = (
        "ldconfig -p | sed -n 's/.*libmpich.so.12.* => //p' | head -1 | xargs -I@ ln -s @ "
        "lib/libmpi.so.12"
    )
    yield Step("library", ("bash", "-ec", f"mkdir lib; {link}; test -e lib/libmpi.so.12"),
        prepare=True)
    for mpi, (launch, environment) in _LAUNCH.items():
        for ranks in ("1", "2"):
            python = (str(place.python), "-B", str(tests / "main.py"), "--verbose")
            chosen = ("-i", "test_io", "-i", "test_file", *_CHOSEN[mpi])
            variables = {**environment, "TMPDIR": str(place.work),
                "TESTS": shlex.join((*python, *chosen))}
            command = ("bash", "-c", _SCRIPT, "bash", *launch, "-n", ranks)
            yield Step(f"{mpi} {ranks}", command, parse.unittest, variables, time_limit_s=600)


SUITE = Suite(
    name="mpi4py",
    title="mpi4py's own test_io and test_file (all of MPI-IO), Open MPI and MPICH, 1 and 2 ranks",
    steps=_steps,
    version=lambda _: f"mpi4py {_VERSION}",
    packages=("openmpi-bin", "mpich"),
    wheels=(f"mpi4py=={_VERSION}", "numpy"),
    sdists=(f"mpi4py=={_VERSION}",),
    needs=("mpirun.openmpi", "mpirun.mpich"),
)
