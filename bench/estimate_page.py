# SPDX-License-Identifier: Apache-2.0
"""The page of bench/estimates.py: all rules that were tried, good or bad, and the runs as a whole.
"""

from __future__ import annotations

import re
import statistics
import textwrap
from collections.abc import Sequence
from typing import TypeVar

from estimate_cases import ROUNDS
from estimate_notes import (AFTER, FITTED_NOTES, HELD_OUT_NOTES, HELD_OUT_ROUNDS, INTRO,
    WALL_TIMES)
from estimate_rows import Failed, Labels, Results, Row, Whole

_IDENTICAL = re.compile(r"identical( but for [0-9,]+)?")  # of the sentence of weir tune
_Of = TypeVar("_Of", bound=Labels)


def page_text(found: Results) -> str:
    """In Markdown. The newest round is the first."""
    newest_first = list(reversed(ROUNDS))
    scores = [f"{name} round: {_score(_of(found.rows, name))}" for name in newest_first]
    walls = [_wall_score(name, _of(found.wholes, name)) for name in (*newest_first, "")]
    lines = [
        "# What weir advise expects, and what came of it", "",
        "<!-- made by bench/estimates.py --page from figures of --json -->", "",
        *_wrapped([INTRO, HELD_OUT_ROUNDS.format(scores="; ".join(scores)), WALL_TIMES]),
        "| cases | of wall times of runs | median width of the range | of delays by I/O |",
        "|---|---|--:|---|", *walls, "",
    ]  # fmt: skip
    for name in newest_first:
        lines += [f"## Held-out cases, {name} round", "", *_wrapped(HELD_OUT_NOTES.get(name, ())),
            *_tables(found, name), ""]
        lines += _wrapped(AFTER.get(name, ()))
    lines += ["## Cases that the model was fitted to", "",
        *_wrapped([f"In the table: {_score(_of(found.rows, ''))}.", *FITTED_NOTES]),
        *_tables(found, "")]
    return "\n".join(lines).rstrip("\n") + "\n"


def _of(every: Sequence[_Of], name: str) -> list[_Of]:
    """Those of a round."""
    return [one for one in every if one.round == name]


def _score(rows: Sequence[Row]) -> str:
    within = sum(one.is_within for one in rows)
    return (f"{within} of {len(rows)} rules in range ({100 * within // max(1, len(rows))} %), "
        f"median width {_width(rows)}")


def _width(ranges: Sequence[Row] | Sequence[Whole]) -> str:
    return f"{statistics.median(one.width for one in ranges):.2f}" if ranges else "-"


def _wall_score(name: str, wholes: Sequence[Whole]) -> str:
    tuned = [one for one in wholes if one.tuned_s is not None]
    counts = [sum(one.verdict == word for one in tuned) for word in ("within", "unsure", "outside")]
    known = [one for one in tuned if one.delay_saved_s is not None]
    delays = f"{sum(one.is_delay_within for one in known)} of {len(known)} within" if known else "-"
    return (f"| {f'{name} round' if name else 'fitted'} | {counts[0]} of {len(tuned)} within, "
        f"{counts[1]} unsure, {counts[2]} outside | {_width(tuned)} | {delays} |")


def _tables(found: Results, name: str) -> list[str]:
    failed = _of(found.failures, name)
    return [*_rule_lines(_of(found.rows, name)), "", *_whole_lines(_of(found.wholes, name)),
        *(["", *map(_failed_line, failed)] if failed else [])]


def _failed_line(one: Failed) -> str:
    text = f"- {one.case} on {one.place} has no figures: {' '.join(one.why.split())}"
    return "\n".join(textwrap.wrap(text, 100, subsequent_indent="  ", break_on_hyphens=False,
        break_long_words=False))


def _wrapped(paragraphs: Sequence[str]) -> list[str]:
    return [line for text in paragraphs for line in [*textwrap.wrap(text, 100,
        break_on_hyphens=False, break_long_words=False), ""]]


def _rule_lines(rows: Sequence[Row]) -> list[str]:
    return [
        "| case | on | finding | rule | expected, s | width | obtained, s | in range | requests | "
        "rule was |",
        "|---|---|---|---|--:|--:|--:|---|--:|---|",
        *(f"| {one.case} | {one.place} | {one.finding} | `{one.stack.partition(':tier=')[0]}` | "
          f"{one.low:.3f} to {one.high:.3f} | {one.width:.2f} | {one.obtained:.3f} | "
          f"{'yes' if one.is_within else 'no'} | "
          f"{one.requests_before:,} to {one.requests_after:,} | "
          f"{'kept' if one.kept else 'dropped'} |" for one in rows),
    ]  # fmt: skip


def _whole_lines(wholes: Sequence[Whole]) -> list[str]:
    return ["| case | on | load | plain | with rules | expected | saved (90 %) | range | of "
        "delay | range | outputs | found |",
        "|---|---|--:|--:|--:|--:|--:|---|--:|---|---|---|", *map(_whole_line, wholes)]


def _whole_line(one: Whole) -> str:
    cells = ["-"] * 6 + ["no rule shortens it" if one.sentence.startswith("No finding")
        else "nothing worth changing"]
    if one.tuned_s is not None and one.saved_s is not None:
        between = "" if one.gain_low is None or one.gain_high is None else (
            f" ({one.gain_low:.2f} to {one.gain_high:.2f})")
        delay, is_within = "-", "-"
        if one.delay_saved_s is not None:
            delay = f"{one.delay_saved_s:.2f}"
            is_within = "within" if one.is_delay_within else "outside"
        cells = [f"{one.tuned_s:.2f}", f"{one.low:.2f} to {one.high:.2f}",
            f"{one.saved_s:.2f}{between}", one.verdict, delay, is_within,
            found[0] if (found := _IDENTICAL.search(one.sentence)) else one.sentence]
    load = "-" if one.load is None else f"{one.load:.0f}"
    return (f"| {one.case} | {one.place} | {load} | {one.plain_s:.2f} | {' | '.join(cells)} | "
        f"{', '.join(one.findings) or '-'} |")
