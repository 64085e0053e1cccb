# SPDX-License-Identifier: Apache-2.0
"""Finding harmful-layer: files have a layer that makes more requests than the program does, or that
bypasses them."""

from __future__ import annotations

from collections.abc import Iterator

from weir.advise.frame.facts import Facts, File
from weir.advise.frame.finding import Advice, Finding
from weir.advise.frame.saving import NOTHING, Range
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import counted, number
from weir.report.layers.compute import LayeredFile, layers_of

MORE = Limit("requests below the layers over those of the program", 1.1,
    "a tenth: each layer may ask for the size of a file that it opens")
MANY = Limit("requests of the program", 100, "chosen: of fewer, those at the open are a part")


def _why(one: LayeredFile) -> str:
    asked = one.logical.count
    if one.system is not None and asked >= MANY.value and one.system.count >= MORE.value * asked:
        return f"{number(one.system.count)} requests below the layers for {number(asked)} calls"
    past = [bypass for bypass in one.bypassed if bypass.layer not in ("event", "system")]
    if past and asked >= MANY.value:
        most = max(past, key=lambda bypass: bypass.times)
        return f"layer {most.layer} bypassed it {counted(most.times, 'time')}: {most.reason}"
    return ""


def find(facts: Facts) -> Iterator[Advice]:
    for one in layers_of(facts.report):
        why = _why(one)
        if not why:
            continue
        file = facts.files.get(one.file, File(one.file))
        asked = one.logical.count
        extra = max(0, one.system.count - asked) if one.system is not None else 0
        share = extra / (asked + extra) if asked + extra else 0.0
        range_ = Range(0.0, share * file.ns / 1e9) if extra else NOTHING
        yield Advice("harmful-layer", facts.shown(one.file), (one.file,), f"{why}.",
            facts.saving([(file, range_)], extra),
            "Take the file out of the rule, or give it another layer.")


HARMFUL_LAYER = Finding(
    name="harmful-layer",
    asks="Does a layer cost more than it saves, or bypass the file that it was given?",
    shrinks="I/O",
    limits=(MORE, MANY),
    page="guide/rules.md",
    table="layers",
    cure="",
    find=find,
)
