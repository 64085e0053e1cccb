# SPDX-License-Identifier: Apache-2.0
"""Generated sequences of POSIX and stdio calls give the same results, errnos and files with layers
as without.

`--operations 1000000` plays more of them, `--seed N` others. A difference is shortened and printed
as a script for tests/properties/replay; those found once lie in regressions/ and are played first.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from generate import FLAVOURS, script
from model import count, lines
from play import read_script, shorten, valid
from stacks import ALONE, FLAVOURS_OF, STACKS, TRACED, leaves_out

HERE = Path(__file__).parent
CASES = [(stack, flavour) for stack in STACKS for flavour in FLAVOURS_OF.get(stack, FLAVOURS)]
LENGTH = 250


@pytest.fixture
def chosen(request, stack):
    return request.getfixturevalue("traced_stage" if stack in TRACED else "stage")


@pytest.mark.parametrize(("stack", "flavour"), CASES)
def test_generated_sequences(stack, flavour, chosen, request):
    seed, wanted = request.config.getoption("--seed"), request.config.getoption(
        "--operations") // len(CASES)
    print(f"seed {seed}")
    played = turn = 0
    while played < wanted:
        made = script(random.Random(f"{seed} {flavour} {turn} {stack}"), flavour,
            min(LENGTH, wanted), stack)
        difference = chosen.difference(made, STACKS[stack])
        if difference is not None:
            report(chosen, made, stack, f"seed {seed}, {flavour}, script {turn}", difference)
        played, turn = played + count(made), turn + 1
    print(f"{played} operations in {turn} scripts")


def report(stage, made, stack, origin, difference):
    whole = stage.directory / "differs.script"
    whole.write_text("\n".join([f"# stack {stack}; {origin}", *lines(made), ""]))
    short = shorten(made, lambda candidate: stage.difference(candidate, STACKS[stack]) is not None,
        stack in ALONE)
    again = stage.difference(short, STACKS[stack])
    text = "\n".join([f"# stack {stack}; {origin}", *lines(short if again else made)])
    pytest.fail(f"{again or difference}\n{text}\nThe whole script: {whole}\n", pytrace=False)


def known():
    """Stacks and scripts that differed once, but for those with operations that the stack leaves
    out."""
    for path in sorted((HERE / "regressions").glob("*.script")):
        made = read_script(path.read_text())
        for stack in STACKS:
            fits = stack not in ALONE or lines(valid(made, alone=True)) == lines(made)
            if fits and not any(leaves_out(stack, operation) for operation in made):
                yield pytest.param(stack, made, id=f"{stack}-{path.stem}")


@pytest.mark.parametrize(("stack", "made"), list(known()))
def test_sequences_that_differed_once(stack, made, chosen):
    assert chosen.difference(made, STACKS[stack]) is None


def test_a_difference_is_seen_and_shortened(stage):
    """Layers that refuse: the first operation that comes out otherwise is found, and little else is
    left of the script."""
    made = script(random.Random("refused"), "posix", 60)
    refusing = "error:op=write:errno=ENOSPC:rate=1|system"
    assert "ENOSPC" in stage.difference(made, refusing)
    short = shorten(made, lambda candidate: stage.difference(candidate, refusing) is not None)
    assert count(short) <= 3 and any("write" in line for line in lines(short))


def test_a_script_reads_back_as_it_was_written():
    for flavour in FLAVOURS:
        made = script(random.Random(f"read back {flavour}"), flavour, 300)
        text = lines(made)
        extended = [line for line in lines(read_script("\n".join(text)))]
        assert [line for line in extended if line in text] == extended and len(extended) >= len(
            text)
