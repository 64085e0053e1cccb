# SPDX-License-Identifier: Apache-2.0
"""The counters say exactly what known programs asked for."""

from __future__ import annotations

import mmap
import os

import pytest

KIB, MIB = 1024, 1 << 20


def nonzero(requests: dict[str, int]) -> dict[str, int]:
    return {kind: count for kind, count in requests.items() if count}


@pytest.fixture
def fs(testfs):
    return testfs("direct", attr_timeout_s=60, entry_timeout_s=60)


def test_each_pread_is_one_read_of_its_size(fs):
    (fs.backing / "a").write_bytes(bytes(64 * KIB))
    fd = os.open(fs.path / "a", os.O_RDONLY)
    fs.reset()
    for i in range(20):
        assert len(os.pread(fd, 1000, i * 1000)) == 1000
    assert os.pread(fd, 1000, 64 * KIB - 10) == bytes(10)
    assert os.pread(fd, 1000, 64 * KIB) == b""
    stats = fs.stats()
    os.close(fd)
    assert nonzero(stats.requests) == {"read": 22}
    assert stats.bytes_read == 20_010 and stats.bytes_written == 0
    assert stats.reads.sizes == {1024: 22}
    assert (stats.file("a").reads, stats.file("a").bytes_read) == (22, 20_010)


def test_each_pwrite_is_one_write_of_its_size(fs):
    fd = os.open(fs.path / "a", os.O_CREAT | os.O_WRONLY)
    fs.reset()
    page = mmap.mmap(-1, MIB)
    for size in (1, 2, 3, 4096, 4097, MIB):
        assert os.pwritev(fd, [memoryview(page)[:size]], 0) == size
    stats = fs.stats()
    os.close(fd)
    assert stats.requests["write"] == 6 and stats.bytes_written == 6 + 4096 + 4097 + MIB
    assert stats.writes.sizes == {1: 1, 2: 1, 4: 1, 4096: 1, 8192: 1, MIB: 1}


def test_large_requests_arrive_in_pieces_of_one_mib(fs):
    written, back = mmap.mmap(-1, 4 * MIB), mmap.mmap(-1, 4 * MIB)  # they begin at a page
    written[:] = os.urandom(4 * MIB)
    fd = os.open(fs.path / "a", os.O_CREAT | os.O_RDWR)
    fs.reset()
    assert os.pwritev(fd, [written], 0) == os.preadv(fd, [back], 0) == 4 * MIB
    stats = fs.stats()
    os.close(fd)
    assert written[:] == back[:]
    assert (stats.requests["read"], stats.requests["write"]) == (4, 4)
    assert stats.reads.aligned_1m == stats.writes.aligned_1m == 4


def test_a_buffer_that_begins_within_a_page_makes_one_more_piece(fs):
    (fs.backing / "a").write_bytes(bytes(4 * MIB))
    buffer = mmap.mmap(-1, 5 * MIB)
    fd = os.open(fs.path / "a", os.O_RDONLY)
    fs.reset()
    assert os.preadv(fd, [memoryview(buffer)[100 : 100 + 4 * MIB]], 0) == 4 * MIB
    stats = fs.stats()
    os.close(fd)
    assert stats.requests["read"] == 5 and stats.bytes_read == 4 * MIB


def test_alignment_is_distinguished(fs):
    (fs.backing / "a").write_bytes(bytes(4 * MIB))
    buffer = mmap.mmap(-1, MIB)
    fd = os.open(fs.path / "a", os.O_RDONLY)
    fs.reset()
    for size, offset in ((4096, 0), (4096, 4096), (4096, 100), (100, MIB), (MIB, MIB),
            (MIB, 2 * MIB)):
        os.preadv(fd, [memoryview(buffer)[:size]], offset)
    reads = fs.stats().reads
    os.close(fd)
    assert (reads.offsets_4k, reads.aligned_4k, reads.offsets_1m, reads.aligned_1m) == (5, 4, 4, 2)


def test_each_name_has_counters_of_its_own(fs):
    os.mkdir(fs.path / "d")
    for name, count in (("d/x", 3), ("d/y", 5)):
        fd = os.open(fs.path / name, os.O_CREAT | os.O_WRONLY)
        for _ in range(count):
            os.write(fd, b"1234567")
        os.close(fd)
    stats = fs.stats()
    assert {n: (f.opens, f.writes, f.bytes_written) for n, f in stats.files.items() if f.opens} == {
        "d/x": (1, 3, 21),
        "d/y": (1, 5, 35),
    }
    assert stats.files["d"].requests["mkdir"] == 1
    assert stats.opens == 2 and stats.requests["create"] == 2 and stats.requests["write"] == 8


def test_requests_count_for_the_name_of_their_time(fs):
    fd = os.open(fs.path / "old", os.O_CREAT | os.O_WRONLY)
    os.write(fd, b"1")
    os.rename(fs.path / "old", fs.path / "new")
    os.write(fd, b"23")
    stats = fs.stats()
    os.close(fd)
    assert (stats.file("old").bytes_written, stats.file("new").bytes_written) == (1, 2)
    assert stats.requests["rename"] == 1


def test_kinds_of_requests(fs):
    name = fs.path / "a"
    fd = os.open(name, os.O_CREAT | os.O_RDWR)
    fs.reset()
    os.ftruncate(fd, 100)
    os.fsync(fd)
    os.fdatasync(fd)
    os.posix_fallocate(fd, 0, 4096)
    os.close(os.dup(fd))
    os.close(fd)
    os.mkdir(fs.path / "d")
    os.listdir(fs.path / "d")
    os.rmdir(fs.path / "d")
    os.symlink("a", fs.path / "l")
    os.readlink(fs.path / "l")
    os.link(name, fs.path / "h")
    os.chmod(name, 0o600)
    os.unlink(name)
    os.statvfs(fs.path)
    requests = fs.stats().requests
    expected = {
        "truncate": 1, "fsync": 2, "fallocate": 1, "flush": 2, "mkdir": 1, "opendir": 1, "rmdir": 1,
        "symlink": 1,
        "readlink": 1, "link": 1, "setattr": 1, "unlink": 1, "statfs": 1,
    }  # fmt: skip
    assert {kind: requests[kind] for kind in expected} == expected


def test_what_fails_is_an_error_of_its_kind(fs):
    for _ in range(3):
        assert not os.path.exists(fs.path / "nothing")
    with pytest.raises(OSError):
        os.rmdir(fs.path / "nothing")
    stats = fs.stats()
    assert stats.errors["lookup"] >= 3 and stats.injected == 0
    assert "nothing" not in stats.files


def test_what_was_in_flight_at_one_time(testfs):
    fs = testfs("direct", data_us=1000)
    (fs.backing / "a").write_bytes(bytes(MIB))
    fds = [os.open(fs.path / "a", os.O_RDONLY) for _ in range(48)]
    fs.reset()
    fs.hold_together([lambda fd=fd: os.pread(fd, 100, 0) for fd in fds])
    stats = fs.stats()
    for fd in fds:
        os.close(fd)
    assert stats.requests["read"] == 48
    assert stats.max_data_in_flight == 48 and stats.max_in_flight >= stats.max_data_in_flight
    assert stats.in_flight == 0


def test_direct_writes_to_one_file_go_side_by_side(testfs):
    fs = testfs("direct", data_us=1000)
    (fs.backing / "a").write_bytes(bytes(MIB))
    fd = os.open(fs.path / "a", os.O_RDWR)
    fs.reset()
    fs.hold_together([lambda i=i: os.pwrite(fd, bytes(4096), i * 4096) for i in range(16)])
    stats = fs.stats()
    os.close(fd)
    assert stats.requests["write"] == 16 and stats.max_data_in_flight == 16


def test_with_a_page_cache_a_second_read_is_no_request(testfs):
    fs = testfs("local")
    (fs.backing / "a").write_bytes(bytes(64 * KIB))
    first = (fs.path / "a").read_bytes()
    reads = fs.stats().requests["read"]
    assert 1 <= reads <= 16 and fs.stats().bytes_read == 64 * KIB
    assert (fs.path / "a").read_bytes() == first
    assert fs.stats().requests["read"] == reads


def test_reset_is_exact(fs):
    fd = os.open(fs.path / "a", os.O_CREAT | os.O_WRONLY)
    os.write(fd, b"1")
    fs.reset()
    stats = fs.stats()
    os.close(fd)
    assert stats.total == 0 and stats.files == {
        } and stats.bytes_written == 0 and stats.writes.sizes == {}


def test_names_of_any_bytes(fs):
    odd = 'tab\there "quoted" \\ back\nline é'
    (fs.path / odd).write_bytes(b"123")
    raw = os.fsencode(fs.path) + b"/\xff\xfe"
    with open(raw, "wb") as file:
        file.write(b"12")
    stats = fs.stats()
    assert stats.file(odd).bytes_written == 3
    assert stats.file(os.fsdecode(b"\xff\xfe")).bytes_written == 2
