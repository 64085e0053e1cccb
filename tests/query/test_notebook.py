# SPDX-License-Identifier: Apache-2.0
"""The notebook among the examples runs from its first cell to its last."""

from __future__ import annotations

import json
import sys

import pytest
from query_runs import TWO_STEPS, write_run

pytest.importorskip("duckdb", reason="needs the test extra, on Python 3.11 or newer")


def test_the_notebook_runs(root, execute, tmp_path):
    notebook = json.loads((root / "examples" / "notebook" / "where_the_time_goes.ipynb")
        .read_text())
    assert notebook["nbformat"] == 4
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 5 and not [cell for cell in notebook["cells"] if cell
        .get("outputs")], "outputs are not kept"
    write_run(tmp_path / "demo-run", TWO_STEPS.split("step min0")[0])
    # What the last line of a cell says is printed, as a notebook shows it.
    script = "\n".join(cell.rsplit("\n", 1)[0] + f"\nprint({cell.rsplit(chr(10), 1)[-1]})"
        for cell in cells if "\n" in cell)
    printed = execute([sys.executable, "-c", script], cwd=tmp_path).ok().stdout
    assert "traj0" in printed and "/data/a" in printed
    # 4096 + 100 written to a, 4096 read of it; 800 by a statement as 816; a pipe's 9; 50 of a
    # launcher; 5 x 1000
    assert printed.split()[-1] == str(4096 + 100 + 4096 + 800 + 816 + 9 + 50 + 5000)
