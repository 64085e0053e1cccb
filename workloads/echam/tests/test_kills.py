# SPDX-License-Identifier: Apache-2.0
"""A rank that is killed in the middle of an output step: the others end with an error in bounded
time, and the steps that were finished are in the files."""

from __future__ import annotations

from collections import Counter

import pytest

pytestmark = pytest.mark.any_mpi

RANKS, KILLED_IN = 4, 4
SIZES = ("--files", 3, "--variables", 13, "--nlat", 8, "--steps", 8, "--buffer-kb", 4, "--limit",
    3)
# Messages of two steps may be on their way: one is filled, one is under way.
FINISHED = KILLED_IN - 1


@pytest.fixture
def reference(case, output):
    alone = output("eccodes")
    case("echam", 1, "--writer", "eccodes", "--dir", alone.directory, *SIZES)
    return alone


@pytest.mark.parametrize(("writer", "victim"), [("serial", 0), ("mpi-collective", 1),
    ("mpi-shared", 1), ("offset-sharing", 1), ("offset-guard", 1), ("offset-guard", RANKS - 1),
    ("posix", 1), ("posix", 0), ("direct", 1)])
def test_what_was_finished_is_readable(case, output, reference, writer, victim):
    """The launcher ends the others."""
    found = output(writer)
    done = case.start("echam", RANKS, "--writer", writer, "--dir", found.directory, "--kill",
        victim, "--kill-step", KILLED_IN, *SIZES)
    assert done.returncode not in (0, None)
    whole = reference.files()
    for name, messages in found.files().items():
        assert not Counter(messages) - Counter(whole[name]), "a message that nobody wrote"
        steps = max((one.step for one in messages), default=0)
        # Small messages to a process that writes wait in MPI, of any number of steps, when it is
        # killed or the launcher ends it.
        steps = steps if writer == "posix" else max(steps, FINISHED)
        # A direct writer places a step when the sizes of the next are sent, and waits for its
        # requests one step later.
        complete = min(steps, FINISHED - (writer == "direct"))
        assert Counter(one for one in messages if one.step < complete) == Counter(
            one for one in whole[name] if one.step < complete), name


@pytest.mark.parametrize(("writer", "victim", "more", "awaited"), [
    ("offset-guard", RANKS - 1, (), "the guard's answer did not come within 3 s"),
    ("posix", 0, (), "did not come within 3 s"),
    # One limit in all, not one for each buffer that waits.
    ("posix", 0, ("--files", 30, "--variables", 40, "--nlat", 48), "did not come within 3 s"),
    ("direct", 1, (), "the sizes of another collector did not come within 3 s"),
])  # fmt: skip
def test_those_who_wait_say_so_and_end(case, execute, output, writer, victim, more, awaited):
    """Where the launcher leaves the others alone, what waits for the killed one says so."""
    if case.mpi.name != "openmpi":
        pytest.skip("the launcher of MPICH ends the job whatever its options")
    launcher, *rest = case.mpi.launch(RANKS, case.program("echam"), "--writer", writer, "--dir",
        output(writer).directory, "--kill", victim, "--kill-step", KILLED_IN, *SIZES, *more)
    done = execute([launcher, "--enable-recovery", *rest], env=dict(case.mpi.env), timeout=60)
    said = [line for line in done.stderr.splitlines() if line.startswith("weir-echam: rank ")]
    assert any(awaited in line for line in said), done.stderr
