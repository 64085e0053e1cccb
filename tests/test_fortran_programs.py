# SPDX-License-Identifier: Apache-2.0
"""Statements and what lies below and beside them: system calls, threads, statements in statements,
ends, private libraries."""

import collections
import os
import sys
from pathlib import Path

import decode
import pytest
from fortran_trace import Traced, statements

MANY = """
program p
  integer :: i, n
  character(10) :: count
  call get_environment_variable('STATEMENTS', count)
  read(count, *) n
  open(61, file='many', form='unformatted')
  do i = 1, n
    write(61) i
  end do
  close(61)
end program
"""


@pytest.fixture
def traced(fc, execute, preload_env, tmp_path):
    return Traced(fc, execute, preload_env, tmp_path)


@pytest.mark.parametrize("count", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_many_statements_and_few_system_calls(fc, execute, preload_env, tmp_path, count):
    env = preload_env(STATEMENTS=str(count))
    execute([fc(MANY)], env=env, cwd=tmp_path).ok()
    trace = decode.read_trace(env["WEIR_TRACE_DIR"])
    writes = [r for r in trace.records if r.op == "fortran_write"]
    assert len(writes) == count and {(r.offset, r.size, r.flags) for r in writes} == {(61, 4, 0)}
    below = [r for r in trace.records if r.layer == "posix" and r.file.endswith("/many")]
    assert 2 < len(below) < count // 1000 and all(r.below for r in below)
    moved = sum(r.size for r in below if r.op == "write")
    assert moved == (tmp_path / "many").stat().st_size == 12 * count


EXIT = """
program p
  open(10, file='kept')
  write(10, *) 1
  open(11, file='other')
  write(11, *) 2
  flush(11)
END_HERE
end program
"""


@pytest.mark.parametrize("end", ["", "stop", "stop 3", "error stop 'no'", "call exit(4)"])
def test_what_the_library_writes_at_exit_is_below_but_not_nested(traced, end):
    trace = traced(EXIT.replace("END_HERE", f"  {end}"))
    calls = [(r.op, r.below, r.nested) for r in trace.of(layer="posix", file="kept")]
    assert calls[0] == ("open", True, True)
    assert calls[-2:] == [("write", True, False), ("close", True, False)]
    assert [(r.nested) for r in trace.of("write", file="other")] == [True]
    (process,) = trace.processes.values()
    assert process.end_kind == 1


FATAL = """
program p
  integer :: i
  open(10, file='kept')
  write(10, *) 1
  WHICH
end program
"""


@pytest.mark.parametrize(
    "statement, record",
    [
        ("open(11, file='missing', status='old')", ("open", 11, 0, "E")),
        ("read(10, *) i", ("read", 10, 0, "E")),
        ("write(10, '(a)') 1, ends()", ("write", 10, 4, "E")),
    ],
)
def test_an_error_that_ends_the_program_leaves_its_statement_and_the_rest(traced, statement,
        record):
    source = FATAL.replace("WHICH", statement)
    if "ends()" in statement:
        source = FATAL.replace("WHICH",
            "write(10, *) 1, ends()\ncontains\ninteger function ends()\nstop 5\nend function")
    trace = traced(source)
    assert traced.done.returncode != 0
    assert statements(trace)[-1] == record
    kept = [(r.op, r.below, r.nested) for r in trace.of(layer="posix", file="kept")]
    assert kept[-1] == ("close", True, False)
    assert ("write", True, statement.startswith("read")) in kept


NESTED = """
module inner
  use iso_c_binding
  interface
    integer(c_int) function creat(path, mode) bind(c)
      import
      character(kind=c_char) :: path(*)
      integer(c_int), value :: mode
    end function
  end interface
contains
  integer function writes(n)
    integer, intent(in) :: n
    character(10) :: text
    open(33, file='inner')
    write(33, *) n
    write(text, '(i5)') n
    read(text, *) writes
    n_ = creat('made' // c_null_char, 384)
  end function
  integer function converts(n)
    integer, intent(in) :: n
    character(10) :: text
    write(text, '(i5)') writes(n)
    read(text, *) converts
  end function
end module
program p
  use inner
  character(10) :: text
  open(10, file='outer')
  write(10, *) writes(7), 8
  write(text, '(i5)') writes(9)
  print *, converts(11)
end program
"""


def test_statements_in_functions_of_a_list(traced):
    trace = traced(NESTED)
    assert statements(trace, "outer") == [("open", 10, 0, ""), ("write", 10, 8, "")]
    inner = statements(trace, "inner")
    assert inner == [("open", 33, 0, "N"), ("write", 33, 4, "N"),
        *[("open", 33, 0, ""), ("write", 33, 4, "")],
                     *[("open", 33, 0, "N"), ("write", 33, 4, "N")]]  # fmt: skip
    made = trace.of(file="made")
    assert [(r.op, r.below, r.nested) for r in made] == [
        ("creat", False, True), ("creat", False, False), ("creat", False, True),
    ]  # fmt: skip


DEFINED = """
module m
  type t
    integer :: i = 1
    real(8) :: x = 2
  contains
    procedure :: put, put_raw
    generic :: write(formatted) => put
    generic :: write(unformatted) => put_raw
  end type
contains
  subroutine put(self, unit, how, list, status, message)
    class(t), intent(in) :: self
    integer, intent(in) :: unit, list(:)
    character(*), intent(in) :: how
    integer, intent(out) :: status
    character(*), intent(inout) :: message
    write(unit, '(i0)', iostat=status, iomsg=message) self%i
    write(unit, '(f4.1)', iostat=status, iomsg=message) self%x
  end subroutine
  subroutine put_raw(self, unit, status, message)
    class(t), intent(in) :: self
    integer, intent(in) :: unit
    integer, intent(out) :: status
    character(*), intent(inout) :: message
    write(unit, iostat=status, iomsg=message) self%x
  end subroutine
end module
program p
  use m
  type(t) :: v
  character(40) :: text
  open(10, file='formatted')
  write(10, *) 5, v, 6
  open(11, file='raw', form='unformatted')
  write(11) 5, v
  write(text, *) v
  print '(a)', text
end program
"""


def test_defined_io_is_statements_in_a_statement(traced):
    trace = traced(DEFINED)
    assert statements(trace, "formatted") == [
        ("open", 10, 0, ""), ("write", 10, 8, ""), ("write", 10, 4, "N"), ("write", 10, 8, "N"),
    ]  # fmt: skip
    assert statements(trace, "raw") == [("open", 11, 0, ""), ("write", 11, 4, ""),
        ("write", 11, 8, "N")]
    assert statements(trace)[-1] == ("write", 6, 40, "")
    assert len(trace.of(layer="fortran")) == 8


THREADS = """
program p
  use omp_lib
  integer :: i, u
  character(8) :: name
  !$omp parallel private(u, i, name) num_threads(4)
  write(name, '(a,i0)') 'part', omp_get_thread_num()
  do i = 1, 50
    open(newunit=u, file=name, position='append')
    write(u, *) i, omp_get_thread_num()
    close(u)
  end do
  open(40 + omp_get_thread_num(), file=name)
  do i = 1, 1000
    write(40 + omp_get_thread_num(), '(i8)') i
  end do
  close(40 + omp_get_thread_num())
  !$omp end parallel
end program
"""


def test_threads_on_units_of_their_own(traced):
    trace = traced(THREADS, "-fopenmp")
    for i in range(4):
        mine = trace.of(layer="fortran", file=f"part{i}")
        assert collections.Counter(r.op for r in mine) == {"fortran_open": 51,
            "fortran_write": 1050, "fortran_close": 51}
        assert len({r.thread for r in mine}) == 1
        assert {r.offset for r in mine[-1002:]} == {40 + i}
        assert sum(r.size for r in mine) == 50 * 8 + 4000
        assert len({r.offset for r in trace.of("fortran_write", file=f"part{i}")}) > 1
    assert len({r.thread for r in trace.of("fortran_write")}) == 4


DEEP = """
module deep
contains
  recursive function text(n) result(all)
    integer, intent(in) :: n
    character(:), allocatable :: all
    character(400) :: line
    if (n == 0) then
      all = '.'
      return
    end if
    write(line, '(a,i0)') text(n - 1), n
    if (n == 40) write(10, '(a)') 'top'
    all = trim(line)
  end function
end module
program p
  use deep
  open(10, file='top')
  print '(a)', text(40)
end program
"""


def test_statements_nested_deeper_than_is_followed(traced):
    trace = traced(DEEP)
    assert statements(trace, "top") == [("open", 10, 0, ""), ("write", 10, 3, "N")]
    assert statements(trace)[-2:] == [("write", 6, len(traced.done.stdout) - 1, ""),
        ("write", 10, 3, "N")]


PRIVATE = """
subroutine work() bind(c)
  integer :: u
  open(newunit=u, file='private', form='unformatted')
  write(u) 1, 2, 3
  close(u)
end subroutine
"""


@pytest.mark.parametrize("deep", [0, os.RTLD_DEEPBIND], ids=["local", "deepbind"])
def test_a_privately_loaded_library_is_seen(deep, fc, execute, preload_env, tmp_path):
    library = fc(PRIVATE, "-shared", "-fPIC", name="libprivate.so")
    env = preload_env()
    load = (
        f"import ctypes, os; ctypes.CDLL({str(library)!r}, mode=os.RTLD_LOCAL | os.RTLD_NOW | "
        f"{deep}).work()"
    )
    execute([sys.executable, "-c", load], env=env, cwd=tmp_path).ok()
    trace = decode.read_trace(env["WEIR_TRACE_DIR"])
    assert [(r.op, r.offset, r.size) for r in trace.of(layer="fortran", file="private")] == [
        ("fortran_open", -10, 0), ("fortran_write", -10, 12), ("fortran_close", -10, 0),
    ]  # fmt: skip
    assert [r.below for r in trace.of("write", file="private")] == [True]
    assert (tmp_path / "private").stat().st_size == 20


TWO_CALLS = """
subroutine begin() bind(c)
  open(newunit=unit, file=NAME, form='unformatted')
  write(unit) 1, 2, 3
end subroutine
subroutine finish() bind(c)
  write(unit) 4
  close(unit)
end subroutine
"""


def test_libraries_keep_to_their_own_copy_of_libgfortran(fc, execute, preload_env, tmp_path):
    """As in Python, where numpy brings a libgfortran and a module made with f2py uses that of the
    system."""
    system = execute(["gfortran", "-print-file-name=libgfortran.so.5"]).ok().stdout.strip()
    copy = tmp_path / "libgfortran.so.6"
    copy.write_bytes(Path(system).read_bytes().replace(b"libgfortran.so.5\0",
        b"libgfortran.so.6\0"))
    module = "module m\n  integer :: unit\ncontains\n" + TWO_CALLS + "end module\n"
    first = fc(module.replace("NAME", "'first'"), "-shared", "-fPIC", name="libfirst.so")
    second = fc(
        module.replace("NAME", "'second'"), "-shared", "-fPIC", "-nodefaultlibs", str(copy), "-lc",
        "-lgcc_s", "-lgcc",
        f"-Wl,-rpath,{tmp_path}", name="libsecond.so",
    )  # fmt: skip
    env = preload_env()
    load = f"""if True:
        import ctypes, os
        a, b = (ctypes.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_NOW) for path in ({str(second)!r}, {str(first)!r}))
        a.begin(); b.begin(); a.finish(); b.finish()
        print(sum("libgfortran" in line for line in open("/proc/self/maps") if " r-xp " in line))"""
    done = execute([sys.executable, "-c", load], env=env, cwd=tmp_path).ok()
    assert done.stdout.strip() == "2"
    trace = decode.read_trace(env["WEIR_TRACE_DIR"])
    for name in ("first", "second"):
        assert statements(trace, name) == [
            ("open", -10, 0, ""), ("write", -10, 12, ""), ("write", -10, 4, ""),
            ("close", -10, 0, ""),
        ]  # fmt: skip
        assert (tmp_path / name).stat().st_size == 20 + 12


def test_a_library_within_the_program_shows_system_calls_alone(traced):
    trace = traced(EXIT.replace("END_HERE", ""), "-static-libgfortran")
    assert not trace.of(layer="fortran")
    assert [(r.op, r.below) for r in trace.of(file="kept") if r.op != "fstat"] == [
        ("open", False), ("write", False), ("close", False),
    ]  # fmt: skip


def test_a_forked_child_goes_on_with_its_parents_units(traced):
    source = """
program p
  use iso_c_binding
  interface
    integer(c_int) function fork() bind(c)
      import
    end function
    integer(c_int) function wait_for_child(status) bind(c, name='wait')
      import
      type(c_ptr), value :: status
    end function
  end interface
  integer :: child
  open(10, file='shared')
  write(10, *) 1
  flush(10)
  child = fork()
  if (child == 0) then
    write(10, *) 2
    close(10)
    stop
  end if
  child = wait_for_child(c_null_ptr)
  close(10)
end program
"""
    trace = traced(source)
    parent, child = sorted(trace.processes.values(), key=lambda p: p.start_ticks)
    assert child.parent == parent.number
    mine = [(r.op, r.offset) for r in trace.of(layer="fortran", file="shared")
        if r.process == child.number]
    assert mine == [("fortran_write", 10), ("fortran_close", 10)]


def test_without_a_trace_directory_nothing_happens(fc, execute, preload, tmp_path):
    done = execute([fc(NESTED)], env={"LD_PRELOAD": str(preload)}, cwd=tmp_path).ok()
    assert done.stdout.split() == ["11"]
