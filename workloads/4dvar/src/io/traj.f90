! SPDX-License-Identifier: Apache-2.0
!> Trajectory files, in a directory for each trajectory: each rank writes its part of the state into
!  trajgridL<N> (streams of C)
!> and trajspecL<N> (Fortran records), N being its number plus one, and reads it back in the
!  minimisation.
module fdv_traj
  use fdv_kinds, only: i8, r8
  use fdv_fail, only: fail, text
  use fdv_clib, only: c_mkdir, c_name, error_text, stdio_file
  use fdv_config, only: dumps, fields, levels
  use fdv_file, only: file_t
  use fdv_par, only: rank, ranks, wait_all
  use fdv_state, only: my_points, my_values
  use fdv_unit, only: unit_t
  implicit none (type, external)
  private

  integer(i8), parameter :: magic = 6076276549747233396_i8, block_1m = 1048576_i8

  type, public :: traj_t
    type(file_t) :: grid
    type(unit_t) :: spec
    integer :: states = 0            !< written or read so far
  contains
    procedure :: open => traj_open
    procedure :: put => traj_put
    procedure :: get => traj_get
    procedure :: finish => traj_finish
  end type traj_t

contains

  !> [collective] outer: number of the trajectory, 0 or 1.
  subroutine traj_open(self, outer, writing)
    class(traj_t), intent(inout) :: self
    integer, intent(in) :: outer
    logical, intent(in) :: writing
    character(8) :: directory
    character(3) :: n
    integer(i8) :: head(6), expected(6)
    integer :: error
    write (directory, '(a,i2.2)') 'TRAJHR', outer
    write (n, '(i3.3)') rank + 1
    if (writing .and. rank == 0) then
      error = c_mkdir(c_name(directory))
      if (error /= 0) call fail(directory, 'directory', 'one that can be made', error_text(error))
    end if
    if (writing) call wait_all()
    expected = [magic, int(rank, i8), int(ranks, i8), int(my_points, i8), int(levels, i8), &
        int(fields, i8)]
    call self%grid%open(directory // '/trajgridL' // n, stdio_file, writing, block_1m)
    if (writing) then
      call self%grid%put(expected, 48_i8)
    else
      call self%grid%get(head, 48_i8)
      if (any(head /= expected)) call fail(self%grid%name, 'head', list(expected), list(head))
    end if
    call self%spec%open(directory // '/trajspecL' // n, 'unformatted', writing)
    self%states = 0
  end subroutine traj_open

  function list(x) result(s)
    integer(i8), intent(in) :: x(:)
    character(:), allocatable :: s
    integer :: i
    s = text(x(1))
    do i = 2, size(x)
      s = s // ' ' // text(x(i))
    end do
  end function list

  subroutine traj_put(self, x_sp, x_gg)
    class(traj_t), intent(inout) :: self
    real(r8), intent(in) :: x_sp(:, :, :), x_gg(:, :, :)
    integer :: l, p
    real(r8) :: record(my_values * size(x_sp, 3))
    do p = 1, fields
      call self%grid%put(x_gg(:, :, p), 8 * size(x_gg(:, :, p), kind=i8))
    end do
    do l = 1, levels
      record = reshape(x_sp(:, l, :), [size(record)])
      call self%spec%put(record)
    end do
    self%states = self%states + 1
  end subroutine traj_put

  subroutine traj_get(self, x_sp, x_gg)
    class(traj_t), intent(inout) :: self
    real(r8), intent(inout) :: x_sp(:, :, :), x_gg(:, :, :)
    integer :: l, p
    real(r8) :: record(my_values * size(x_sp, 3))
    do p = 1, fields
      call self%grid%get(x_gg(:, :, p), 8 * size(x_gg(:, :, p), kind=i8))
    end do
    do l = 1, levels
      call self%spec%get(record)
      x_sp(:, l, :) = reshape(record, [my_values, size(x_sp, 3)])
    end do
    self%states = self%states + 1
  end subroutine traj_get

  subroutine traj_finish(self)
    class(traj_t), intent(inout) :: self
    if (self%states /= dumps) call fail(self%grid%name, 'states', text(dumps), text(self%states))
    call self%grid%finish()
    call self%spec%finish()
  end subroutine traj_finish

end module fdv_traj
