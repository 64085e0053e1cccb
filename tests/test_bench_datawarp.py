# SPDX-License-Identifier: Apache-2.0
"""``weir bench datawarp`` at a small scale: which server moves which bytes. No time is judged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

UNIT, INDEX = 1 << 20, 64 << 10  # of texts that say where the pieces of striped files are


@pytest.fixture
def bench(weir, native_build, tmp_path):
    if not Path("/dev/fuse").exists():
        pytest.skip("no /dev/fuse: the test file system cannot be mounted here")
    if shutil.which("unshare") is None:
        pytest.skip("no unshare: node B has no mounts of its own")

    def run(*options: object):
        return weir("bench", "datawarp", *options, "--programs", native_build, "--directory",
            tmp_path, timeout=280)

    return run


def of(row, step, kind, what):
    """Bytes read (0) or written (1) at the servers of a kind, each for itself."""
    return [both[what] for name, both in row["steps"][step]["moved"].items()
        if name.startswith(kind)]


def is_about(found, expected):
    return 0 <= found - expected < INDEX


@pytest.mark.campaign
@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_each_server_moves_its_part_and_node_b_reads_what_a_wrote(bench, tmp_path):
    found = tmp_path / "found.json"
    done = bench("--scale", "0.002", "--ranks", "6", "--frames", "1", "--ost-mb", "200",
        "--burst-mb", "600", "--json", found).ok()
    assert "DataWarp, 3 nodes, private" in done.stdout and "read on node B" in done.stdout
    rows = {row["name"]: row for row in json.loads(found.read_text())["rows"]}
    assert not any(row["error"] for row in rows.values())
    size = rows["lustre-3"]["steps"]["output"]["bytes"]
    files = 2
    for name, count in (("lustre-3", 3), ("lustre-16", 16)):
        for step, what in (("output", 1), ("input", 0)):
            each = of(rows[name], step, "ost", what)
            assert sum(each) == size and not of(rows[name], step, "burst", what)
            assert len(each) <= count and max(each) - min(each) <= files * UNIT
    striped, private = rows["striped"], rows["private"]
    for row, parts in ((striped, 1), (private, 3)):
        written, staged = of(row, "output", "burst", 1), of(row, "output", "ost", 1)
        whole = row["steps"]["output"]["bytes"]
        # The model's bytes are at the burst buffer once, and staged out to the file system.
        assert sum(staged) == whole and is_about(sum(written), whole) and len(written) == 3
        assert max(written) - min(written) <= (files * UNIT + INDEX if parts == 1 else 0)
        # Staged in, written there, read back to be compared, and read by the model.
        assert sum(of(row, "input", "ost", 0)) == whole
        assert is_about(sum(of(row, "input", "burst", 1)), whole)
        assert is_about(sum(of(row, "input", "burst", 0)), 2 * whole)
    assert is_about(sum(of(rows["node-b"], "striped", "burst", 0)), size)
    assert rows["node-b"]["steps"]["container"]["requests"] < 400


@pytest.mark.parametrize(("options", "message"), [
    (("--ranks", "4"), "a multiple of 3"), (("--scale", "0"), "above 0, at most 1"),
    (("--frames", "20"), "--frames: 1 to 16"), (("--ost-mb", "0"), "MB/s above 0"),
])  # fmt: skip
def test_what_cannot_be_run_is_refused_at_once(bench, options, message):
    done = bench(*options)
    assert done.returncode == 2 and message in done.stderr
