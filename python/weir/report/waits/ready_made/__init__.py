# SPDX-License-Identifier: Apache-2.0
"""Rules of phases that come with weir: a file for each model, chosen by the names of its files."""

from __future__ import annotations

import os
import re
from fnmatch import translate
from functools import cache
from importlib.resources import files

import numpy as np

from weir.analysis.names import NO_NAME, NameTable
from weir.analysis.step import StepData
from weir.report.waits.phase_rules import PhaseRule, read_phase_rules
from weir.trace.ops import op_named

MODELS = ("wrf", "cm1", "mpas", "icon", "nemo")


def path_of(model: str) -> str:
    """The file with the rules of one of MODELS, to use or to copy."""
    return str(files("weir.report.waits.ready_made").joinpath(f"{model}.toml"))


@cache
def rules_of(model: str) -> tuple[PhaseRule, ...]:
    """The rules of one of MODELS."""
    return read_phase_rules(path_of(model))


def written_by(model: str) -> list[PhaseRule]:
    """The rules of what a model writes: a tool that makes its input is not the model."""
    return [rule for rule in rules_of(model) if rule.phase.startswith("write")]


def named_rules(name: str) -> tuple[PhaseRule, ...]:
    """The rules of a file, or of one of MODELS where no such file is. Raises as read_phase_rules.
    """
    is_model = name in MODELS and not os.path.exists(name)
    return rules_of(name) if is_model else read_phase_rules(name)


def fitting_rules(data: StepData, names: NameTable) -> tuple[PhaseRule, ...]:
    """The rules of the model that wrote most files whose names fit what it writes; none where the
    program has marks of its own."""
    columns = data.sums.by_file
    if (columns.op == op_named("phase_begin").value).any():
        return ()
    written = columns.where((columns.moved > 0) & columns.by_code("W") & columns.is_file)
    paths = [names[n] for n in np.unique(written.name[written.name != NO_NAME]).tolist()]
    paths = [path for path in paths if _may_fit(path)]
    if not paths:
        return ()
    bases = list(map(os.path.basename, paths))
    fits = {model: _fitting(written_by(model), paths, bases) for model in MODELS}
    most = max(fits, key=lambda model: fits[model])
    return rules_of(most) if fits[most] else ()


@cache
def _expressions() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What the rules of any model fit: paths, and their last components."""
    rules = [rule for model in MODELS for rule in written_by(model)]
    kinds = ([rule.path for rule in rules if rule.name is None], [rule.name for rule in rules])
    paths, bases = (re.compile("|".join(translate(one) for one in kind if one) or r"(?!)")
        for kind in kinds)
    return paths, bases


def _may_fit(path: str) -> bool:
    """Whether a rule of any model fits: most files of a run are no model's."""
    paths, bases = _expressions()
    return bases.match(os.path.basename(path)) is not None or paths.match(path) is not None


def _fitting(rules: list[PhaseRule], paths: list[str], bases: list[str]) -> int:
    """How many of some paths a rule fits (PhaseRule.fits); bases: their last components."""
    found: set[int] = set()
    for rule in rules:
        texts, pattern = (paths, rule.path) if rule.name is None else (bases, rule.name)
        if pattern is not None:
            fits = re.compile(translate(pattern)).match
            found.update(at for at, text in enumerate(texts) if fits(text))
    return len(found)
