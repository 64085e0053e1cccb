# SPDX-License-Identifier: Apache-2.0
"""Mounts of the test file system for tests: on directories of their own, ended with the test, and
with pytest at the latest."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from weir.testfs import Mount, Stats, mount
from weir.testfs._mount import forget, is_mounted


@dataclass(frozen=True)
class TestMount:
    """``path`` is the mount, ``backing`` the directory of its files, which can be looked at past
    the mount."""

    __test__ = False
    mount: Mount
    backing: Path

    @property
    def path(self) -> Path:
        return self.mount.path

    def stats(self) -> Stats:
        return self.mount.stats()

    def reset(self) -> None:
        self.mount.reset()

    def control(self, *options: str, **values: object) -> None:
        self.mount.control(*options, **values)

    def unmount(self) -> None:
        self.mount.unmount()

    def hold_together(self, requests: list[Callable[[], object]]) -> None:
        """Makes the requests in threads; none is answered before all are in service, however late a
        busy machine begins some."""
        self.control(hang=100)
        threads = [threading.Thread(target=request) for request in requests]
        for thread in threads:
            thread.start()
        try:
            end = time.monotonic() + 300
            while (there := self.stats().in_flight) < len(requests):
                assert time.monotonic() < end, (
                    f"{there} of {len(requests)} requests are in service; the others wait for them"
                )
                time.sleep(0.005)
        finally:
            self.control(hang=0)
            for thread in threads:
                thread.join()


MEMORY = Path("/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir())
BACKING = "weir-testfs-backing-"


def remove_what_killed_runs_left() -> None:
    """A pytest that is killed loses its mounts by their owner, but not the files behind them, which
    take memory."""
    for directory in MEMORY.glob(f"{BACKING}*-*"):
        pid = directory.name.removeprefix(BACKING).split("-")[0]
        if not os.path.exists(f"/proc/{pid}"):
            shutil.rmtree(directory, ignore_errors=True)


class Mounts:
    """``testfs("lustre", data_us=0)``: mounts with the options of ``weir.testfs.mount``; backing
    defaults to a new directory in memory, which goes with the test."""

    def __init__(self, directory: Path):
        self._directory = directory
        self._mounts: list[Mount] = []
        self._backings: list[Path] = []
        remove_what_killed_runs_left()

    def __call__(self, preset: str = "direct", *, backing: Path | None = None,
            **options: object) -> TestMount:
        point = self._directory / f"mount{len(self._mounts)}"
        point.mkdir()
        if backing is None:
            backing = Path(tempfile.mkdtemp(prefix=f"{BACKING}{os.getpid()}-", dir=MEMORY))
            backing.chmod(0o755)
            self._backings.append(backing)
        made = mount(point, backing=backing, preset=preset, owner=os.getpid(), **options)
        self._mounts.append(made)
        return TestMount(made, backing)

    def close(self) -> None:
        for made in self._mounts:
            if is_mounted(made.path):
                made.unmount()
            forget(made.path)
        for backing in self._backings:
            shutil.rmtree(backing, ignore_errors=True)
