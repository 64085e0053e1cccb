# SPDX-License-Identifier: Apache-2.0
"""Programs that use the library wrongly hear of it on all ranks, within a bounded time, and no file
is wrong for it."""

from __future__ import annotations

import pytest
from netCDF4 import Dataset

pytestmark = pytest.mark.any_mpi

MODES = [("serial", 3, 0), ("collective", 3, 0), ("servers", 4, 1)]


def times(path) -> list[float]:
    with Dataset(path) as file:
        return file["time"][:].tolist()


@pytest.mark.parametrize(("mode", "ranks", "servers"), MODES)
def test_ranks_at_different_times_are_reported_and_named(misuse, model, mode, ranks, servers):
    ran = misuse(mode, ranks, "ahead")
    for rank in range(ranks - servers):
        messages = [message for _, code, message in ran.said[rank] if code == "WEIR_E_ORDER"]
        assert any("(60 s)" in m and "(0 s)" in m and "same times" in m for m in messages), ran.said
    assert not (model.directory / "o.nc").exists()


@pytest.mark.parametrize(("mode", "ranks", "servers"), MODES)
@pytest.mark.parametrize("mistake", ["other_time", "early_end"])
def test_a_rank_that_misses_a_step_gets_an_error_and_so_do_the_others(misuse, model, mode, ranks,
        servers, mistake):
    ran = misuse(mode, ranks, mistake)
    for rank in range(ranks - servers):
        assert set(ran.codes(rank)) == {"WEIR_E_ORDER"}, ran.said
        place = "step 3" if mistake == "other_time" else "weir_finalize after 3 steps"
        assert any(place in message and "rank 1" in message
            for _, _, message in ran.said[rank]), ran.said
    # Nothing of MPI's is left under way, which its own end would trip over.
    assert ran.done.returncode == 0, ran.done.stdout + ran.done.stderr
    assert all(f"rank {rank} ends" in ran.done.stdout for rank in range(ranks))
    assert "signal" not in ran.done.stderr and "NBC" not in ran.done.stderr
    written = [path for path in model.directory.iterdir()
        if path.name in ("o.nc", ".o.nc.weir-part")]
    assert [times(path) for path in written] == [[0, 60] if mistake == "other_time"
        else [0, 60, 120]]


@pytest.mark.parametrize(("mode", "ranks", "servers"), MODES)
def test_a_time_that_is_none_is_refused_at_once(misuse, model, mode, ranks, servers):
    ran = misuse(mode, ranks, "infinite")
    for rank in range(ranks - servers):
        assert ran.said[rank][0][:2] == ("weir_step",
            "WEIR_E_ARGUMENT") and "inf" in ran.said[rank][0][2]
    assert times(model.directory / "o.nc") == [0, 60, 180]


def test_a_rank_that_computes_is_no_server_of_a_second_context(misuse, model):
    """Steps of the first context would wait for the rank that serves the second one: that is
    refused on all ranks, and the first goes on."""
    ran = misuse("servers", 4, "second_on_model")
    for rank in (0, 1, 2):
        ((call, code, message),) = ran.said[rank]
        assert (call, code) == ("weir_init", "WEIR_E_ORDER")
        assert (
            "rank 2 of this communicator would be a server, but it computes in another context"
            in message
        )
    assert times(model.directory / "o.nc") == [0, 60, 120, 180] and ran.done.returncode == 0


@pytest.mark.parametrize(("mode", "ranks", "servers"), MODES)
def test_a_program_without_weir_finalize_ends_and_says_so(misuse, model, mode, ranks, servers):
    ran = misuse(mode, ranks, "no_finalize")
    assert all(f"rank {rank} ends" in ran.done.stdout for rank in range(ranks))
    assert "MPI_Finalize without weir_finalize" in ran.done.stderr
    for rank in range(ranks - servers, ranks):
        assert ran.codes(rank) == ["WEIR_E_ORDER"] and "without weir_finalize" in ran.said[rank][0][
            2]
    assert not (model.directory / "o.nc").exists()
    assert times(model.directory / ".o.nc.weir-part")[:2] == [0, 60]


def test_a_second_context_over_ranks_that_serve_is_refused(misuse, model):
    ran = misuse("servers", 4, "two_contexts")
    for rank in range(3):
        ((call, code, message),) = ran.said[rank]
        assert (call, code) == ("weir_init",
            "WEIR_E_ORDER") and "rank 3 of this communicator is a server" in message
    assert times(model.directory / "o.nc") == [0, 60, 120, 180]


@pytest.mark.parametrize("mistake", ["absent", "alone"])
def test_a_rank_that_does_not_come_to_weir_init_is_waited_for_until_the_limit(misuse, mistake):
    """Rank 1 never calls weir_init; or rank 0 alone calls it a second time."""
    ran = misuse("serial", 3, mistake, limit_s=1)
    assert sorted(ran.said) == ([0, 2] if mistake == "absent" else [0])
    for said in ran.said.values():
        ((call, code, message),) = said
        assert (call, code) == ("weir_init", "WEIR_E_LOST")
        assert message.startswith(
            "MPI_Comm_idup: a rank of this communicator did not call weir_init or weir_serve "
            "within 1 s (WEIR_OUTPUT_TIME_LIMIT_S)")
    assert all(f"rank {rank} ends" in ran.done.stdout for rank in range(3))


def test_two_contexts_beside_each_other_where_nobody_serves(misuse, model):
    assert not misuse("serial", 2, "two_contexts").said
    assert times(model.directory / "o.nc") == [0, 60, 120, 180]


def test_buffers_larger_than_the_node_are_refused_before_memory_is_taken(misuse, model):
    ran = misuse("servers", 3, "huge")
    for rank in (0, 1):
        call, code, message = ran.said[rank][0]
        assert (call, code) == ("weir_context_end_definition", "WEIR_E_MEMORY")
        assert "bytes" in message and "client_memory" in message


def test_what_is_lent_has_no_halo_and_the_error_says_what_to_do(misuse):
    ran = misuse("serial", 1, "lend_with_halo")
    call, code, message = ran.said[0][0]
    assert (call, code) == ("weir_field_lend", "WEIR_E_ORDER")
    assert "has a halo" in message and "weir_put alone" in message


@pytest.mark.parametrize("mode", ["serial", "servers"])
def test_a_file_without_frames_does_not_appear(model, mode):
    ran = model(4, mode, steps=4, rotation=1, skip_step=2, skip_rank=1, path="h{step}.nc")
    assert ran.codes(0) == ["WEIR_E_MISSING"]
    assert sorted(path.name for path in model.directory.iterdir()) == ["h0.nc", "h1.nc", "h3.nc"]
    if mode == "servers":  # what became of the model's frames is the model's to judge
        assert 3 not in ran.said


def test_a_setting_of_the_environment_that_there_is_not(model):
    ran = model(2, WEIR_OUTPUT_GROUP=2)
    for rank in (0, 1):
        assert ran.said[rank][0][:2] == ("weir_init", "WEIR_E_CONFIG")
        assert "no setting WEIR_OUTPUT_GROUP; did you mean 'WEIR_OUTPUT_GROUPS'?" in ran.said[rank][
            0][2]


def test_files_of_the_other_groups_go_on_when_an_unfinished_frame_lies_before_theirs(model):
    if model.mpi.name == "mpich":
        pytest.skip("MPICH's launcher ends the whole job when a rank is killed, with "
                    "-disable-auto-cleanup too")
    ran = model(5, "servers", survive=True, limit_s=20, WEIR_OUTPUT_GROUPS=2, steps=20, rotation=3,
        kill_step=5, kill_rank=4, pause_ms=20, path="o{file}.nc")
    messages = [message for _, _, message in ran.said[0]]
    assert any("the other servers take its files over" in message for message in messages)
    assert not any("no server is left" in message for message in messages)
    assert {f"o{file}.nc" for file in (0, 3, 4, 5, 6)} <= {path.name
        for path in model.directory.iterdir()}


@pytest.mark.parametrize("mode", ["serial", "collective"])
def test_a_killed_rank_is_named_where_nobody_serves(model, mode):
    if model.mpi.name == "mpich":
        pytest.skip("MPICH's launcher ends the whole job when a rank is killed, with "
                    "-disable-auto-cleanup too")
    ran = model(3, mode, survive=True, limit_s=100, steps=8, kill_step=4, kill_rank=1, path="o.nc")
    for rank in (0, 2):
        assert ran.codes(rank)[0] == "WEIR_E_LOST" and "is gone" in ran.said[rank][0][2]
    # Who hears of it first ends, and may be what the other one sees.
    assert any("rank 1 is gone" in ran.said[rank][0][2] for rank in (0, 2))
    assert times(model.directory / ".o.nc.weir-part")[:3] == [0, 60, 120]
