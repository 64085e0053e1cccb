# SPDX-License-Identifier: Apache-2.0
"""``weir bench olam`` at a small scale: requests that each configuration makes, curves, page and
picture. No time is judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

MAPS, PLOT, RESULT, HISTORY, PARAMETERS = 80, 49, 123, 489, 1
SMALL = ("--scale", "0.01", "--exec", "0", "--repeat", "1")


@pytest.fixture(scope="module")
def bench_in(weir, native_build):
    if not Path("/dev/fuse").exists():
        pytest.skip("no /dev/fuse: the test file system cannot be mounted here")

    def run(directory: Path, *options: object):
        return weir("bench", "olam", *options, "--programs", native_build, "--directory", directory,
            "--disk", directory, timeout=300)

    return run


@pytest.fixture
def bench(bench_in, tmp_path):
    return lambda *options: bench_in(tmp_path, *options)


@pytest.fixture(scope="module")
def of_layers(bench_in, tmp_path_factory):
    """1 and 3 ranks on lustre without layers and with each of three: what is printed, the page, and
    for each configuration what was counted by (ranks, nodes)."""
    here = tmp_path_factory.mktemp("olam")
    page, found, names = here / "olam.html", here / "olam.json", "lustre,global,pack,forward"
    done = bench_in(here, "--ranks", "1,3", "--only", names, *SMALL, "--html", page, "--json",
        found).ok()
    counted = ({(one["ranks"], one["nodes"]): one for one in configuration["counted"]}
        for configuration in json.loads(found.read_text())["configurations"])
    return done.stdout, page.read_text(), dict(zip(names.split(","), counted, strict=True))


@pytest.mark.mpi
def test_each_rank_adds_its_maps_and_files_wherever_it_runs(of_layers):
    text, page, counts = of_layers
    assert "9write sync" in text and "stops scaling at" in text
    assert "lustre, several ranks per node" in page
    plain, shared = counts["lustre"], counts["global"]
    for (ranks, nodes), counted in plain.items():
        assert counted["data_requests"] == ranks * (MAPS + PLOT + RESULT) + HISTORY + PARAMETERS
        assert 1 <= nodes <= ranks
    assert set(plain) == {(1, 1), (3, 3), (3, 1)} and set(shared) == {(1, 1), (3, 1)}
    written = {ranks: ranks * (PLOT + RESULT) + HISTORY + PARAMETERS for ranks in (1, 3)}
    assert shared[3, 1]["data_requests"] - written[3] < MAPS, "three ranks read the maps once"
    assert shared[3, 1]["moved"] < plain[3, 1]["moved"] - 1.9 * 5e6


@pytest.mark.mpi
def test_packed_plots_and_results_take_few_requests(of_layers):
    plain, packed = (of_layers[2][name] for name in ("lustre", "pack"))
    saved = plain[3, 1]["data_requests"] - packed[3, 1]["data_requests"]
    # Each rank writes a block of an archive or a large file at once, and the last one a directory.
    assert saved > 3 * (PLOT + RESULT) - 30


@pytest.mark.mpi
def test_a_forwarding_process_reads_the_maps_once_and_writes_blocks(of_layers):
    plain, forwarded = (of_layers[2][name] for name in ("lustre", "forward"))
    assert plain[3, 1]["data_requests"] == 3 * (MAPS + PLOT + RESULT) + HISTORY + PARAMETERS
    # Maps and files of 0.1 to 5 MB in blocks of 2 MiB.
    assert forwarded[3, 1]["data_requests"] < MAPS
    assert forwarded[3, 1]["moved"] < plain[3, 1]["moved"] - 1.9 * 5e6


@pytest.mark.mpi
def test_ranks_on_nodes_with_disks_of_their_own_find_their_files(bench, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the test extra, on Python 3.11 or newer")
    picture = tmp_path / "olam.png"
    done = bench("--ranks", "2,4", "--only", "node-disk", *SMALL, "--png", picture).ok()
    assert "4 ranks on 4 nodes and on 1" in done.stdout
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.mpi
def test_a_cached_file_system_reads_the_maps_anew_in_each_run(bench, tmp_path):
    found = tmp_path / "olam.json"
    bench("--ranks", "1,2", "--only", "nfs", *SMALL, "--repeat", "2", "--json", found).ok()
    [one] = json.loads(found.read_text())["configurations"]
    for counted in one["counted"]:
        written = counted["ranks"] * 700_000 + 2_000_000
        assert counted["moved"] >= 5e6 + 512 + written, counted


@pytest.mark.mpi
def test_a_directory_that_is_given_is_used_as_nfs(bench, tmp_path):
    mount = tmp_path / "mount"
    mount.mkdir()
    done = bench("--ranks", "1,2", "--only", "nfs", "--nfs", mount, *SMALL).ok()
    assert f"NFS mount {mount}" in done.stdout and "requests at the file system" not in done.stdout
    assert not list(mount.iterdir())


@pytest.mark.parametrize(("options", "message"), [
    (("--ranks", "4"), "at least two different numbers"),
    (("--ranks", "1,500"), "from 1 to 128"),
    (("--ranks", "1,few"), "numbers separated by commas"),
    (("--only", "tape"), "no configuration tape; there are disk"),
    (("--nfs", "/nowhere/at/all"), "a directory that can be written"),
])  # fmt: skip
def test_what_cannot_be_run_is_refused_at_once(bench, options, message):
    done = bench(*options)
    assert done.returncode == 2 and message in done.stderr


@pytest.mark.campaign
@pytest.mark.mpi
@pytest.mark.slow
def test_techniques_for_small_files_are_compared_by_requests(bench, tmp_path):
    found = tmp_path / "olam.json"
    done = bench("--ranks", "1,4", "--only", "techniques", "--repeat", "1", "--json", found).ok()
    rows = {one["row"]["name"]: one for one in json.loads(found.read_text())["techniques"]}
    assert not any(one["error"] for one in rows.values()) and "54 small files" in done.stdout
    steps = {name: one["steps"] for name, one in rows.items()}
    calls = 4 * (5 + 10 * 13) + 10 * 49  # of 4 KiB: plots, results and histories
    for name in ("plain", "names made before the run"):
        assert steps[name]["write"]["data"] == steps[name]["read back"]["data"] == calls
        late = 4  # releases of the step before, which the kernel sends when it comes to it
        assert 6 * 54 <= steps[name]["write"]["metadata"] <= 6 * 54 + late
    assert steps["bufa"]["write"]["data"] < calls / 5
    assert steps["stage"]["read back"]["data"] == 0, "files are read on the tier"
    for step in ("write", "read back", "list", "remove"):
        assert steps["pack"][step]["metadata"] < steps["plain"][step]["metadata"] / 2
