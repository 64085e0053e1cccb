# SPDX-License-Identifier: Apache-2.0
"""What a trace has of output: every mode with counts and bytes, once, beside the system's calls
below it."""

from __future__ import annotations

import json
import re

import pytest

from weir.report import build, trace_lines
from weir.report.files.compute import files_of
from weir.report.notes import notes
from weir.report.output.compute import all_outputs
from weir.report.processes.compute import is_complete

pytestmark = pytest.mark.any_mpi

STEPS, FIELDS, POINTS = 6, 2, 3 * 240
TOTAL = STEPS * FIELDS * POINTS * 4
# mode, ranks, options, servers, writers
MODES = [
    ("serial", 3, {}, (), (0,)),
    ("collective", 4, {"WEIR_OUTPUT_AGGREGATORS": 2, "lend": 1}, (), None),
    ("servers", 5, {"WEIR_OUTPUT_GROUPS": 2}, (3, 4), (3, 4)),
    ("servers+parallel", 5, {"WEIR_OUTPUT_SERVERS_PER_GROUP": 2,
        "WEIR_OUTPUT_TRANSPORT": "two-sided"}, (3, 4), (3, 4)),
]


def numbers(ranks) -> tuple[int, ...]:
    return tuple(one.rank for one in ranks)


def written_by_hooks(report) -> int:
    """Bytes of files of the model that reached the system, whoever made the calls."""
    return sum(one.bytes_written for one in files_of(report) if ".nc" in one.file)


@pytest.mark.parametrize(("mode", "ranks", "options", "servers", "writers"), MODES,
    ids=[one[0] for one in MODES])
def test_a_mode_in_the_trace(model, preload_env, mode, ranks, options, servers, writers):
    env = preload_env()
    model(ranks, mode, steps=STEPS, path="h{file}.nc", rotation=2, **options, **env).fine()
    report = build(model.directory / "run")
    (one,) = all_outputs(report)
    computing = ranks - len(servers)
    assert is_complete(report)
    assert numbers(one.model_ranks) == tuple(range(computing))
    assert numbers(one.servers) == servers
    assert numbers(one.writers) == writers if writers else len(one.writers) == 2
    assert one.how.startswith(mode + ": ")
    assert (one.put_bytes, one.written_bytes, one.frames) == (TOTAL, TOTAL, STEPS)
    (stream,) = one.streams
    assert (stream.stream, stream.frames, stream.puts, stream.refused) == ("history", STEPS,
        STEPS * FIELDS * computing, 0)
    assert min(one.put_ns, one.end_step_ns, one.final_ns, one.define_ns, one.write_ns,
        stream.transpose_ns) > 0
    assert (
        one.agree_ns <= one.end_step_ns
        and one.seen_ns == one.put_ns + one.wait_ns + one.end_step_ns
        and one.output_ns < one.wall_ns
    )
    assert set(one.busy_ns) == {rank.label for rank in one.writers} and all(0 < ns < one.wall_ns
        for ns in one.busy_ns.values())
    # The system's calls that libweir made are all calls on its files, and are in the totals once.
    assert TOTAL < one.system_written_bytes == written_by_hooks(report)
    # headers have room to grow
    assert one.system_written_bytes <= sum(path.stat().st_size
        for path in model.directory.glob("*.nc"))
    lent = [line for line in trace_lines(report, op="output_lend")]
    assert len([line for line in lent if "output:history:f" in line]) == (STEPS * FIELDS
        * computing if "lend" in options else 0)
    written = [line.rsplit(" ", 1)[1] for line in trace_lines(report, op="output_write")
        if line.startswith("output_write:")]
    assert set(written) == {f"output:history:f{field}" for field in range(FIELDS)}
    frames = [line for line in trace_lines(report, op="output_frame")
        if line.startswith("output_frame:")]
    assert sorted(line.rsplit(":", 1)[1] for line in frames) == [f"h{number}.nc"
        for number in (0, 0, 1, 1, 2, 2)]


def test_compression_and_reading_back_are_seen(model, preload_env):
    (model.directory / "o.toml").write_text('[stream.history]\ncompression = "zstd:1"\n')
    for step, options in (("a", {}), ("b", {"get": 1})):
        env = preload_env(step, WEIR_OUTPUT_CONFIG=str(model.directory / "o.toml"))
        model(3, "servers", steps=2, format="netcdf4", path="h.nc", **options, **env).fine()
    report = build(model.directory / "run")
    wrote, read_back = all_outputs(report)
    assert wrote.frames == 2 and wrote.streams[0].encode_ns > 0 and wrote.get_ns == 0
    assert read_back.fields == () and [of.field for of in wrote.fields] == [f"f{field}"
        for field in range(FIELDS)]
    for of in wrote.fields:
        assert of.stream == "history" and of.value_bytes == 2 * POINTS * 4
        assert 0 < of.file_bytes < of.value_bytes and (of.least_bits, of.most_bits) == (0, 0)
    assert read_back.frames == read_back.put_bytes == 0 and read_back.get_ns > 0
    encoded = [line for line in trace_lines(report, op="output_encode")
        if line.startswith("output_encode:")]
    assert {line.rsplit(" ", 1)[1] for line in encoded} == {f"output:history:f{field}"
        for field in range(FIELDS)}
    assert sum(int(line.split("bytes=")[1].split()[0])
        for line in encoded) == 2 * FIELDS * POINTS * 4
    read = [line for line in trace_lines(report, op="output_get") if line.startswith("output_get:")]
    assert len(read) == FIELDS * 2 and all(line.endswith("output::h.nc") for line in read)


def test_what_packing_and_rounding_save_is_reported_by_field(weir, model):
    """Two files of two owners each, as the library itself prints it."""
    (model.directory / "o.toml").write_text("[output]\nverbose = true\n[stream.history]\n"
        'compression = "zstd:1"\nkeep_bits = 6\nrotation = 2\n')
    command = model.mpi.launch(4, model.program, "", "steps=4", "format=netcdf4",
        "path=h{file}.nc")
    done = weir("trace", "-o", "run", "--", *command, cwd=model.directory,
        env={**model.mpi.env, "WEIR_OUTPUT_MODE": "collective",
            "WEIR_OUTPUT_CONFIG": str(model.directory / "o.toml")}).ok()
    printed = re.findall(r"field 'f0': (\S+) MB in (\S+) MB .*, (\d+) to (\d+) bits", done.stderr)
    assert len(printed) == 2, done.stderr
    data = json.loads(weir("report", "run", "--json", cwd=model.directory).ok().stdout)
    (step,) = data["output"]
    field = step["fields"][0]
    assert (field["stream"], field["field"]) == ("history", "f0")
    assert field["value_bytes"] / 1e6 == pytest.approx(sum(float(line[0]) for line in printed),
        abs=1e-3)
    assert field["file_bytes"] / 1e6 == pytest.approx(sum(float(line[1]) for line in printed),
        abs=1e-3)
    assert [field["least_bits"], field["most_bits"]] == [6, 6] == [int(n) for n in printed[0][2:]]
    assert field["saved_bytes"] == field["value_bytes"] - field["file_bytes"] > 0
    text = weir("report", "run", "--tables", "output", cwd=model.directory).ok().stdout
    assert "that were packed, rounded or compressed" in text
    rows = weir("query", "run", "SELECT field, saved_bytes FROM output_fields", "--format", "csv",
        cwd=model.directory).ok().stdout
    assert f'"f0",{field["saved_bytes"]}' in rows


def test_levels_without_records_keep_the_sums(model, preload_env):
    for level in ("summary", "detail"):
        model(4, "servers", steps=STEPS, path=f"{level}.nc",
            **preload_env(level, level=level)).fine()
    for one in all_outputs(build(model.directory / "run")):
        assert numbers(one.servers) == (3,)
        assert (one.put_bytes, one.written_bytes, one.frames) == (TOTAL, TOTAL, STEPS)


def test_the_command_shows_it(weir, model):
    command = model.mpi.launch(4, model.program, "", "steps=3", "path=h.nc")
    weir("trace", "-o", "run", "--", *command, cwd=model.directory,
        env={**model.mpi.env, "WEIR_OUTPUT_MODE": "servers"}).ok()
    text = weir("report", "run", "--tables", "all", cwd=model.directory).ok().stdout
    assert (
        "ranks 0-2 compute, rank 3 serves" in text
        and "effective write time" in text
        and "Streams of" in text
    )


def test_a_frame_that_is_not_written_is_counted_as_such(model, preload_env):
    ran = model(4, "servers", steps=STEPS, path="h.nc", skip_step=2, skip_rank=1, **preload_env())
    assert "WEIR_E_MISSING" in ran.codes(0)
    report = build(model.directory / "run")
    (one,) = all_outputs(report)
    assert (one.frames, one.refused, one.written_bytes) == (STEPS - 1, 1,
        TOTAL // STEPS * (STEPS - 1))
    assert any("1 frame was not written (streams: history)" in sentence
        for sentence in notes(report))
