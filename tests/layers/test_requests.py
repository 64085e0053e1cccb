# SPDX-License-Identifier: Apache-2.0
"""What layers ask the file system for: as many requests as their table says, no more than plain,
and none that tells nothing new."""

from __future__ import annotations

import json
import sys

import pytest
from weir_layers import DECLARED

# Writes pieces, reads them back, asks at the end over and over, and reads it all again by a second
# opening.
PIECES = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for i in range(400): os.pwrite(fd, b"x" * 100, i * 100)
for i in range(400): assert os.pread(fd, 100, i * 100) == b"x" * 100
for i in range(50): assert os.pread(fd, 100, 40000 + i * 10) == b""
for i in range(5): assert os.fstat(fd).st_size == 40000
os.close(fd)
fd = os.open(sys.argv[1], os.O_RDONLY)
while os.read(fd, 1000): pass
for i in range(50): assert os.pread(fd, 100, 40000 + i * 10) == b""
for i in range(5): assert os.fstat(fd).st_size == 40000
os.close(fd)
"""
# Large calls from memory that does not begin at a page, by one opening of two: the first writes,
# then both read.
LARGE = """
import mmap, os, sys
MIB, memory = 1 << 20, mmap.mmap(-1, 5 << 20)
def part(at): return memoryview(memory)[at:at + 4 * MIB]
writer, reader = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), os.open(sys.argv[1], os.O_RDONLY)
for i in range(4):
    part(100)[:] = bytes(range(i, i + 128)) * (MIB // 32)
    assert os.pwrite(writer, part(100), i * 4 * MIB) == 4 * MIB
if sys.argv[2:] == ["read"]:
    for i in range(4):
        for fd in reader, writer:
            assert os.preadv(fd, [part(300)], i * 4 * MIB) == 4 * MIB
            assert part(300) == bytes(range(i, i + 128)) * (MIB // 32), i
os.close(reader), os.close(writer)
"""
# Calls of 16 pieces of memory, each a block or half of one.
VECTORS = """
import mmap, os, sys
memory = mmap.mmap(-1, 1 << 20)
parts = [memoryview(memory)[i << 16:i + 1 << 16] for i in range(16)]
memory[:] = bytes(range(128)) * (1 << 13)
writer, reader = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), os.open(sys.argv[1], os.O_RDONLY)
for i in range(4): assert os.pwritev(writer, parts, i << 20) == 1 << 20
if sys.argv[2:] == ["read"]:
    for i in range(4):
        memory[:] = bytes(1 << 20)
        assert os.preadv(reader, parts, i << 20) == 1 << 20
        assert memory[:] == bytes(range(128)) * (1 << 13), i
os.close(reader), os.close(writer)
"""
# Every other piece first, then those between.
COMBED = """
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for half in 0, 1:
    for i in range(half, 2520, 2): os.pwrite(fd, bytes([i % 251]) * 104, i * 104)
os.close(fd)
"""
# Small writes with gaps between them, which no block can join.
GAPS = """
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for i in range(3000): os.pwrite(fd, bytes([i % 251]) * 104, i * 1024)
os.close(fd)
"""
# Small reads all over a large file.
SCATTERED = """
import os, random, sys
fd, chance = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), random.Random(7)
os.ftruncate(fd, 256 << 20)
for i in range(600): assert len(os.pread(fd, 104, chance.randrange(255 << 20))) == 104
os.close(fd)
"""
# Of a file of 16 blocks that is read in turns: each block serves many.
TURNS = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 16 << 20)
for i in range(960): assert len(os.pread(fd, 104, (i % 16 << 20) + i * 104)) == 104
os.close(fd)
"""
# Ranks read all over a large file first, then write and read pieces of their own, of blocks that
# all of them share.
SHARED = """
import os, random, sys
PIECE, RANKS, BLOCK, HOT, ALL = 64, 3, 4096, 6, 4096
pieces = BLOCK // PIECE // RANKS
path = sys.argv[1]
with open(path, "wb") as file: file.truncate(ALL * BLOCK)
def rank(me):
    fd, chance, have, nth = os.open(path, os.O_RDWR), random.Random(me), {}, 0
    def at(block, piece): return block * BLOCK + (piece * RANKS + me) * PIECE
    def put(offset):
        have[offset] = have.get(offset, 0) + 1
        assert os.pwrite(fd, bytes([have[offset] % 251, me]) * (PIECE // 2), offset) == PIECE
    def look(offset):
        expected = bytes([have[offset] % 251, me]) * (PIECE // 2) if offset in have else bytes(PIECE)
        assert os.pread(fd, PIECE, offset) == expected, (me, offset, have.get(offset))
    put(at(0, 0))
    os.write(ready[1], b"x"), os.close(go[1]), os.read(go[0], 1)  # all have the file
    for i in range(300): look(at(HOT + chance.randrange(ALL - HOT), chance.randrange(pieces)))
    for i in range(400):
        block = chance.randrange(HOT)
        put(at(block, chance.randrange(pieces)))
        for j in range(6): look(at(block, chance.randrange(pieces)))
    for offset in have: look(offset)
    os.close(fd)
    with open(path + ".%d" % me, "w") as file: file.write(repr(have))
children, ready, go = [], os.pipe(), os.pipe()
for me in range(RANKS):
    if (child := os.fork()) == 0:
        status = 1
        try: rank(me); status = 0
        except BaseException as e: print(me, repr(e), file=sys.stderr, flush=True)
        finally: sys.stderr.flush(); sys.exit(status)
    children.append(child)
for me in range(RANKS): os.read(ready[0], 1)
os.close(go[1])
assert [os.waitpid(child, 0)[1] for child in children] == [0] * RANKS
with open(path, "rb") as file: data = bytearray(file.read())
for me in range(RANKS):
    for offset, n in eval(open(path + ".%d" % me).read()).items():
        assert data[offset:offset + PIECE] == bytes([n % 251, me]) * (PIECE // 2), (me, offset)
        data[offset:offset + PIECE] = bytes(PIECE)
assert not any(data)
"""
NETCDF = """
import sys, netCDF4, numpy
with netCDF4.Dataset(sys.argv[1], "w", format="NETCDF3_64BIT_OFFSET") as d:
    d.createDimension("t", None); d.createDimension("y", 20); d.createDimension("x", 100)
    all = [d.createVariable(f"v{i}", "f4", ("t", "y", "x")) for i in range(12)]
    for t in range(20):
        for v in all: v[t] = numpy.full((20, 100), t, "f4")
"""


class Seen:
    """One run: ``counted`` by the file system, ``table`` and ``figures`` of layers by the report.
    """

    def __init__(self, counted, report=None):
        self.counted, self.table, self.figures = counted.requests, None, {}
        if report is not None:
            [one] = report["layers"]
            self.table = one["system"]
            self.figures = {(f["layer"], f["name"]): f["value"] for f in one["statistics"]}
            self.left = [(left["layer"], left["reason"]) for left in one["bypassed"]]


@pytest.fixture
def played(weir, execute, testfs, tmp_path):
    """``played(PIECES)`` plain, ``played(PIECES, "bufa")`` under a stack: what one program asks a
    file system for."""

    def play(program: str, stack: str | None = None, *arguments: str) -> Seen:
        fs = testfs("direct")
        for piece in ("p1", "p2"):
            (fs.backing / piece).mkdir()
        command = [sys.executable, "-c", program, fs.path / "a.dat", *arguments]
        fs.reset()
        if stack is None:
            execute(command).ok()
            return Seen(fs.stats())
        rules, run = tmp_path / "rules.toml", tmp_path / f"run{len(list(tmp_path.glob('run*')))}"
        rules.write_text(f'[[rule]]\nname = "*.dat"\nstack = "{stack.format(fs=fs.path)}"\n')
        weir("run", "--rules", rules, "--trace", run, "--", *command).ok()
        return Seen(fs.stats(), json.loads(weir("report", run, "--json").ok().stdout))

    return play


OPENS = 2  # of PIECES: each is looked at once
# Declared by each layer. looks: what else is looked at (a file handed to the write-back daemon, the
# directory of a file that hints makes); index_reads, index_writes: requests that no event layer
# sees.
DECLARED_REQUESTS = [layer["tests"]["requests"] for layer in DECLARED
    if "requests" in layer["tests"]]


@pytest.mark.parametrize("declared", DECLARED_REQUESTS, ids=lambda declared: declared["stack"])
def test_the_table_of_layers_and_the_file_system_agree_to_the_request(played, declared):
    plain, layered = played(PIECES), played(PIECES, declared["stack"])
    assert layered.table["reads"] == layered.counted["read"] - declared.get("index_reads", 0)
    assert layered.table["writes"] == layered.counted["write"] - declared.get("index_writes", 0)
    assert layered.figures.get(("system", "reads"), 0) == layered.table["reads"]
    assert layered.figures.get(("system", "writes"), 0) == layered.table["writes"]
    sizes = [value for (_, name), value in layered.figures.items() if name == "size_requests"]
    assert sum(sizes) == layered.table["sizes"]
    assert layered.table["requests"] == layered.table["reads"] + layered.table[
        "writes"] + layered.table["sizes"]
    assert layered.table["reads"] <= plain.counted["read"]
    assert layered.table["writes"] <= plain.counted["write"]
    if "looks" in declared:
        assert layered.table["sizes"] <= OPENS, "only what a layer asks at an open"
        looks = OPENS + declared["looks"] + layered.table["sizes"]
        assert layered.counted["getattr"] == plain.counted["getattr"] + looks



@pytest.mark.parametrize("stack", ["bufa:64KiB:8:always=1", "global:64KiB:8", "gather:64KiB:8"])
def test_any_number_of_separate_pieces_waits_in_a_block_until_it_is_whole(played, stack):
    plain, layered = played(COMBED), played(COMBED, stack)
    assert plain.counted["write"] == 2520
    assert layered.counted["write"] == 4  # of 64 KiB
    assert layered.counted.get("read", 0) == 0
    assert ("global", "stalls") not in layered.figures and ("gather",
        "stalls") not in layered.figures


def test_a_layer_that_has_what_was_written_answers_netcdf_itself(played):
    """netCDF reads the page that it is about to write: what it just wrote, and past the end."""
    plain, bufa, shared = played(NETCDF), played(NETCDF, "bufa:always=1"), played(NETCDF, "global")
    assert plain.counted["read"] > 400
    assert bufa.counted.get("read", 0) <= plain.counted["read"] / 20
    assert shared.counted.get("read", 0) <= plain.counted["read"] / 20
    assert bufa.counted["getattr"] <= plain.counted["getattr"] + 3
    assert shared.counted["getattr"] <= plain.counted["getattr"] + 3


def test_reads_that_no_block_serves_twice_bypass_the_cache(played):
    layered = played(SCATTERED, "global:1MiB:16")
    assert layered.counted["read"] <= 600
    assert layered.figures["global",
        "loads"] <= 24, "16 of the first opening, and as many as chance hits pay for"
    assert ("global", "random") in layered.left


@pytest.mark.parametrize("option", ["", ":always=1", ":wasted_blocks=0"])
def test_blocks_that_serve_many_reads_do_not_bypass_the_cache(played, option):
    layered = played(TURNS, f"global:1MiB:16{option}")
    assert layered.figures["global", "loads"] == layered.counted["read"] == 16
    assert ("global", "random") not in layered.left


@pytest.mark.parametrize("stack", ["global:64KiB:4", "gather:64KiB:4"])
def test_writes_that_no_block_joins_bypass_the_cache(played, stack):
    layered, layer = played(GAPS, stack), stack.split(":")[0]
    assert layered.counted["write"] == 3000
    held = layered.figures[layer, "accepted"]
    assert held <= 256 + 8 * 64 + 64, (
        "until 256 requests were written in vain, and what a set of blocks holds then"
    )
    assert layered.figures[layer, "passed_on"] == 3000 - held
    assert (layer, "random") in layered.left


def test_a_file_whose_reads_bypass_the_cache_is_one_file_to_all_ranks(played):
    layered = played(SHARED, "global:4KiB:8")
    assert ("global", "random") in layered.left
    most = 2 * (2 * 8 + 2 * 8 // 4)
    assert layered.figures["global",
        "loads"] <= most, "16 of the first opening, 2 of each further one; as much saved in advance"
    assert layered.figures["global", "accepted"] > 0


@pytest.mark.parametrize(
    "stack", ["global:64KiB:16", "gather:64KiB:16", "global:1MiB:16", "gather:1MiB:16"])
def test_large_calls_pass_in_one_piece_where_no_block_holds_anything(played, stack):
    """In two: FUSE makes two requests of 1 MiB from memory that does not begin at a page."""
    plain, layered = played(LARGE), played(LARGE, stack)
    assert layered.counted["write"] == plain.counted["write"] <= 4 * 5
    assert layered.table["writes"] == layered.figures[stack.split(":")[0], "passed_on"] == 4
    if stack.startswith("gather"):
        plain, layered = played(LARGE, None, "read"), played(LARGE, stack, "read")
        assert layered.counted["read"] == plain.counted["read"] <= 8 * 5
        assert layered.table["reads"] == 8


@pytest.mark.parametrize("stack", ["global:64KiB:16", "gather:64KiB:16", "gather:128KiB:16"])
def test_pieces_of_memory_pass_in_one_request_where_no_block_holds_anything(played, stack):
    plain, layered = played(VECTORS), played(VECTORS, stack)
    assert layered.counted["write"] == plain.counted["write"] == layered.table["writes"] == 4
    if stack.startswith("gather"):
        plain, layered = played(VECTORS, None, "read"), played(VECTORS, stack, "read")
        assert layered.counted["read"] == plain.counted["read"] == layered.table["reads"] == 4


def test_a_large_read_of_a_striped_file_is_a_request_for_each_directory(played):
    layered = played(LARGE, "stripe:dirs={fs}/p1,{fs}/p2:unit=64KiB", "read")
    assert layered.figures["stripe", "piece_reads"] == layered.table["reads"] == 8 * 2
    # in the order of their bytes, a unit each
    assert layered.figures["stripe", "piece_writes"] == 4 * 64
