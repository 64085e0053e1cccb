# SPDX-License-Identifier: Apache-2.0
"""The search of ``weir tune --search``: settings are tried one after the other, and the best one is
repeated in turn with the advised one. It takes the place of that one only when it is proved better.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from weir.advise.frame.facts import Facts
from weir.advise.frame.finding import Advice
from weir.tune.decide import of_kind, spread
from weir.tune.outputs import Difference
from weir.tune.runs import PLAIN, SEARCH, TUNED, Done
from weir.tune.search import (
    AGGREGATORS,
    CONFIRMING,
    OF_THE_LIBRARY,
    Parameter,
    Setting,
    Tried,
    advised,
    best,
    is_better,
    is_better_by_counts,
    parameters,
    propose,
    stack_of,
    value_of,
)
from weir.tune.state import State


class Runner(Protocol):
    """What a search needs of weir tune."""

    state: State
    began: float

    @property
    def facts(self) -> Facts: ...

    @property
    def rules(self) -> list[Advice]: ...

    @property
    def limits(self) -> Limits: ...

    def once(self, kind: str, rules: Sequence[Advice], setting: Setting | None = None) -> None: ...

    def differs(self, tuned: Done) -> list[Difference]: ...


@dataclass(frozen=True)
class Limits:
    """runs, minutes: the budget of the search; vary: values for {NAME} in the command."""

    runs: int
    minutes: float
    vary: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Found:
    """What a search ended with. setting: that is used; is_better: whether it is another one than
    advised; tried: number of settings; base, runs: of the advised setting and of this one."""

    setting: Setting
    is_better: bool
    tried: int
    base: tuple[Done, ...] = ()
    runs: tuple[Done, ...] = ()


class Study:
    """The search of one call of weir tune. All that it knows is in the runs of tune.json."""

    def __init__(self, tuning: Runner) -> None:
        self.tuning = tuning
        self.rules = tuple(tuning.rules)
        self.paths = tuple(one.rule.path for one in self.rules if one.rule is not None)
        self.space = self._space()

    def run(self) -> Found:
        """Within the budget of runs and minutes."""
        while self.space and self._left() > CONFIRMING and self._explore():
            pass
        while not self._noisy() and self._left() > 0 and (one := self._best()) is not None:
            if is_better(one, self._base()) is not None:
                break
            self._repeat(one)
        return self._found()

    def _space(self) -> list[Parameter]:
        facts = self.tuning.facts
        return parameters({one.rule.path: one.rule.stack for one in self.rules
            if one.rule is not None}, facts.has_collectives, facts.ranks,
            self.tuning.limits.vary)

    def _base(self) -> list[Done]:
        """Runs with the advised setting."""
        runs = self.tuning.state.runs
        return of_kind(runs, TUNED, self.paths) if self.paths else of_kind(runs, PLAIN)

    def _left(self) -> int:
        """Runs of the budget of the search that are left."""
        state = self.tuning.state
        begun = [place for place, one in enumerate(state.runs) if one.kind == SEARCH]
        spent = (len(state.runs) - begun[0] if begun else 0) + sum(
            bool(one.setting) for one in state.failures)
        late = time.monotonic() - self.tuning.began >= 60 * self.tuning.limits.minutes
        return 0 if late else self.tuning.limits.runs - spent

    def _tried(self) -> list[Tried]:
        """In the order in which they were first run, the advised one before all."""
        found: dict[tuple[tuple[str, str], ...], Tried] = {}
        first = advised(self.space)
        found[_key(first)] = Tried(first, tuple(self._base()))
        for one in of_kind(self.tuning.state.runs, SEARCH, self.paths):
            before = found.get(_key(one.setting), Tried(one.setting, ()))
            fits = before.fits and not self.tuning.differs(one)
            found[_key(one.setting)] = replace(before, runs=(*before.runs, one), fits=fits)
        for failed in self.tuning.state.failures:
            if failed.setting:
                found[_key(failed.setting)] = Tried(failed.setting, (), False)
        return list(found.values())

    def _noisy(self) -> bool:
        return any(spread(part) is not None
            for part in (of_kind(self.tuning.state.runs, PLAIN), self._base()))

    def _explore(self) -> bool:
        """One more setting; False where all were tried."""
        tried, base, noisy = self._tried(), self._base(), self._noisy()
        setting = propose(self.space, tried, [value_of(one, base, noisy) for one in tried])
        if setting is None:
            return False
        self.tuning.once(SEARCH, self.rules, setting)
        return True

    def _best(self) -> Tried | None:
        return best(self._tried()[1:], self._base(), self._noisy())

    def _repeat(self, one: Tried) -> None:
        """The advised setting and this one in turn."""
        last = self.tuning.state.runs[-1]
        if last.kind == SEARCH and last.setting == one.setting:
            self.tuning.once(TUNED if self.rules else PLAIN, self.rules)
        else:
            self.tuning.once(SEARCH, self.rules, one.setting)

    def _found(self) -> Found:
        one, base, count = self._best(), self._base(), len(self._tried()) - 1
        if one is not None:
            noisy = self._noisy()
            sure = None if noisy else is_better(one, base)
            if sure or sure is None and is_better_by_counts(one, base, noisy):
                return Found(one.setting, True, count, tuple(base), one.runs)
        return Found(advised(self.space), False, count)


def _key(setting: Setting) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(setting.items()))


def with_setting(rules: Iterable[Advice], setting: Setting) -> list[Advice]:
    """The rules with the arguments of a setting."""
    return [one if one.rule is None else replace(one, rule=replace(one.rule,
        stack=stack_of(one.rule.path, one.rule.stack, setting))) for one in rules]


def environment_of(setting: Setting, out: Path) -> dict[str, str]:
    """Variables that make both families of MPI-IO libraries use so many aggregators: ROMIO's file
    of hints, and the parameter of Open MPI's own."""
    count = setting.get(AGGREGATORS, OF_THE_LIBRARY)
    if count == OF_THE_LIBRARY:
        return {}
    path = out / "romio-hints"
    # by itself ROMIO takes one rank of a node, whatever cb_nodes is
    path.write_text(f"cb_nodes {count}\ncb_config_list *:{count}\n", "ascii")
    return {"ROMIO_HINTS": str(path), "OMPI_MCA_io_ompio_num_aggregators": count}


def words_of(setting: Setting, rules: Sequence[Advice]) -> list[str]:
    """What of a setting stands in no rule."""
    mine = {f"{name} of {one.rule.path}" for one in rules if one.rule is not None
        for name in ("bytes", "buffers")}
    return [f"{name}={value}" for name, value in setting.items() if name not in mine]
