# SPDX-License-Identifier: Apache-2.0
"""What was found, for the terminal, as JSON, and as a file of rules."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from weir.advise.advise import LEAST, SHARE, Report, Rest
from weir.advise.costs import change_of, delay_text, operations_text
from weir.advise.frame.finding import NOT_RUNNING, PARTS, Advice, Limit
from weir.advise.findings.registry import BY_NAME
from weir.advise.frame.saving import Range
from weir.advise.probes import basis_json, basis_texts
from weir.analysis.names import escaped, toml_string
from weir.report.frame.amounts import counted, number, plain, seconds, share
from weir.report.frame.programs import one_of, plural
from weir.report.notes import LEFT_OUT, notes, notes_of_killed
from weir.report.processes.compute import is_complete
from weir.report.wall.compute import PARTS as WALL_PARTS
from weir.report.wall.compute import wall_time_of

NOTHING_FOUND = "nothing worth changing"
NO_FINDING = "No finding: no rule of weir shortens this run, {delay}."
NOT_KNOWN = "No finding in the part of the run that the trace has."
NOT_RECORDED = ("No finding: level summary does not record which files the calls are on. Trace "
    "again with --level trace.")
STANDS_OUT = Limit("what the largest finding saves over the wall time of the run, less than",
    0.1, "share", "chosen: below a tenth nobody finds the run fast when one cause is gone")
SEVERAL = Limit("findings, and other files with much I/O time, together", 3, "costs",
    "chosen: of two both are read")
_INDENT = "     "


def range_text(range_: Range) -> str:
    """`1.2 s to 3.4 s`"""
    low, high = ("0\u00a0s" if s < 1e-6 else seconds(s) for s in (range_.low, range_.high))
    return f"{low} to {high}"


def change_text(saved_s: float) -> str:
    """What a run gained or lost: `2.7 s longer`; a sign is overlooked."""
    return f"{seconds(abs(saved_s))} {'longer' if saved_s < 0 else 'shorter'}"


def expectation(one: Advice) -> str:
    """What its cure saves, as far as it is known: equal ranges once, as in a serial program."""
    saving, ranges = one.saving, {}
    for range_, of in ((saving.critical, "the run"), (saving.active, "active time"),
            (saving.io, "I/O of all ranks")):
        if range_ is not None and (range_.high or range_ is saving.critical):
            ranges.setdefault(range_text(range_), of)
    parts = [f"{text} of {of}" for text, of in ranges.items()]
    parts[:1] = [part + _decided(one) for part in parts[:1]]
    if saving.requests:
        parts.append(f"about {counted(saving.requests, 'request')}")
    return "; ".join(parts)


def _decided(one: Advice) -> str:
    """What it depends on that its cure saves anything; nothing where it does in any case."""
    saving = one.saving
    may_be_none = range_text(saving.critical or saving.active or saving.io).startswith("0\u00a0s")
    return f", depending on {BY_NAME[one.finding].decides}" if may_be_none else ""


def worth(one: Advice) -> str:
    """What findings are ranked by, as far as it is known."""
    saving = one.saving
    of = "of the run" if saving.critical is not None else "of active time" \
        if saving.active is not None else "of I/O of all ranks"
    return f"{range_text(saving.critical or saving.active or saving.io)} {of}"


def finding_line(one: Advice) -> str:
    """What costs and what a cure would save, in two sentences."""
    cure = f"Layer {BY_NAME[one.finding].cure}" if one.rule is not None else "A change of the model"
    return f"{one.finding}: {one.what}: {one.sentence} {cure} would save {worth(one)}" \
        f"{_decided(one)}."


def headline(report: Report) -> str:
    """Whether one cause stands out, or many small ones add up."""
    if not report.advices:
        return _without_findings(report)
    saving = report.advices[0].saving
    whole, of = _whole(report, saving.critical is not None, saving.active is not None)
    count = len(report.advices) + len(report.rest)
    if saving.worth < STANDS_OUT.value * whole and count >= SEVERAL.value:
        return (f"No smoking gun, {counted(count, 'cost')} of which none stands out: the "
            f"largest is worth {share(saving.worth, whole)} of {of}, all findings together "
            f"{share(report.together_s, whole)}.")
    return (f"{counted(len(report.advices), 'finding')}; the first is worth "
        f"{share(saving.worth, whole)} of {of}.")


def _whole(report: Report, is_critical: bool, is_active: bool = False) -> tuple[float, str]:
    """What seconds are a part of: where it is not known what delays the run, I/O of all ranks is no
    part of its wall time."""
    if is_critical:
        return report.facts.wall_s, "the run"
    if is_active:
        return report.facts.wall_s, "the wall time at most"
    return report.facts.report.all.seconds, "the I/O of all ranks"


def wall_line(report: Report) -> str:
    """What a rank does in the wall time, where it is known: each finding says which part of it its
    cure shrinks. Shares of the wall time, as in the table of steps, not of the rank's own life."""
    steps = report.facts.report.steps
    every = [wall_time_of(step) for step in steps]
    known = [one for one in every if one is not None]
    whole = sum(len(one.begin_ns) * step.wall_ns for step, one in zip(steps, known))
    if not whole or len(known) < len(every):
        return ""
    sums = {word: sum(int(getattr(one.of_ranks, key).sum()) for one in known)
        for word, key in zip(PARTS, WALL_PARTS)}
    word = one_of(report.facts.report)
    if word != "rank":
        sums = {part: sums[part] for part in PARTS if part in ("computing", "I/O")}
    sums[NOT_RUNNING] = max(0, whole - sum(sums.values()))
    count = max(len(one.begin_ns) for one in known)
    mean = f", mean of {number(count)} {plural(word)}" if count > 1 else ""
    return f"shares of the wall time{mean}: " + ", ".join(f"{part} {share(ns, whole)}"
        for part, ns in sums.items())


def lines_of(report: Report, width: int) -> Iterator[str]:
    """The answer, one screen of it for a usual run."""
    facts = report.facts
    for note in _notes(report):
        yield from _wrapped(f"note: {note}", width, "")
    yield plain(f"{facts.report.path}: wall time {seconds(facts.wall_s)}, "
        f"I/O of all {plural(one_of(facts.report))} {seconds(facts.report.all.seconds)}")
    if parts := wall_line(report):
        yield from _wrapped(parts, width, "")
    yield ""
    yield from _wrapped(headline(report), width, "")
    for place, one in enumerate(report.advices, 1):
        yield ""
        yield f"{place:>3}. {one.finding}: {one.what}"
        yield from _wrapped(one.sentence, width)
        yield from _wrapped(f"would save: {expectation(one)} (reduces the share of "
                            f"{BY_NAME[one.finding].shrinks})", width)
        yield from _rule_lines(one, width)
        yield from _wrapped(f"model: {one.change}", width)
    yield from _rest_lines(report, width)
    if report.rules:
        yield ""
        yield from _wrapped(f"weir run applies rules without recompiling; all together save "
            f"{range_text(report.expected)}. Write them: weir advise {facts.report.path} --write "
            f"rules.toml; test whether they pay: weir tune -o OUT -- COMMAND", width, "")
    if any(one.saving.active is not None for one in report.advices):
        yield ""
        yield f"active time: at least one {one_of(facts.report)} is in I/O"
    for text in basis_texts(facts, report.advices):
        yield ""
        yield from _wrapped(text, width, "")


def _without_findings(report: Report) -> str:
    if not is_complete(report.facts.report):
        return NOT_KNOWN
    if any(step.level == "summary" for step in report.facts.report.steps):
        return NOT_RECORDED
    return no_finding_text(report) if report.rest else nothing_text(report)


def no_finding_text(report: Report) -> str:
    """That files cost much and no rule helps."""
    return NO_FINDING.format(delay=delay_text(report))


def nothing_text(report: Report) -> str:
    """That nothing is worth changing, with what was seen and what is the least that would be."""
    made, wall_s = report.facts.report, report.facts.wall_s
    whole = made.all
    if not whole.calls:
        return f"{NOTHING_FOUND.capitalize()}: no I/O call on a file was seen."
    least = max(SHARE.value * wall_s, LEAST.value)
    which = f"{share(SHARE.value, 1)} of the wall time" if least > LEAST.value \
        else "the least that is reported"
    return (f"{NOTHING_FOUND.capitalize()}: {counted(whole.calls, 'I/O call')} took "
        f"{seconds(whole.seconds)} ({seconds(whole.seconds / whole.calls)} each) in "
        f"{seconds(wall_s)} of wall time, and no file, nor all files alike in name together, "
        f"delays the run by {seconds(least)} ({which}).")


def _notes(report: Report) -> Iterator[str]:
    made = report.facts.report
    if any(step.level != "trace" for step in made.steps):
        yield ("not all steps are recorded at level trace: sizes and order of calls are not known, "
               "and findings about them are missing")
    killed = [note for step in made.steps for note in notes_of_killed(step)]
    if is_complete(made):
        yield from killed
    else:
        yield from (note for note in notes(made) if not note.startswith(LEFT_OUT))
        yield "findings and savings are those of the part of the run that the trace has"


def _rule_lines(one: Advice, width: int) -> Iterator[str]:
    if one.rule is None:
        return
    text = f"rule: {one.rule.stack}"
    if one.rule.unusable:
        text += f" (not used: {one.rule.unusable})"
    elif one.rule.caution:
        text += f" (caution: {one.rule.caution})"
    yield from _wrapped(text, width)


def _rest_lines(report: Report, width: int) -> Iterator[str]:
    if not report.rest:
        return
    yield ""
    which = "Other files" if report.advices else "Files"
    yield f"{which} with much I/O time, the most that any change could save:"
    for one in report.rest:
        yield from _wrapped(f"- {rest_text(report, one)}", width, "  ")
        yield from _wrapped(f"would help: {change_of(report, one)}", width, "    ")


def rest_text(report: Report, one: Rest) -> str:
    cost = one.io_s if one.critical_s is None else one.critical_s
    whole, of = _whole(report, one.critical_s is not None)
    made = operations_text(report, one)
    return (f"{seconds(cost)} of {of} ({share(cost, whole)}): {one.group.name}, "
        f"{counted(one.group.calls, 'call')}{f' ({made})' if made else ''}")


def _wrapped(text: str, width: int, indent: str = _INDENT) -> list[str]:
    """Lines that part no number from its unit."""
    lines = textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent + "  ",
        break_on_hyphens=False, break_long_words=False)
    return [plain(line) for line in lines]


def as_json(report: Report) -> dict[str, Any]:
    """A stable interface: keys are only ever added."""
    facts = report.facts
    return {
        "format": 1,
        "run": facts.report.path,
        "wall_s": facts.wall_s,
        "complete": is_complete(facts.report),
        "notes": list(_notes(report)),
        "findings": [advice_json(one) for one in report.advices],
        "rest": [{"files": one.group.name, "io_s": one.io_s, "critical_s": one.critical_s,
            "operations": operations_text(report, one), "change": change_of(report, one)}
            for one in report.rest],
        "rules": [{"path": one.rule.path, "stack": one.rule.stack} for one in report.rules
            if one.rule is not None],
        "expected_s": asdict(report.expected),
        "rates": basis_json(facts, report.advices),
    }  # fmt: skip


def advice_json(one: Advice) -> dict[str, Any]:
    return {
        "name": one.finding, "finding": one.finding, "what": one.what,
        "sentence": plain(one.sentence),
        "shrinks": BY_NAME[one.finding].shrinks, "page": BY_NAME[one.finding].page,
        "saving": asdict(one.saving), "change": one.change,
        "rule": None if one.rule is None else asdict(one.rule), "files": len(one.paths),
        "paths": list(one.paths[:20]),
    }  # fmt: skip


def rules_text(report: Report, command: str = "weir advise --write") -> str:
    """A file of rules, with the finding and the expected saving of each; those that cannot be used
    stand as comments."""
    lines = [f"# Rules for {escaped(report.facts.report.path)}, by `{command}`."]
    if report.rules:
        lines.append(plain(f"# All together are expected to save {range_text(report.expected)}."))
    lines.append("")
    for one in report.rules:
        lines += rule_lines(one)
    unused = [one for one in report.advices if one.rule is not None and one.rule.unusable]
    for one in unused:
        lines += rule_lines(one)
    if not report.rules and not unused:
        lines.append("# No finding of this run has a rule.")
    return "\n".join(lines).rstrip() + "\n"


def rule_lines(one: Advice, remarks: Sequence[str] = ()) -> list[str]:
    """A rule with its reasons, and an empty line."""
    rule = one.rule
    if rule is None:
        return []
    said = [f"{one.finding}: {one.sentence}", f"expected to save: {expectation(one)}", *remarks]
    said += [f"caution: {rule.caution}"] if rule.caution else []
    said += [f"not used: {rule.unusable}"] if rule.unusable else []
    lines = [f"# {line}" for text in said
        for line in textwrap.wrap(escaped(plain(text)), 96, break_on_hyphens=False)]
    body = ["[[rule]]", f"path = {toml_string(rule.path)}", f"stack = {toml_string(rule.stack)}"]
    return [*lines, *(f"# {line}" if rule.unusable else line for line in body), ""]
