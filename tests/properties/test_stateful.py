# SPDX-License-Identifier: Apache-2.0
"""The same as a state machine of hypothesis, which shortens a difference to the calls that make it.
"""

from __future__ import annotations

import random

import pytest
from generate import FLAVOURS, Draw
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from model import Model, lines
from stacks import STACKS

EXAMPLES, STEPS = 12, 40


def machine(stage, stack: str, flavour: str):
    kinds = FLAVOURS[flavour].operations

    class Calls(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.model, self.script = Model(), []

        @rule(name=st.sampled_from(sorted(kinds)), luck=st.integers(0, 2**16))
        def call(self, name, luck):
            draw = Draw(random.Random(luck))
            draw.process = self.model.processes[0]
            operation = (name, *kinds[name][1](draw))
            if self.model.apply(operation):
                self.script.append(operation)

        def teardown(self):
            difference = stage.difference(self.script, stack)
            assert difference is None, "\n".join([difference, *lines(self.script)])

    return Calls


@pytest.mark.parametrize("flavour", ["posix", "stdio", "mixed", "logs"])
@pytest.mark.parametrize("stack", ["bufa-small", "global", "gather", "keep"])
def test_any_sequence_of_calls(stack, flavour, stage):
    print("hypothesis derandomized")
    chosen = settings(
        max_examples=EXAMPLES, stateful_step_count=STEPS, derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    run_state_machine_as_test(machine(stage, STACKS[stack], flavour), settings=chosen)
