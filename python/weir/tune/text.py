# SPDX-License-Identifier: Apache-2.0
"""What tune ends with: a file of rules, a report in Markdown, a sentence."""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from weir.advise.costs import change_of, waits_for_io
from weir.advise.text import (
    NOTHING_FOUND, change_text, no_finding_text, nothing_text, range_text, rest_text, rule_lines
)  # fmt: skip
from weir.advise.frame.facts import TIER
from weir.advise.frame.finding import Advice
from weir.advise.frame.saving import NOTHING
from weir.analysis.names import escaped
from weir.report.frame.amounts import counted, number, plain, seconds
from weir.tune.decide import FEWER, RuleGain, medians, noise, of_kind, rule_gains
from weir.tune.runs import PLAIN, TUNED
from weir.tune.search import AGGREGATORS, OF_THE_LIBRARY, Setting, requests_of, wall_of
from weir.tune.study import with_setting, words_of
from weir.tune.tune import Outcome, Tuning

_NAMED = 3  # outputs in the sentence
_FATES = (("output ", "changed an output"), ("the command was killed", "made the command fail"),
    ("the command ended", "made the command fail"))  # by how the reasons in State.dropped begin
_LONGEST = 160  # characters of the command
_FIGURES = (("wall_s", "wall time"), ("critical_s", "critical I/O"), ("active_s", "active I/O"),
    ("io_s", "I/O of all ranks"), ("cpu_s", "CPU time"), ("requests", "requests"))  # fmt: skip


def sentence(found: Outcome) -> str:
    """The answer."""
    if not found.kept:
        fates = Counter(map(_fate, found.state.dropped.values()))
        why = ", ".join(f"{counted(count, 'rule')} {fate}" for fate, count in fates.items())
        why = f" ({why})" if why else ""
        model = _in_the_model(found)
        if not (found.report.advices or why):
            return plain(f"{_without_findings(found)}{_not_tried(found)}")
        what = "No rule makes this command faster" if model else NOTHING_FOUND.capitalize()
        if found.not_tried and not found.state.dropped:
            what = "No rule was tried"
        return f"{what}{why}.{model}{_not_tried(found)}"
    paths = [one.rule.path for one in found.kept if one.rule is not None]
    runs = found.state.runs
    plain_runs, tuned = of_kind(runs, PLAIN), of_kind(runs, TUNED, paths)
    if not tuned:
        return "The budget ended before the rules that are left were run."
    before, after = (medians(part, "wall_s") or 0.0 for part in (plain_runs, tuned))
    requests = [medians(part, "requests") or 0 for part in (plain_runs, tuned)]
    count = len(found.kept)
    text = (f"With {count} rule{'s' * (count != 1)} the command takes {seconds(after)} instead of "
        f"{seconds(before)}, and {number(requests[1])} requests instead of {number(requests[0])}; ")
    if found.undecided:
        count = len(found.undecided)
        text += (f"{counted(count, 'output')} differ{'s' * (count == 1)}, such as "
            f"{found.undecided[0]}: more runs show whether two plain runs differ as well")
    else:
        text += "outputs are identical"
        if not any(one.outputs for one in runs):
            text += " (the command wrote no file)"
    if found.loose:
        named = ", ".join(found.loose[:_NAMED]) + (", ..." if len(found.loose) > _NAMED else "")
        text += f" but for {len(found.loose)} that two plain runs write differently ({named})"
    return plain(text + f".{_sureness(found)}{_not_tried(found)}")


def _without_findings(found: Outcome) -> str:
    """What a report that names nothing to change says, and where most of its I/O time is."""
    if not found.report.rest:
        return nothing_text(found.report)
    most, count = found.report.rest[0], len(found.report.rest)
    others = f" {counted(count - 1, 'other cost')}: see report.md." if count > 1 else ""
    return (f"{no_finding_text(found.report)} The file with the most I/O time takes "
        f"{rest_text(found.report, most)}. Would help: {change_of(found.report, most)}.{others}")


def is_without_cure(found: Outcome) -> bool:
    """Whether the command waits for I/O most of its time, there is no rule to try, and a search
    found no better setting."""
    is_better = found.found is not None and found.found.is_better
    has_rest = bool(found.report.rest) and not found.report.rules
    return has_rest and not is_better and waits_for_io(found.report)


def _fate(why: str) -> str:
    """The reason for which a rule was dropped, in short."""
    return next((fate for begin, fate in _FATES if why.startswith(begin)), "did not pay")


def kept_sentence(found: Outcome, directory: str) -> str:
    """Of --keep."""
    if found.moved is None:
        return (f"Nothing was copied into {directory}: the test of the rules is not complete. Give "
                f"more --runs, or run the command without rules.")
    which = "the rules" if found.kept else "no rules"
    count = f"{found.moved} file{'s' * (found.moved != 1)}"
    return f"{count} that a run with {which} made or changed went into {directory}."


def _without_rule(found: Outcome) -> list[Advice]:
    """Findings that have no rule, or one that also matches other files."""
    return [one for one in found.report.advices if one.rule is None or one.rule.unusable]


def _in_the_model(found: Outcome) -> str:
    """Of these."""
    count = len(_without_rule(found))
    if not count:
        return ""
    return (f" {counted(count, 'finding')} need{'s' * (count == 1)} a change of the program: see "
            f"report.md.")


def _not_tried(found: Outcome) -> str:
    """Rules that have to be allowed."""
    if not found.not_tried:
        return ""
    layers = sorted({one.rule.stack.partition(":")[0] for one in found.not_tried if one.rule})
    worth = range_text(sum((one.saving.critical or one.saving.io for one in found.not_tried),
        NOTHING))
    return (f" Not tried, because they change where files are stored: "
        f"{counted(len(found.not_tried), 'rule')}, expected to save {worth} (to try: "
        f"{' '.join(f'--allow {one}' for one in layers)}).")


def _sureness(found: Outcome) -> str:
    gain = found.gain
    noisy = _noise(found)
    if gain is None or gain.low is None or gain.high is None:
        return f" Run once each: the difference of the times may be chance.{noisy}"
    if not gain.is_sure:
        return (f" The times alone do not show it: with 90 % confidence the run is "
                f"{change_text(gain.low)} to {change_text(gain.high)}. {_decided_by(found)}{noisy}")
    return f" Shorter by {seconds(gain.low)} to {seconds(gain.high)} (90 % confidence).{noisy}"


def _decided_by(found: Outcome) -> str:
    """What speaks for the rules where wall times do not."""
    fewer = [one for one in _gains(found).values()
        if one.after_requests <= FEWER.value * one.before_requests]
    return "The number of requests decided." if fewer else (
        "The I/O time of the files under rules decided.")


def search_sentence(found: Outcome) -> str:
    """What a search brought."""
    one = found.found
    assert one is not None
    count = f"{one.tried} setting{'s' * (one.tried != 1)}"
    if not one.tried:
        return "Searched: the rules have no settings to vary; --vary names some of the command."
    if not one.is_better:
        return f"Searched: none of {count} is measurably better than the advised one, which stays."
    (wall, requests), (base_wall, base_requests) = ((seconds(wall_of(part)),
        number(requests_of(part))) for part in (one.runs, one.base))
    which = "requests for files under rules" if found.kept else "requests"
    return plain(f"Searched: the best of {count} takes {wall} and {requests} {which} instead of "
        f"{base_wall} and {base_requests}: {', '.join(changed(one.setting, found.kept))}.")


def changed(setting: Setting, rules: Sequence[Advice]) -> list[str]:
    """Stacks, and what stands in no rule."""
    stacks = [one.rule.stack for one in with_setting(rules, setting) if one.rule is not None]
    return [*stacks, *words_of(setting, rules)]


def setting_lines(setting: Setting, rules: Sequence[Advice]) -> list[str]:
    """What to set beside the rules."""
    made = []
    for text in words_of(setting, rules):
        name, _, value = text.partition("=")
        if name != AGGREGATORS:
            made.append(f"the command has {value} for {{{name}}}")
        elif value != OF_THE_LIBRARY:
            made.append(f"aggregators: MPI-IO hint cb_nodes {value} (ROMIO_HINTS), or "
                        f"OMPI_MCA_io_ompio_num_aggregators={value}")
    return made


def _noise(found: Outcome) -> str:
    """Whether times of this machine can be relied on."""
    walls = noise(found.state.runs)
    if walls is None:
        return ""
    return (f" This machine is noisy: runs without rules took {seconds(walls[0])} to "
            f"{seconds(walls[1])}. Rely on the number of requests, or repeat on an idle node.")


def command_text(command: Sequence[str]) -> str:
    """As a shell takes it, on one line that is not too long."""
    text = escaped(shlex.join(command))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def rules_text(found: Outcome) -> str:
    """The rules that paid, for the user's own directory; comments where that was not tested."""
    gains = _gains(found)
    is_once = found.gain is None or found.gain.low is None
    said = ("Run once by `weir tune`, outputs compared." if is_once else "Tested by `weir tune`.") \
        if found.kept and found.is_proved else \
        "Not tested to the end by `weir tune`: the rules are comments." if found.kept else \
        "No rule was kept by `weir tune`."
    lines = [f"# Rules for: {command_text(found.state.command)}", f"# {said}",
        *(f"# {line}" for line in textwrap.wrap(sentence(found), 96)), ""]
    if found.found is not None and found.found.is_better:
        lines += [f"# {line}" for line in setting_lines(found.found.setting, found.kept)]
    for one in with_setting(found.kept, {} if found.found is None else found.found.setting):
        assert one.rule is not None
        gain = gains.get(one.rule.path)
        made = rule_lines(one, [] if gain is None else [f"obtained: {_gain_text(gain)}"])
        lines += made if found.is_proved else [
            line if not line or line.startswith("#") else f"# {line}" for line in made]
    for rule, why in found.state.dropped.items():
        lines += [f"# dropped: {escaped(rule)}", f"#   {escaped(why)}"]
    return "\n".join(lines).rstrip() + "\n"


def _gains(found: Outcome) -> dict[str, RuleGain]:
    paths = [one.rule.path for one in found.kept if one.rule is not None]
    return {one.rule: one for one in rule_gains(found.state.runs, paths)}


def _gain_text(gain: RuleGain) -> str:
    return (f"{seconds(gain.before_s)} of I/O became {seconds(gain.after_s)}, "
        f"{number(gain.before_requests)} requests became {number(gain.after_requests)}")


def markdown(found: Outcome) -> str:
    return plain("\n".join(_markdown_lines(found)) + "\n")


def _markdown_lines(found: Outcome) -> Iterator[str]:
    runs = found.state.runs
    paths = [one.rule.path for one in found.kept if one.rule is not None]
    plain_runs, tuned = of_kind(runs, PLAIN), of_kind(runs, TUNED, paths)
    yield f"# weir tune: {command_text(found.state.command)}\n"
    yield sentence(found) + "\n"
    if tuned:
        yield (f"| | plain ({counted(len(plain_runs), 'run')}) | with rules "
               f"({counted(len(tuned), 'run')}) |")
        yield "|---|--:|--:|"
        for key, words in _FIGURES:
            values = [medians(part, key) for part in (plain_runs, tuned)]
            show = number if key == "requests" else seconds
            yield f"| {words} | " + " | ".join("-" if v is None else show(v) for v in values) + " |"
        yield ""
    if found.found is not None:
        yield search_sentence(found) + "\n"
    yield from _rule_table(found)
    for rule, why in found.state.dropped.items():
        yield f"- dropped: `{rule}`: {why}"
    for path in found.loose:
        yield f"- not compared: `{path}`: two plain runs write it differently"
    yield from _model_lines(found)
    yield from _cost_lines(found)


def _rule_table(found: Outcome) -> Iterator[str]:
    gains = _gains(found)
    if not gains:
        return
    yield "| rule | expected saving of I/O time | obtained | in the expected range | requests |"
    yield "|---|--:|--:|---|--:|"
    for one in found.kept:
        gain = None if one.rule is None else gains.get(one.rule.path)
        if one.rule is None or gain is None:
            continue
        within = "yes" if one.saving.io.contains(gain.saved_s) else "no"
        yield (f"| `{one.rule.path}`: `{one.rule.stack}` ({one.finding}) | "
            f"{range_text(one.saving.io)} | {seconds(gain.saved_s)} | {within} | "
            f"{number(gain.before_requests)} to {number(gain.after_requests)} |")
    yield ""


def _model_lines(found: Outcome) -> Iterator[str]:
    without = _without_rule(found)
    if without:
        yield "\n## Changes of the program\n"
        yield "No rule cures these; each is worth a change of the source:\n"
    for one in without:
        rule = f" (The rule {one.rule.stack} is not used: {one.rule.unusable}.)" if one.rule else ""
        yield f"- {one.finding}, {one.what}: {one.sentence} {one.change}{rule}"


def _cost_lines(found: Outcome) -> Iterator[str]:
    rest = found.report.rest
    if rest:
        yield "\n## Other files with much I/O time\n"
        yield "No finding is about these; the time is the most that any change could save:\n"
    for one in rest:
        yield f"- {rest_text(found.report, one)}. Would help: {change_of(found.report, one)}."


def for_directory(text: str, tuning: Tuning) -> str:
    """Texts of runs in the copy, with the paths of the user's directory and the usual tier. The
    name of the copy has no character that TOML or a pattern would escape; the path has."""
    return text.replace(f"/{tuning.work.name}", "").replace(str(tuning.tier), TIER)
