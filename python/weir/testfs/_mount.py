# SPDX-License-Identifier: Apache-2.0
"""Mounting, unmounting, and finding what is mounted.

The state of a mount (options and counters) is a file in shared memory, named for the directory,
which stays after the unmount until the next mount there; see native/testfs/state.h.
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import signal
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from weir import _native
from weir._errors import Error, NotThere, StorageError, UsageError
from weir.testfs import _library
from weir.testfs._presets import PRESETS
from weir.testfs._stats import Stats

PROGRAM = "weir-testfs"
TYPE = "fuse.weir-testfs"
_STATES_KEPT = 32
_WAIT_S = 10.0  # for what takes milliseconds unless something is wrong


@dataclass(frozen=True)
class Mount:
    """One mount, running or not. ``path`` is absolute."""

    path: Path

    def stats(self) -> Stats:
        return Stats.from_json(self.stats_json())

    def stats_json(self, *, reset: bool = False) -> str:
        """The counters as they are now; with reset they are set to zero afterwards."""
        return _library.stats(self._state(), reset=reset)

    def reset(self) -> None:
        """Set all counters to zero."""
        self.stats_json(reset=True)

    def control(self, *options: str, **values: object) -> None:
        """Change options while it runs: ``control(hang=5)``, ``control("fail=write:EIO:0.01:7")``.

        Raises UsageError for what is no option, or can only be given at the mount, NotThere when it
        does not run any more.
        """
        if not self.stats().running:
            raise NotThere(f"{self.path}: the test file system has ended; weir testfs umount "
                           f"{self.path}, if it is mounted still, and mount anew")
        for option in [*options, *(f"{name}={_plain(value)}" for name, value in values.items())]:
            _library.control(self._state(), option)

    def unmount(self) -> None:
        unmount(self.path)

    @property
    def pid(self) -> int:
        """The process that serves it."""
        return json.loads(self.stats_json())["pid"]

    def _state(self) -> Path:
        state = _state_of(self.path)
        if not state.exists():
            raise NotThere(f"{self.path}: no test file system was mounted there; see weir testfs "
                           f"mount")
        return state


def mount(
    directory: str | os.PathLike,
    *,
    backing: str | os.PathLike | None = None,
    preset: str = "local",
    bucket: str | None = None,
    owner: int | None = None,
    fail: list[str] | tuple[str, ...] = (),
    **options: object,
) -> Mount:
    """Mount on a directory that exists, and return when the mount is there.

    backing: the directory whose files are shown; without it those of the directory itself. bucket:
    mounts with the same name share one server. owner: unmount when the process of this number ends.
    options: those of the preset, to override it, and ``threads``, ``writeback``, ``hang_s``,
    ``enospc_after``; None leaves the preset's value.

    Raises UsageError, NotThere and StorageError; the last says what the system lacks.
    """
    path = Path(os.path.realpath(directory))
    if is_mounted(path):
        # Before any question to the directory: one whose server was killed answers none.
        state = "is mounted there already" if _serving(
            path) is not None else "whose server has ended is mounted there still"
        raise UsageError(f"{path}: a test file system {state}; weir testfs umount {path}")
    path = _directory(directory)
    shown = _directory(backing) if backing is not None else path
    if preset not in PRESETS:
        raise UsageError(f"no preset `{preset}`; there are {', '.join(PRESETS)}")
    _forget_what_is_gone()
    values: dict[str, object] = {**PRESETS[preset].options(), **{k: v for k, v in options.items()
        if v is not None}}
    given = [f"{name}={_plain(value)}" for name, value in values.items()] + [f"fail={rule}"
        for rule in fail]
    if bucket is not None:
        given.append(f"bucket={_bucket_path(bucket)}")
    if owner is not None:
        given.append(f"owner={owner}")
    _start(_state_of(path), path, shown, *given)
    if not is_mounted(path):
        raise StorageError(
            f"{path}: {PROGRAM} mounted it, but it does not appear among this process's mounts")
    return Mount(path)


@contextmanager
def mounted(directory: str | os.PathLike, **keywords: object) -> Iterator[Mount]:
    """``mount`` for a with statement; the end of it unmounts."""
    made = mount(directory, **keywords)  # type: ignore[arg-type]
    try:
        yield made
    finally:
        made.unmount()


def unmount(directory: str | os.PathLike) -> None:
    """Unmount, lazily when files are in use, and wait for the serving process to end.

    Programs that have files open there get errors from then on. Raises NotThere when nothing is
    mounted there.
    """
    path = Path(os.path.abspath(directory))
    if not is_mounted(path):
        raise NotThere(f"{path}: no test file system is mounted there")
    pid = _serving(path)
    in_use = not _run_unmount(path, lazy=False)
    if in_use:
        _run_unmount(path, lazy=True)
    if is_mounted(path):
        raise StorageError(
            f"{path}: cannot be unmounted, not even lazily; see mount(8) and who uses it (fuser "
            f"-m)")
    if pid is not None:
        _end(pid, at_once=in_use)


def find(directory: str | os.PathLike) -> Mount:
    """The mount of this directory, whether or not it still runs. Raises NotThere when there was
    none."""
    found = Mount(Path(os.path.abspath(directory)))
    found._state()
    return found


def forget(directory: str | os.PathLike) -> None:
    """Remove the counters of a mount that has ended."""
    _state_of(Path(os.path.abspath(directory))).unlink(missing_ok=True)


def is_mounted(path: Path) -> bool:
    """Asks the kernel's table, so that a file system that hangs is not asked."""
    wanted = os.fsencode(path)
    with open("/proc/self/mountinfo", "rb") as table:
        for line in table:
            before, _, after = line.partition(b" - ")
            at = before.split()[4].replace(b"\\040", b" ").replace(b"\\011",
                b"\t").replace(b"\\012", b"\n")
            if at.replace(b"\\134", b"\\") == wanted and after.split()[0] == TYPE.encode():
                return True
    return False


def _directory(name: str | os.PathLike) -> Path:
    path = Path(os.path.realpath(name))
    if not os.path.isdir(path):
        raise NotThere(f"{path}: there is no such directory; make it first")
    return path


def _plain(value: object) -> object:
    return int(value) if isinstance(value, bool) else value


def _states() -> Path:
    """The directory of the states: in shared memory, of this user alone."""
    directory = Path("/dev/shm" if os.path.isdir("/dev/shm")
        else "/tmp") / f"weir-testfs-{os.getuid()}"
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{directory}: {error.strerror}") from error
    about = os.lstat(directory)
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o022:
        raise StorageError(f"{directory}: is not a directory of this user alone; remove it")
    return directory


def _state_of(path: Path) -> Path:
    return _states() / (
        f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}-{path.name[:64]}.state"
    )


def _forget_what_is_gone() -> None:
    """Removes the states of mounts whose directory no longer exists, when many have come together.
    """
    states = sorted(_states().glob("*.state"))
    for state in states if len(states) > _STATES_KEPT else ():
        with suppress(Error, OSError):
            data = json.loads(_library.stats(state, reset=False))
            if not data["running"] and not os.path.isdir(data["mount"]):
                state.unlink()


def _bucket_path(name: str) -> Path:
    if not name or "/" in name or len(name) > 64:
        raise UsageError(f"`{name}` is no name of a bucket: a word without `/`")
    return _states() / f"{name}.bucket"


def _program() -> Path:
    try:
        return _native.library_path(PROGRAM)
    except _native.LibraryMissing as error:
        raise StorageError(
            f"{PROGRAM} is not built: install libfuse3 with its headers (Debian: apt-get install "
            f"libfuse3-dev fuse3), "
            "then run `make build` in the source tree or reinstall weir-io"
        ) from error


def _environment() -> Mapping[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("WEIR_") and k != "LD_PRELOAD"}


def _start(*arguments: object) -> None:
    command = [str(_program()), *(str(argument) for argument in arguments)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="surrogateescape",
        env=_environment()
    )
    if done.returncode == 0:
        return
    said = done.stderr.strip().removeprefix(f"{PROGRAM}: ")
    if done.returncode == 127 and "libfuse3" in said:
        raise StorageError(f"{said} (Debian: apt-get install fuse3)")
    if done.returncode == 2:
        raise UsageError(said)
    raise StorageError(said or f"{PROGRAM} ended with {done.returncode}")


def _serving(path: Path) -> int | None:
    with suppress(Error):
        found = Mount(path)
        return found.pid if found.stats().running else None
    return None


def _run_unmount(path: Path, *, lazy: bool) -> bool:
    if os.getuid() == 0:
        command = ["umount", "--no-canonicalize", *(["--lazy"] if lazy else []), str(path)]
    else:
        command = ["fusermount3", "-u", *(["-z"] if lazy else []), "--", str(path)]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_WAIT_S).returncode == 0
    except FileNotFoundError as error:
        raise StorageError(
            f"{command[0]} is not installed (Debian: apt-get install mount fuse3)") from error
    except subprocess.TimeoutExpired:
        return False


def _end(pid: int, *, at_once: bool) -> None:
    """Wait until the process that served a mount has ended; with at_once, or after a while, see to
    it."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if not at_once and _ended(handle, _WAIT_S):
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
            if _ended(handle, _WAIT_S):
                return
    finally:
        os.close(handle)


def _ended(handle: int, wait_s: float) -> bool:
    ended = select.poll()
    ended.register(handle, select.POLLIN)
    return bool(ended.poll(wait_s * 1000))
