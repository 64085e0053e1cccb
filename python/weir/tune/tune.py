# SPDX-License-Identifier: Apache-2.0
"""The loop of ``weir tune``: a plain run, its findings, then runs with their rules and without in
turn, until the difference is sure or the budget ends. Rules that do not pay, or change an output,
are dropped."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from weir._errors import Error, InputError, InternalError, StorageError, UsageError
from weir.advise.advise import Report, advise
from weir.advise.frame.facts import Facts
from weir.advise.frame.finding import Advice
from weir.advise.frame.speeds import Probed
from weir.advise.text import rule_lines
from weir.capture._launch import NO_TRACE_STATUS
from weir.tune import claim, keep, outputs, workdir
from weir.tune.decide import Gain, rule_gains, of_kind, wall_gain
from weir.tune.runs import (PLAIN, TUNED, Done, environment_mentions, execute, facts_of,
    figures_of, relative, save_stdin)
from weir.tune.search import Setting, command_of
from weir.tune.state import Failure, State, begin
from weir.tune.study import Found, Limits, Study, environment_of, with_setting
from weir.tune.suspects import ended, half, suspects


@dataclass(frozen=True)
class Options:
    """runs, minutes: the budget, the first one included. allow: layers whose rules change where
    files lie (stage, pack). probes: of file systems, for estimates. keep: what a run with the rules
    makes goes into the user's directory. search: runs to search settings by, beside those; vary:
    values for {NAME} in the command."""

    runs: int = 9
    minutes: float = 60.0
    allow: tuple[str, ...] = ()
    probes: Mapping[str, Probed] = field(default_factory=dict)
    keep: bool = False
    search: int = 0
    vary: dict[str, tuple[str, ...]] = field(default_factory=dict)


class CommandFailed(InputError):
    """The command itself fails without weir's rules."""


@dataclass(frozen=True)
class Outcome:
    """What tune ends with. report: of the first run; kept: advices whose rules are used; gain: None
    where no rule was tried."""

    state: State
    report: Report
    kept: tuple[Advice, ...]
    gain: Gain | None
    loose: tuple[str, ...]  # outputs that cannot be compared
    not_tried: tuple[Advice, ...]  # rules that have to be allowed
    undecided: tuple[str, ...]  # outputs that differ, of which one plain run does not say why
    moved: int | None = None  # files that are in the user's directory now, None without keep
    found: Found | None = None  # None without a search

    @property
    def is_proved(self) -> bool:
        """Whether just these rules were run, and outputs compared."""
        paths = [_path(one) for one in self.kept]
        return bool(of_kind(self.state.runs, TUNED, paths)) and not self.undecided


class Tuning:
    """One call of weir tune. note: gets a line for each run."""

    def __init__(self, out: Path, directory: Path, command: Sequence[str], options: Options,
            note: Callable[[str], None]) -> None:
        self.out, self.directory, self.options, self.note = out, directory, options, note
        mark = claim.mark_of(out)
        self.work, self.tier = claim.work_directory(directory, mark), claim.tier(mark)
        self.stdin: Path | None = None
        self.began = time.monotonic()
        self.entries = self._listing()
        cautions = bool(options.allow)
        self.state = begin(out, State(list(command), str(directory),
            workdir.fingerprint(self.entries), cautions,
            {name: list(values) for name, values in options.vary.items()}))

    def run(self) -> Outcome:
        """Raises CommandFailed, StorageError, UsageError. No file of the user's is changed, but
        with keep, after the last run."""
        for one in claim.left_behind(self.directory, self.work):
            self.note(one.text)
        with claim.claimed(self.work, self.out):
            return self._run()

    def _run(self) -> Outcome:
        if self.state.result is not None and self.state.result.is_moving:
            return self._outcome(self._moved())
        self._check_space()
        if mentions := environment_mentions(self.directory):
            self.note(f"warning: {', '.join(mentions)} in the environment: paths in "
                      f"{self.directory}. What the command reads or writes by these paths are the "
                      f"original files, not the copies")
        self.stdin = self._stdin()
        try:
            if not self.state.runs:
                self.once(PLAIN, ())
            while self.rules and not self._is_enough():
                self.once(*self._next())
                self._drop_suspect()
                self._drop()
            self._drop_unpaid()
            searched = Study(self).run() if self.options.search else None
            if self.options.keep and not self._has_result():
                self.once(TUNED if self.rules else PLAIN, tuple(self.rules))
        finally:
            workdir.remove(self.work)
            self._remove_tier()
        found = replace(self._outcome(), found=searched)
        can_move = self.options.keep and self._has_result() and (found.is_proved or not found.kept)
        return replace(found, moved=self._moved()) if can_move else found

    def _has_result(self) -> bool:
        """Whether what a run with just these rules made is there."""
        return self.state.result is not None and set(self.state.result.rules) == {
            _path(one) for one in self.rules}

    def _moved(self) -> int:
        """Number of files and links that went into the user's directory."""
        assert self.state.result is not None
        result = self.state.result = replace(self.state.result, is_moving=True)
        self.state.write(self.out)
        keep.move(result, {one.path: one for one in self.entries}, self.work, self.directory)
        self.state.result = None
        self.state.write(self.out)
        return len(result.changed)

    def _check_space(self) -> None:
        """For a copy with what the first run made, and for one that holds what a run made."""
        made = sum(one.bytes for one in self.state.runs[0].outputs.values()) if self.state.runs \
            else 0
        workdir.check_space(self.directory, self.entries, made,
            2 if self.options.keep and self.state.result is None else 1)

    def _outcome(self, moved: int | None = None) -> Outcome:
        kept = tuple(self.rules)
        paths = [_path(one) for one in kept]
        return Outcome(self.state, self.report, kept, wall_gain(self.state.runs, paths),
            tuple(outputs.not_compared(self.plain())),
            tuple(one for one in self.report.rules if one not in self.candidates),
            self._undecided(paths), moved)

    def _stdin(self) -> Path | None:
        """That of the first run, also when tune goes on."""
        path = self.out / "stdin"
        if self.state.runs:
            return path if path.exists() else None
        path.unlink(missing_ok=True)
        return save_stdin(path, self.note)

    def _listing(self) -> list[workdir.Entry]:
        return workdir.listing(self.directory, [self.out], streams=workdir.own_streams())

    def _undecided(self, paths: Sequence[str]) -> tuple[str, ...]:
        tuned = of_kind(self.state.runs, TUNED, paths)
        return tuple(one.path for one in self.differs(tuned[-1])) if tuned else ()

    @cached_property
    def facts(self) -> Facts:
        """Of the first run."""
        return facts_of(self.out / "runs" / "0", self.options.probes, str(self.tier))

    @cached_property
    def report(self) -> Report:
        return advise(self.facts)

    @property
    def candidates(self) -> list[Advice]:
        """Rules that may be tried."""
        return [one for one in self.report.rules if one.rule is not None
            and (not one.rule.caution or _layer(one) in self.options.allow)]

    @property
    def rules(self) -> list[Advice]:
        return [one for one in self.candidates if _path(one) not in self.state.dropped]

    @property
    def limits(self) -> Limits:
        """Of a search."""
        return Limits(self.options.search, self.options.minutes, self.options.vary)

    def _next(self) -> tuple[str, tuple[Advice, ...]]:
        """Plain and tuned runs in turn; a plain one first where its outputs have to be compared."""
        last = self.state.runs[-1]
        if found := half(self._suspects()):
            return TUNED, tuple(one for one in self.rules if _path(one) in found)
        if last.kind == TUNED and len(of_kind(self.state.runs, PLAIN)) <= len(
                of_kind(self.state.runs, TUNED)):
            return PLAIN, ()
        return TUNED, tuple(self.rules)

    def _is_enough(self) -> bool:
        runs, spent_s = self.state.runs, time.monotonic() - self.began
        tuned = of_kind(runs, TUNED, [_path(one) for one in self.rules])
        if self.state.attempts >= self.options.runs or spent_s >= 60 * self.options.minutes:
            return True
        gain = wall_gain(runs, [_path(one) for one in self.rules])
        is_compared = not self.differs(tuned[-1]) if tuned else False
        return len(tuned) >= 2 and is_compared and gain is not None and gain.is_sure

    def once(self, kind: str, rules: Sequence[Advice],
            setting: Setting | None = None) -> None:
        """One run from a fresh copy; it counts when it is complete."""
        number = len(self.state.runs)
        trace = self.out / "runs" / str(number)
        trace.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(trace, ignore_errors=True)
        self._check_space()
        before = workdir.make(self.directory, self.work, self.entries)
        path = self._rules_file(with_setting(rules, setting or {})) if rules else None
        self._remove_tier()
        self.note(f"run {number + 1}, {kind}")
        command = relative(self._command(setting), self.directory, self.work)
        started = execute(command, self.work, trace, path,
            None if number == 0 else self.out / "runs" / f"{number}.output", self.stdin,
            environment_of(setting or {}, self.out))
        if started.is_of_weir:
            raise self._of_weir(started.status, number)
        if started.status:
            self._failed(started.status, kind, rules, setting or {})
            return
        self._bring_from_tier()
        if workdir.fingerprint(self._listing()) != self.state.fingerprint:
            raise UsageError(f"{self.directory}: the command changed files there instead of in its "
                             f"copy: name them relative to --dir, or give another --dir")
        made = outputs.outputs_of(self.work, before, _containers(rules))
        facts = self.facts if number == 0 else facts_of(trace, {}, str(self.tier))
        known = [_path(one) for one in self.candidates]
        if self.options.keep and (kind == TUNED or not self.rules or number == 0):
            self.state.result = None  # that of an earlier run goes
            self.state.write(self.out)
            self.state.result = keep.save_result(self.work, before, tuple(map(_path, rules)),
                self.directory)
        self.state.runs.append(Done(number, kind, tuple(_path(one) for one in rules),
            figures_of(facts, started, known), made, dict(setting or {})))
        self.state.write(self.out)

    def _command(self, setting: Setting | None) -> list[str]:
        """With the first value of what the user varies where there is no setting."""
        vary = self.options.vary
        return command_of(self.state.command, setting or {name: values[0]
            for name, values in vary.items()}, tuple(vary))

    def _failed(self, status: int, kind: str, rules: Sequence[Advice],
            setting: Setting) -> None:
        if kind == PLAIN:
            raise CommandFailed(f"the command ended with status {status} without any rules; weir "
                                f"tune needs one that succeeds: {' '.join(self.state.command)}")
        output = self.out / "runs" / f"{len(self.state.runs)}.output"
        with suppress(OSError):
            output.replace(self.out / "runs" / f"failed-{len(self.state.failures)}.output")
        self.state.failures.append(Failure(tuple(map(_path, rules)), status,
            dict(setting)))
        self.state.write(self.out)

    def _of_weir(self, status: int, number: int) -> Error:
        """That weir trace failed, and not the command."""
        where = "its message is above" if not number else \
            f"its message is at the end of {self.out}/runs/{number}.output"
        text = (f"run {number + 1}: weir trace itself failed (status {status}), not the command "
                f"and not a rule: {where}; ")
        if status == NO_TRACE_STATUS:
            return StorageError(f"{text}remove the cause that it names, then run the same command "
                                f"again: it continues")
        return InternalError(f"{text}please report it; the same command tries the run again")

    def _suspects(self) -> list[str]:
        return suspects([_path(one) for one in self.rules],
            [one.rules for one in self.state.failures if not one.setting],
            [one.rules for one in of_kind(self.state.runs, TUNED)])

    def _drop_suspect(self) -> None:
        found = self._suspects()
        if len(found) == 1:
            status = next(one.status for one in reversed(self.state.failures)
                if found[0] in one.rules)
            self.state.dropped[found[0]] = (
                f"{ended(status)} ({self.out}/runs has what it printed: failed-*.output)")
            self.state.write(self.out)

    def _drop(self) -> None:
        """What the last run shows of rules: those that change outputs, those that do not pay."""
        last = self.state.runs[-1]
        tuned = of_kind(self.state.runs, TUNED, [_path(one) for one in self.rules])
        if not tuned:
            return
        for one in self.differs(tuned[-1]):
            if len(of_kind(self.state.runs, PLAIN)) < 2:
                return  # perhaps it differs between any two runs
            self._blame(one)
        is_last = self.state.attempts >= self.options.runs
        if last.kind == PLAIN or is_last:
            self._drop_unpaid(may_run=not is_last)
        self.state.write(self.out)

    def _drop_unpaid(self, *, may_run: bool = False) -> None:
        """may_run: more runs follow, which show whether a single slow one was chance."""
        self._drop_harmful()
        for gain in rule_gains(self.state.runs, [_path(one) for one in self.rules]):
            if not gain.pays and not (may_run and gain.needs_a_run):
                self.state.dropped[gain.rule] = gain.why_not
        self.state.write(self.out)

    def _drop_harmful(self) -> None:
        """Where the command is surely slower with the rules: the one that saves least."""
        paths = [_path(one) for one in self.rules]
        gain = wall_gain(self.state.runs, paths)
        if gain is None or not gain.is_sure or gain.middle > 0:
            return
        worst = min(rule_gains(self.state.runs, paths), key=lambda one: one.saved_s, default=None)
        if worst is not None:
            self.state.dropped[worst.rule] = (
                f"the command takes {-gain.middle:.3f} s longer with the rules, and this one saves "
                f"least: {worst.saved_s:.3f} s of I/O")

    def _blame(self, one: outputs.Difference) -> None:
        """The rules of the file; all of them where it has none."""
        from fnmatch import fnmatchcase

        mine = [rule for rule in self.rules
            if fnmatchcase(str(self.work / one.path), _path(rule))] or self.rules
        for rule in mine:
            self.state.dropped[_path(rule)] = f"output {one.path}: {one.why}"

    def plain(self) -> list[dict[str, outputs.Output]]:
        return [one.outputs for one in of_kind(self.state.runs, PLAIN)]

    def differs(self, tuned: Done) -> list[outputs.Difference]:
        return outputs.differences(self.plain(), tuned.outputs)

    def _rules_file(self, rules: Sequence[Advice]) -> Path:
        path = self.out / "rules-in-force.toml"
        text = "\n".join(line for one in rules for line in rule_lines(one))
        path.write_text(text, "utf-8", "surrogateescape")
        return path

    def _bring_from_tier(self) -> None:
        from weir.capture import tier

        for one in self._tiers():
            tier.publish(one, False, lambda file: None)

    def _remove_tier(self) -> None:
        for one in self._tiers():
            shutil.rmtree(one, ignore_errors=True)

    def _tiers(self) -> list[Path]:
        return [one for one in self.tier.parent.glob(f"{self.tier.name}*") if one.is_dir()]


def _path(one: Advice) -> str:
    assert one.rule is not None
    return one.rule.path


def _layer(one: Advice) -> str:
    return one.rule.stack.partition(":")[0] if one.rule is not None else ""


def _containers(rules: Sequence[Advice]) -> list[str]:
    """File names of the archives of layer pack."""
    found = []
    for one in rules:
        if _layer(one) == "pack" and one.rule is not None:
            found.append(one.rule.stack.partition("name=")[2].partition(":")[0])
    return found
