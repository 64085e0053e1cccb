# SPDX-License-Identifier: Apache-2.0
"""What staging asks the file system for: each file is written, made durable and read back once."""

from __future__ import annotations

import os

from weir.stage.copying import copy_all, files_below


def test_a_file_is_written_synchronised_and_read_back_once(testfs, tmp_path):
    fs = testfs("direct")
    (tmp_path / "d").mkdir()
    for number in range(20):
        (tmp_path / f"d/{number}").write_bytes(bytes([number]) * 5000)
        os.chmod(tmp_path / f"d/{number}", 0o640)
        os.utime(tmp_path / f"d/{number}", ns=(7 * 10**9, 5 * 10**9))
    assert copy_all(files_below(tmp_path / "d", fs.path / "d"), "x", lambda _: None) == 100_000
    requests = fs.stats().requests
    assert (requests["write"], requests["fsync"], requests["read"]) == (20, 20, 20)
    assert requests["mkdir"] == 1
    for number in range(20):
        about = (fs.backing / f"d/{number}").stat()
        assert (fs.backing / f"d/{number}").read_bytes() == bytes([number]) * 5000
        assert (about.st_mode & 0o777, about.st_mtime_ns) == (0o640, 5 * 10**9)
