# SPDX-License-Identifier: Apache-2.0
"""What goes wrong is reported to every rank concerned, with names, and what was written before
stays readable."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from netCDF4 import Dataset

pytestmark = pytest.mark.any_mpi

MODES = ["serial", "collective", "servers", "servers+parallel"]


def launcher_ends_all(model) -> None:
    if model.mpi.name == "mpich":
        pytest.skip("MPICH's launcher ends the whole job when a rank is killed, with "
                    "-disable-auto-cleanup too")


def clients(mode: str, ranks: int) -> list[int]:
    return list(range(ranks - 1 if mode.startswith("servers") else ranks))


def times(path) -> list[float]:
    with Dataset(path) as file:
        return file["time"][:].tolist()


@pytest.mark.parametrize("mode", MODES)
def test_a_field_that_one_rank_did_not_put(model, mode):
    ran = model(4, mode, steps=5, skip_step=1, skip_rank=2, path="o.nc")
    for rank in clients(mode, 4):
        ((call, code, message),) = ran.said[rank]
        assert (call, code) == ("weir_end_step", "WEIR_E_MISSING")
        assert "stream 'history', step 1: field 'f1'" in message and "rank 2" in message
    # the frame is left out, the others are there
    assert times(model.directory / "o.nc") == [0, 120, 180, 240]


@pytest.mark.parametrize("mode", MODES)
def test_a_file_that_cannot_be_made(model, mode):
    (model.directory / "taken").write_text("a file where a directory is wanted")
    ran = model(4, mode, steps=6, path="taken/o.nc")
    for rank in clients(mode, 4):
        assert set(ran.codes(rank)) == {"WEIR_E_REMOTE"}
        message = ran.said[rank][0][2]
        assert all(part in message for part in ("stream 'history'", "taken/o.nc", "written by rank",
            "WEIR_E_FILE"))


@pytest.fixture
def disk(model):
    """A file system of 256 KiB."""
    there = model.directory / "disk"
    there.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", there],
            capture_output=True).returncode:
        pytest.skip("no right to mount here")
    yield there
    subprocess.run(["umount", "-l", there], check=True)


def test_a_full_disk(model, disk):
    for mode in ("serial", "servers+parallel"):
        # 48 KiB a frame: five fit
        ran = model(4, mode, nx=64, ny=32, steps=12, path=f"disk/{mode}.nc")
        for rank in clients(mode, 4):
            assert set(ran.codes(rank)) == {"WEIR_E_REMOTE"}
            message = ran.said[rank][0][2]
            assert re.search(rf"cannot write \d+ bytes at byte \d+ of \S*{re.escape(mode)}"
                r"\.nc\S*: No space left on device; free space on that file system "
                r"\(\d+ of 262144 bytes are free\), or write to another one", message), message
        partial = disk / f".{mode}.nc.weir-part"
        assert not (disk / f"{mode}.nc").exists()
        assert times(partial) == [60.0 * s for s in range(5)]
        partial.unlink()


FULL = r"(cannot write \d+ bytes [a-z ]*[a-z0-9 ]+|cannot (create|change the length of)) \S*"


@pytest.mark.parametrize("mode", MODES)
def test_every_format_names_file_bytes_and_cure_of_a_full_disk(model, disk, mode):
    """Also what a server finds at the end, when no step is left to report it."""
    for form in ("cdf2", "cdf5", "netcdf4", "zarr"):
        for steps in (1, 12):
            ran = model(4, mode, nx=128, ny=128 if steps == 1 else 16, steps=steps, format=form,
                path=f"disk/{form}")
            for rank in clients(mode, 4):
                message = ran.said[rank][0][2]
                assert re.search(FULL + f"{form}\\S*: No space left on device; free space on "
                    r"that file system \(\d+ of 262144 bytes", message), (form, steps, message)
            for path in disk.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("mode", MODES)
def test_a_limit_of_file_sizes_ends_no_rank(model, mode):
    """The kernel's signal (SIGXFSZ) would end the writer, and with it the job."""
    ran = model(4, mode, nx=64, ny=32, steps=12, file_bytes=256 << 10)
    assert ran.done.returncode == 1 and "signal" not in ran.done.stderr
    for rank in clients(mode, 4):
        assert set(ran.codes(rank)) == {"WEIR_E_REMOTE"}
        message = ran.said[rank][0][2]
        assert re.search(r"cannot write \d+ bytes at byte \d+ of \S*out\.nc\S*: File too large; "
            r"files of this size are not allowed there: use rotation, or raise the limit", message)
    assert times(model.directory / ".out.nc.weir-part") == [60.0 * s for s in range(5)]


def test_a_limit_of_file_sizes_below_the_buffers(model):
    """Each rank gets the error, and none is ended."""
    ran = model(3, "servers", nx=640, ny=320, file_bytes=1 << 20)
    assert "signal" not in ran.done.stderr
    for rank in clients("servers", 3):
        call, code, message = ran.said[rank][0]
        assert code == "WEIR_E_MEMORY" and "raise the limit of file sizes" in message


@pytest.mark.parametrize("mode", ["serial", "servers"])
def test_a_disk_that_is_full_when_a_netcdf4_file_is_to_be_made(model, disk, mode):
    """Header and coordinates alone, 96 KB of them, go beyond what is left: each file is tried, and
    none takes the writer with it."""
    ran = model(4, mode, nx=12000, ny=2, levels=1, fields=1, steps=6, rotation=1,
        format="netcdf4", path="disk/o{file}.nc")
    # the model's own: calls have failed
    assert ran.done.returncode == 1 and "signal" not in ran.done.stderr
    for rank in clients(mode, 4):
        text = "\n".join(message for _, _, message in ran.said[rank])
        assert set(ran.codes(rank)) == {"WEIR_E_REMOTE"} and "No space left on device" in text
    assert sorted(path.name for path in disk.iterdir() if path.name[0] != ".") == ["o0.nc"]
    assert times(disk / "o0.nc") == [0]


@pytest.mark.parametrize("mistake", [1, 2])
def test_a_decomposition_that_does_not_cover_the_grid(model, mistake):
    ran = model(3, kind="scatter" if mistake == 1 else "block", wrong=mistake)
    for rank in range(3):
        call, code, message = ran.said[rank][0]
        assert code == "WEIR_E_DECOMPOSITION"
    if mistake == 1:
        assert (
            "1 of 240 points belong to no rank" in message and "claimed by rank 1 twice" in message
        )
    assert not list(model.directory.iterdir())


def test_time_that_goes_back(model):
    ran = model(2, steps=4, order=2, path="o.nc")
    assert all(ran.said[rank][0][:2] == ("weir_step", "WEIR_E_ORDER") for rank in (0, 1))
    assert times(model.directory / "o.nc") == [0, 60, 180]


@pytest.mark.parametrize(
    ("limits", "says"),
    [({"WEIR_OUTPUT_CLIENT_MEMORY": 1000}, "client_memory allows 1000"),
        ({"WEIR_OUTPUT_SERVER_MEMORY": "1MiB", "mean": 1}, "server_memory allows 1048576")],
)
def test_memory_that_is_refused(model, limits, says):
    ran = model(3, "servers", nx=200, ny=200, levels=10, path="o.nc", **limits)
    for rank in (0, 1):
        assert ran.said[rank][0][:2] == ("weir_context_end_definition", "WEIR_E_MEMORY")
        assert says in ran.said[rank][0][2]


def test_another_group_takes_the_frames_of_a_killed_server_over(model):
    """The stream's one file belongs to group 0, rank 3; group 1 goes on with it."""
    launcher_ends_all(model)
    ran = model(5, "servers", survive=True, WEIR_OUTPUT_GROUPS=2, steps=10, kill_step=3,
        kill_rank=3, pause_ms=20, path="o.nc")
    for rank in (0, 1, 2):
        lost = [message for _, code, message in ran.said[rank] if code == "WEIR_E_LOST"
            and "server rank 3 of group 0 is gone" in message]
        assert lost and "the other servers take its files over" in lost[0]
    # A frame for which both slots waited for the dead server is left out, and named on each rank.
    named = [{int(step) for _, _, m in ran.said[r]
        for step in re.findall(r"step (\d+)(?: is lost on this rank|: field)", m)}
        for r in (0, 1, 2)]
    left_out = set.union(*named)
    assert len(left_out) <= 2 and all(steps == left_out for steps in named)
    kept = [step for step in range(10) if step not in left_out]
    with Dataset(model.directory / "o.nc") as file:
        assert file["time"][:].tolist() == [60.0 * step for step in kept]
        for record, step in enumerate(kept):
            assert file["f1"][record, 2, 9, 23] == 120000 + 239 + step * 0.25


def test_a_mean_that_a_dead_server_had_begun_says_where_it_begins(model):
    """Steps 1 to 8 make the first frame; the server that has the first of them is killed at step 4.
    """
    launcher_ends_all(model)
    ran = model(5, "servers", survive=True, WEIR_OUTPUT_GROUPS=2, steps=12, every_steps=8, mean=1,
        kill_step=4, kill_rank=3, pause_ms=20, path="o.nc")
    printed = [[m for _, _, m in ran.said[r] if "means, sums and extremes ('f0') cover" in m]
        for r in (0, 1, 2)]
    assert printed[0] and printed[0] == printed[1] == printed[2]
    (message,) = printed[0]
    assert (
        "stream 'history', step 8, file o.nc" in message
        and "the values of the steps before were lost with the server" in message
    )
    covered, since = map(int, re.search(r"cover (\d) of 8 steps, from (\d+) s on", message)
        .groups())
    left_out = {int(step) for r in (0, 1, 2) for _, _, m in ran.said[r]
        for step in re.findall(r"step (\d+)(?: is lost on this rank|: field)", m)}
    steps = [step for step in range(since // 60 + 1, 9) if step not in left_out]
    assert len(steps) == covered < 8
    with Dataset(model.directory / "o.nc") as file:
        assert file["time"][:].tolist() == [480]
        assert file[file["time"].bounds][0].tolist() == [since, 480]
        assert file["f0"][0, 2, 9, 23] == pytest.approx(20000 + 239 + sum(steps) / covered * 0.25,
            abs=0.01)


@pytest.mark.parametrize("mode", MODES)
def test_a_mean_begins_anew_after_a_frame_that_was_left_out(model, mode):
    model(4, mode, steps=8, every_steps=2, mean=1, skip_step=4, skip_rank=2, path="o.nc")
    with Dataset(model.directory / "o.nc") as file:
        assert file["time"][:].tolist() == [120, 360]
        assert file[file["time"].bounds][1].tolist() == [240, 360]
        assert file["f0"][1, 0, 0, 0] == 5.5 * 0.25


def test_the_only_server_is_killed(model):
    launcher_ends_all(model)
    ran = model(4, "servers", survive=True, limit_s=20, steps=8, kill_step=3, kill_rank=3,
        written=2, pause_ms=20, path="o.nc")
    for rank in (0, 1, 2):
        assert set(ran.codes(rank)) == {"WEIR_E_LOST"}
        assert any("server rank 3" in message and "no server is left" in message
            for _, _, message in ran.said[rank])
    assert not (model.directory / "o.nc").exists()
    assert times(model.directory / ".o.nc.weir-part")[:2] == [0, 60]


def test_without_servers_no_file_is_said_to_be_there_already(model):
    launcher_ends_all(model)
    ran = model(4, "servers", survive=True, limit_s=20, steps=8, kill_step=3, kill_rank=3,
        rotation=1, pause_ms=20, path="o{file}.nc")
    for rank in (0, 1, 2):
        assert len(ran.said[rank]) > 2 and set(ran.codes(rank)) == {"WEIR_E_LOST"}
        assert not any("repeat" in message for _, _, message in ran.said[rank]), ran.said[rank]


def test_a_rank_of_the_model_is_killed(model):
    launcher_ends_all(model)
    ran = model(4, "servers", survive=True, limit_s=20, steps=8, kill_step=4, kill_rank=1,
        written=3, pause_ms=20, path="o.nc")
    for rank in (0, 2, 3):
        assert ran.said[rank] and "rank 1 of the model is gone" in ran.said[rank][0][2]
    assert not (model.directory / "o.nc").exists(), "an incomplete file has its final name"
    assert times(model.directory / ".o.nc.weir-part")[:3] == [0, 60, 120]


def test_a_rank_that_does_not_come_is_named_after_the_time_limit(model):
    ran = model(4, "servers", survive=True, limit_s=3, steps=8, hang_step=4, skip_rank=1, hang_s=60,
        path="o.nc")
    for rank in (0, 2):
        assert ran.codes(rank)[0] == "WEIR_E_LOST"
    assert "step 4: ranks that did not end the step within 3 s (time_limit_s): 1" in ran.said[3][0][
        2]
    assert times(model.directory / ".o.nc.weir-part") == [0, 60, 120, 180]
