# SPDX-License-Identifier: Apache-2.0
"""``weir pack`` on good, truncated, damaged and foreign archives."""

from __future__ import annotations

import os
import zipfile
import zlib

import pytest

from weir.pack.records import OWNER, OWNER_NAME, Record, central, local, tail

FILES = {"a.dat": b"first", "b.dat": b"the second one", "empty": b""}
TIME_NS = 1_700_000_000_123_456_789


@pytest.fixture
def pack(weir, tmp_path):
    """``pack("ls", "x.zip", status=0)`` gives stdout, or stderr where the status is an error's."""

    def call(*arguments, status=0):
        done = weir("pack", *arguments, cwd=tmp_path)
        assert done.returncode == status, done.stdout + done.stderr
        call.stdout = done.stdout
        return done.stderr if status else done.stdout

    return call


def write(path, files, time_ns=TIME_NS):
    """A container as the layer writes it. The offset of its directory."""
    data, rows = local(Record(OWNER_NAME.decode(), 0, 0, 0, 0, 0, 0, 0, 0, OWNER)), []
    for number, (name, text) in enumerate(files.items(), 1):
        record = Record(name, len(text), zlib.crc32(text), len(data), number, time_ns, 0o640,
            os.geteuid(), os.getegid())
        data += local(record) + text
        rows.append(central(record))
    at, rows = len(data), b"".join(rows)
    path.write_bytes(data + rows + tail(len(files), len(rows), at))
    return at


@pytest.fixture
def good(tmp_path):
    write(tmp_path / "good.zip", FILES)
    return tmp_path / "good.zip"


@pytest.fixture
def truncated(tmp_path):
    """As a killed job leaves it: no directory."""
    at = write(tmp_path / "truncated.zip", FILES)
    os.truncate(tmp_path / "truncated.zip", at)
    return tmp_path / "truncated.zip"


@pytest.fixture
def damaged(good):
    data = good.read_bytes()
    good.write_bytes(data.replace(b"the second one", b"the sEcond one"))
    return good


def test_ls_prints_mode_size_and_name(pack, good):
    lines = pack("ls", good).splitlines()
    assert [line.split()[0::4] for line in lines] == [
        ["-rw-r-----", "a.dat"], ["-rw-r-----", "b.dat"], ["-rw-r-----", "empty"]]
    assert lines[1].split()[1] == "14"


def test_extract_writes_contents_modes_and_times(pack, good, tmp_path):
    assert pack("extract", "-C", "out", good) == "3 files extracted\n"
    assert {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()} == FILES
    about = (tmp_path / "out" / "a.dat").stat()
    assert (about.st_mode & 0o777, about.st_mtime_ns) == (0o640, TIME_NS)


def test_extract_leaves_files_that_exist(pack, good, tmp_path):
    (tmp_path / "a.dat").write_text("mine")
    assert "a.dat exists: not extracted" in pack("extract", good, "a.dat", "b.dat", status=1)
    assert (tmp_path / "a.dat").read_text() == "mine"
    assert (tmp_path / "b.dat").read_bytes() == FILES["b.dat"]


def test_extract_names_a_file_that_is_not_there(pack, good):
    assert "has no file 'z.dat'; see weir pack ls" in pack("extract", good, "z.dat", status=3)


def test_a_truncated_container_is_read_and_repaired(pack, truncated):
    assert "b.dat" in pack("ls", truncated)
    assert "has no directory at its end" in pack("verify", truncated, status=1)
    assert pack.stdout == "3 files, 0 damaged; the central directory is missing\n"
    assert pack("repair", truncated) == f"{truncated}: 3 files, central directory written\n"
    assert pack("verify", truncated) == "3 files, 0 damaged\n"
    assert pack("repair", truncated) == f"{truncated}: 3 files, nothing to repair\n"
    with zipfile.ZipFile(truncated) as archive:
        assert archive.testzip() is None and archive.read("b.dat") == FILES["b.dat"]


def test_repair_uses_what_a_killed_process_had_reserved(pack, truncated):
    whole = truncated.read_bytes()
    truncated.write_bytes(whole + bytes(100_000))
    assert pack("repair", truncated) == f"{truncated}: 3 files, central directory written\n"
    assert pack("verify", truncated) == "3 files, 0 damaged\n"
    assert truncated.read_bytes().startswith(whole + b"PK\1\2")
    assert truncated.stat().st_size < len(whole) + 1000


@pytest.mark.parametrize("left", [1, 40, 200])
def test_repair_keeps_what_is_whole_at_any_truncation(pack, truncated, left):
    whole = truncated.read_bytes()
    truncated.write_bytes(whole[:-left])
    pack("repair", truncated)
    assert pack("verify", truncated).endswith(" 0 damaged\n")


def test_damaged_contents_are_found_and_not_extracted(pack, damaged, tmp_path):
    assert "b.dat differs from its checksum" in pack("verify", damaged, status=1)
    assert pack.stdout == "3 files, 1 damaged\n"
    assert "not extracted" in pack("extract", "-C", "out", damaged, status=1)
    assert sorted(os.listdir(tmp_path / "out")) == ["a.dat", "empty"]
    assert "differs from its checksum" in pack("merge", "all.zip", damaged, status=3)
    assert sorted(os.listdir(tmp_path)) == ["good.zip", "out"]


def test_merge_takes_the_newest_of_each_name(pack, good, tmp_path):
    write(tmp_path / "other.zip", {"b.dat": b"newer", "c.dat": b"third"}, TIME_NS + 10)
    write(tmp_path / "older.zip", {"b.dat": b"older"}, TIME_NS - 10)
    assert pack("merge", "all.zip", good, "other.zip", "older.zip") == "all.zip: 4 files\n"
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    assert found == {**FILES, "b.dat": b"newer", "c.dat": b"third"}
    assert "all.zip exists; name a new archive" in pack("merge", "all.zip", good, status=3)
    assert pack("verify", "all.zip") == "4 files, 0 damaged\n"


@pytest.mark.parametrize("verb", ["ls", "extract", "verify", "repair"])
def test_an_archive_of_others_is_refused(pack, tmp_path, verb):
    with zipfile.ZipFile(tmp_path / "foreign.zip", "w") as archive:
        archive.writestr("mine", "x")
    before = (tmp_path / "foreign.zip").read_bytes()
    assert "is not an archive of layer pack" in pack(verb, "foreign.zip", status=3)
    assert (tmp_path / "foreign.zip").read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"PK", b"\0" * 100])
def test_a_file_that_is_no_archive_is_refused(pack, tmp_path, content):
    (tmp_path / "x.zip").write_bytes(content)
    assert "is not an archive of layer pack" in pack("verify", "x.zip", status=3)


def test_a_container_that_is_not_there(pack):
    assert "none.zip: No such file or directory" in pack("ls", "none.zip", status=3)


def test_parts_together_are_all_files(pack, tmp_path):
    files = {f"f{number:03}": bytes([number]) * number for number in range(200)}
    write(tmp_path / "many.zip", files)
    for part in range(1, 4):
        pack("extract", "-C", "out", "--part", f"{part}/3", "--jobs", "4", "many.zip")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == files


@pytest.mark.parametrize("part", ["0/3", "4/3", "2", "a/b"])
def test_a_part_that_there_is_not_is_refused(pack, good, part):
    assert "expected I/N with I from 1 to N" in pack("extract", "--part", part, "good.zip",
        status=2)
