# SPDX-License-Identifier: Apache-2.0
"""What the layer itself reads and writes is not taken for I/O of the program that was not seen."""

from __future__ import annotations

import json

FILES, PIECES, PIECE = 300, 20, 500
PROGRAM = f"""
for n in range({FILES}):
    with open(f"d/{{n}}.dat", "wb") as file:
        for _ in range({PIECES}): file.write(b"x" * {PIECE})
for n in range({FILES}):
    assert len(open(f"d/{{n}}.dat", "rb").read()) == {PIECES * PIECE}
"""


def test_a_run_of_packed_files_is_complete(weir, tmp_path, tmp_run):
    (tmp_path / "d").mkdir()
    rules = tmp_path / "rules.toml"
    rules.write_text(f'[[rule]]\npath = "{tmp_path}/d/*.dat"\nstack = "pack:name=all.zip"\n')
    weir("run", "--rules", rules, "--trace", tmp_run, "--", "python3", "-c", PROGRAM,
        cwd=tmp_path).ok()
    done = weir("report", tmp_run, "--json", "--tables", "processes").ok()
    assert "INCOMPLETE" not in done.stderr
    whole = FILES * PIECES * PIECE
    processes = json.loads(done.stdout)["processes"]
    wrote = [row for row in processes if row["kernel_bytes_written"] >= whole]
    assert wrote and all(row["unseen"] == 0 and not row["incomplete"] for row in wrote)
