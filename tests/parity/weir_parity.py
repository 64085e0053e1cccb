# SPDX-License-Identifier: Apache-2.0
"""One run seen twice: by weir, and by strace -f around the same processes. What each counted, file
by file.

strace sees system calls. For a file that only descriptors touch (C read/write, gfortran, Python,
HDF5) the two must agree in every operation's calls and bytes. glibc's streams turn fread and fwrite
into other numbers of system calls, so for a file that a stream touched only the bytes written and
the number of opens and closes can be compared. A file that strace saw and weir did not is "unseen":
only what the dynamic linker and glibc's locale and time zone code read by themselves may be.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

# strace's name -> group; weir's names of the same group.
SYSTEM = {
    "read": "read", "write": "write", "pread64": "pread", "pwrite64": "pwrite", "readv": "readv",
    "writev": "writev",
    "preadv": "preadv", "preadv2": "preadv", "pwritev": "pwritev", "pwritev2": "pwritev",
    "lseek": "lseek",
    "fsync": "fsync", "fdatasync": "fdatasync", "ftruncate": "ftruncate", "open": "open",
    "openat": "open", "creat": "open",
    "close": "close",
}  # fmt: skip
WEIR = {
    "read": "read", "write": "write", "pread": "pread", "pwrite": "pwrite", "readv": "readv",
    "writev": "writev",
    "preadv": "preadv", "preadv2": "preadv", "pwritev": "pwritev", "pwritev2": "pwritev",
    "lseek": "lseek",
    "fsync": "fsync", "fdatasync": "fdatasync", "ftruncate": "ftruncate", "open": "open",
    "openat": "open", "creat": "open",
    "mkstemp": "open", "opendir": "open", "close": "close", "closedir": "close",
}  # fmt: skip
NAMES = ("rename", "renameat", "renameat2", "chdir")
STREAM_READS = {"fread", "fgets", "getline", "fgetc", "fscanf"}
STREAM_WRITES = {"fwrite", "fputs", "fputc", "fprintf"}
STREAM_OPENS = {"fopen": "open", "freopen": "open", "tmpfile": "open", "fclose": "close"}
MOVES = {"read", "write", "pread", "pwrite", "readv", "writev", "preadv", "pwritev"}
WRITES = {"write", "pwrite", "writev", "pwritev"}

# What ld.so and glibc open behind the program's back, by calls inside of glibc that pass no hook.
GLIBC_OWN = re.compile(
    r"(\.so(\.\w+)*$|/ld\.so\.(cache|preload)$|/locale[./-]|/locale/|/gconv/|/zoneinfo/|/localtime$|/nsswitch\.conf$|\.mo$"
    r"|^/sys/devices/system/(cpu|node)|/etc/(passwd|group|hosts|resolv\.conf|host\.conf|gai\.conf|services|protocols)$|glibc-hwcaps|/lib(/\w+)*/lib\w+\.so)"
)

RENAMED = re.compile(
    r'^rename\w*\((?:\S+<(?P<from_directory>[^>]*)>, )?"(?P<old>[^"]*)", '
    r'(?:\S+<(?P<to_directory>[^>]*)>, )?"(?P<new>[^"]*)".*= 0$')
CHANGED = re.compile(r'^chdir\("(?P<path>[^"]*)"\)\s+= 0$')
CALL = re.compile(
    r"^(?P<name>\w+)\((?P<arguments>.*)\)\s+= (?P<result>-?\d+|\?)(?:<(?P<opened>[^>]*)>)?")
DESCRIPTOR = re.compile(r"^\d+<(?P<path>[^>]*)>")
AT = re.compile(r'^(?:AT_FDCWD|\d+)(?:<(?P<directory>[^>]*)>)?, "(?P<path>(?:[^"\\]|\\.)*)"')
# How weir opens a program, to read its loader's name before it is executed (hook/foreign.cc).
LOOKED_AT = re.compile(r"^openat\(.*, O_RDONLY\|O_NOCTTY\|O_NONBLOCK\|O_CLOEXEC\)\s+= (?P<fd>\d+)<")
PLAIN = re.compile(r'^"(?P<path>(?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Figures:
    """Calls and bytes of one operation on one file."""

    calls: int = 0
    bytes: int = 0

    def __add__(self, other: Figures) -> Figures:
        return Figures(self.calls + other.calls, self.bytes + other.bytes)


@dataclass(frozen=True)
class Row:
    """One file: what strace and weir counted. kind: system, stream (a FILE was open on it), or
    unseen by weir."""

    file: str
    kind: str
    strace: dict[str, Figures]
    weir: dict[str, Figures]

    def differences(self) -> list[str]:
        """Sentences, one for each figure that should agree and does not."""
        compared = set(self.strace) | set(self.weir) if self.kind == "system" else {"open", "close"}
        found = [
            f"{self.file}: {op}: strace {self.strace.get(op, Figures())}, weir "
            f"{self.weir.get(op, Figures())}"
            for op in sorted(compared)
            if self.strace.get(op, Figures()) != self.weir.get(op, Figures())
        ]
        if self.kind == "stream":
            expected, seen = (sum(t.get(op, Figures()).bytes for op in WRITES | {"streamed"})
                for t in (self.strace, self.weir))
            if expected != seen:
                found.append(f"{self.file}: bytes written: strace {expected}, weir {seen}")
        return found


def tracer(prefix: Path, *command: object) -> list[str]:
    """The command line that runs a command under strace, one output file a process."""
    calls = ",".join([*sorted(SYSTEM), *NAMES])
    return ["strace", "-ff", "-y", "-s", "0", "--seccomp-bpf", "-e", f"trace={calls}", "-e",
        "signal=none", "-o", str(prefix),
            *(str(part) for part in command)]  # fmt: skip


def clean(path: str) -> str:
    """A path as both sides write it."""
    path = path.removesuffix(" (deleted)").removesuffix("(deleted)")
    while "//" in path or "/./" in path:
        path = path.replace("//", "/").replace("/./", "/")
    return path.removesuffix("/.").rstrip("/") or "/"


def named(name: str, arguments: str, opened: str | None) -> str | None:
    """The file that a line of strace is about."""
    if opened is not None:
        return opened
    if name == "openat" and (at := AT.match(arguments)):
        return os.path.join(at["directory"] or "/", at["path"])
    if name in ("open", "creat") and (plain := PLAIN.match(arguments)):
        return plain["path"]
    descriptor = DESCRIPTOR.match(arguments)
    return descriptor["path"] if descriptor else None


def without_own(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a thread but for weir's own look at programs that it is about to execute."""
    own = None
    for line in lines:
        if opened := LOOKED_AT.match(line):
            own = re.compile(rf"^(?P<name>\w+)\({opened['fd']}<")
        elif own is not None and (call := own.match(line)):
            own = None if call["name"] == "close" else own
        else:
            yield line


def read_strace(prefix: Path, cwd: Path) -> dict[str, dict[str, Figures]]:
    """File -> operation -> figures, over all processes that run in `cwd`; a renamed file under its
    last name, as in weir's table."""
    table: dict[str, dict[str, Figures]] = defaultdict(lambda: defaultdict(Figures))
    renamed: dict[str, str] = {}
    for output in prefix.parent.glob(prefix.name + ".*"):
        here = cwd
        for line in without_own(output.read_text(errors="replace").splitlines()):
            if at := CHANGED.match(line):
                here = here / at["path"]
            elif names := RENAMED.match(line):
                old, new = (os.path.join(names[directory] or here, names[name])
                    for directory, name in (("from_directory", "old"), ("to_directory", "new")))
                renamed[clean(os.path.realpath(old))] = clean(os.path.realpath(new))
            call = CALL.match(line)
            if call is None or call["name"] not in SYSTEM:
                continue
            file = named(call["name"], call["arguments"], call["opened"])
            if file is None or not file.startswith("/"):
                continue
            op = SYSTEM[call["name"]]
            moved = int(call["result"]) if op in MOVES and call["result"] not in ("?", "-1") else 0
            table[clean(os.path.realpath(file))][op] += Figures(1, max(moved, 0))
    for old, new in renamed.items():
        while new in renamed and renamed[new] != old:
            new = renamed[new]
        for op, figures in table.pop(old, {}).items():
            table[new][op] += figures
    return table


def read_report(report: dict) -> dict[str, tuple[dict[str, Figures], bool]]:
    """File -> (operation -> figures, whether a stream was open on it), from weir report --json.

    strace names what a link leads to, weir what the program called it.
    """
    table: dict[str, tuple[dict[str, Figures], bool]] = {}
    for entry in report["files"]:
        file = clean(os.path.realpath(entry["file"]) if entry["file"].startswith("/")
            else entry["file"])
        figures, streamed = table.get(file, (defaultdict(Figures), False))
        for op, row in entry["ops"].items():
            moved = Figures(row["calls"], row["bytes"])
            if op in WEIR:
                figures[WEIR[op]] += moved if WEIR[op] in MOVES else Figures(row["calls"])
            elif op in STREAM_OPENS:
                figures[STREAM_OPENS[op]] += Figures(row["calls"])
                streamed = True
            elif op in STREAM_READS or op in STREAM_WRITES:
                streamed = True
                if op in STREAM_WRITES:
                    figures["streamed"] += Figures(0, row["bytes"])
        table[file] = (figures, streamed)
    return table


def compare(prefix: Path, cwd: Path, report: dict, own: tuple[str, ...]) -> list[Row]:
    """One row a file. own: beginnings of names that belong to the measurement itself."""
    strace, seen = read_strace(prefix, cwd), read_report(report)
    rows = []
    for file in sorted(set(strace) | {f for f, (figures, _) in seen.items() if figures}):
        # a pipe has no name; strace's own output
        if not file.startswith("/") or file.startswith(own):
            continue
        # weir itself reads /proc
        if file.startswith(("/dev/", "/proc/")) and not file.startswith("/dev/shm/"):
            continue
        figures, streamed = seen.get(file, ({}, False))
        kind = "stream" if streamed else "system" if figures else "unseen"
        rows.append(Row(file, kind, dict(strace.get(file, {})), dict(figures)))
    return rows


def observe(weir, directory: Path, *command: object, env=None, cwd=None,
        timeout: float = 120) -> list[Row]:
    """Run a command under both and compare. weir: the test fixture that runs the command line."""
    run, prefix = directory / "run", directory / "strace"
    weir("trace", "--quiet", "-o", run, "--", *tracer(prefix, *command), env=env, cwd=cwd
        or directory, timeout=timeout).ok()
    answer = weir("report", run, "--json", "--all", cwd=directory)
    return compare(prefix, cwd or directory, json.loads(answer.ok().stdout),
        (str(prefix), str(run)))


def unexplained(rows: list[Row]) -> list[str]:
    """Files that strace saw, weir did not, and neither ld.so nor glibc opens by itself."""
    return [row.file for row in rows if row.kind == "unseen" and not GLIBC_OWN.search(row.file)]


def disagreements(rows: list[Row]) -> list[str]:
    """All figures that should agree and do not."""
    return [sentence for row in rows if row.kind != "unseen" for sentence in row.differences()]


def totals(rows: list[Row]) -> dict[str, Counter]:
    """Kind -> files, calls and bytes of either side, for the parity table."""
    sums: dict[str, Counter] = defaultdict(Counter)
    for row in rows:
        for side, table in (("strace", row.strace), ("weir", row.weir)):
            sums[row.kind][f"{side} calls"] += sum(f.calls for f in table.values())
            sums[row.kind][f"{side} bytes"] += sum(f.bytes for f in table.values())
        sums[row.kind]["files"] += 1
        sums[row.kind]["differ"] += bool(row.kind != "unseen" and row.differences())
    return sums
