# SPDX-License-Identifier: Apache-2.0
"""Command `weir probe`: its figures against a file system whose latency is known, the cache, and
what it leaves behind."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest


@pytest.fixture
def probe(weir, tmp_path):
    def call(*words):
        return weir("probe", *words, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})

    return call


def test_latency_is_no_less_than_that_of_the_file_system(probe, testfs, tmp_path):
    place = testfs("lustre")
    (one,) = json.loads(probe(place.path, "--json").ok().stdout)
    latency = {name: found["median"] for name, found in one["latency_s"].items()}
    assert latency.keys() == {"create", "close", "stat", "open", "unlink", "write_4KiB", "fsync",
        "read_4KiB", "read_4KiB_again"}
    assert latency["read_4KiB"] >= 600e-6 and latency["create"] >= 350e-6
    assert not one["is_cached"], "preset lustre has no page cache"
    rates = {(r["way"], r["request_bytes"]): r["bytes_per_s"] for r in one["rates"]
        if r["processes"] == 1 and not r["from_cache"]}
    assert all(rates["write", 1 << 20] > 3 * rates[way, 4096] for way in ("read", "write"))
    assert rates["read", 4096] <= 4096 / 600e-6
    assert one["mount"]["kind"] == "fuse.weir-testfs"
    assert {found["processes"] for found in one["creates"]} == {1, 2, 4}
    assert list(place.backing.iterdir()) == []


def test_the_page_cache_is_distinguished(probe, testfs):
    place = testfs("nfs")
    (one,) = json.loads(probe(place.path, "--json").ok().stdout)
    assert one["is_cached"]
    assert "page cache" in probe(place.path).ok().stdout


def test_figures_are_kept_for_the_mount(probe, testfs):
    place = testfs("direct")
    first = json.loads(probe(place.path, "--json").ok().stdout)
    place.reset()
    (place.backing / "below").mkdir()
    assert json.loads(probe(place.path / "below", "--json").ok().stdout) == first
    assert place.stats().requests.get("write", 0) == 0
    assert json.loads(probe(place.path, "--json", "--again").ok().stdout) != first


def test_estimates_use_them(probe, weir, testfs, tmp_path, tmp_run):
    place = testfs("direct", data_us=200)
    place.control(bandwidth_mb=20)
    program = ("import os, sys\nf = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)\n"
        "for _ in range(2000): os.write(f, bytes(8192))")
    weir("trace", "-o", tmp_run, "--", sys.executable, "-c", program, place.path / "x").ok()
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}

    def low() -> float:
        found = json.loads(weir("advise", tmp_run, "--json", env=cache).stdout)
        return found["findings"][0]["saving"]["io"]["low"]

    before = low()
    probe(place.path).ok()
    (data,) = (tmp_path / "cache" / "weir" / "probe").iterdir()
    assert low() != before
    assert json.loads(Path(data).read_text())["format"] == 1


def test_what_cannot_be_measured_is_refused(probe, tmp_path):
    refused = probe(tmp_path / "nowhere")
    assert refused.returncode == 3 and "not a directory" in refused.stderr
