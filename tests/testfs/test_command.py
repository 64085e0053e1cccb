# SPDX-License-Identifier: Apache-2.0
"""``weir testfs`` as typed."""

from __future__ import annotations

import json

from weir.testfs import PRESETS
from weir.testfs._mount import is_mounted


def test_from_mount_to_umount(weir, tmp_path, testfs):
    point, backing = tmp_path / "slow", tmp_path / "files"
    point.mkdir()
    backing.mkdir()
    weir("testfs", "mount", point, "--backing", backing, "--preset", "lustre", "--data-us", "10",
        "--fail", "unlink:EIO").ok()
    try:
        (point / "a.dat").write_bytes(bytes(10_000))
        assert (point / "a.dat").read_bytes() == bytes(10_000)
        weir("testfs", "control", point, "fail=none", "round_trip_us=0").ok()
        (point / "a.dat").unlink()
        shown = weir("testfs", "stats", point).ok().stdout
        data = json.loads(weir("testfs", "stats", point, "--json", "--reset").ok().stdout)
        again = json.loads(weir("testfs", "stats", point, "--json").ok().stdout)
    finally:
        weir("testfs", "umount", point).ok()
    assert not is_mounted(point)
    assert data["mount"] == str(point) and data["backing"] == str(
        backing) and data["running"] is True
    assert data["bytes_written"] == data["bytes_read"] == data["files"]["a.dat"][
        "bytes_read"] == 10_000
    assert data["requests"]["unlink"] == 1 and data["injected"] == 0
    assert data["options"] == {**data["options"], "round_trip_us": 0, "data_us": 10,
        "metadata_us": 50, "direct_io": 1}
    assert again["requests"]["write"] == 0 and again["files"] == {}
    assert f"write{data['requests']['write']:>19}" in shown
    assert shown.splitlines()[-2:] != [] and "a.dat" in shown and "MB written" in shown


def test_what_can_be_wrong(weir, tmp_path, testfs):
    done = weir("testfs", "mount", tmp_path, "--preset", "none-such")
    assert done.returncode == 2 and "there are local, direct" in done.stderr
    done = weir("testfs", "mount", tmp_path, "--fail", "write")
    assert done.returncode == 2 and "op:errno:rate:seed" in done.stderr
    done = weir("testfs", "mount", tmp_path / "none")
    assert done.returncode == 3 and "no such directory" in done.stderr
    for verb in ("umount", "stats"):
        done = weir("testfs", verb, tmp_path)
        assert done.returncode == 3 and "mounted there" in done.stderr


def test_each_preset_mounts_as_it_says(weir, testfs):
    for name, preset in PRESETS.items():
        shown = testfs(name).stats().options
        assert {key: shown[key] for key in preset.options()} == preset.options()


def test_help_names_every_preset(weir):
    words = " ".join(weir("testfs", "mount", "--help").ok().stdout.split())
    assert all(name in words for name in PRESETS)


def test_the_table_of_many_files_ends_in_their_number(weir, testfs):
    fs = testfs("direct")
    for i in range(30):
        (fs.path / f"f{i}").touch()
    shown = weir("testfs", "stats", fs.path).ok().stdout
    # 30 and the directory itself
    assert shown.splitlines()[-1] == "and 11 more files (--json has all)"
    fs.reset()
    assert "none" in weir("testfs", "stats", fs.path).ok().stdout
