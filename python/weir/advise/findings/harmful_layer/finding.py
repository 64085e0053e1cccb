# SPDX-License-Identifier: Apache-2.0
"""Finding harmful-layer: files have a layer that makes more requests than the program does, or that
bypasses them."""

from __future__ import annotations

from collections.abc import Iterator

from weir.advise.frame.facts import Facts, File
from weir.advise.frame.finding import Advice, Finding
from weir.advise.frame.saving import NOTHING, Range
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import counted, number, seconds
from weir.report.layers.compute import LayeredFile, layers_of

MORE = Limit("requests below the layers over those of the program", 1.1, "times",
    "a tenth: each layer may query the size of a file that it opens")
SLOWER = Limit("time of the program's calls over that of the requests below the layers",
    1.5, "times",
    "chosen: a third of the time of the calls is the layer's own")
FEWER = Limit("requests below the layers over those of the program, where it takes longer",
    0.9, "times",
    "a layer that merges hardly any request has nothing to save")
MANY = Limit("requests of the program", 100, "requests",
    "chosen: of fewer, those at the open are a part")


def _own_s(one: LayeredFile) -> float:
    """Time in the layers themselves, where they merge nothing."""
    below = one.system
    if below is None or not below.ns or below.count < FEWER.value * one.logical.count:
        return 0.0
    return (one.logical.ns - below.ns) / 1e9 if one.logical.ns >= SLOWER.value * below.ns else 0.0


def _made_by_layers(one: LayeredFile) -> int:
    """Requests below the layers, without calls that went past them."""
    return one.system.count - one.past.count if one.system is not None else 0


def _why(one: LayeredFile) -> str:
    asked = one.logical.count
    if asked >= MANY.value and (own_s := _own_s(one)) and one.system is not None:
        return (f"the layers merge {number(asked)} calls to {number(one.system.count)} requests, and "
            f"take {seconds(own_s)} themselves")
    made = _made_by_layers(one)
    if asked >= MANY.value and made >= MORE.value * asked:
        return f"{number(made)} requests below the layers for {number(asked)} calls"
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
        extra = max(0, _made_by_layers(one) - asked)
        share = extra / (asked + extra) if asked + extra else 0.0
        own_s = _own_s(one)
        range_ = Range(0.0, share * file.ns / 1e9) if extra else NOTHING
        range_ += Range(0.5 * own_s, own_s)
        yield Advice("harmful-layer", facts.shown(one.file), (one.file,), f"{why}.",
            facts.saving([(file, range_)], extra),
            f"Drop the rule of {one.file} from the file of rules (or its environment variable), or "
            "give the file another layer.")


HARMFUL_LAYER = Finding(
    name="harmful-layer",
    asks="Does a layer cost more than it saves, or bypass the file that it was given?",
    shrinks="I/O",
    limits=(MORE, SLOWER, FEWER, MANY),
    page="guide/rules.md",
    table="layers",
    cure="",
    find=find,
)
