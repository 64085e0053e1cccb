# SPDX-License-Identifier: Apache-2.0
"""weir's own commands leave no records in the step that a job script has begun."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def test_weir_commands_inside_a_traced_script_are_not_recorded(weir, tmp_path):
    command = Path(sys.executable).parent / "weir"
    (tmp_path / "job.sh").write_text(
        f"cat job.sh > copy\n'{command}' --version\n'{command}' doctor >/dev/null || true\n")
    weir("trace", "--quiet", "-o", tmp_path / "run", "--", "bash", "job.sh", cwd=tmp_path).ok()
    report = json.loads(weir("report", tmp_path / "run", "--json", cwd=tmp_path).ok().stdout)
    commands = [one["command"] for one in report["processes"]]
    assert any("job.sh" in one for one in commands)
    assert not [one for one in commands if str(command) in one]
