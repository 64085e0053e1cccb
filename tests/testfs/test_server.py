# SPDX-License-Identifier: Apache-2.0
"""Latency, bandwidth and what several mounts share. A sleep is asserted from below only: how late a
machine wakes is its own affair."""

from __future__ import annotations

import os
import threading
import time

MIB = 1 << 20


def own(name: str) -> str:
    """A bucket that other test runs at the same time do not use."""
    return f"{name}-{os.getpid()}"


def seconds(action) -> float:
    start = time.monotonic()
    action()
    return time.monotonic() - start


def together(*actions) -> float:
    threads = [threading.Thread(target=action) for action in actions]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - start


def reader(fs, name="a", *, requests=20, size=100):
    def read():
        fd = os.open(fs.path / name, os.O_RDONLY)
        for i in range(requests):
            assert len(os.pread(fd, size, i * size)) == size
        os.close(fd)

    return read


def test_requests_one_after_the_other_take_their_latency_each(testfs):
    fs = testfs("direct")
    (fs.backing / "a").write_bytes(bytes(MIB))
    fd = os.open(fs.path / "a", os.O_RDWR)
    fs.control(round_trip_us=1000, data_us=2000)
    assert seconds(lambda: [os.pread(fd, 10, 0) for _ in range(20)]) >= 20 * 0.003
    assert seconds(lambda: [os.pwrite(fd, b"1", 0) for _ in range(20)]) >= 20 * 0.003
    assert seconds(lambda: [os.fsync(fd) for _ in range(5)]) >= 5 * 0.003
    fs.control(data_us=0, metadata_us=3000)
    assert seconds(lambda: [os.fstat(fd) for _ in range(10)]) >= 10 * 0.004
    os.close(fd)
    stats = fs.stats()
    assert (stats.requests["read"], stats.requests["write"], stats.requests["fsync"]) == (20, 20, 5)


def test_the_metadata_server_serves_one_at_a_time(testfs):
    fs = testfs("direct")
    for i in range(8):
        (fs.backing / f"f{i}").touch()
    fs.control(metadata_us=5000)
    fs.reset()
    actions = [lambda i=i: [os.stat(fs.path / f"f{i}") for _ in range(2)] for i in range(8)]
    took = together(*actions)
    served = sum(fs.stats().requests[kind] for kind in ("lookup", "getattr"))
    assert served >= 16 and took >= served * 0.005


def test_data_requests_do_not_wait_for_one_another(testfs):
    fs = testfs("direct", data_us=1000)
    (fs.backing / "a").write_bytes(bytes(MIB))
    fds = [os.open(fs.path / "a", os.O_RDONLY) for _ in range(32)]
    fs.reset()
    fs.hold_together([lambda fd=fd: os.pread(fd, 100, 0) for fd in fds])
    for fd in fds:
        os.close(fd)
    assert fs.stats().max_data_in_flight == 32


def test_bytes_take_their_share_of_the_bandwidth(testfs):
    fs = testfs("direct", bandwidth_mb=100)
    block = bytes(10 * MIB)
    assert seconds(lambda: (fs.path / "a").write_bytes(block)) >= len(block) / 100e6
    assert together(*[reader(fs, requests=5, size=MIB) for _ in range(2)]) >= 10 * MIB / 100e6
    assert fs.stats().bytes_read == 10 * MIB


def test_mounts_of_one_bucket_share_its_bandwidth(testfs):
    first = testfs("direct", bandwidth_mb=100, bucket=own("test-bandwidth"))
    second = testfs("direct", bandwidth_mb=100, bucket=own("test-bandwidth"), backing=first.backing)
    (first.backing / "a").write_bytes(bytes(10 * MIB))
    took = together(*[reader(fs, requests=10, size=MIB) for fs in (first, second)])
    assert took >= 20 * MIB / 100e6
    assert first.stats().bytes_read == second.stats().bytes_read == 10 * MIB


def test_mounts_of_one_bucket_share_its_metadata_server(testfs):
    first = testfs("direct", metadata_us=5000, bucket=own("test-metadata"))
    second = testfs("direct", metadata_us=5000, bucket=own("test-metadata"), backing=first.backing)
    (first.backing / "a").touch()
    took = together(*[lambda fs=fs: [os.stat(fs.path / "a") for _ in range(10)]
        for fs in (first, second)])
    served = sum(fs.stats().total for fs in (first, second))
    assert served >= 40 and took >= served * 0.005


def test_a_bucket_goes_with_its_last_mount(testfs):
    from weir.testfs._mount import _bucket_path

    first = testfs(bucket=own("test-last"))
    second = testfs(bucket=own("test-last"))
    first.unmount()
    assert _bucket_path(own("test-last")).exists()
    second.unmount()
    assert not _bucket_path(own("test-last")).exists()


def test_one_mount_sees_at_once_what_another_did(testfs):
    first = testfs("lustre")
    second = testfs("lustre", backing=first.backing)
    (first.path / "a").write_bytes(b"12345")
    assert (second.path / "a").read_bytes() == b"12345"
    with open(first.path / "a", "ab") as file:
        file.write(b"678")
    assert os.stat(second.path / "a").st_size == 8
    (second.path / "a").unlink()
    assert not os.path.exists(first.path / "a")
