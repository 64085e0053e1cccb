# SPDX-License-Identifier: Apache-2.0
"""What `weir report` says of programs whose files have layers."""

from __future__ import annotations

import json
from pathlib import Path


def test_a_rank_that_reads_ahead_is_not_called_incomplete(weir, testfs, tmp_path):
    """The kernel counts megabytes for a program that asks for 0.1 MB."""
    fs = testfs("direct")
    (fs.backing / "a.dat").write_bytes(bytes(8 << 20))
    rules, program = tmp_path / "rules.toml", tmp_path / "reader.py"
    rules.write_text('[[rule]]\nname = "*.dat"\nstack = "bufa:1MiB:8"\n')
    program.write_text(
        "import os, sys\n"
        "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
        "for at in range(0, 8 << 20, 32768): assert len(os.pread(fd, 512, at)) == 512\n"
    )
    command = ["python3", program, fs.path / "a.dat"]
    weir("run", "--rules", rules, "--trace", tmp_path / "run", "--", *command, cwd=tmp_path).ok()
    report = json.loads(weir("report", tmp_path / "run", "--json").ok().stdout)
    [reader] = [p for p in report["processes"] if Path(p["command"].split()[1]).name == "reader.py"]
    assert reader["kernel_bytes_read"] > 1_500_000
    assert reader["seen_bytes_read"] > 1_300_000
    assert not reader["incomplete"]
