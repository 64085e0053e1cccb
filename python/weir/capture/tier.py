# SPDX-License-Identifier: Apache-2.0
"""Files that the layer stage has on a tier: what they are, and how they go to their place. The
program ``weir-stage`` (native/layers/stage/daemon) does it; this is about one node, the one it runs
on."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from weir._errors import InputError
from weir._native import STAGE, LibraryMissing, library_path

_DRAINS = {"a": "async", "e": "end", "n": "never"}
_REASONS = {"EBUSY": "a process has it open to write", "ECANCELED": "stays, by drain=never",
    "EBADMSG": "what is at its place was read back, and differs from what is on the tier",
    "EOWNERDEAD": "its writer was killed before it closed the file"}


@dataclass(frozen=True)
class StagedFile:
    """``newer``: than the file at its place. ``reason``: why it is so still; "" where it is not."""

    path: str
    bytes: int
    drain: str
    newer: bool
    reason: str

    @property
    def stays(self) -> bool:
        """It is newer than at its place, and its rule leaves it on the tier."""
        return self.newer and self.drain == "never"


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


def tiers_of(environ: Mapping[str, str]) -> list[Path]:
    """The tiers of compiled rules that hold files until the end of a step, with those of emulated
    nodes (WEIR_NODE_RANKS)."""
    rules = environ.get("WEIR_RULES", "")
    found = []
    for words in re.findall(r"\bstage((?::[a-z_]+=[^\s|:]*)+)", rules):
        options = dict(word.split("=", 1) for word in words[1:].split(":"))
        if options.get("drain") == "end" and "tier" in options:
            found.append(Path(re.sub(r"%([0-9A-Fa-f]{2})", lambda m: chr(int(m[1], 16)),
                options["tier"])))
    if "WEIR_NODE_RANKS" in environ:
        found += [node for tier in found for node in sorted(tier.parent.glob(tier.name + ".node*"))]
    return list(dict.fromkeys(found))


def finish(environ: Mapping[str, str]) -> list[str]:
    """At the end of a step: files that waited for it go to their place. A sentence for each that
    did not."""
    said = []
    for directory in filter(is_tier, tiers_of(environ)):
        try:
            left = [one for one in publish(directory) if one.newer and not one.stays]
        except InputError as error:
            said.append(str(error))
            continue
        said += [f"{one.path}: its {one.bytes} bytes are on the tier {directory} alone: "
                 f"{one.reason}; then run: weir stage recover {directory}" for one in left]
    return said


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
    state, drain, size, error, path = line.split(" ", 4)
    newer = state != "c" and error != "0"
    return StagedFile(path, int(size), _DRAINS.get(drain, drain), newer,
        _reason(int(error)) if newer else "")


def _reason(number: int) -> str:
    from errno import errorcode

    return _REASONS.get(errorcode.get(number, ""), os.strerror(number))
