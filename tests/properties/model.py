# SPDX-License-Identifier: Apache-2.0
"""What is known of files, descriptors and streams while a script runs, as far as it decides what a
script may do.

A script may do all that has one outcome. What the C library leaves open is left out: reading a file
through a descriptor while a stream holds bytes of it, writing one that a stream has buffered,
touching a mapping behind the end of its file. ``Model().apply(operation)`` is false, and changes
nothing, where the operation is of that kind or aims at nothing.
"""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass, field

SLOTS, STREAMS, MAPS = 8, 4, 4
DIRECTORIES = ("da", "db")
FAR = 3 * 32768  # behind all that the threads of one par touch
READS = ("fread", "fgetc", "fgets", "getline", "fscanf")
WIDE = ("putwc", "getwc")


@dataclass
class Block:
    """fork, exec, spawn (``words`` behind the count) or par (``threads``): a head and the
    operations under it."""

    head: str
    words: tuple
    body: list


@dataclass(eq=False)
class Inode:
    # blocks without bytes: SEEK_DATA then finds what of them the kernel's cache happens to have
    reserved: bool = False


@dataclass(eq=False)
class Opened:
    """An open file description."""

    inode: Inode
    flags: int


@dataclass(eq=False)
class Stream:
    opened: Opened
    writes: bool
    reads: bool
    clean: bool = True  # holds nothing that is not in the file
    level: bool = True  # and stands where its descriptor stands
    last: str | None = None
    sought: bool = False
    wide: bool = False
    wrote: bool = False
    phase: str | None = None  # "reads", "writes"
    # from writing to reading by fflush: glibc 2.36 loses its way after ungetc there
    turned: bool = False
    # a byte back since it sought last: where fflush leaves the descriptor then depends on where the
    # buffer ends
    pushed: bool = False


@dataclass
class Process:
    fds: list = field(default_factory=lambda: [None] * SLOTS)  # (Opened, cloexec)
    streams: list = field(default_factory=lambda: [None] * STREAMS)
    maps: list = field(default_factory=lambda: [None] * MAPS)


class Model:
    def __init__(self, alone: bool = False) -> None:
        self.alone = alone  # no file is opened, or cut by name, while it is open
        self.names: dict[str, Inode] = {}
        self.directories: set[str] = set()
        self.processes = {p: Process() for p in range(4)}
        self.ended = False

    def apply(self, operation, process: int = 0) -> bool:
        """``operation``: words of a line, a Block, or ("@", P, words)."""
        if self.ended:
            return False
        if isinstance(operation, Block):
            return self._block(operation)
        if operation[0] == "@":
            return self.apply(operation[2], operation[1])
        if operation[0] == "end":
            # Killed or by _exit, with bytes in a stream's buffer: how many depends, after a seek,
            # on where the buffer begins.
            self.ended = operation[1] == 0 or all(s is None or s.clean or not s.sought
                for s in self.processes[0].streams)
            return self.ended
        self.me = self.processes[process]
        return getattr(self, "_" + operation[0], self._on_fd)(*operation)

    # Who else has the file

    def _is_open(self, inode) -> bool:
        return bool(self._streams_on(inode)) or any(e and e[0].inode is inode
            for p in self.processes.values() for e in p.fds)

    def _streams_on(self, inode, but=None):
        return [s for p in self.processes.values() for s in p.streams if s and s is not but
            and s.opened.inode is inode]

    def _mapped(self, inode) -> bool:
        return any(m and m[0] is inode for p in self.processes.values() for m in p.maps)

    def _may(self, inode, writes: bool, but=None) -> bool:
        others = self._streams_on(inode, but)
        return not others if writes else all(s.clean or not s.writes for s in others)

    def _block(self, block: Block) -> bool:
        me = self.processes[0]
        # the child's streams then give back what they have read ahead
        exits = block.head == "fork" and block.words[0] == 0
        if any(s and not (s.level if exits else s.clean) for p in self.processes.values()
                for s in p.streams):
            return False
        before = copy.copy(me)
        before.fds, before.streams, before.maps = list(me.fds), list(me.streams), list(me.maps)
        if block.head == "par":
            block.body = [(t, op) for t, op in block.body if op[0] in ("pread", "pwrite")
                and self.apply(op)]
            return len(block.body) > 0
        me.streams = [None] * STREAMS
        hidden = [s for s in before.streams if s]
        me.maps = [None] * MAPS
        if block.head != "fork":
            me.fds = [e if e and not e[1] else None for e in me.fds]
        # The parent's streams and maps count as those of a process of their own meanwhile.
        self.processes[99] = Process(streams=hidden, maps=before.maps)
        block.body = [op for op in block.body if op[0] not in ("end", "@") and self.apply(op)]
        del self.processes[99]
        self.processes[0] = before
        return len(block.body) > 0

    # Descriptors

    def _on_fd(self, name, slot=0, *words) -> bool:
        entry = self.me.fds[slot]
        if entry is None:
            return name in ("read", "write", "lseek", "fsync", "close")  # EBADF, now and then
        opened = entry[0]
        if name in ("fstat", "pread", "readv", "readv2", "read", "lseek", "fionread", "fsync",
                "fdatasync"):
            if name == "lseek" and opened.inode.reserved and words[1] in (os.SEEK_DATA,
                    os.SEEK_HOLE):
                return False
            implicit = name in ("read", "lseek", "fionread") or (name in ("readv", "readv2")
                and words[0] < 0)
            return self._may(opened.inode, False) and not (implicit
                and self._shared_with_stream(opened))
        if name in ("write", "pwrite", "writev", "writev2", "ftruncate", "fallocate",
                "posix_fallocate"):
            if name in ("ftruncate", "fallocate") and self._mapped(opened.inode):
                return False
            if opened.flags & os.O_DIRECT and not self._is_aligned(name, words):
                return False
            allowed = self._may(opened.inode, True) and not self._shared_with_stream(opened)
            opened.inode.reserved |= allowed and name in ("fallocate", "posix_fallocate")
            return allowed
        return True

    @staticmethod
    def _is_aligned(name, words) -> bool:
        """Linux refuses a write by O_DIRECT of which only the end is not aligned (EINVAL), but may
        have written its first pages by then: it depends on where the program's buffer lies in
        memory."""
        return "write" not in name or (name == "pwrite" and words[0] % 4096 == 0
            and words[1] % 4096 == 0)

    def _setfl(self, name, slot, flags) -> bool:
        if self.me.fds[slot]:
            opened = self.me.fds[slot][0]
            opened.flags = opened.flags & ~os.O_APPEND | flags
        return True

    def plainly_writable(self, opened) -> bool:
        """Where a write by offset goes is the offset's affair alone."""
        return opened.flags & (os.O_ACCMODE | os.O_APPEND | os.O_DIRECT) == os.O_RDWR and self._may(
            opened.inode, True)

    def _shared_with_stream(self, opened) -> bool:
        return any(s and s.opened is opened for p in self.processes.values() for s in p.streams)

    def _opened(self, path, flags):
        """The open file description, None for a failure, False for what a script may not do."""
        inode = self.names.get(path)
        if flags & os.O_DIRECTORY or not self._has_directory(path):
            return None
        if self.alone and inode is not None and self._is_open(inode):
            return False
        if inode is None:
            if not flags & os.O_CREAT:
                return None
            inode = self.names[path] = Inode()
        elif flags & os.O_CREAT and flags & os.O_EXCL:
            return None
        elif flags & os.O_TRUNC and (self._mapped(inode) or self._streams_on(inode)):
            return False
        return Opened(inode, flags)

    def _open(self, name, slot, path, flags, mode, how) -> bool:
        if how == 3:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        opened = self._opened(path, flags)
        if opened is not False:
            self.me.fds[slot] = (opened, bool(flags & os.O_CLOEXEC)) if opened else None
        return opened is not False

    def _close(self, name, slot) -> bool:
        self.me.fds[slot] = None
        return True

    def _dup(self, name, slot, to, how) -> bool:
        if self.me.fds[slot]:
            self.me.fds[to] = (self.me.fds[slot][0], False)
        return slot != to

    def _dup2(self, name, slot, to, how) -> bool:
        if self.me.fds[slot]:
            self.me.fds[to] = (self.me.fds[slot][0], how == 1 and self.me.fds[to] is not None)
        return slot != to

    def _cloexec(self, name, slot, value) -> bool:
        if self.me.fds[slot]:
            self.me.fds[slot] = (self.me.fds[slot][0], bool(value))
        return True

    def _two(self, source, target, shares: bool) -> bool:
        a, b = self.me.fds[source], self.me.fds[target]
        if not a or not b or a[0].inode is b[0].inode:
            return False
        if shares and (self._shared_with_stream(a[0]) or self._shared_with_stream(b[0])):
            return False
        return not b[0].flags & os.O_DIRECT and self._may(a[0].inode,
            False) and self._may(b[0].inode, True)

    def _sendfile(self, name, to, source, size) -> bool:
        return self._two(source, to, True)

    def _copy_range(self, name, source, at, to, to_at, size) -> bool:
        return self._two(source, to, True)

    # Paths

    def _path(self, path, writes) -> bool:
        inode = self.names.get(path)
        return inode is None or (self._may(inode, writes) and not (writes and self._mapped(inode)))

    def _stat(self, name, path, *how) -> bool:
        return self._path(path, False)

    _statx = _stat

    def _access(self, name, path, mode) -> bool:
        return True

    def _truncate(self, name, path, size) -> bool:
        inode = self.names.get(path)
        return self._path(path, True) and not (self.alone and inode is not None
            and self._is_open(inode))

    def _has_directory(self, path) -> bool:
        return "/" not in path or path.split("/")[0] in self.directories

    def _in(self, directory) -> list[str]:
        return [path for path in self.names if path.startswith(directory + "/")]

    def _mkdir(self, name, path) -> bool:
        self.directories.add(path)
        return True

    def _rmdir(self, name, path) -> bool:
        if not self._in(path):
            self.directories.discard(path)
        return True

    def _list(self, name, path) -> bool:
        return True

    def _move_directory(self, path, to) -> bool:
        if path not in DIRECTORIES or to not in DIRECTORIES or path == to:
            return False
        if path in self.directories and not (to in self.directories and self._in(to)):
            self.directories.discard(path)
            self.directories.add(to)
            for old in self._in(path):
                self.names[to + old[len(path):]] = self.names.pop(old)
        return True

    def _rename(self, name, path, to) -> bool:
        if path in DIRECTORIES or to in DIRECTORIES:
            return self._move_directory(path, to)
        if not self._has_directory(to):
            return True
        if path in self.names and self.names.get(to) is not self.names[path]:
            self.names[to] = self.names.pop(path)
        return path != to

    def _unlink(self, name, path) -> bool:
        return self.names.pop(path, None) is not None

    def _link(self, name, path, to) -> bool:
        if path in self.names and to not in self.names and self._has_directory(to):
            self.names[to] = self.names[path]
        return True

    # Maps

    def _mmap(self, name, at, slot, offset, size, writes) -> bool:
        entry = self.me.fds[slot]
        if entry is None or self._streams_on(entry[0].inode):
            return False
        # One that fails leaves no map; one that is believed to be there and is not prints nothing.
        self.me.maps[at] = (entry[0].inode, writes)
        return True

    def _mread(self, name, at, *words) -> bool:
        return self.me.maps[at] is not None and self._may(self.me.maps[at][0], False)

    def _mwrite(self, name, at, *words) -> bool:
        return self.me.maps[at] is not None and bool(self.me.maps[at][1]) and self._may(
            self.me.maps[at][0], True)

    def _munmap(self, name, at) -> bool:
        mapped, self.me.maps[at] = self.me.maps[at], None
        return mapped is not None

    # Streams

    def _new_stream(self, opened, mode) -> bool:
        writes = mode[0] != "r" or "+" in mode
        if any(s.writes or writes for s in self._streams_on(opened.inode)) or (writes
                and self._mapped(opened.inode)):
            return False
        return Stream(opened, writes, mode[0] == "r" or "+" in mode)

    def _stream_flags(self, mode) -> int:
        flags = {"r": 0, "w": os.O_CREAT | os.O_TRUNC, "a": os.O_CREAT | os.O_APPEND}.get(mode[0])
        if flags is None:
            return -1
        flags |= os.O_RDWR if "+" in mode else os.O_RDONLY if mode[0] == "r" else os.O_WRONLY
        return flags | (os.O_EXCL if "x" in mode else 0)

    def _fopen(self, name, at, path, mode, how=0) -> bool:
        if self.me.streams[at]:
            return False  # one at a time: what the old one wrote comes first
        flags = self._stream_flags(mode)
        inode = self.names.get(path)
        if flags < 0:
            return True
        if inode and self._new_stream(Opened(inode, 0), mode) is False:
            return False
        opened = self._opened(path, flags)
        if opened:
            self.me.streams[at] = self._new_stream(opened, mode)
        return opened is not False

    def _fdopen(self, name, at, slot, mode) -> bool:
        entry = self.me.fds[slot]
        if self.me.streams[at] or entry is None or self._shared_with_stream(entry[0]):
            return False
        stream = self._new_stream(entry[0], mode)
        access = entry[0].flags & os.O_ACCMODE
        if entry[0].flags & os.O_APPEND and mode[0] != "a":
            return False  # glibc would not know where its writes go
        if entry[0].flags & os.O_DIRECT:
            # the address that malloc gives the stream's buffer decides what is written
            return False
        if stream is False or sum(e is not None and e[0] is entry[0]
                for p in self.processes.values() for e in p.fds) > 1:
            return False
        if mode[0] == "r" and access == os.O_WRONLY or mode[
                0] != "r" and access == os.O_RDONLY or "+" in mode and access != os.O_RDWR:
            return True  # EINVAL
        self.me.streams[at], self.me.fds[slot] = stream, None
        return True

    def _freopen(self, name, at, path, mode) -> bool:
        old = self.me.streams[at]
        if old is None:
            return False
        self.me.streams[at] = None
        if self._fopen(name, at, path, mode):
            return True
        self.me.streams[at] = old
        return False

    def _fclose(self, name, at) -> bool:
        stream, self.me.streams[at] = self.me.streams[at], None
        return stream is not None

    def _fflush(self, name, at) -> bool:
        flushed = [s for s in (self.me.streams if at < 0 else [self.me.streams[at]]) if s]
        if any(s.pushed for s in flushed):
            return False
        for stream in flushed:
            stream.turned = stream.turned or stream.phase == "writes"
            stream.clean, stream.phase = True, None
            stream.level = stream.level or at >= 0
        return at < 0 or self.me.streams[at] is not None

    def _on_stream(self, name, at, *words) -> bool:
        stream = self.me.streams[at]
        if stream is None or not self._may(stream.opened.inode, stream.writes, stream):
            return False
        if name in ("fread", "fwrite") and 0 in words:
            return False
        if self._mapped(stream.opened.inode) or not self._in_turn(stream, name):
            return False
        # others may fail
        sought = name == "rewind" or (name == "fseek" and words[1] == 0 and words[0] >= 0)
        stream.pushed = name == "ungetc" or (stream.pushed and not sought)
        stream.sought |= name in ("fseek", "rewind", "below", "position")
        stream.clean = stream.level = False
        stream.last = name
        return True

    def _in_turn(self, stream, name) -> bool:
        """What C wants: a seek or flush between writing and reading (glibc needs none the other
        way), a byte pushed back after a read and not written over, characters that are wide or not.
        """
        if name in WIDE or stream.wide:
            stream.wide = stream.wide or stream.last is None
            turned = stream.last is None or stream.last == name
            return stream.wide and name in WIDE and turned
        if name == "setvbuf" and stream.pushed:  # glibc frees what it never allocated
            return False
        if name in ("ftell", "clearerr", "setvbuf"):
            return stream.last != "ungetc" or name == "ftell"
        if name == "below" and stream.pushed:
            return False
        if name in ("fseek", "rewind", "below"):
            stream.phase, stream.turned = None, False
            stream.wrote = stream.wrote or name == "below"
            return True
        if name == "ungetc":
            return (
                stream.reads
                and stream.phase == "reads"
                and stream.last in READS
                and not stream.turned
            )
        if stream.last == "ungetc" and name not in READS:
            return False
        if stream.pushed and stream.phase == "reads" and name not in READS and name != "position":
            # C wants a seek before output, which drops what was pushed back: what of it is left
            # depends on the buffer's size
            return False
        phase = "reads" if name in READS or name == "position" else "writes"
        if (stream.phase, phase) == ("writes",
                "reads") or name == "position" and stream.last == "ungetc":
            return False
        if phase == "reads" and not stream.reads and stream.wrote:
            return False
        stream.phase, stream.wrote = phase, stream.wrote or phase == "writes"
        return True

    _fread = _fwrite = _fgetc = _fputc = _fgets = _getline = _fputs = _fprintf = _fscanf = (
        _ungetc
    ) = _on_stream
    _fseek = _ftell = _position = _rewind = _setvbuf = _clearerr = _putwc = _getwc = _below = (
        _on_stream
    )


def lines(script: list) -> list[str]:
    """The lines of a script; a Block's count is that of its operations."""
    text = []
    for operation in script:
        if isinstance(operation, Block):
            # what a thread reads must not depend on how far another one has come
            if operation.head == "par":
                text += [f"pwrite {slot} 1 {FAR}"
                    for slot in sorted({op[1] for _, op in operation.body})]
            words = (*operation.words, len(operation.body)) if operation.head == "par" else (
                len(operation.body), *operation.words)
            text.append(" ".join(map(str, (operation.head, *words))))
            for inner in operation.body:
                text.append(f"{inner[0]} {_line(inner[1])}" if operation.head == "par"
                    else _line(inner))
        elif operation[0] == "@":
            text.append(f"@{operation[1]} {_line(operation[2])}")
        else:
            text.append(_line(operation))
    return text


def _line(words) -> str:
    return " ".join(map(str, words))


def count(script: list) -> int:
    return sum(len(op.body) if isinstance(op, Block) else 1 for op in script)
