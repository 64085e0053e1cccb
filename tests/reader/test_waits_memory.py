# SPDX-License-Identifier: Apache-2.0
"""What a report of a run with many records of MPI holds of each of them, and that it is the same
however the run is divided on the way."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from weir.analysis import lines
from weir.analysis.columns import numbered
from weir.report import build, report_json
from weir.report.output_cost import waiting as output_waiting
from weir.report.waits import instances, messages, spent

MOST_BYTES = 330  # of a record of MPI; 190 were measured, 660 before columns were made smaller
CONSTANT_BYTES = 12 << 20  # of buffers that some records need and many do not exceed
REPORT = """
import sys
sys.argv[:] = ["weir", "report", sys.argv[1], "--json"]
from weir.cli import main
status = main()
[line] = [one for one in open("/proc/self/status") if one.startswith("VmHWM")]
print(int(line.split()[1]) * 1024, file=sys.stderr)
sys.exit(status)
"""


@pytest.fixture(scope="module")
def write_run(root):
    """bench/waiting.py's: ranks with messages, requests and collectives of all kinds."""
    sys.path.insert(0, str(root / "bench"))
    try:
        from waiting import write_run
    finally:
        sys.path.pop(0)
    return write_run


def peak_of(run) -> int:
    done = subprocess.run([sys.executable, "-c", REPORT, str(run)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stderr.split()[-1])


@pytest.mark.parametrize("few", [20_000, pytest.param(40_000, marks=pytest.mark.campaign)])
def test_a_record_of_mpi_needs_little_memory(tmp_path, write_run, few):
    peaks, many = [], few * few // 4000  # 100,000 and 400,000
    for count in (few, many):
        write_run(tmp_path / str(count), count)
        peaks.append(peak_of(tmp_path / str(count)))
    assert peaks[1] - peaks[0] < MOST_BYTES * (many - few) + CONSTANT_BYTES


@pytest.mark.parametrize("ranks", [3, 8])
def test_the_report_is_the_same_however_much_is_made_at_once(tmp_path, monkeypatch, write_run,
        ranks):  # fmt: skip
    run = tmp_path / "run"
    write_run(run, 1500, ranks)
    whole = report_json(build(run))
    monkeypatch.setattr(lines, "TIMESTAMPS_AT_ONCE", 50)
    monkeypatch.setattr(messages, "CALLS_AT_ONCE", 700)
    monkeypatch.setattr(instances, "ARRIVALS_AT_ONCE", 10)
    monkeypatch.setattr(output_waiting, "WINDOWS_AT_ONCE", 100)
    assert report_json(build(run)) == whole
    monkeypatch.setattr(messages, "CALLS_AT_ONCE", 1)
    assert report_json(build(run)) == whole


@pytest.mark.parametrize("keys", [[], [3], [5, 0, 5, 2], [1 << 40, -7, 1 << 40]])
def test_keys_are_numbered_as_unique_does(keys):
    keys = np.array(keys, np.int64)
    found, at = numbered(keys)
    expected = np.unique(keys, return_inverse=True)
    assert found.tolist() == expected[0].tolist()
    assert at.tolist() == expected[1].tolist()


@pytest.mark.parametrize("timestamps", [1, 100, 1 << 17])
def test_the_report_is_the_same_of_strands_one_by_one_and_of_several(tmp_path, monkeypatch,
        write_run, timestamps):  # fmt: skip
    run = tmp_path / "run"
    write_run(run, 2000, 8)
    whole = report_json(build(run))
    monkeypatch.setattr(spent, "FEW_STRANDS", 0)
    monkeypatch.setattr(spent, "TIMESTAMPS_AT_ONCE", timestamps)
    pieces = []
    several = spent._of_several
    monkeypatch.setattr(spent, "_of_several", lambda data, piece: pieces.append(len(piece.lines))
        or several(data, piece))
    assert report_json(build(run)) == whole
    assert pieces == [8] if timestamps == 1 << 17 else True
