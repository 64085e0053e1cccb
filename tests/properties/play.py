# SPDX-License-Identifier: Apache-2.0
"""Runs a script plain and under layers, compares, and shortens a script that shows a difference."""

from __future__ import annotations

import copy
import itertools
import os
import re
import shutil
import signal
import subprocess
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

from model import Block, Model, lines
from weir.stripe.join import join
from weir_cos import unblocked

SOURCES = Path(__file__).parent / "player"
SECONDS = 60  # a script takes a fraction of a second; one that hangs is a difference


def a_job() -> dict[str, str]:
    """A job of its own: nobody else's processes, perhaps of another build, share what its ranks
    share."""
    return {"WEIR_QUIET": "1", "WEIR_JOB": f"properties-{os.getpid()}-{time.time_ns() % 10**9}"}


def end_job(environment: dict[str, str]) -> None:
    """The daemon goes by itself a moment after its last client; what lies in memory goes now."""
    shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{environment['WEIR_JOB']}", ignore_errors=True)


def build(directory: Path) -> Path:
    """The compiled player."""
    program = directory / "player"
    sources = sorted(SOURCES.glob("*.c"))
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-pthread"]
    subprocess.run([os.environ.get("CC", "gcc"), *flags, "-o", program, *sources], check=True,
        timeout=300)
    return program


def rules_of(stack: str) -> str:
    """WEIR_RULES that give the scripts' files this stack (compiled form)."""
    return f"weir-rules 1\nrule source=properties:1 name=f? stack={stack}\n"


@dataclass(frozen=True)
class Played:
    text: str
    status: int
    files: dict  # name: (bytes, checksum)

    def difference(self, other: Played) -> str | None:
        """The first thing that is not the same, in words."""
        for mine, theirs in itertools.zip_longest(self.text.splitlines(), other.text.splitlines()):
            if mine != theirs:
                return f"plain:   {mine}\nlayered: {theirs}"
        if self.status != other.status:
            return f"exit status {self.status}, layered {other.status}"
        if self.files != other.files:
            changed = sorted(set(self.files.items()) ^ set(other.files.items()))
            return f"files differ (name, (bytes, checksum)): {changed}"
        return None


def content(path: Path, blocked: bool) -> bytes:
    """A striped file's is put together, a blocked one's is taken out of its blocks."""
    data = path.read_bytes()
    if blocked:
        try:
            return unblocked(data) if data else data
        except AssertionError:
            return b"not in blocks: " + data
    if not data.startswith(b"weir stripe 1\n"):
        return data
    join(path, whole := path.with_name(f"{path.name}.whole"))
    try:
        return whole.read_bytes()
    finally:
        whole.unlink()


def files_in(directory: Path, blocked: bool = False) -> dict:
    found = {}
    for path in sorted(directory.rglob("*")):
        data = content(path, blocked) if path.is_file() else b""
        found[str(path.relative_to(directory))] = (len(data), zlib.crc32(data))
    return found


class Stage:
    """Plays scripts in directories of its own. ``environment``: what the layered runs get besides
    WEIR_RULES."""

    def __init__(self, player: Path, directory: Path, preload: Path,
            environment: dict[str, str] | None = None) -> None:
        self.player, self.directory, self.preload = player, directory, preload
        self.environment = environment or {}
        self.numbers = itertools.count()

    def play(self, script: list, stack: str | None) -> Played:
        """stack: as in a rule; "" preloads without rules; None runs plain."""
        here = self.directory / f"{'plain' if stack is None else 'layered'}{next(self.numbers)}"
        work = here / "work"
        work.mkdir(parents=True)
        for name in re.findall("@([a-z])", stack or ""):  # directories of the stack's own
            (here / name).mkdir()
        stack = stack and re.sub("@([a-z])", rf"{here}/\1", stack)
        (here / "script").write_text("\n".join(lines(script)) + "\n")
        env = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")
            and k != "LD_PRELOAD"}
        if stack is not None:
            env.update(self.environment, LD_PRELOAD=str(self.preload),
                **({"WEIR_RULES": rules_of(stack)} if stack else {}))
        try:
            return self._run(here, work, env, killed=("end", 3) in script,
                blocked=(stack or "").startswith("cos"))
        finally:
            shutil.rmtree(here, ignore_errors=True)

    def _run(self, here: Path, work: Path, env: dict, killed: bool, blocked: bool) -> Played:
        process = subprocess.Popen(
            [self.player, here / "script"], cwd=work, env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            text = process.communicate(timeout=SECONDS)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text = process.communicate()[0].decode(errors="replace") + "(hangs)\n"
        return Played(text, process.returncode, files_in(work, blocked) if not killed
            else self._settled(work))

    def _settled(self, work: Path) -> dict:
        """What was accepted of a killed process reaches the files a moment later."""
        files = files_in(work)
        for _ in range(40):
            time.sleep(0.05)
            now = files_in(work)
            if now == files:
                return now
            files = now
        return files

    def difference(self, script: list, stack: str) -> str | None:
        return self.play(script, None).difference(self.play(script, stack))


def valid(script: list, alone: bool = False) -> list:
    """The operations of a script that have one outcome when the others are gone."""
    model = Model(alone)
    return [operation for operation in copy.deepcopy(script) if model.apply(operation)]


def shorten(script: list, differs, alone: bool = False, tries: int = 400) -> list:
    """A shorter script that still differs: halves, quarters and so on are left out in turn, then
    operations of blocks. Of scripts that hang it tries few, so that the test comes to print one."""
    size, until = max(1, len(script) // 2), time.monotonic() + 4 * SECONDS
    while size >= 1 and tries > 0 and time.monotonic() < until:
        at, shorter = 0, False
        while at < len(script) and tries > 0 and time.monotonic() < until:
            candidate = valid(script[:at] + script[at + size :], alone)
            tries -= 1
            if len(candidate) < len(script) and differs(candidate):
                script, shorter = candidate, True
            else:
                at += size
        size = size if shorter and size == 1 else size // 2
    return _shorten_blocks(script, differs, alone) if time.monotonic() < until else script


def _shorten_blocks(script: list, differs, alone: bool) -> list:
    for place, block in enumerate(script):
        at = 0
        while isinstance(block, Block) and at < len(block.body) and len(block.body) > 1:
            smaller = Block(block.head, block.words, block.body[:at] + block.body[at + 1 :])
            candidate = [*script[:place], smaller, *script[place + 1 :]]
            if valid(candidate, alone) == candidate and differs(candidate):
                script, block = candidate, smaller
            else:
                at += 1
    return script


def read_script(text: str) -> list:
    """The operations of a script's lines."""

    def words(line):
        return tuple(int(w, 0) if w.lstrip("-").isdigit() or w.startswith("0x") else w
            for w in line.split())

    script, rest = [], [line for line in text.splitlines() if line.strip()
        and not line.startswith("#")]
    while rest:
        line = words(rest.pop(0))
        if line[0] in ("fork", "exec", "spawn", "par"):
            count = line[2] if line[0] == "par" else line[1]
            body, rest = rest[:count], rest[count:]
            inner = [(words(b)[0], words(b)[1:]) if line[0] == "par" else words(b) for b in body]
            script.append(Block(line[0], line[1:2] if line[0] == "par" else line[2:], inner))
        elif str(line[0]).startswith("@"):
            script.append(("@", int(line[0][1:]), line[1:]))
        else:
            script.append(line)
    return script
