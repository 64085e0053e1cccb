# SPDX-License-Identifier: Apache-2.0
"""Each statement of a gfortran program is one record: operation, unit, file, payload, outcome."""

import errno
import re

import pytest
from decode import read_trace
from fortran_trace import Traced, statements


@pytest.fixture
def traced(fc, execute, preload_env, tmp_path):
    return Traced(fc, execute, preload_env, tmp_path)


SEQUENTIAL = """
program p
  real :: a(10) = 1
  open(10, file='seq.txt')
  write(10, *) a
  write(10, '(a)', advance='no') 'abc'
  write(10, '(a)') 'de'
  rewind(10)
  read(10, *) a
  close(10)
end program
"""


def test_sequential_formatted(traced):
    trace = traced(SEQUENTIAL)
    assert statements(trace, "seq.txt") == [
        ("open", 10, 0, ""), ("write", 10, 40, ""), ("write", 10, 3, ""), ("write", 10, 2, ""),
        ("rewind", 10, 0, ""),
        ("read", 10, 40, ""), ("close", 10, 0, ""),
    ]  # fmt: skip
    assert len(trace.of(layer="fortran")) == 7
    assert sum(r.size for r in trace.of("write", file="seq.txt")) == (traced.work / "seq.txt").stat(
        ).st_size


ITEMS = """
program p
  use iso_fortran_env
  type t
    integer :: i
    real(8) :: x(3)
    character(5) :: name
  end type
  type(t) :: v = t(1, 2d0, 'three'), w(4)
  integer(1) :: i1 = 1
  integer(2) :: i2 = 2
  integer(8) :: i8 = 8
  real(10) :: x10 = 1
  real(16) :: x16 = 1
  real :: r = 1
  real(8) :: d = 1
  complex :: c = 1
  complex(8) :: cd = 1
  complex(16) :: c16 = 1
  logical :: l = .true.
  real :: b(10, 10) = 0
  character(7) :: words(3) = 'word'
  character(kind=4, len=3) :: wide = 4_'abc', wides(2) = 4_'abc'
  integer :: i, n = 0
  w = v
  open(10, file='items', form='unformatted')
  write(10) i1, i2, i8
  write(10) r, d, x10, x16
  write(10) c, cd, c16, l
  write(10) b
  write(10) b(2:9:3, :), b(:, 1:n)
  write(10) v
  write(10) w
  write(10) 'hello', words, words(2)(2:4)
  write(10) wide, wides
  write(10) (b(i, i), i = 1, 7)
  write(10)
  rewind(10)
  read(10) i1, i2, i8
  read(10) r, d, x10, x16
  read(10) c, cd, c16, l
  read(10) b
  read(10) b(2:9:3, :)
  read(10) v
  read(10) w
  read(10) words(1)(1:5), words
  read(10) wide, wides
  read(10) (b(i, i), i = 1, 7)
end program
"""


@pytest.mark.parametrize("optimisation", ["-O0", "-O2"])
def test_payload_is_the_bytes_of_the_items_of_the_list(traced, optimisation):
    trace = traced(ITEMS, optimisation)
    derived = 4 + 3 * 8 + 5
    expected = [1 + 2 + 8, 4 + 8 + 16 + 16, 8 + 16 + 32 + 4, 400, 3 * 10 * 4, derived, 4 * derived,
        5 + 21 + 3, 12 + 24, 28, 0]
    assert [r.size for r in trace.of("fortran_write")] == expected
    assert [r.size for r in trace.of("fortran_read")] == [11, 44, 60, 400, 120, derived,
        4 * derived, 5 + 21, 36, 28]
    assert sum(expected) + 8 * len(expected) == (traced.work / "items").stat(
        ).st_size, "record marks are not payload"


DIRECT_AND_STREAM = """
program p
  integer :: i, u, a(25) = 5
  open(newunit=u, file='direct', access='direct', recl=100, form='unformatted')
  print '(i0)', u
  do i = 8, 1, -1
    write(u, rec=i) a
  end do
  read(u, rec=3) a(1:10)
  close(u)
  open(newunit=u, file='stream', access='stream', form='unformatted')
  print '(i0)', u
  write(u) a
  write(u, pos=41) a(1:5)
  read(u, pos=1) a
  close(u)
end program
"""


def test_direct_and_stream_access_on_units_by_newunit(traced):
    trace = traced(DIRECT_AND_STREAM)
    first, second = (int(line) for line in traced.done.stdout.split())
    assert statements(trace, "direct") == [
        ("open", first, 0, ""), *[("write", first, 100, "")] * 8, ("read", first, 40, ""),
        ("close", first, 0, ""),
    ]  # fmt: skip
    assert statements(trace, "stream") == [
        ("open", second, 0, ""), ("write", second, 100, ""), ("write", second, 20, ""),
        ("read", second, 100, ""),
        ("close", second, 0, ""),
    ]  # fmt: skip


UNITS = """
program p
  integer :: u, v
  open(20, file='first')
  write(20, *) 1
  open(20, file='second')
  write(20, *) 2
  close(20)
  write(20, *) 3
  close(20)
  open(newunit=u, status='scratch')
  open(newunit=v, file='third')
  write(u, *) 4
  write(v, *) 5
  close(u)
  close(v, status='delete')
  open(2147483647, file='large')
  write(2147483647, *) 6
  open(6, file='output')
  print *, 7
  close(6)
  print *, 8
end program
"""


def test_units_follow_what_they_are_connected_to(traced):
    trace = traced(UNITS)
    writes = [(r.offset, r.file.removeprefix(f"{traced.work}/")) for r in trace.of("fortran_write")]
    scratch = writes.pop(3)
    assert writes == [
        (20, "first"), (20, "second"), (20, "fort.20"), (-11, "third"), (2147483647, "large"),
        (6, "output"), (6, "fort.6"),
    ]  # fmt: skip
    assert scratch[0] == -10 and scratch[1].startswith("/tmp/gfortrantmp")
    assert [r.file.rsplit("/")[-1] for r in trace.of("fortran_close")][0:2] == ["second", "fort.20"]


def test_preconnected_units_are_those_of_the_descriptors(traced):
    source = """
program p
  character(8) :: word
  read *, word
  read(5, *) word
  print *, word
  write(0, *) word
end program
"""
    trace = traced(source, input="one\ntwo\n")
    assert [s[:2] for s in statements(trace)] == [("read", 5), ("read", 5), ("write", 6),
        ("write", 0)]
    files = [r.file for r in trace.of(layer="fortran")]
    assert all(name.startswith("pipe:[") for name in files) and len(set(files)) == 3
    transfers = [r for r in trace.records if r.op in ("read", "write")]
    assert len(transfers) >= 3 and all(r.below for r in transfers)


ERRORS = """
program p
  integer :: status, a(10)
  character(4) :: word
  open(10, file='missing', status='old', iostat=status)
  open(11, file='data')
  write(11, '(a)') 'ab'
  rewind(11)
  read(11, '(a)', advance='no', eor=1) word
1 rewind(11)
  read(11, *, err=2) a
2 read(11, *, iostat=status) a
  rewind(11)
  read(11, '(a4)') word
  read(11, '(a4)', end=3) word
3 close(11)
  open(12, file='no/such/directory', err=4)
4 print '(a)', 'whole'
end program
"""


def test_failed_statements_are_flagged(traced):
    trace = traced(ERRORS)
    assert statements(trace, "missing") == [("open", 10, 0, "E")]
    assert trace.of("fortran_open", file="missing")[0].error == errno.ENOENT
    assert statements(trace, "data") == [
        ("open", 11, 0, ""), ("write", 11, 2, ""), ("rewind", 11, 0, ""), ("read", 11, 4, "S"),
        ("rewind", 11, 0, ""),
        ("read", 11, 40, "E"), ("read", 11, 40, "E"), ("rewind", 11, 0, ""), ("read", 11, 4, ""),
        ("read", 11, 4, "E"),
        ("close", 11, 0, ""),
    ]  # fmt: skip
    assert traced.done.stdout == "whole\n"
    assert statements(trace, "directory") == [("open", 12, 0, "E")]


OTHERS = """
program p
  integer :: i, u
  logical :: there
  namelist /list/ i
  i = 5
  open(10, file='list')
  write(10, nml=list)
  rewind(10)
  read(10, nml=list)
  backspace(10)
  endfile(10)
  flush(10)
  call flush(10)
  call flush()
  inquire(10, opened=there)
  inquire(file='list', exist=there)
  inquire(iolength=u) i
  wait(10)
end program
"""


def test_other_statements(traced):
    trace = traced(OTHERS)
    assert statements(trace) == [
        ("open", 10, 0, ""), ("write", 10, 0, ""), ("rewind", 10, 0, ""), ("read", 10, 0, ""),
        ("backspace", 10, 0, ""),
        ("endfile", 10, 0, ""), ("flush", 10, 0, ""), ("flush", 10, 0, ""), ("flush", None, 0, ""),
        ("inquire", 10, 0, ""),
        ("inquire", None, 0, ""), ("wait", 10, 0, ""),
    ]  # fmt: skip
    assert all(r.file == str(traced.work / "list") for r in trace.of(layer="fortran")
        if r.op != "fortran_flush" or r.offset)


INTERNAL = """
program p
  character(80) :: text, lines(3)
  integer :: i
  write(text, '(i5)') 5
  read(text, *) i
  write(lines, *) 1, 2, 3
  print '(i0)', i
end program
"""


def test_character_variables_as_units_are_no_io(traced):
    trace = traced(INTERNAL)
    assert statements(trace) == [("write", 6, 4, "")]


ASYNCHRONOUS = """
program p
  integer :: u, a(1000) = 1
  open(newunit=u, file='later', form='unformatted', asynchronous='yes')
  write(u, asynchronous='yes') a
  write(u, asynchronous='yes') a
  wait(u)
  close(u)
end program
"""


def test_asynchronous_statements(traced):
    trace = traced(ASYNCHRONOUS, "-fopenmp")
    assert [s[0] for s in statements(trace, "later")] == ["open", "write", "write", "wait", "close"]
    assert all(r.below for r in trace.of("write", file="later"))


def test_levels_summary_and_detail_count_statements(traced):
    trace = traced(SEQUENTIAL, level="detail")
    assert not trace.records
    counted = {c.op: (c.calls, c.bytes) for c in trace.counters if c.file.endswith("/seq.txt")
        and c.layer == "fortran"}
    assert counted["fortran_write"] == (3, 45) and counted["fortran_read"] == (1, 40)
    trace = traced(SEQUENTIAL, level="summary")
    counted = {c.op: (c.file, c.calls, c.bytes) for c in trace.counters if c.layer == "fortran"}
    assert counted["fortran_write"] == ("", 3, 45)


# What no program of this gfortran calls: WAIT of version 8, FLUSH of 8-byte default integers.
OTHER_CALLS = """
struct { int flags, unit; const char *source; int line; unsigned long size; char *message; int *status; int *id; long more[64]; } block;
void _gfortran_st_wait(void *);
void _gfortran_flush_i8(long *);
int main(void) {
  long unit = 11;
  block.unit = 10;
  block.source = "wait.f90";
  _gfortran_st_wait(&block);
  _gfortran_flush_i8(&unit);
  return 0;
}
"""


def test_calls_of_other_compilers_and_options(cc, execute, preload_env):
    env = preload_env()
    execute([cc(OTHER_CALLS, "-lgfortran")], env=env).ok()
    assert statements(read_trace(env["WEIR_TRACE_DIR"])) == [("wait", 10, 0, ""),
        ("flush", 11, 0, "")]


def test_programs_of_this_file_call_every_function_of_the_table(fc, cc, execute, root):
    table = (root / "native" / "hook" / "table.def").read_text()
    rows = set(re.findall(r"^WEIR_HOOKED\((\w+), gfortran,", table, re.MULTILINE))
    programs = [fc(ITEMS, "-O0"), fc(SEQUENTIAL), fc(OTHERS), cc(OTHER_CALLS, "-lgfortran")]
    called = {
        name.split("@")[0]
        for program in programs
        for name in execute(["nm", "-D", "--undefined-only", "--format=just-symbols", program])
        .ok().stdout.split()
    }
    assert len(rows) > 30 and rows <= called
