# SPDX-License-Identifier: Apache-2.0
"""What `weir bench` runs: its programs move and check what they say, and a small bench comes to its
end. No time is judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from weir.bench import lab, sweep

SIZE = 3 << 20


@pytest.fixture
def alone(native_build, execute):
    program = native_build / "bench" / "layers" / "alone"
    if not program.exists():
        pytest.skip(f"{program} is not built: run `make build`")

    def call(*arguments):
        return execute([program, *arguments])

    return call


@pytest.fixture
def numbers_of():
    def of(done, name="alone") -> dict[str, float]:
        (line,) = done.ok().stdout.splitlines()
        assert line.startswith(f"{name}: ")
        return {k: float(v) for k, v in (word.split("=") for word in line.split()[1:])}

    return of


def test_contents_are_checked(alone, tmp_path):
    file = tmp_path / "x.dat"
    alone("fill", file, SIZE, 1 << 20, 1 << 20).ok()
    alone("check", file, SIZE).ok()
    assert alone("check", file, SIZE + 1).returncode == 1
    data = bytearray(file.read_bytes())
    data[SIZE - 5] ^= 1
    file.write_bytes(data)
    assert "wrong bytes" in alone("check", file, SIZE).stderr
    assert "wrong bytes" in alone("read", file, 1024, SIZE // 1024, 1024, 1).stderr


@pytest.mark.parametrize(
    ("arguments", "calls", "size"),
    [
        (("read", 1024, 3072, 1024, 2), 3072, SIZE),
        (("read", 1000, 48, 65536, 1), 48, 48000),
        (("parallel", SIZE, 3), 0, SIZE),
        (("fread", 100_001), 100_001, 100_001),
        (("stat", 10), 10, 10 * SIZE),
        (("calls", 5000), 5000, 0),
    ],
)
def test_readers_read_what_they_say(alone, numbers_of, tmp_path, arguments, calls, size):
    file = tmp_path / "x.dat"
    alone("fill", file, SIZE, 1 << 20, 1 << 20).ok()
    program, *rest = arguments
    found = numbers_of(alone(program, file, *rest))
    assert (found["calls"], found["bytes"]) == (calls, size) and found["seconds"] > 0


@pytest.mark.parametrize(
    ("arguments", "size"),
    [(("write", 64, 1000, 2), 64000), (("append", 30), 30 * 96),
        (("dump", 1 << 20, 65536, 2, 1), 3 << 20)],
)
def test_writers_write_what_they_say(alone, numbers_of, tmp_path, arguments, size):
    file = tmp_path / "x.dat"
    program, *rest = arguments
    assert numbers_of(alone(program, file, *rest))["bytes"] == size
    alone("check", file, size).ok()


def test_a_strided_file_has_holes(alone, tmp_path):
    file = tmp_path / "x.dat"
    alone("fill", file, SIZE, 1024, 65536).ok()
    assert file.stat().st_size == SIZE
    alone("read", file, 1024, SIZE // 65536, 65536, 1).ok()
    assert alone("check", file, SIZE).returncode == 1


def test_what_it_does_not_know_is_refused(alone, tmp_path):
    assert alone("sing", tmp_path / "x").returncode == 2
    assert alone("read", tmp_path / "x").returncode == 2
    assert alone("stat", tmp_path / "x", "many").returncode == 2
    assert alone("stat", tmp_path / "x", "1").returncode == 1


def test_several_ranks_write_and_read_one_file(mpi, alone, numbers_of, native_build, tmp_path):
    program = native_build / "bench" / "layers" / mpi.name / "together"
    file = tmp_path / "x.dat"
    written = numbers_of(mpi.run(3, program, "write", file, 100, 512), "together")
    assert (written["ranks"], written["calls"], written["bytes"]) == (3, 300, 3 * 100 * 512)
    alone("check", file, 3 * 100 * 512).ok()
    assert numbers_of(mpi.run(2, program, "read", file, 3 * 100 * 512, 4096),
        "together")["bytes"] == 2 * 3 * 100 * 512
    file.write_bytes(b"\0" * 3 * 100 * 512)
    assert mpi.run(2, program, "read", file, 3 * 100 * 512, 4096).returncode != 0


SWEPT = {"contiguous": range(120), "interleaved": range(120), "strided": range(0, 480, 4),
    "modulo": range(120)}


@pytest.mark.parametrize("pattern", SWEPT)
def test_ranks_of_a_sweep_move_every_piece_once(native_build, execute, numbers_of, tmp_path,
        pattern):
    program, file = native_build / "bench" / "layers" / "sweep", tmp_path / "x.dat"
    written = numbers_of(execute([program, file, "write", pattern, 100, 30, 4]), "sweep")
    assert (written["calls"], written["bytes"]) == (120, 12000)
    data = file.read_bytes()
    assert len(data) == (SWEPT[pattern][-1] + 1) * 100
    pieces = {n: bytes([(n * 7 + 1) % 256]) * 100 for n in SWEPT[pattern]}
    assert data == b"".join(pieces.get(n, bytes(100)) for n in range(SWEPT[pattern][-1] + 1))
    assert numbers_of(execute([program, file, "read", pattern, 100, 30, 4]),
        "sweep")["bytes"] == 12000
    assert execute([program, file, "read", pattern, 100, 31,
        4]).returncode == 1, "it ends before that"


@pytest.fixture
def place(native_build, tmp_path):
    if not Path("/dev/fuse").exists():
        pytest.skip("no /dev/fuse: the test file system cannot be mounted here")
    with lab.open_lab(native_build, 1, None, 1.0, "direct", str(tmp_path),
            lambda text: None) as opened:
        yield opened


def test_a_sweep_compares_layers_with_plain(place):
    chosen = [sweep.Case("write", "interleaved", 4096, 2), sweep.Case("read", "contiguous", 256, 1)]
    found = []
    for case in chosen:
        found += sweep.measure(place, case, ("global", "cos"))
    assert [(one.layer, one.case) for one in found] == [("global", chosen[0]),
        ("global", chosen[1]), ("cos", chosen[1])]
    assert all(one.plain["requests"] == one.case.count * one.case.ranks for one in found)
    ratio = {(one.layer, one.case.way): one.requests for one in found}
    assert ratio["global", "write"] > 100 and ratio["global", "read"] > 100
    rows = sweep.text(found).splitlines()
    assert [row[:6].strip() for row in rows] == ["layer", "global", "", "", "", "", "cos", "", "",
        "", "", "worse"]
    assert rows[-1] == "worse than plain: 0 of 3 cells"
    assert all("bytes, layered / plain" in rows[i] for i in (3, 8))
    data = sweep.as_data(found)
    assert [cell["case"]["way"] for cell in data["cells"]] == ["write", "read",
        "read"] and data["worse"] == 0
    assert all(one in sweep.cases() for one in chosen)


def test_a_sweep_says_how_many_requests_each_member_of_a_striped_file_costs(place):
    calls = [sweep.Case(way, "contiguous", 16 << 20, 1) for way in ("read", "write")]
    found = {one.case.way: one for case in calls for one in sweep.measure(place, case, ("stripe",))}
    # Units of 1 MiB in two directories: of a read one request for each directory, of a write one
    # for each unit.
    assert {way: one.members for way, one in found.items()} == {"read": 2, "write": 16}
    # The test file system takes 1 MiB that does not begin at a page in two requests.
    assert found["write"].layered["requests"] <= 2 * 2 * 16 + 4
    assert any("requests of members, a call" in row and "16.00" in row
        for row in sweep.text(list(found.values())).splitlines())


@pytest.mark.campaign
@pytest.mark.slow  # some sixty programs
@pytest.mark.timeout(900)  # three minutes on a machine that does ten other things
def test_no_layer_makes_more_than_a_few_requests_beyond_plain(place):
    found = [one for case in sweep.quick() for one in sweep.measure(place, case,
        ("bufa", "global", "gather", "keep"))]
    assert len(found) == 4 * 20
    for one in found:
        assert not one.worse, (one.layer, str(one.case), one.worse, one.requests, one.extra,
            one.bytes, one.waits)
        saved = one.plain["requests"] - one.layered["requests"]
        if one.case.piece >= 1 << 20:  # no wait in the place of a request
            assert one.layered["waits"] <= max(0, saved), (one.layer, str(one.case))


def _assert_never_below_plain(place, way, pattern, piece) -> None:
    case = sweep.Case(way, pattern, piece, 32)
    joins = way == "write" and pattern in ("contiguous", "interleaved", "modulo")
    # A rank that the machine keeps from running for longer would have parts written.
    for one in sweep.measure(place, case, ("global", "gather"), ":wait_ms=2000"):
        found = one.layer, str(case), one.layered
        assert one.plain["requests"] == 32 * 512, found
        assert one.layered["requests"] <= one.plain["requests"] / (100 if joins else 1), found
        assert not one.worse and 10 * one.layered["waits"] <= one.layered["calls"], found


def test_small_pieces_of_32_ranks_reach_the_file_system_in_few_requests(place):
    _assert_never_below_plain(place, "write", "interleaved", 64)


@pytest.mark.slow  # three programs of 32 ranks each
@pytest.mark.timeout(600)
@pytest.mark.parametrize("piece", [256, *(pytest.param(n, marks=pytest.mark.campaign)
    for n in (64, 1024))])
@pytest.mark.parametrize("pattern", sweep.PATTERNS)
@pytest.mark.parametrize("way", sweep.WAYS)
def test_layers_that_ranks_share_are_never_below_plain_for_small_pieces(place, way, pattern, piece):
    _assert_never_below_plain(place, way, pattern, piece)


def test_a_cell_is_worse_by_requests_bytes_or_waits():
    case = sweep.Case("read", "random", 4096, 2)
    plain = {"requests": 1000, "moved": 1 << 20, "seconds": 1.0}

    def worse(layer="bufa", **changed):
        layered = {**plain, "calls": 1000, "waits": 0, "members": 0, **changed}
        return sweep.Ratio(layer, case, plain, layered).worse

    assert worse() == worse(requests=1008) == worse(requests=1050) == ()
    assert worse(requests=1060) == ("requests",)
    assert worse(waits=1001) == ("waits",)
    assert worse(moved=(2 << 20) + (128 << 10)) == ()
    assert worse(moved=(2 << 20) + (128 << 10) + 1) == ("bytes",)
    assert worse(moved=(2 << 20) + (128 << 10) + 4096, requests=999) == ()
    assert worse("global", moved=32 << 20) == ()


def test_short_reads_of_a_long_file_move_few_bytes_more(place):
    """Ranks that each read their part in order, or every 64th piece: the file goes on behind."""
    for pattern in ("contiguous", "interleaved"):
        [one] = sweep.measure(place, sweep.Case("read", pattern, 256, 8), ("bufa",))
        assert not one.worse and one.requests > 10, (pattern, one.requests, one.bytes)
        assert one.layered["moved"] <= (1 if pattern == "contiguous"
            else 8) * 2 * one.plain["moved"] + 8 * (64 << 10)


@pytest.mark.slow  # 64 programs at a time
def test_many_ranks_do_not_wait_for_one_another_at_each_block(place):
    case = sweep.Case("write", "random", 65536, 64)
    for one in sweep.measure(place, case, ("global", "gather")):
        assert one.requests >= 0.95 and one.waits <= 1, (one.layer, one.requests, one.waits)


def bench(weir, native_build, kind: str, *options: object,
        directory: Path) -> tuple[int, str, dict]:
    if not Path("/dev/fuse").exists():
        pytest.skip("no /dev/fuse: the test file system cannot be mounted here")
    if not list((native_build / "bench" / "layers").glob("*/together")):
        pytest.skip("no MPI is installed here")
    file = directory / "bench.json"
    arguments = ["bench", kind, "--programs", native_build, "--directory", directory, "--repeat", 1,
        "--json", file]
    done = weir(*arguments, *options, timeout=170)
    assert done.returncode in (0, 1), done.stderr
    assert [p.name for p in directory.iterdir()] == ["bench.json"], "the bench leaves files behind"
    return done.returncode, done.stdout, json.loads(file.read_text())


@pytest.mark.slow
@pytest.mark.mpi
def test_the_four_cases_come_to_their_end(weir, native_build, tmp_path):
    """Small: 200 columns in case IV, 1.7 MB in case III. The goals are those of the tables at any
    size."""
    status, text, data = bench(weir, native_build, "nersc", "--scale", 0.03, "--pes", "2,4",
        "--pes", "IV=4", directory=tmp_path)
    tables = {(table["case"], table["ranks"]): table for table in data["tables"]}
    assert list(tables) == [("I", 4), ("II", 8), ("III", 2), ("III", 4), ("IV", 4)]
    rows = {(case, ranks, row["spec"]): row for (case, ranks), table in tables.items()
        for row in table["rows"]}
    assert {key: row["error"] for key, row in rows.items() if row["error"]} == {}
    for row in rows.values():
        measured = row["measured"]
        assert measured["requests"]["median"] > 0 and measured["bytes"]["median"] > 0
        assert measured["elapsed_s"]["median"] > 0
        assert f"{row['spec']:<18}{row['ranks']:>4}{measured['requests']['median']:>12,.0f}" in text
    # What each program asks for is known, whatever becomes of it.
    assert rows["IV", 4, "no view"]["measured"]["requests"]["median"] >= 4 * 200
    assert rows["II", 8, "none"]["measured"]["requests"]["median"] == rows["II", 8,
        "none"]["measured"]["program_requests"]["median"]
    assert rows["III", 4, "none"]["measured"]["bytes"]["median"] >= 4 * 26 * 91 * 181 * 4
    assert len([line for line in text.splitlines() if line.startswith("goal at")]) == 3
    assert status == (0 if all(t["goal"] is None or t["goal"]["met"] for t in data["tables"])
        else 1)


@pytest.mark.campaign
@pytest.mark.slow
@pytest.mark.mpi
def test_every_line_of_the_layers_comes_to_its_end(weir, native_build, tmp_path):
    _, text, data = bench(weir, native_build, "layers", "--scale", 0.01, directory=tmp_path)
    lines = {line["name"]: line for line in data["lines"]}
    assert {name: line["error"] for name, line in lines.items() if line["error"]} == {}
    assert all(line["checks"] and line["figures"] for line in lines.values())
    for name, line in lines.items():
        assert f"{name}: {line['title']}" in text


def test_a_line_by_its_name(weir):
    listed = weir("bench", "layers", "--list").ok().stdout
    assert "gather " in listed and "stacks: " in listed
    assert "read " in weir("bench", "layers", "--list", "--only", "read").ok().stdout
    assert weir("bench", "layers", "--only", "nothing,such").returncode == 2
    assert weir("bench", "layers", "--stack", "read").returncode == 2
    assert weir("bench", "nersc", "--case", "V").returncode == 2
