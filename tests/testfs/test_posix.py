# SPDX-License-Identifier: Apache-2.0
"""On the test file system programs see what they see on the directory behind it."""

from __future__ import annotations

import errno
import mmap
import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posix_scenarios import SCENARIOS

CACHES = ("direct", "local")


@pytest.mark.parametrize("preset", CACHES)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.__name__)
def test_same_as_on_the_backing(testfs, scenario, preset):
    fs = testfs(preset)
    plain, mounted = fs.backing / "plain", fs.path / "mounted"
    plain.mkdir()
    mounted.mkdir()
    assert scenario(mounted) == scenario(plain)
    assert fs.stats().total > 0


def test_with_write_back_what_is_written_is_there_after_close(testfs):
    fs = testfs("local", writeback=True)
    fd = os.open(fs.path / "a", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for i in range(1000):
        os.write(fd, b"%05d\n" % i)
    before_close = fs.stats().requests["write"]
    os.close(fd)
    assert (fs.backing / "a").read_bytes() == b"".join(b"%05d\n" % i for i in range(1000))
    assert before_close <= fs.stats().requests["write"] < 10


def test_shared_maps_need_a_page_cache(testfs):
    direct, cached = testfs("direct"), testfs("local")
    for fs in (direct, cached):
        (fs.path / "a").write_bytes(bytes(8192))
    with open(direct.path / "a", "r+b") as file, pytest.raises(OSError) as refused:
        mmap.mmap(file.fileno(), 0)
    assert refused.value.errno == errno.ENODEV
    with open(cached.path / "a", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[4096:4100] = b"abcd"
        view.flush()
    assert (cached.backing / "a").read_bytes() == bytes(4096) + b"abcd" + bytes(4092)


STEP = st.one_of(
    st.tuples(st.just("pwrite"), st.integers(0, 2), st.integers(0, 20_000), st.integers(0, 9_000),
        st.integers(0, 255)),
    st.tuples(st.just("write"), st.integers(0, 2), st.integers(0, 5_000), st.integers(0, 255)),
    st.tuples(st.just("pread"), st.integers(0, 2), st.integers(0, 20_000), st.integers(0, 9_000)),
    st.tuples(st.just("read"), st.integers(0, 2), st.integers(0, 5_000)),
    st.tuples(st.just("lseek"), st.integers(0, 2), st.integers(-5_000, 20_000),
        st.sampled_from([0, 1, 2])),
    st.tuples(st.just("ftruncate"), st.integers(0, 2), st.integers(0, 25_000)),
    st.tuples(st.just("reopen"), st.integers(0, 2),
        st.sampled_from([0, os.O_APPEND, os.O_TRUNC, os.O_SYNC])),
    st.tuples(st.just("size"), st.integers(0, 2)),
    st.tuples(st.just("fsync"), st.integers(0, 2)),
    st.tuples(st.just("rename")),
)


class Files:
    """Three descriptors on two files of a directory, and what each step returned."""

    def __init__(self, directory):
        directory.mkdir()
        self.names = [directory / "x", directory / "x", directory / "y"]
        self.fds = [os.open(name, os.O_RDWR | os.O_CREAT) for name in self.names]

    def step(self, what, which=0, *values):
        fd = self.fds[which]
        try:
            return getattr(self, what)(fd, which, *values)
        except OSError as error:
            return errno.errorcode[error.errno]

    def pwrite(self, fd, _, offset, size, byte):
        return os.pwrite(fd, bytes([byte]) * size, offset)

    def write(self, fd, _, size, byte):
        return os.write(fd, bytes([byte]) * size)

    def pread(self, fd, _, offset, size):
        return os.pread(fd, size, offset)

    def read(self, fd, _, size):
        return os.read(fd, size)

    def lseek(self, fd, _, offset, whence):
        return os.lseek(fd, offset, whence)

    def ftruncate(self, fd, _, size):
        return os.ftruncate(fd, size)

    def reopen(self, fd, which, flags):
        os.close(fd)
        self.fds[which] = os.open(self.names[which], os.O_RDWR | os.O_CREAT | flags)

    def size(self, fd, which):
        return os.fstat(fd).st_size, os.stat(self.names[which]).st_size

    def fsync(self, fd, _):
        return os.fsync(fd)

    def rename(self, *_):
        os.rename(self.names[0], self.names[2])
        os.close(os.open(self.names[0], os.O_CREAT | os.O_RDWR))

    def end(self):
        for fd in self.fds:
            os.close(fd)
        return [name.read_bytes() for name in self.names]


@pytest.mark.parametrize("preset", CACHES)
def test_any_sequence_of_calls_as_on_the_backing(testfs, preset):
    fs = testfs(preset)
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    number = iter(range(1 << 30))

    @settings(max_examples=60, database=None)
    @given(st.lists(STEP, min_size=10, max_size=40))
    def same(steps):
        directory = f"case{next(number)}"
        plain, mounted = Files(fs.backing / f"plain-{directory}"), Files(fs.path / directory)
        for step in steps:
            assert mounted.step(*step) == plain.step(*step), step
        assert mounted.end() == plain.end()

    from hypothesis import seed as with_seed

    with_seed(seed)(same)()
    assert fs.stats().requests["write"] > 50
