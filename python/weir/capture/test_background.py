# SPDX-License-Identifier: Apache-2.0
"""Programs that run still when the command has ended."""

from __future__ import annotations

import os
import subprocess

from weir.capture import _background


def test_a_process_in_the_middle_of_exec_is_found(monkeypatch, tmp_path):
    """Linux shows an empty environment between the old program and the new one."""
    environ = {**os.environ, "WEIR_TRACE_DIR": str(tmp_path)}
    process = subprocess.Popen(["sleep", "60"], env=environ)
    read, empty = _background._read, {str(process.pid): 3}

    def reads_nothing_at_first(pid: str, name: str) -> bytes:
        if empty.get(pid, 0) > 0:
            empty[pid] -= name == "cmdline"
            return b""
        return read(pid, name)

    monkeypatch.setattr(_background, "_read", reads_nothing_at_first)
    try:
        assert (process.pid, "sleep 60") in _background.in_background(str(tmp_path))
    finally:
        process.kill()
        process.wait()
