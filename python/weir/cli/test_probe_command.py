# SPDX-License-Identifier: Apache-2.0
"""Command `weir probe`: its figures against a file system whose latency is known, the cache, and
what it leaves behind."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.any_mpi


@pytest.fixture
def probe(weir, tmp_path):
    def call(*words):
        return weir("probe", *words, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})

    return call


def test_latency_is_that_of_the_file_system_and_memory_that_of_all_cores(probe, testfs, tmp_path):
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
    counts, cores = [found["cores"] for found in one["memory"]], len(os.sched_getaffinity(0))
    assert counts == sorted({*(2**n for n in range(cores.bit_length()) if 2**n < cores), cores})
    assert all(1e7 < found["bytes_per_s"] < 1e13 for found in one["memory"])


def test_the_page_cache_is_distinguished(probe, testfs):
    place = testfs("nfs", data_us=5_000)  # more than a busy machine lets a cached read wait
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

    def found() -> dict:
        return json.loads(weir("advise", tmp_run, "--json", env=cache).stdout)

    before = found()
    probe(place.path).ok()
    (data,) = (tmp_path / "cache" / "weir" / "probe").iterdir()
    after = found()
    low, low_before = (one["findings"][0]["saving"]["io"]["low"] for one in (after, before))
    assert low != low_before
    assert not any(one["is_measured"] for one in before["rates"])
    assert all(one["is_measured"] and one["file_system"] == str(place.path)
        for one in after["rates"])
    text = " ".join(weir("advise", tmp_run, env=cache).stdout.split())
    assert "measured by weir probe, 2" in text
    assert json.loads(Path(data).read_text())["format"] == 1


def test_what_cannot_be_measured_is_refused(probe, tmp_path):
    refused = probe(tmp_path / "nowhere")
    assert refused.returncode == 3 and "not a directory" in refused.stderr


@pytest.mark.mpi
def test_ranks_measure_together(mpi, testfs, tmp_path):
    """The network, and the directory under all of them; rank 0 prints, and nothing is left."""
    pytest.importorskip("mpi4py")
    place, cache = testfs("lustre"), {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    weir = Path(sys.executable).parent / "weir"
    shown = mpi.run(3, weir, "probe", place.path, "--json", env={**mpi.env, **cache}).ok()
    (one,) = json.loads(shown.stdout)
    (part,) = one["parallel"]
    assert (part["ranks"], part["nodes"], part["distant"]) == (3, 1, False)
    assert [found["bytes"] for found in part["messages"]] == [8, 1024, 16384, 262144, 4194304]
    assert all(found["seconds"] > 0 for found in part["messages"])
    writes = [found for found in part["rates"] if found["way"] == "write"]
    assert writes[0]["processes"] == 3 and part["creates_per_s"] > 0
    assert list(place.backing.iterdir()) == []
    refused = mpi.run(2, weir, "probe", tmp_path / "nowhere", env={**mpi.env, **cache})
    assert refused.returncode == 3 and refused.stderr.count("not a directory") == 1
