# SPDX-License-Identifier: Apache-2.0
"""The ``#DW`` lines of a job script, as the DataWarp User Guide (S-2558) has them. What weir cannot
do for a script is refused with its line: a job that runs on other terms than it states would lose
data."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from weir._errors import InputError, NotThere
from weir.stage.nodes import nodes_asked

ACCESS_MODES = ("striped", "private")
STAGING_TYPES = ("file", "directory", "list")
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_UNITS |= {f"{unit}B": bytes for unit, bytes in _UNITS.items() if unit} | {"B": 1}
_UNITS |= {f"{unit}i{b}": 1024**power for power, unit in enumerate("KMGTP", 1) for b in ("", "B")}
# Settings of DataWarp's servers and pools, which a directory does not have.
_IGNORED = {"pool", "modifiers", "optimization_strategy", "tier", "hash"}
_REFUSED = {
    "persistentdw": "weir makes no persistent instances; give the directory its own variable",
    "swap": "weir gives compute nodes no swap space; remove the line",
}


@dataclass(frozen=True)
class Staging:
    """One ``stage_in`` or ``stage_out``: paths as written, with their variables."""

    line: int
    out: bool
    type: str
    source: str
    destination: str


@dataclass(frozen=True)
class Job:
    """All directives of one script. nodes: see nodes_asked."""

    script: Path
    line: int
    access_modes: tuple[str, ...]
    capacity_bytes: int
    stagings: tuple[Staging, ...]
    nodes: tuple[tuple[int, int, str], ...] = ()


def parse_size(text: str) -> int | None:
    """Bytes of a capacity: ``200GB`` (10^9), ``1150GiB`` (2^30), with a fraction at will."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text)
    if match is None or match[2] not in _UNITS:
        return None
    return int(float(match[1]) * _UNITS[match[2]])


def read_directives(script: Path) -> Job:
    """The directives above the first command of a script. Raises InputError with file and line for
    each that cannot be done, NotThere when there is no script."""
    try:
        text = script.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError as error:
        raise NotThere(f"{script}: no such file") from error
    except OSError as error:
        raise InputError(f"{script}: cannot be read: {error.strerror}") from error
    job: Job | None = None
    stagings: list[Staging] = []
    for number, words in _directive_lines(script, text):
        verb, options = words[0], _options(script, number, words)
        if verb == "jobdw":
            if job is not None:
                _refuse(script, number, verb, f"line {job.line} has one already")
            job = _jobdw(script, number, options)
        elif verb in ("stage_in", "stage_out"):
            stagings.append(_staging(script, number, verb, options))
        else:
            _refuse(script, number, verb, _REFUSED.get(verb,
                "expected jobdw, stage_in or stage_out"))
    if job is None:
        raise InputError(f"{script}: no line '#DW jobdw type=scratch access_mode=... capacity=...' "
                         f"above its first command")
    return Job(script, job.line, job.access_modes, job.capacity_bytes, tuple(stagings),
        tuple(nodes_asked(text)))


def _directive_lines(script: Path, text: str) -> list[tuple[int, list[str]]]:
    """Number and words of each. Batch systems read them up to the first command: one that stands
    below would be ignored without a word."""
    found: list[tuple[int, list[str]]] = []
    first_command = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#BB "):
            _refuse(script, number, "#BB", "weir makes no persistent instances; remove the line")
        if line.strip() and not line.startswith("#"):
            first_command = first_command or number
        if not re.match(r"#DW(\s|$)", line):
            continue
        if first_command:
            raise InputError(f"{script}:{number}: a #DW line below the first command (line "
                             f"{first_command}) is ignored by batch systems; move it up")
        try:
            words = shlex.split(line[3:])
        except ValueError as error:
            raise InputError(f"{script}:{number}: {error}") from error
        if not words:
            raise InputError(f"{script}:{number}: expected jobdw, stage_in or stage_out after #DW")
        found.append((number, words))
    return found


def _refuse(script: Path, line: int, verb: str, why: str) -> None:
    name = verb if verb.startswith("#") else f"#DW {verb}"
    raise InputError(f"{script}:{line}: {name}: {why}")


def _options(script: Path, line: int, words: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for word in words[1:] if words[0] not in _REFUSED else []:
        key, equals, value = word.partition("=")
        if not equals or not value:
            _refuse(script, line, words[0], f"expected KEY=VALUE, found '{word}'")
        if key in options:
            _refuse(script, line, words[0], f"{key} is given twice")
        options[key] = value
    return options


def _take(script: Path, line: int, verb: str, options: dict[str, str],
        *keys: str) -> tuple[str, ...]:
    missing = [key for key in keys if key not in options]
    unknown = sorted(set(options) - set(keys) - _IGNORED)
    if missing or unknown:
        found = f", found {unknown[0]}=" if unknown else ""
        _refuse(script, line, verb, f"expected {'= '.join(missing or keys)}={found}")
    return tuple(options[key] for key in keys)


def _jobdw(script: Path, line: int, options: dict[str, str]) -> Job:
    kind, modes, size = _take(script, line, "jobdw", options, "type", "access_mode", "capacity")
    if kind != "scratch":
        _refuse(script, line, "jobdw", f"type={kind}: expected scratch; for a cache of a file "
                                       f"system use the layer stage in rules")
    names = tuple(re.sub(r"\(.*?\)", "", modes).split(","))
    for name in names:
        if name not in ACCESS_MODES:
            _refuse(script, line, "jobdw", f"access_mode={name}: expected striped or private")
    capacity = parse_size(size)
    if capacity is None:
        _refuse(script, line, "jobdw", f"capacity={size}: expected a size such as 200GB or 1GiB")
    assert capacity is not None
    return Job(script, line, tuple(dict.fromkeys(names)), capacity, ())


def _staging(script: Path, line: int, verb: str, options: dict[str, str]) -> Staging:
    kind, source, destination = _take(script, line, verb, options, "type", "source", "destination")
    if kind not in STAGING_TYPES:
        _refuse(script, line, verb, f"type={kind}: expected file, directory or list")
    on_tier = source if verb == "stage_out" else destination
    if not re.match(r"\$\{?DW_JOB_(STRIPED|PRIVATE)\b", on_tier):
        side = "source" if verb == "stage_out" else "destination"
        _refuse(script, line, verb, f"{side}={on_tier}: expected a path that begins with "
                                    f"$DW_JOB_STRIPED or $DW_JOB_PRIVATE")
    return Staging(line, verb == "stage_out", kind, source, destination)
