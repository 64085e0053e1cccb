! SPDX-License-Identifier: Apache-2.0
!> How this program says that something is wrong: one line on stderr that names the file, what was
!  expected and what was
!> found, then MPI_Abort with status 1. Nothing here returns.
module fdv_fail
  use mpi_f08, only: MPI_COMM_WORLD, MPI_Abort, MPI_Barrier, MPI_Comm_rank
  use, intrinsic :: iso_fortran_env, only: error_unit
  use fdv_clib, only: c_wait_for_launcher
  use fdv_kinds, only: i8
  implicit none (type, external)
  private
  public :: fail, fail_together, fail_setup, text, hex

  interface text
    module procedure text_i4, text_i8
  end interface

  character(:), allocatable :: step_name

contains

  !> Name of the running step, shown in every message.
  subroutine fail_setup(step)
    character(*), intent(in) :: step
    step_name = step
  end subroutine fail_setup

  !> [any rank] object: file (or option) at fault; what: which property of it.
  subroutine fail(object, what, expected, found, advice)
    character(*), intent(in) :: object, what, expected, found
    character(*), intent(in), optional :: advice
    integer :: rank
    character(:), allocatable :: line
    if (.not. allocated(step_name)) step_name = '-'
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    line = 'weir-4dvar: ' // step_name // ': rank ' // text(rank) // ': ' // trim(object) &
        // ': ' // what // &
           ': expected ' // trim(expected) // ', found ' // trim(found)
    if (present(advice)) line = line // '; ' // advice
    write (error_unit, '(a)') line
    flush (error_unit)
    call c_wait_for_launcher()
    call MPI_Abort(MPI_COMM_WORLD, 1)
    error stop 1
  end subroutine fail

  !> [collective] The same, where all ranks know: rank 0 speaks for all.
  subroutine fail_together(object, what, expected, found, advice)
    character(*), intent(in) :: object, what, expected, found, advice
    integer :: rank
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    if (rank == 0) call fail(object, what, expected, found, advice)
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine fail_together

  pure function text_i4(i) result(s)
    integer, intent(in) :: i
    character(:), allocatable :: s
    s = text_i8(int(i, i8))
  end function text_i4

  pure function text_i8(i) result(s)
    integer(i8), intent(in) :: i
    character(:), allocatable :: s
    character(24) :: buffer
    write (buffer, '(i0)') i
    s = trim(buffer)
  end function text_i8

  pure function hex(i) result(s)
    integer(i8), intent(in) :: i
    character(16) :: s
    write (s, '(z16.16)') i
  end function hex

end module fdv_fail
