# SPDX-License-Identifier: Apache-2.0
"""Parts of weir tune: what is the same output, which rules pay, copies, paths of commands."""

from __future__ import annotations

import os
import zipfile
from types import SimpleNamespace

import pytest

from weir._errors import InputError, StorageError
from weir.advise.frame.facts import File
from weir.advise.frame.finding import Advice, Rule
from weir.advise.frame.saving import Range, Saving
from weir.advise.text import change_text
from weir.report.files.compute import FileOp, FileTotals
from weir.report.frame.amounts import plain, seconds
from weir.report.layers.compute import Bypass, Figure, LayeredFile, Requests
from weir.tune import keep, workdir
from weir.tune.decide import noise, rule_gains, wall_gain
from weir.tune.outputs import differences, not_compared, outputs_of, unsteady
from weir.tune.runs import (
    PLAIN,
    TUNED,
    Done,
    Figures,
    FileCost,
    Started,
    relative,
    requests_at_system,
)
from weir.tune.suspects import ended, half, suspects
from weir.tune.text import _model_lines, _sureness, sentence
from weir.tune.tune import Outcome


def done(number: int, kind: str, wall_s: float, io_s: float = 1, requests: int = 100,
        files: int | None = 1) -> Done:
    rules = ("r",) if kind == TUNED else ()
    return Done(number, kind, rules, Figures(wall_s, 1, io_s, io_s, io_s, requests,
        {"r": FileCost(io_s, requests, files)}), {})


def test_a_gain_is_sure_when_its_interval_leaves_zero_out():
    runs = [done(0, PLAIN, 10), done(1, TUNED, 5)]
    assert wall_gain(runs, ["r"]).middle == 5 and not wall_gain(runs, ["r"]).is_sure
    runs += [done(2, PLAIN, 10.2), done(3, TUNED, 5.1)]
    assert wall_gain(runs, ["r"]).is_sure
    noisy = [done(0, PLAIN, 10), done(1, TUNED, 5), done(2, PLAIN, 8), done(3, TUNED, 9)]
    assert not wall_gain(noisy, ["r"]).is_sure
    assert wall_gain(runs, ["another"]) is None


def test_what_a_run_lost_is_said_in_words():
    runs = [done(0, PLAIN, 10), done(1, TUNED, 5), done(2, PLAIN, 8), done(3, TUNED, 9)]
    gain = wall_gain(runs, ["r"])
    assert gain.low < 0 < gain.high
    outcome = Outcome(SimpleNamespace(runs=runs), None, (), gain, (), (), ())
    said = plain(_sureness(outcome))
    longer, shorter = (plain(seconds(abs(one))) for one in (gain.low, gain.high))
    assert f"the run is {longer} longer to {shorter} shorter." in said
    changes = [plain(change_text(one)) for one in (-2.68, 2.68)]
    assert changes == ["2.68 s longer", "2.68 s shorter"]


def test_a_finding_whose_rule_cannot_be_used_is_left_to_the_program():
    nothing = Saving(Range(0, 1), None, None)
    one = Advice("many-files", "o.zarr", ("/w/a",), "120 files.", nothing, "Write one file.",
        Rule("/w/*", "pack:name=a.zip", unusable="it also matches b"))
    state, report = SimpleNamespace(runs=[], dropped={}), SimpleNamespace(advices=(one,), rest=())
    outcome = Outcome(state, report, (), None, (), (), ())
    assert sentence(outcome) == ("No rule makes this command faster. 1 finding needs a change of "
        "the program: see report.md.")
    assert "Write one file. (The rule pack:name=a.zip is not used: it also matches b.)" in "".join(
        _model_lines(outcome))


@pytest.mark.parametrize(("io_s", "requests", "pays"), [
    (0.5, 100, True), (0.5, 300, True), (0.97, 50, True), (0.97, 100, False), (0.9, 100, False),
    (1.2, 50, False)])
def test_a_rule_pays_by_counts_that_take_no_longer_or_by_time(io_s, requests, pays):
    (gain,) = rule_gains([done(0, PLAIN, 10), done(1, TUNED, 9, io_s, requests)], ["r"])
    assert gain.pays == pays


@pytest.mark.parametrize(("io_s", "requests", "needs"), [
    (2, 20, True), (2, 100, False), (1, 20, False)])
def test_one_slow_run_decides_nothing_where_requests_are_fewer(io_s, requests, needs):
    runs = [done(0, PLAIN, 10), done(1, TUNED, 9, io_s, requests), done(2, PLAIN, 10)]
    (gain,) = rule_gains(runs, ["r"])
    assert gain.needs_a_run == needs
    runs.append(done(3, TUNED, 9, io_s, requests))
    (gain,) = rule_gains(runs, ["r"])
    assert not gain.needs_a_run and gain.pays == (io_s == 1)


def test_a_rule_that_matches_nothing_does_not_pay():
    runs = [done(0, PLAIN, 10, 0, 0), done(1, TUNED, 9, 0, 0)]
    assert [one.pays for one in rule_gains(runs, ["r"])] == [False]


def test_a_rule_for_names_that_differ_from_run_to_run_does_not_pay():
    runs = [done(0, PLAIN, 10), done(1, TUNED, 9, 0, 0, files=0)]
    (gain,) = rule_gains(runs, ["r"])
    assert not gain.pays and not gain.needs_a_run and "matches no file" in gain.why_not
    runs = [done(0, PLAIN, 10), done(1, TUNED, 9, 0, 0, files=None)]
    assert [one.pays for one in rule_gains(runs, ["r"])] == [True]


def written(directory, **files: bytes):
    directory.mkdir()
    for name, data in files.items():
        (directory / name).write_bytes(data)
    return outputs_of(directory, {})


def test_bytes_decide_but_for_files_with_times(tmp_path):
    first = written(tmp_path / "a", log=b"took 1.5 s", data=b"\0\1", odd=b"\0\1")
    again = written(tmp_path / "b", log=b"took 1.7 s", data=b"\0\1", odd=b"\0\2")
    tuned = written(tmp_path / "c", log=b"took 0.2 s", data=b"\0\3", odd=b"\0\4")
    assert unsteady([first, again]) == {"log", "odd"}
    found = differences([first, again], tuned)
    assert [(one.path, one.why) for one in found] == [("data", "its bytes differ")]
    assert not_compared([first, again]) == ["odd"]
    other = written(tmp_path / "d", log=b"failed 1.5 s", data=b"\0\1", odd=b"\0\1")
    assert [one.path for one in differences([first, again], other)] == ["log"]


def test_what_plain_runs_do_not_share_is_not_blamed_on_rules(tmp_path):
    """Text with words that differ; a file with another name each time, which has to be there."""
    first = written(tmp_path / "a", log=b"host aa", tmp_x=b"1", data=b"1")
    again = written(tmp_path / "b", log=b"host bb", tmp_y=b"1", data=b"1")
    assert differences([first, again], written(tmp_path / "c", log=b"host cc", tmp_z=b"1",
        data=b"1")) == []
    assert not_compared([first, again]) == ["log", "tmp_x", "tmp_y"]
    for number, (less, path) in enumerate([({"data": b"1"}, "log"), ({"log": b""}, "data")]):
        found = differences([first, again], written(tmp_path / f"d{number}", **less))
        assert [one.path for one in found] == ["*", path]


def test_missing_and_new_files_are_differences(tmp_path):
    plain, tuned = written(tmp_path / "a", x=b"1"), written(tmp_path / "b", y=b"1")
    assert [(one.path, one.why) for one in differences([plain], tuned)] == [
        ("x", "it was not written"), ("y", "it was written in addition")]


def test_members_of_an_archive_are_the_files_that_they_are(tmp_path):
    plain = written(tmp_path / "a", p1=b"one", p2=b"two")
    (tmp_path / "b").mkdir()
    with zipfile.ZipFile(tmp_path / "b" / "packed.zip", "w") as archive:
        archive.writestr("p1", b"one")
        archive.writestr("p2", b"two")
    assert differences([plain], outputs_of(tmp_path / "b", {}, ["packed.zip"])) == []


@pytest.mark.parametrize(("text", "why"), [
    (b"made at 3", []), (b"lost at 3", ["its contents differ, times left out"])])
def test_times_in_members_of_an_archive_are_no_difference(tmp_path, text, why):
    plains = [written(tmp_path / f"a{n}", p1=f"made at {n}".encode()) for n in (1, 2)]
    (tmp_path / "b").mkdir()
    with zipfile.ZipFile(tmp_path / "b" / "packed.zip", "w") as archive:
        archive.writestr("p1", text)
    found = differences(plains, outputs_of(tmp_path / "b", {}, ["packed.zip"]))
    assert [one.why for one in found] == why


def test_netcdf_is_compared_without_its_history(tmp_path):
    netcdf = pytest.importorskip("netCDF4")
    made = []
    for name, value, history in (("a", 1, "now"), ("b", 1, "later"), ("c", 2, "now")):
        (tmp_path / name).mkdir()
        with netcdf.Dataset(tmp_path / name / "out.nc", "w", format="NETCDF3_CLASSIC") as data:
            data.history = history.ljust(8)
            data.createDimension("x", 3)
            data.createVariable("v", "f8", ("x",))[:] = value
        made.append(outputs_of(tmp_path / name, {}))
    first, again, other = made
    assert unsteady([first, again]) == {"out.nc"}
    assert differences([first, again], first) == []
    assert [one.path for one in differences([first, again], other)] == ["out.nc"]


def test_a_copy_is_whole_and_what_changes_in_it_is_an_output(tmp_path):
    source = tmp_path / "source"
    (source / "empty").mkdir(parents=True)
    (source / "in").write_bytes(b"input")
    os.symlink("in", source / "link")
    (source / "in").chmod(0o640)
    os.utime(source / "empty", (1, 2))
    entries = workdir.listing(source)
    before = workdir.make(source, source / f"{workdir.NAME}-x", entries)
    work = source / f"{workdir.NAME}-x"
    assert (work / "empty").is_dir() and os.readlink(work / "link") == "in"
    assert (work / "in").stat().st_mode & 0o777 == 0o640
    assert (work / "empty").stat().st_mtime == 2
    assert outputs_of(work, before) == {}
    (work / "in").write_bytes(b"other")
    assert set(outputs_of(work, before)) == {"in"}
    assert workdir.listing(source) == entries, "the copy lies in the directory"
    workdir.remove(work)


def test_no_link_of_a_copy_leads_to_a_file_of_the_user(tmp_path):
    """Links outside become copies; those within the directory, absolute or by way of its own name,
    lead to the copy."""
    source, outside = tmp_path / "source", tmp_path / "outside"
    (outside / "below" / "empty").mkdir(parents=True)
    (outside / "restart").write_bytes(b"state")
    (outside / "below" / "x").write_bytes(b"x")
    os.symlink("../restart", outside / "below" / "up")
    source.mkdir()
    (source / "in").write_bytes(b"input")
    for name, target in (("file", outside / "restart"), ("below", outside / "below"),
            ("absolute", source / "in"), ("around", "../source/in"), ("null", "/dev/null")):
        os.symlink(target, source / name)
    work = source / f"{workdir.NAME}-x"
    workdir.make(source, work, workdir.listing(source))
    for name, data in (("file", b"state"), ("below/x", b"x"), ("below/up", b"state"),
            ("absolute", b"input"), ("around", b"input")):
        assert (work / name).read_bytes() == data
        assert (work / name).resolve().is_relative_to(work), name
    assert (work / "below" / "empty").is_dir() and os.readlink(work / "null") == "/dev/null"


@pytest.mark.parametrize(("target", "why"), [("..", "which holds"), ("../new", "does not exist")])
def test_a_link_that_cannot_be_copied_is_refused(tmp_path, target, why):
    (tmp_path / "source").mkdir()
    os.symlink(target, tmp_path / "source" / "link")
    with pytest.raises(InputError, match=why):
        workdir.listing(tmp_path / "source")


def test_large_files_are_copies_too(tmp_path):
    (tmp_path / "source").mkdir()
    with open(tmp_path / "source" / "large", "wb") as file:
        file.truncate(17 << 20)
    work = tmp_path / "work"
    workdir.make(tmp_path / "source", work, workdir.listing(tmp_path / "source"))
    assert not (work / "large").is_symlink() and (work / "large").stat().st_size == 17 << 20


def test_no_copy_is_begun_that_has_no_room(tmp_path):
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(1 << 43)
    with pytest.raises(StorageError, match="the largest file is huge"):
        workdir.check_space(tmp_path, workdir.listing(tmp_path))


def test_only_whole_paths_of_a_command_are_replaced(tmp_path):
    words = ["/a/b/x", "--dir=/a/b", "/a/bc", "/x/a/b", "in:/a/b:/a/b/c", "/a/b"]
    from pathlib import Path

    assert relative(words, Path("/a/b"), Path("/W")) == ["/W/x", "--dir=/W", "/a/bc", "/x/a/b",
        "in:/W:/W/c", "/W"]


def test_files_above_the_directory_are_found_from_the_copy(tmp_path):
    directory = tmp_path / "run"
    (tmp_path / "bin").mkdir(), directory.mkdir()
    (tmp_path / "bin" / "model").touch()
    words = ["../bin/model", "--exe=../bin/model", "./../bin/model", "..", "../none", "in/../x",
        "../run/in"]
    model = f"{tmp_path}/bin/model"
    assert relative(words, directory, directory / "copy") == [model, f"--exe={model}", model,
        str(tmp_path), "../none", "in/../x", "../run/in"]
    (directory / "in").touch()
    assert relative(["../run/in"], directory, directory / "copy") == [f"{directory}/copy/in"]


def failing(culprits):
    """The rule that is found among eight when the command fails with these together, and the number
    of runs that it took."""
    rules, failed, passed, runs = list("abcdefgh"), [list("abcdefgh")], [], 1
    while len(found := suspects(rules, failed, passed)) > 1:
        tried, runs = half(found), runs + 1
        (failed if set(culprits) <= set(tried) else passed).append(tried)
    return found, runs


@pytest.mark.parametrize("culprit", "adh")
def test_the_rule_that_fails_is_found_by_halves(culprit):
    assert failing(culprit) == ([culprit], 4)


def test_of_rules_that_fail_together_one_is_dropped():
    found, runs = failing("bg")
    assert len(found) == 1 and runs <= 8


def test_no_rule_is_a_suspect_of_failures_of_others():
    assert suspects(["a"], [["a", "b"]], []) == []


def test_a_signal_is_named():
    assert "SIGSEGV" in ended(139) and "report" in ended(139)
    assert ended(3) == "the command ended with status 3"


@pytest.mark.parametrize(("status", "command", "is_of_weir"), [
    (0, 0, False), (3, 3, False), (70, 70, False), (139, -11, False), (70, None, True),
    (70, 0, True), (3, 0, True), (5, 0, False), (5, 5, False)])
def test_a_failure_of_weir_is_no_failure_of_the_command(status, command, is_of_weir):
    assert Started(status, command, 1, 1).is_of_weir == is_of_weir


def test_counts_decide_where_the_interval_has_zero_in_it():
    """Twelve hundredths slower in the middle, by times of 6 to 10 s: a fifth of the requests."""
    runs = [done(0, PLAIN, 10, 6), done(1, TUNED, 10, 9, 20), done(2, PLAIN, 10, 10),
        done(3, TUNED, 10, 9, 20)]
    (gain,) = rule_gains(runs, ["r"])
    assert not gain.gain.is_sure and gain.pays
    same = [done(one.number, one.kind, 10, one.figures.io_s) for one in runs]
    assert [one.pays for one in rule_gains(same, ["r"])] == [False]


def test_times_decide_where_the_interval_leaves_zero_out():
    runs = [done(0, PLAIN, 10, 6), done(1, TUNED, 10, 7, 20), done(2, PLAIN, 10, 6.1),
        done(3, TUNED, 10, 7.1, 20)]
    assert [one.pays for one in rule_gains(runs, ["r"])] == [False]


def test_noise_is_what_plain_runs_differ_by():
    assert noise([done(0, PLAIN, 10), done(1, TUNED, 30), done(2, PLAIN, 11)]) is None
    assert noise([done(0, PLAIN, 10), done(2, PLAIN, 13)]) == (10, 13)


def test_links_that_the_command_makes_are_outputs(tmp_path):
    made = []
    for name, target in (("a", "x"), ("b", "x"), ("c", "y")):
        (tmp_path / name).mkdir()
        os.symlink(target, tmp_path / name / "latest")
        made.append(outputs_of(tmp_path / name, {}))
    first, again, other = made
    assert differences([first], again) == []
    (found,) = differences([first], other)
    assert (found.path, found.why) == ("latest", "a link to y instead of a link to x")
    assert differences([first], {})[0].why == "it was not written"
    file = written(tmp_path / "d", latest=b"x")
    assert differences([first], file)[0].why == "a file in place of a link"


def test_a_result_that_is_kept_takes_the_place_of_the_users_files(tmp_path):
    """Also after an interruption in the middle."""
    source, outside = tmp_path / "source", tmp_path / "outside"
    source.mkdir()
    outside.mkdir()
    for name in ("log", "gone", "same"):
        (source / name).write_text("before")
    (outside / "restart").write_text("before")
    os.symlink(outside / "restart", source / "restart")
    work, entries = source / f"{workdir.NAME}-x", workdir.listing(source)
    before = workdir.make(source, work, entries)
    (work / "gone").unlink()
    (work / "new").mkdir()
    for name in ("log", "restart", "new/out"):
        (work / name).write_text("after")
    os.symlink(work / "new", work / "latest")
    result = keep.save_result(work, before, (), source)
    assert set(result.changed) == {"log", "restart", "new/out", "latest"}
    by_path = {one.path: one for one in entries}
    (source / "log").write_text("after")  # as if it had been moved already
    (keep.result_directory(work) / "log").unlink()
    for _ in range(2):
        keep.move(result, by_path, work, source)
    assert sorted(os.listdir(source)) == ["latest", "log", "new", "restart", "same"]
    assert (source / "restart").is_symlink() and (outside / "restart").read_text() == "after"
    assert (source / "same").read_text() == "before" and (source / "log").read_text() == "after"
    assert (source / "latest" / "out").read_text() == "after"


def requests_of(*operations: tuple[str, int, int, int], figures=(), **options) -> int:
    """operations: name, calls, bytes, calls made by a library."""
    totals = FileTotals("f", 0, 0, 0, 0, tuple(FileOp(op, calls, size, 1, below)
        for op, calls, size, below in operations))
    layered = LayeredFile("f", figures=[Figure("pack", name, "times", 1) for name in figures])
    return requests_at_system(File("f", totals=totals), layered if figures else None, **options)


@pytest.mark.parametrize(("names", "requests"), [
    (["staged"], 4 + 2), (["from_tier"], 4 + 2), (["staged", "moved"], 41), (["in_place"], 41)])
def test_a_staged_file_has_the_requests_of_its_copy(names, requests):
    totals = FileTotals("f", 41, 0, 3 << 19, 1, (FileOp("open", 1, 0, 1, 0),
        FileOp("write", 40, 3 << 19, 1, 0)))
    layered = LayeredFile("f", figures=[Figure("stage", name, "times", 1) for name in names])
    assert requests_at_system(File("f", totals=totals), layered) == requests
    read = FileTotals("f", 41, 1, 0, 1, (FileOp("read", 41, 1, 1, 0),))
    assert (requests_at_system(File("f", totals=read), layered) == 0) == (requests == 6)


def test_calls_past_the_layers_are_requests():
    """41 of 50 calls went to the kernel after a layer had bypassed the file; it made 2 of 9."""
    totals = FileTotals("f", 51, 0, 5000, 1, (FileOp("open", 1, 0, 1, 0),
        FileOp("write", 50, 5000, 1, 0)))
    seen = {0: Requests(writes=9, written_bytes=900), 2: Requests(writes=2, written_bytes=900)}
    layered = LayeredFile("f", calls=Requests(writes=50, written_bytes=5000), events=seen,
        bypassed=[Bypass("bufa", "cached", 1)])
    assert layered.past == Requests(writes=41, written_bytes=4100)
    assert requests_at_system(File("f", totals=totals), layered) == 1 + 2 + 41


@pytest.mark.parametrize(("reason", "requests"), [("large_requests", 1 + 2 + 1 + 1),
    ("mapped", 52)])
def test_one_call_on_a_stream_does_not_hide_what_a_layer_saved(reason, requests):
    """netCDF reads the first bytes by fread, then HDF5 by 50 calls of pread. One that is mapped may
    have moved bytes by no call."""
    totals = FileTotals("f", 52, 5100, 0, 1, (FileOp("open", 1, 0, 1, 0),
        FileOp("fread", 1, 100, 1, 0), FileOp("pread", 50, 5000, 1, 0)))
    seen = {0: Requests(reads=50, read_bytes=5000), 2: Requests(reads=2, read_bytes=6000)}
    layered = LayeredFile("f", calls=Requests(reads=50, read_bytes=5000), events=seen,
        has_streams=True, bypassed=[Bypass("global", reason, 1)])
    assert layered.system is None
    assert requests_at_system(File("f", totals=totals), layered) == requests


def test_requests_are_those_of_the_system():
    """Of streams as many as their buffers make, of statements what the library makes of them; none
    of a packed file that is no real one."""
    assert requests_of(("pwrite", 7, 700, 0), ("open", 1, 0, 0), ("lseek", 9, 0, 0)) == 8
    assert requests_of(("fread", 10_000, 40_960, 0), ("fopen", 1, 0, 0)) == 11
    assert requests_of(("fread", 3, 40_960, 0)) == 3
    assert requests_of(("fortran_write", 500, 4000, 0), ("write", 2, 4000, 2)) == 2
    assert requests_of(("write", 5, 5000, 0), figures=["stored"]) == 0
    assert requests_of(("write", 5, 5000, 0), figures=["stored", "spilled"]) == 5
    assert requests_of(("write", 5, 5000, 0), figures=["stored"], is_real=True) == 5


def test_flushes_of_a_stream_under_a_layer_are_no_requests_of_their_own():
    """Without layers each is one, and each seek of a stream that is written writes, too."""
    flushed, seeks = ("fprintf", 400, 4000, 0), ("fflush", 400, 0, 0)
    assert requests_of(("fopen", 1, 0, 0), flushed, seeks) == 1 + 1 + 400
    assert requests_of(flushed, ("fseek", 400, 0, 0)) == 1 + 400
    assert requests_of(flushed, ("fread", 400, 4000, 0), ("fseek", 400, 0, 0)) == 2
    totals = FileTotals("f", 0, 0, 0, 0, (FileOp("fprintf", 400, 4000, 1, 0),
        FileOp("fopen", 1, 0, 1, 0), FileOp("fflush", 400, 0, 1, 0)))
    seen = {0: Requests(writes=400, written_bytes=4000), 1: Requests(writes=3, written_bytes=4000)}
    assert requests_at_system(File("f", totals=totals), LayeredFile("f", events=seen)) == 1 + 3


def test_directories_with_names_by_chance_are_counted_together(tmp_path):
    """As of TileDB's fragments, in each of which are two files."""
    runs = []
    for number, files in enumerate((3, 3, 3, 2, 4)):
        work = tmp_path / str(number)
        for at in range(files):
            directory = work / "a" / f"__{at}_{at}_{number:x}{at:x}abcdef0123_22"
            directory.mkdir(parents=True)
            (directory / "a0.tdb").write_bytes(b"same")
        runs.append(outputs_of(work, {}))
    *plains, same, fewer, more = runs
    assert not differences(plains, same)
    assert [one.why for one in differences(plains, fewer)] == [
        "2 files instead of 3 whose names differ in each run"]
    assert {one.why for one in differences(plains, more)} == {"it was written in addition"}


def test_opens_that_a_kept_descriptor_serves_are_no_requests():
    """90 of 100 opens and the closes before them, and 3 queries for that."""
    totals = FileTotals("f", 220, 0, 0, 1, (FileOp("open", 100, 0, 1, 0),
        FileOp("close", 100, 0, 1, 0), FileOp("stat", 20, 0, 1, 0)))
    layered = LayeredFile("f", figures=[Figure("keep", "reopened", "times", 90),
        Figure("keep", "revalidated", "times", 3)])
    assert requests_at_system(File("f", totals=totals), layered) == 220 - 180 + 3
