# SPDX-License-Identifier: Apache-2.0
"""Which settings of the rules that pay are best: blocks, buffers, aggregators, and what the user
varies in the command. Functions of what was run; Optuna proposes what to run next.

The runs of tune.json are the study: it is made anew from them each time, so that an interrupted
search goes on without a storage of Optuna's.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from weir._errors import InputError, UsageError
from weir.advise.frame.finding import Limit
from weir.tune.decide import FEWER, NOISY, SLOWER, gain_of
from weir.tune.runs import Done

SIZES = ("64KiB", "256KiB", "1MiB", "2MiB", "4MiB", "8MiB", "16MiB")
BUFFERS = ("1", "2", "4", "8", "16")
LAYERS = ("bufa", "global", "gather", "forward")  # whose arguments are a size and a number
AGGREGATORS = "aggregators"
OF_THE_LIBRARY = "default"
CONFIRMING = 4  # runs of a search that are kept to repeat the best setting and the advised one
SURE = Limit("difference of wall times over that with the advised setting, at least", 0.05, "share",
    "repetitions on an idle node differ by 1 to 2 %: less is decided by counts")
_UNFIT = 1e9  # value of a setting under which the command fails or an output differs
_MIB = {"KiB": 1 / 1024, "MiB": 1.0, "GiB": 1024.0}

Setting = Mapping[str, str]


@dataclass(frozen=True)
class Parameter:
    """choices: in order, so that neighbours are alike; advised: what tune has without a search."""

    name: str
    choices: tuple[str, ...]
    advised: str


@dataclass(frozen=True)
class Tried:
    """A setting with its runs; fits: whether the command ended well and its outputs were the
    same."""

    setting: Setting
    runs: tuple[Done, ...]
    fits: bool = True


def parameters(rules: Mapping[str, str], collective: bool, ranks: int,
        vary: Mapping[str, Sequence[str]]) -> list[Parameter]:
    """rules: stacks by path; collective: whether the command uses collective MPI-IO."""
    made = []
    for path, stack in rules.items():
        layer, *arguments = stack.split(":")
        if layer in LAYERS and len(arguments) >= 2 and "|" not in stack:
            made += [_ordered(f"bytes of {path}", SIZES, arguments[0], _mib),
                _ordered(f"buffers of {path}", BUFFERS, arguments[1], int)]
    if collective:
        counts = [str(2**n) for n in range(ranks.bit_length()) if 2**n <= ranks]
        made.append(Parameter(AGGREGATORS, (OF_THE_LIBRARY, *counts), OF_THE_LIBRARY))
    return made + [Parameter(name, tuple(values), values[0]) for name, values in vary.items()]


def _ordered(name: str, choices: Sequence[str], advised: str,
        key: Callable[[str], float]) -> Parameter:
    return Parameter(name, tuple(sorted({*choices, advised}, key=key)), advised)


def _mib(size: str) -> float:
    return float(size[:-3]) * _MIB[size[-3:]]


def advised(space: Sequence[Parameter]) -> dict[str, str]:
    return {one.name: one.advised for one in space}


def stack_of(path: str, stack: str, setting: Setting) -> str:
    """The stack of a rule with the values of a setting."""
    layer, *arguments = stack.split(":")
    for place, name in enumerate(("bytes", "buffers")):
        if (value := setting.get(f"{name} of {path}")) is not None:
            arguments[place] = value
    return ":".join([layer, *arguments])


def command_of(command: Sequence[str], setting: Setting, vary: Sequence[str]) -> list[str]:
    """{NAME} in the words of a command replaced by the value of what the user varies."""
    made = list(command)
    for name in vary:
        made = [word.replace(f"{{{name}}}", setting.get(name, "")) for word in made]
    return made


def parse_vary(texts: Sequence[str], command: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """NAME=A,B,C by name. Raises UsageError."""
    made = {}
    for text in texts:
        name, _, values = text.partition("=")
        choices = tuple(values.split(","))
        if not name.isidentifier() or len(choices) < 2 or not all(choices):
            raise UsageError(f"--vary {text}: expected NAME=A,B,... with two values or more")
        if not any(f"{{{name}}}" in word for word in command):
            raise UsageError(f"--vary {text}: the command has no {{{name}}} that the value could "
                             f"take the place of")
        made[name] = choices
    return made


def value_of(one: Tried, base: Sequence[Done], noisy: bool) -> float:
    """What the search makes small: requests, and wall time where it differs by more than runs do,
    both over those of the advised setting; requests alone on a noisy machine."""
    if not one.fits or not one.runs:
        return _UNFIT
    value = requests_of(one.runs) / max(requests_of(base), 1)
    if not noisy:
        wall = wall_of(one.runs) / max(wall_of(base), 1e-9)
        value += wall if max(wall, 1 / wall) > NOISY.value else 1.0
    return value


def requests_of(runs: Sequence[Done]) -> int:
    """Of files under rules; of all files without rules."""
    return int(statistics.median(sum(one.figures.by_rule[rule].requests for rule in one.rules)
        if one.rules else one.figures.requests for one in runs))


def wall_of(runs: Sequence[Done]) -> float:
    return statistics.median(one.figures.wall_s for one in runs)


def propose(space: Sequence[Parameter], tried: Sequence[Tried],
        values: Sequence[float]) -> dict[str, str] | None:
    """What to run next: of the tree-structured Parzen estimator, or what is left; None where all
    was tried. The same runs give the same proposal. Raises InputError without Optuna."""
    known = [dict(one.setting) for one in tried]
    if len(known) >= math.prod(len(one.choices) for one in space):
        return None
    for setting in itertools.chain(_asked(space, tried, values), _all(space)):
        if setting not in known:
            return setting
    return None


def _asked(space: Sequence[Parameter], tried: Sequence[Tried],
        values: Sequence[float]) -> Iterator[dict[str, str]]:
    optuna = _optuna()
    ranges = {one.name: optuna.distributions.IntDistribution(0, len(one.choices) - 1)
        for one in space}
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=len(tried),
        n_startup_trials=min(5, 2 * len(space))))
    for one, value in zip(tried, values):
        study.add_trial(optuna.trial.create_trial(value=value, distributions=ranges,
            params={p.name: p.choices.index(one.setting[p.name]) for p in space}))
    for _ in range(20):
        found = study.ask(ranges).params
        yield {one.name: one.choices[found[one.name]] for one in space}


def _all(space: Sequence[Parameter]) -> Iterator[dict[str, str]]:
    for values in itertools.product(*(one.choices for one in space)):
        yield {one.name: value for one, value in zip(space, values)}


def _optuna():  # type: ignore[no-untyped-def]
    try:
        import optuna
    except ImportError as error:
        raise InputError("--search needs Optuna: pip install 'weir-io[search]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def best(tried: Sequence[Tried], base: Sequence[Done], noisy: bool) -> Tried | None:
    """The setting to repeat beside the advised one: of least value. Those of more requests that
    take no less time are pruned, as no repetition would prove them."""
    limit = 1.0 if noisy else 2.0  # value of the advised one
    candidates = [(value_of(one, base, noisy), place) for place, one in enumerate(tried)]
    found = min((one for one in candidates if one[0] < limit), default=None)
    return None if found is None else tried[found[1]]


def is_better(one: Tried, base: Sequence[Done]) -> bool | None:
    """Than the advised setting, by times: None where their interval has zero in it, which more runs
    may change. The run that it was chosen by is left out: of many settings that are alike one is
    fastest by chance."""
    gain = gain_of(base, one.runs[1:])
    if gain is not None and gain.is_sure and abs(gain.middle) >= SURE.value * wall_of(base):
        return gain.middle > 0
    return None


def is_better_by_counts(one: Tried, base: Sequence[Done], noisy: bool) -> bool:
    """At the end of the budget; on a noisy machine whatever the times are."""
    fewer = requests_of(one.runs) <= FEWER.value * requests_of(base)
    return fewer and (noisy or wall_of(one.runs) < SLOWER.value * wall_of(base))
