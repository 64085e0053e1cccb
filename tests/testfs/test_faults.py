# SPDX-License-Identifier: Apache-2.0
"""Failures that are asked for: errors by rule, a full file system, a file system that hangs."""

from __future__ import annotations

import errno
import os
import threading
import time

import pytest

from weir._errors import UsageError


@pytest.fixture
def fs(testfs):
    return testfs("direct")


def errno_of(action) -> int:
    try:
        action()
    except OSError as error:
        return error.errno
    return 0


def pattern(fs, count=400) -> list[int]:
    fd = os.open(fs.path / "a", os.O_CREAT | os.O_RDWR)
    outcome = [errno_of(lambda: os.pwrite(fd, b"1", 0)) for _ in range(count)]
    fs.control("fail=none")
    os.close(fd)
    return outcome


def test_a_rule_fails_its_operation_with_its_errno_and_no_other(fs):
    fs.control("fail=fsync:EIO")
    fd = os.open(fs.path / "a", os.O_CREAT | os.O_RDWR)
    assert os.write(fd, b"123") == 3
    assert [errno_of(lambda: os.fsync(fd)) for _ in range(3)] == [errno.EIO] * 3
    fs.control("fail=none")
    os.fsync(fd)
    os.close(fd)
    stats = fs.stats()
    assert (stats.injected, stats.errors["fsync"], stats.requests["fsync"]) == (3, 3, 4)


def test_what_fails_has_not_been_done(fs):
    fd = os.open(fs.path / "a", os.O_CREAT | os.O_RDWR)
    fs.control("fail=write+unlink:EIO")
    assert errno_of(lambda: os.write(fd, b"123")) == errno.EIO
    assert errno_of(lambda: os.unlink(fs.path / "a")) == errno.EIO
    os.close(fd)
    assert (fs.backing / "a").read_bytes() == b""


def test_a_seed_chooses_the_same_requests_again(fs):
    outcomes = []
    for seed in (7, 7, 8):
        fs.control(f"fail=write:ENOSPC:0.25:{seed}")
        outcomes.append(pattern(fs))
    assert outcomes[0] == outcomes[1] != outcomes[2]
    assert set(outcomes[0]) == {0, errno.ENOSPC}
    assert 50 < outcomes[0].count(errno.ENOSPC) < 150


def test_after_and_times(fs):
    fs.control("fail=write:EDQUOT:after=3:times=2")
    assert pattern(fs, 8) == [0, 0, 0, errno.EDQUOT, errno.EDQUOT, 0, 0, 0]


def test_the_first_rule_that_fails_a_request_decides(fs):
    fs.control("fail=write:EIO:times=1", "fail=data:ENOSPC:times=2")
    assert pattern(fs, 4) == [errno.EIO, errno.ENOSPC, errno.ENOSPC, 0]


def test_rules_at_the_mount(testfs):
    fs = testfs("direct", fail=["open:EACCES:times=1", "read:EIO"])
    (fs.backing / "a").write_bytes(b"1")
    assert errno_of(lambda: open(fs.path / "a", "rb")) == errno.EACCES
    with open(fs.path / "a", "rb", buffering=0) as file:
        assert errno_of(lambda: file.read(1)) == errno.EIO


def test_a_full_file_system_takes_what_fits(fs):
    fd = os.open(fs.path / "a", os.O_CREAT | os.O_RDWR)
    fs.control(enospc_after=1000)
    assert os.write(fd, bytes(600)) == 600
    assert os.write(fd, bytes(600)) == 400
    assert errno_of(lambda: os.write(fd, b"1")) == errno.ENOSPC
    assert os.fstat(fd).st_size == 1000
    fs.control(enospc_after="none")
    assert os.write(fd, bytes(600)) == 600
    os.close(fd)
    assert fs.stats().bytes_written == 1600


def test_a_file_system_that_hangs_goes_on_by_itself(fs):
    (fs.backing / "a").write_bytes(b"123")
    fd = os.open(fs.path / "a", os.O_RDONLY)
    start = time.monotonic()
    fs.control(hang=0.5)
    assert os.pread(fd, 3, 0) == b"123"
    assert time.monotonic() - start >= 0.4
    os.close(fd)


def test_a_hang_can_be_ended(fs):
    (fs.backing / "a").write_bytes(b"123")
    fd = os.open(fs.path / "a", os.O_RDONLY)
    fs.control(hang=60)
    got = []
    thread = threading.Thread(target=lambda: got.append(os.pread(fd, 3, 0)))
    thread.start()
    while fs.stats().in_flight == 0:
        time.sleep(0.005)
    assert got == []
    fs.control(hang=0)
    thread.join()
    os.close(fd)
    assert got == [b"123"]


def test_a_hang_from_the_mount_on(testfs):
    start = time.monotonic()
    fs = testfs("direct", hang_s=0.4)
    os.stat(fs.path / ".")
    assert time.monotonic() - start >= 0.4


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("speed=3", "no option `speed`"),
        ("round_trip_us=fast", "a number from 0"),
        ("round_trip_us=-1", "a number from 0"),
        ("data_us=1e99", "a number from 0"),
        ("threads=5", "only be given at the mount"),
        ("fail=write", "op:errno:rate:seed"),
        ("fail=write:EWHAT", "op:errno:rate:seed"),
        ("fail=write:EIO:2", "op:errno:rate:seed"),
        ("fail=release:EIO", "op:errno:rate:seed"),
        ("hang=long", "hang=SECONDS"),
        ("enospc_after=", "enospc_after=BYTES"),
        ("hang", "hang=SECONDS"),
    ],
)
def test_a_mistake_is_said_and_changes_nothing(fs, option, said):
    before = fs.stats().options
    with pytest.raises(UsageError) as wrong:
        fs.control(option)
    assert option in str(wrong.value) and said in str(wrong.value)
    assert fs.stats().options == before


def test_there_are_eight_rules_at_most(fs, weir):
    fs.control(*["fail=read:EIO:times=0"] * 8)
    done = weir("testfs", "control", fs.path, "fail=read:EIO")
    assert done.returncode == 2 and "8 failures already" in done.stderr
