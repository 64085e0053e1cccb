# SPDX-License-Identifier: Apache-2.0
"""A file system with the latency of a parallel one, which counts the requests that reach it: ``weir
testfs``.

Mounting and unmounting, presets, counters. What a request costs and how it is counted is decided in
native/testfs.

    with mounted("/scratch/slow", backing="/dev/shm/x", preset="lustre") as fs:
        ...
        assert fs.stats().requests["read"] == 4
"""

from weir.testfs._mount import Mount, find, mount, mounted, unmount
from weir.testfs._presets import PRESETS, Preset
from weir.testfs._stats import FileStats, Stats, Transfers

__all__ = ["PRESETS", "FileStats", "Mount", "Preset", "Stats", "Transfers", "find", "mount",
    "mounted", "unmount"]
