# SPDX-License-Identifier: Apache-2.0
"""Files that the layer stage has on a tier: what they are, and how they go to their place. The
program ``weir-stage`` (native/layers/stage/daemon) does it; this is about one node, the one it runs
on."""

from __future__ import annotations

import errno
import os
import re
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from weir._errors import InputError, NotThere
from weir._native import STAGE, LibraryMissing, library_path
from weir.capture._left import Left
from weir.capture._mounts import file_system_type
from weir.capture._number import is_within, number_of
from weir.capture._run import layered_jobs

SHARED_MEMORY = Path("/dev/shm")
MOST_SAID = 5
ON_ITS_WAY = "EINPROGRESS"  # closed, and nothing has kept it from its place
_DRAINS = {"a": "async", "e": "end", "n": "never"}
_REASONS = {"EBUSY": "a process has it open to write", "ECANCELED": "stays, by drain=never",
    "EBADMSG": "what is at its place was read back, and differs from what is on the tier",
    "EOWNERDEAD": "its writer was killed before it closed the file", ON_ITS_WAY: "not brought yet"}


@dataclass(frozen=True)
class StagedFile:
    """``newer``: than the file at its place. ``error``, ``reason``: why it is so still; "" where it
    is not. ``run``: the number (_number.py) of the run whose program last opened it to write; 0: of
    none."""

    path: str
    bytes: int
    drain: str
    newer: bool
    error: str
    run: int

    @property
    def reason(self) -> str:
        return _REASONS.get(self.error) or os.strerror(getattr(errno, self.error, 0)) \
            if self.error else ""

    @property
    def stays(self) -> bool:
        """It is newer than at its place, and its rule leaves it on the tier."""
        return self.newer and self.drain == "never"

    @property
    def is_stuck(self) -> bool:
        """It is closed, or its writer was killed, and it could not go to its place."""
        return self.newer and not self.stays and self.error not in (ON_ITS_WAY, "EBUSY")


def is_tier(directory: Path) -> bool:
    return (directory / "control").is_file() and (directory / "marks").is_dir()


def status(directory: Path) -> list[StagedFile]:
    """The files on a tier, by path. Raises InputError when it is none."""
    return _call("--status", directory)


def publish(directory: Path, unfinished: bool = False,
        done: Callable[[StagedFile], None] = lambda _: None) -> list[StagedFile]:
    """Bring all files to their place that no process writes, but for scratch, and, unless
    unfinished, for those whose writer was killed before it closed them; those that were newer.
    The bytes at their place have been read back and compared. done: called with each as it was
    dealt with."""
    return _call("--drain-unfinished" if unfinished else "--drain", directory, done)


def tiers_of(environ: Mapping[str, str], *drains: str) -> list[Path]:
    """The tiers of compiled rules with one of these drains, or any, with those of emulated nodes
    (WEIR_NODE_RANKS)."""
    rules = environ.get("WEIR_RULES", "")
    found = []
    for words in re.findall(r"\bstage((?::[a-z_]+=[^\s|:]*)+)", rules):
        options = dict(word.split("=", 1) for word in words[1:].split(":"))
        if (not drains or options.get("drain", "async") in drains) and "tier" in options:
            found.append(Path(re.sub(r"%([0-9A-Fa-f]{2})", lambda m: chr(int(m[1], 16)),
                options["tier"])))
    if "WEIR_NODE_RANKS" in environ:
        found += [node for tier in found for node in sorted(tier.parent.glob(tier.name + ".node*"))]
    return [one for one in dict.fromkeys(found) if is_tier(one)]


def of_run(run: str) -> list[Path]:
    """The tiers on this node that the rules of a run name. Raises InputError when there is none."""
    jobs = layered_jobs(run)
    tiers = [tier for rules in jobs.values() for tier in tiers_of(environment_of(rules))]
    if not tiers and any("stage:" in rules for rules in jobs.values()):
        raise NotThere(f"{run}: no tier of its rules is on this node ({os.uname().nodename}); run "
                       f"the command on a node on which the run's programs ran")
    if not tiers:
        raise InputError(f"{run}: its rules put no file on a tier (layer stage)")
    return list(dict.fromkeys(tiers))


def environment_of(rules: str) -> dict[str, str]:
    """Of programs that ran with compiled rules, on emulated nodes or not."""
    return {"WEIR_RULES": rules, "WEIR_NODE_RANKS": "1"}


def waiting_of_job(job: str, environ: Mapping[str, str]) -> dict[Path, list[StagedFile]]:
    """By tier, files that are newer there than at their place and are to go there: of tiers
    directly in shared memory that programs of the job used last, and of those in the rules of
    environ."""
    name = job.encode("utf-8", "surrogateescape")[:31].decode("utf-8", "surrogateescape")
    tiers = sorted(one for one in SHARED_MEMORY.iterdir()
        if _is_own(one) and is_tier(one) and _job_of(one) == name)
    waiting = {one: [file for file in status(one) if file.newer and not file.stays]
        for one in dict.fromkeys([*tiers, *tiers_of(environ)])}
    return {one: files for one, files in waiting.items() if files}


def _is_own(directory: Path) -> bool:
    try:
        return directory.lstat().st_uid == os.geteuid()
    except OSError:
        return False


def _job_of(directory: Path) -> str:
    """The job that used the tier last, as native/layers/stage/tier.h has it."""
    try:
        with (directory / "control").open("rb") as file:
            (job,) = struct.unpack_from("<96x32s", file.read(128))
    except (OSError, struct.error):
        return ""
    return job.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def finish(environ: Mapping[str, str]) -> Left:
    """At the end of a step: files that waited for it go to their place. A sentence for each that
    could not. ``displaced`` is of the step's own alone."""
    said: list[str] = []
    displaced = False
    own = number_of(environ)
    for directory in tiers_of(environ, "end"):
        try:
            left = [one for one in publish(directory) if one.newer and not one.stays
                and (one.is_stuck or is_within(one.run, own))]
        except InputError as error:
            said.append(str(error))
            continue
        said += left_alone(directory, left)
        displaced |= any(one.is_stuck and is_within(one.run, own) for one in left)
    return Left(tuple(said), displaced)


def settle(environ: Mapping[str, str], quiet: bool = False) -> Left:
    """The same of files that go to their place in the background: of the step's own, a sentence for
    each that could not, and one for all that are on their way still, unless quiet, when they were
    waited for a moment."""
    said: list[str] = []
    displaced = False
    own = number_of(environ)
    for directory in tiers_of(environ, "async"):
        try:
            files = [one for one in _call("--settle", directory)
                if one.drain == "async" and one.newer and is_within(one.run, own)]
        except InputError as error:
            said.append(str(error))
            continue
        stuck = [one for one in files if one.is_stuck]
        said += left_alone(directory, stuck)
        displaced |= bool(stuck)
        going = [one for one in files if one.error == ON_ITS_WAY]
        if going and not quiet:
            said.append(f"{amount(going)} on the tier {directory} are still on their way to their "
                        f"place; see: weir stage status {directory}")
    return Left(tuple(said), displaced)


def left_alone(directory: Path, files: Sequence[StagedFile]) -> list[str]:
    """What to say of files that are not at their place; of many, of the first: what kept them, on
    which node they are and how long, and what to run."""
    if not files:
        return []
    node = os.uname().nodename
    where = f"node {node}, on the tier {directory}{_end_of(directory)}"
    said = [f"{one.path}: {_cause(one)}; its {one.bytes:,} bytes are only on {where}; "
            f"{_remedy(one)} on {node}: {_command(one)} {directory}" for one in files[:MOST_SAID]]
    if rest := files[MOST_SAID:]:
        said.append(f"{amount(rest)} more are only on {where}; see: weir stage status {directory}")
    return said


def _end_of(directory: Path) -> str:
    """Of a tier in memory: when it ends."""
    if file_system_type(str(directory)) not in ("tmpfs", "ramfs"):
        return ""
    return " in memory, which is lost when the node restarts or the batch system clears it"


def _cause(one: StagedFile) -> str:
    full = {"ENOSPC": "is full", "EDQUOT": "has no quota left"}.get(one.error)
    if full:
        return f"the file system of {os.path.dirname(one.path)} {full} ({one.reason})"
    if one.error in _REASONS:
        return one.reason
    return f"cannot be written at its place ({one.reason})"


def _remedy(one: StagedFile) -> str:
    return {"EOWNERDEAD": "to bring it as it is, run", "EBUSY": "when that has ended, run",
        ON_ITS_WAY: "to bring it now, run", "ENOSPC": "make room there, then run",
        "EDQUOT": "make room there, then run"}.get(one.error, "when that is fixed, run")


def _command(one: StagedFile) -> str:
    return "weir stage recover" + " --unfinished" * (one.error == "EOWNERDEAD")


def amount(files: Sequence[StagedFile]) -> str:
    size = sum(one.bytes for one in files)
    return f"{len(files):,} file{'s' * (len(files) != 1)} with {size:,} bytes"


def _call(what: str, directory: Path, done: Callable[[StagedFile], None] = lambda _: None,
        ) -> list[StagedFile]:
    try:
        command = [str(library_path(STAGE)), what, str(directory.absolute())]
    except LibraryMissing as error:
        raise InputError(str(error)) from error
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    files = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment) as process:
        assert process.stdout is not None and process.stderr is not None
        for line in _records(process.stdout):
            files.append(_read(line.decode("utf-8", "surrogateescape")))
            done(files[-1])
        said = process.stderr.read().decode("utf-8", "replace")
    if process.returncode not in (0, 1):
        why = said.strip().removeprefix(f"weir-stage: {directory.absolute()}: ")
        raise InputError(f"{directory}: is no tier: {why or 'weir-stage failed'}")
    return sorted(files, key=lambda one: one.path)


def _records(stream: IO[bytes]) -> Iterator[bytes]:
    """What is between zeros, as it comes."""
    rest = b""
    while piece := os.read(stream.fileno(), 1 << 16):
        *whole, rest = (rest + piece).split(b"\0")
        yield from whole


def _read(line: str) -> StagedFile:
    state, drain, size, error, run, path = line.split(" ", 5)
    newer = state != "c" and error != "0"
    name = errno.errorcode.get(int(error), "EIO") if newer else ""
    return StagedFile(path, int(size), _DRAINS.get(drain, drain), newer, name, int(run))
