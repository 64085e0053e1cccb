# SPDX-License-Identifier: Apache-2.0
"""Finding fortran-units: of a program in Fortran, and of one that writes large records."""

from __future__ import annotations

import pytest
from advised import advise_run

PROGRAM = """program units
  implicit none
  integer :: i
  real(8) :: x({numbers})
  character(len=500) :: name
  call get_command_argument(1, name)
  x = 1
  open(unit=11, file=trim(name), form='{form}', action='write')
  do i = 1, {times}
    {write}
    {behind}
  end do
  close(11)
end program
"""


@pytest.fixture
def found(weir, fc, testfs, tmp_path):
    """Findings of a program on a file system where a write takes 0.2 ms."""

    def made(form: str, numbers: int, times: int, write: str, behind: str = "continue"):
        place = testfs("direct", data_us=200)
        program = fc(PROGRAM.format(form=form, numbers=numbers, times=times, write=write,
            behind=behind))
        weir("trace", "-o", tmp_path / "run", "--", program, place.path / "out.dat").ok()
        return advise_run(tmp_path / "run").advices

    return made


def test_a_unit_that_is_flushed_behind_each_record_is_found(found):
    (one,) = found("formatted", 10, 1000, "write(11, '(10f8.2)') x", "flush(11)")
    assert one.finding == "fortran-units" and one.rule.stack == "bufa:1MiB:4"
    said = one.sentence.replace("\u00a0", " ")
    assert "1,000 Fortran statements became" in said and "each statement is a request" in said
    assert "FLUSH" in one.change and "GFORTRAN_FORMATTED_BUFFER_SIZE" in one.change


def test_a_formatted_unit_has_a_small_buffer(found):
    (one,) = found("formatted", 400, 2500, "write(11, '(400f8.2)') x")
    assert one.finding == "fortran-units" and "the unit has a small buffer" in one.sentence


def test_large_unformatted_records_are_not(found):
    assert found("unformatted", 1 << 17, 30, "write(11) x") == ()
