# SPDX-License-Identifier: Apache-2.0
"""Which file system a directory lies on."""

from __future__ import annotations

import os
from pathlib import Path


def file_system_type(directory: str) -> str:
    """The type of the file system a directory lies on, from /proc/self/mountinfo; empty when it
    cannot be known."""
    wanted = os.stat(directory).st_dev
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    real = os.path.realpath(directory)
    for line in lines:
        left, _, right = line.partition(" - ")
        fields = left.split()
        point = fields[4].encode().decode("unicode_escape")
        major, _, minor = fields[2].partition(":")
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best) and os.makedev(int(major), int(minor)) == wanted:
            best, kind = point, right.split()[0]
    return kind
