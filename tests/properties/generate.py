# SPDX-License-Identifier: Apache-2.0
"""Random scripts. A flavour says which operations are proposed; the model keeps those that have one
outcome."""

from __future__ import annotations

import fcntl
import os
import random
from dataclasses import dataclass

from model import DIRECTORIES, FAR, MAPS, SLOTS, STREAMS, Block, Model, Process
from stacks import ALONE, NEED_CLOSE, leaves_out

RANGE = FAR // 3  # of one of three threads
NAMES = ("fa", "fb", "fc", "fd", "fe")
MODES = ("r", "r+", "w", "w+", "a", "a+", "rb", "r+b", "wb+", "wx", "w+x", "ae", "rbe", "ab+", "q")


class Draw:
    """Values of operations. Many lie at the edges of small blocks and of the C library's buffers.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.process = Process()

    def slot(self):
        return self._used("fds", SLOTS)

    def stream(self):
        return self._used("streams", STREAMS)

    def _used(self, kind, count):
        """Mostly one that is in use."""
        used = [i for i, entry in enumerate(getattr(self.process, kind)) if entry]
        return self.rng.choice(used) if used and self.rng.random() < 0.85 else self.rng.randrange(
            count)

    def map(self):
        return self.rng.randrange(MAPS)

    def name(self):
        return self.rng.choice(NAMES)

    def size(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.1:
            return rng.choice((0, 1, 1))
        if kind < 0.5:
            return rng.randrange(1, 300)
        if kind < 0.75:
            return max(0, rng.choice((512, 2048, 4096, 8192, 16384))
                + rng.choice((-1, 0, 0, 1, 100)))
        return rng.randrange(1, 9000) if kind < 0.97 else rng.randrange(1, 140000)

    def offset(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.15:
            return 0
        if kind < 0.4:
            return max(0, rng.randrange(0, 24) * 4096 + rng.choice((-1, 0, 0, 1, 77)))
        return rng.randrange(0, 40000) if kind < 0.95 else rng.randrange(0, 400000)

    def sizes(self):
        return tuple(self.size() // 3 for _ in range(self.rng.randrange(1, 6)))

    def flags(self):
        rng = self.rng
        flags = rng.choice((os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR, os.O_RDWR))
        for flag, share in (
            (os.O_CREAT, 0.6), (os.O_TRUNC, 0.1), (os.O_EXCL, 0.06), (os.O_APPEND, 0.15),
            (os.O_SYNC, 0.05), (os.O_DSYNC, 0.05),
            (os.O_CLOEXEC, 0.3), (os.O_DIRECT, 0.01), (os.O_DIRECTORY, 0.01), (os.O_NOFOLLOW, 0.03),
            (os.O_NONBLOCK, 0.02),
        ):  # fmt: skip
            if rng.random() < share:
                flags |= flag
        return flags


def either(d, *values):
    return d.rng.choice(values)


# name: (weight, words of one). Those of streams take a stream first, those of descriptors a slot.
POSIX = {
    "open": (6, lambda d: (d.rng.randrange(SLOTS // 2), d.name(), d.flags(), 0o644,
        either(d, 0, 0, 1, 2, 3) if d.rng.random() < 0.5 else 0)),
    "close": (3, lambda d: (d.slot(),)),
    "read": (12, lambda d: (d.slot(), d.size())),
    "write": (14, lambda d: (d.slot(), d.size())),
    "pread": (9, lambda d: (d.slot(), d.size(), d.offset())),
    "pwrite": (9, lambda d: (d.slot(), d.size(), d.offset())),
    "readv": (3, lambda d: (d.slot(), either(d, -1, d.offset()), *d.sizes())),
    "writev": (3, lambda d: (d.slot(), either(d, -1, d.offset()), *d.sizes())),
    "readv2": (1, lambda d: (d.slot(), either(d, -1, d.offset()), *d.sizes())),
    "writev2": (1, lambda d: (d.slot(), either(d, -1, d.offset()), *d.sizes())),
    "lseek": (8, lambda d: (d.slot(), *either(d, (d.offset(), 0), (-either(d, 0, 1, 100, 5000), 1),
        (d.size(), 1), (-d.size(), 2), (d.size(), 2), (d.offset(), either(d, 3, 4, 9)), (-1, 0)))),
    "ftruncate": (3, lambda d: (d.slot(), d.offset())),
    "truncate": (1, lambda d: (d.name(), d.offset())),
    "fallocate": (1, lambda d: (d.slot(), either(d, 0, 0, 1, 3), d.offset(),
        either(d, d.size(), 0))),
    "posix_fallocate": (1, lambda d: (d.slot(), d.offset(), d.size())),
    "fsync": (1, lambda d: (d.slot(),)),
    "fdatasync": (1, lambda d: (d.slot(),)),
    "fadvise": (1, lambda d: (d.slot(), d.offset(), d.size(), d.rng.randrange(7))),
    "sync_range": (0.5, lambda d: (d.slot(), d.offset(), d.size())),
    "access": (0.5, lambda d: (d.name(), 0)),
    "fstat": (4, lambda d: (d.slot(),)),
    "stat": (4, lambda d: (d.name(), d.rng.randrange(3))),
    "statx": (2, lambda d: (d.name(),)),
    "fionread": (1, lambda d: (d.slot(),)),
    "dup": (2, lambda d: (d.slot(), d.slot(), d.rng.randrange(2))),
    "dup2": (2, lambda d: (d.slot(), d.slot(), d.rng.randrange(2))),
    "getfl": (1, lambda d: (d.slot(),)),
    "setfl": (1, lambda d: (d.slot(), either(d, 0, os.O_APPEND))),
    "getfd": (0.5, lambda d: (d.slot(),)),
    "cloexec": (0.5, lambda d: (d.slot(), d.rng.randrange(2))),
    "rename": (1, lambda d: (d.name(), d.name())),
    "unlink": (1, lambda d: (d.name(),)),
    "link": (0.5, lambda d: (d.name(), d.name())),
    "flock": (1.5, lambda d: (d.slot(), either(d, fcntl.LOCK_SH, fcntl.LOCK_EX,
        fcntl.LOCK_UN) | fcntl.LOCK_NB)),
    "lockf": (0.5, lambda d: (d.slot(), either(d, 0, 2, 3), d.size())),
    "lock": (1.5, lambda d: (d.slot(), d.rng.randrange(4),
        *either(d, (0, 0), (d.offset(), d.size())))),
    "sendfile": (0.7, lambda d: (d.slot(), d.slot(), d.size())),
    "copy_range": (0.7, lambda d: (d.slot(), either(d, -1, d.offset()), d.slot(),
        either(d, -1, d.offset()), d.size())),
}  # fmt: skip
MAPPED = {
    "mmap": (0.5, lambda d: (d.map(), d.slot(), d.offset(), d.size() + 1, d.rng.randrange(2))),
    "mread": (2, lambda d: (d.map(), d.offset(), d.size())),
    "mwrite": (2, lambda d: (d.map(), d.offset(), d.size())),
    "munmap": (0.7, lambda d: (d.map(),)),
}
STDIO = {
    "fopen": (5, lambda d: (d.rng.randrange(STREAMS), d.name(), d.rng.choice(MODES),
        d.rng.randrange(2))),
    "fdopen": (2, lambda d: (d.stream(), d.slot(), d.rng.choice(MODES[:6]))),
    "freopen": (1, lambda d: (d.stream(), d.name(), d.rng.choice(MODES[:9]))),
    "fclose": (3, lambda d: (d.stream(),)),
    "fread": (9, lambda d: (d.stream(), either(d, 1, 1, 3, 8, 100), d.size() // either(d, 1, 4))),
    "fwrite": (9, lambda d: (d.stream(), either(d, 1, 1, 3, 8, 100), d.size() // either(d, 1, 4))),
    "fgetc": (5, lambda d: (d.stream(), either(d, 1, 3, 50, 5000))),
    "fputc": (5, lambda d: (d.stream(), either(d, 1, 3, 50, 5000))),
    "fgets": (3, lambda d: (d.stream(), either(d, 10, 80, 500))),
    "getline": (2, lambda d: (d.stream(),)),
    "fputs": (3, lambda d: (d.stream(), d.size())),
    "fprintf": (3, lambda d: (d.stream(), d.size())),
    "fscanf": (2, lambda d: (d.stream(),)),
    "ungetc": (2, lambda d: (d.stream(), either(d, 65, 0, 200))),
    "fseek": (8, lambda d: (d.stream(), *either(d, (d.offset(), 0), (-either(d, 0, 1, 100), 1),
        (d.size(), 1), (-d.size(), 2), (d.size(), 2), (-1, 0)), d.rng.randrange(2))),
    "ftell": (4, lambda d: (d.stream(),)),
    "position": (1, lambda d: (d.stream(),)),
    "rewind": (1, lambda d: (d.stream(),)),
    "fflush": (5, lambda d: (either(d, -1, d.stream()),)),
    "setvbuf": (0.7, lambda d: (d.stream(), d.rng.randrange(3), d.rng.randrange(2),
        either(d, 0, 16, 512, 4096, 65536))),
    "clearerr": (1, lambda d: (d.stream(),)),
    "putwc": (0.2, lambda d: (d.stream(), 87)),
    "getwc": (0.2, lambda d: (d.stream(),)),
    "below": (3, lambda d: (d.stream(), d.rng.randrange(8), d.size(), d.offset())),
}  # fmt: skip
# Few names and few ways to open them, again and again: what is kept of a file after its close is
# found.
LOG_FLAGS = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    os.O_RDWR | os.O_CREAT | os.O_APPEND)
LOGS = {
    **{name: (weight, POSIX[name][1]) for name, weight in {
        "close": 22, "write": 9, "read": 6, "pread": 2, "pwrite": 1, "writev": 1, "lseek": 2,
        "ftruncate": 0.5, "truncate": 0.5, "fsync": 0.7,
        "fstat": 2, "stat": 4, "statx": 1, "access": 2, "fionread": 0.5, "dup": 0.5, "dup2": 0.5,
        "getfl": 1, "setfl": 0.3, "getfd": 1, "cloexec": 0.5,
        "rename": 0.7, "unlink": 0.7, "link": 0.5, "flock": 0.7, "lockf": 0.3, "lock": 0.7,
        "sendfile": 0.3, "copy_range": 0.3,
    }.items()},
    **{name: (weight, STDIO[name][1]) for name, weight in {"fclose": 8, "fread": 2, "fputs": 3,
        "fprintf": 2, "ftell": 1, "fseek": 1, "fflush": 1, "freopen": 0.3}.items()},
    "open": (20, lambda d: (d.rng.randrange(2), d.rng.choice(NAMES[:3]),
        d.rng.choice(LOG_FLAGS) | either(d, 0, 0, 0, os.O_CLOEXEC), 0o644, 0)),
    "fopen": (4, lambda d: (d.rng.randrange(2), d.rng.choice(NAMES[:3]),
        either(d, "r", "a", "a", "a+", "w"), 0)),
}  # fmt: skip
# Names in directories, which come, go and get other names.
TREE_NAMES = ("fa", "fb", "da/fa", "da/fb", "db/fa", "db/fc")


def in_tree(d):
    return d.rng.choice(TREE_NAMES)


TREE = {
    **{name: (weight, POSIX[name][1]) for name, weight in {
        "close": 12, "read": 5, "write": 9, "pread": 3, "pwrite": 3, "lseek": 2, "ftruncate": 1,
        "fsync": 0.5, "fstat": 2, "dup": 0.7, "dup2": 0.7, "flock": 0.3,
    }.items()},
    "open": (16, lambda d: (d.rng.randrange(SLOTS // 2), in_tree(d), d.flags(), 0o644, 0)),
    "fopen": (2, lambda d: (d.rng.randrange(2), in_tree(d), either(d, "r", "a", "w", "r+"), 0)),
    **{name: (weight, STDIO[name][1]) for name, weight in {"fclose": 4, "fputs": 2}.items()},
    "stat": (5, lambda d: (in_tree(d), d.rng.randrange(3))),
    "statx": (1, lambda d: (in_tree(d),)),
    "access": (1, lambda d: (in_tree(d), 0)),
    "truncate": (1, lambda d: (in_tree(d), d.offset())),
    "unlink": (4, lambda d: (in_tree(d),)),
    "link": (0.7, lambda d: (in_tree(d), in_tree(d))),
    "rename": (5, lambda d: either(d, (in_tree(d), in_tree(d)), (in_tree(d), in_tree(d)),
        DIRECTORIES, DIRECTORIES[::-1])),
    "mkdir": (4, lambda d: (d.rng.choice(DIRECTORIES),)),
    "rmdir": (3, lambda d: (d.rng.choice(DIRECTORIES),)),
    "list": (5, lambda d: (either(d, ".", *DIRECTORIES),)),
}  # fmt: skip
PATHS = ("stat", "statx", "unlink", "rename", "truncate", "fstat", "open", "close", "read", "write",
    "link")


@dataclass(frozen=True)
class Flavour:
    operations: dict
    blocks: float = 0.0  # share of fork, exec, spawn
    threads: float = 0.0
    processes: int = 1


FLAVOURS = {
    "posix": Flavour(POSIX),
    "stdio": Flavour({**STDIO, **{name: (0.6, POSIX[name][1]) for name in PATHS}}),
    "mixed": Flavour({**POSIX, **STDIO, **MAPPED}),
    "mapped": Flavour({**POSIX, **MAPPED}),
    "family": Flavour({**POSIX, **STDIO}, blocks=0.05),
    "threads": Flavour(POSIX, threads=0.1),
    "logs": Flavour(LOGS, blocks=0.02),
    "logs_turns": Flavour(LOGS, processes=2),
    "tree": Flavour(TREE),
    "turns": Flavour({**POSIX, **MAPPED}, processes=3),
    "turns_stdio": Flavour({**POSIX, **STDIO}, processes=2),
}


def script(rng: random.Random, flavour: str, operations: int, stack: str = "") -> list:
    """A valid script of about so many operations, of those that the stack (a name of STACKS) can
    do."""
    kind, draw, model = FLAVOURS[flavour], Draw(rng), Model(stack in ALONE)
    names = list(kind.operations)
    weights = [kind.operations[name][0] for name in names]
    made, whole = 0, []

    def propose():
        while True:
            name = rng.choices(names, weights)[0]
            operation = (name, *kind.operations[name][1](draw))
            if not leaves_out(stack, operation):
                return operation

    while made < operations:
        luck = rng.random()
        draw.process = model.processes[0]
        if luck < kind.blocks:
            head = rng.choice(("fork", "fork", "exec", "spawn"))
            candidate = Block(head, (rng.randrange(2),) if head == "fork" else (),
                [propose() for _ in range(rng.randrange(1, 12))])
            candidate.body = [inner for inner in candidate.body
                if not leaves_out(stack, Block(head, candidate.words, [inner]))]
            whole += [flush for flush in _unflushed(model) if model.apply(flush)]
        elif luck < kind.blocks + kind.threads:
            candidate = _at_once(rng, draw, model)
        else:
            process = rng.randrange(kind.processes)
            draw.process = model.processes[process]
            candidate = propose()
            if process > 0:
                candidate = ("@", process, candidate)
        if candidate and model.apply(candidate):
            whole.append(candidate)
            made += len(candidate.body) if isinstance(candidate, Block) else 1
    if rng.random() < 0.5:
        end = ("end", rng.choice((0, 0, 1, 1, 2, 2 if stack in ALONE | NEED_CLOSE else 3)))
        if not model.apply(end):
            whole += [flush for flush in _unflushed(model) if model.apply(flush)]
            model.apply(end)
        whole += [end] if model.ended else []
    return whole


def _unflushed(model) -> list:
    return [("fflush", at) for at, stream in enumerate(model.processes[0].streams) if stream
        and not stream.level]


def _at_once(rng, draw, model) -> Block | None:
    """Threads that read and write by offset, each in a range of its own, of files that end behind
    the ranges."""
    slots = [s for s, entry in enumerate(model.processes[0].fds) if entry
        and model.plainly_writable(entry[0])]
    if not slots:
        return None
    body = []
    for thread in range(3):
        for _ in range(rng.randrange(1, 6)):
            size = min(draw.size(), 20000)
            at = thread * RANGE + rng.randrange(0, 12000)
            body.append((thread, (rng.choice(("pread", "pwrite")), rng.choice(slots), size, at)))
    return Block("par", (3,), body)
