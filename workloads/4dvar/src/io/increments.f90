! SPDX-License-Identifier: Apache-2.0
!> What minimisations hand on. traj00, traj01: the increments, gathered and written by rank 0, one
!  Fortran record for each level. ME<N>:
!> model-error vectors in direct-access records, each file handled by one of several ranks.
!  VARBC.cycle: bias
!> coefficients as text.
module fdv_increments
  use fdv_kinds, only: r8
  use fdv_fail, only: fail, text
  use fdv_config, only: levels, me_records, me_values, members, points, types
  use fdv_odb_layout, only: several_rank, type_names
  use fdv_par, only: from_rank0, gather_part, scatter_part, rank
  use fdv_state, only: first_point, my_points
  use fdv_unit, only: unit_t
  implicit none (type, external)
  private
  public :: increment_write, increment_read, me_write, me_energy, me_evolve, varbc_write, varbc_read

  integer, parameter, public :: predictors = 5

contains

  pure function increment_file(outer) result(s)
    integer, intent(in) :: outer
    character(6) :: s
    write (s, '(a,i2.2)') 'traj', outer
  end function increment_file

  !> [collective]
  subroutine increment_write(outer, dx)
    integer, intent(in) :: outer
    real(r8), intent(in) :: dx(:, :)
    real(r8) :: whole(merge(points, 0, rank == 0))
    type(unit_t) :: unit
    integer :: l
    if (rank == 0) call unit%open(increment_file(outer), 'unformatted', writing=.true.)
    do l = 1, levels
      call gather_part(dx(:, l), first_point, whole)
      if (rank == 0) call unit%put(whole)
    end do
    if (rank == 0) call unit%finish()
  end subroutine increment_write

  !> [collective]
  subroutine increment_read(outer, dx)
    integer, intent(in) :: outer
    real(r8), intent(out) :: dx(:, :)
    real(r8) :: whole(merge(points, 0, rank == 0))
    type(unit_t) :: unit
    integer :: l
    if (rank == 0) call unit%open(increment_file(outer), 'unformatted', writing=.false.)
    do l = 1, levels
      if (rank == 0) call unit%get(whole)
      call scatter_part(whole, first_point, dx(:, l))
    end do
    if (rank == 0) call unit%finish()
  end subroutine increment_read

  pure function me_file(n) result(s)
    integer, intent(in) :: n
    character(:), allocatable :: s
    s = 'ME' // text(n)
  end function me_file

  !> [several ranks] First guess of the model error, from this rank's increments.
  subroutine me_write(dx)
    real(r8), intent(in) :: dx(:, :)
    type(unit_t) :: unit
    real(r8) :: record(me_values)
    integer :: n, r, j
    do n = 1, members
      if (several_rank(n) /= rank) cycle
      call unit%open_direct(me_file(n), me_values, writing=.true.)
      do r = 1, me_records
        record = [(1.0e-3_r8 * sin(0.1_r8 * r * j) + 1.0e-3_r8 * sample(dx, r + j), j=1, me_values)]
        call unit%put_at(r, record)
      end do
      call unit%finish()
    end do
  end subroutine me_write

  pure real(r8) function sample(dx, i)
    real(r8), intent(in) :: dx(:, :)
    integer, intent(in) :: i
    sample = 0
    if (size(dx) > 0) sample = dx(mod(i, my_points) + 1, mod(i, levels) + 1)
  end function sample

  !> [several ranks] Sum of squares of this rank's files, all of whose records are read.
  function me_energy() result(energy)
    real(r8) :: energy, record(me_values)
    type(unit_t) :: unit
    integer :: n, r
    energy = 0
    do n = 1, members
      if (several_rank(n) /= rank) cycle
      call unit%open_direct(me_file(n), me_values, writing=.false.)
      do r = 1, me_records
        call unit%get_at(r, record)
        energy = energy + sum(record**2)
      end do
      call unit%check()
      call unit%finish()
    end do
  end function me_energy

  !> [several ranks] Reads each file and writes it anew, a tenth smaller.
  subroutine me_evolve()
    type(unit_t) :: unit
    real(r8), allocatable :: all(:, :)
    integer :: n, r
    allocate (all(me_values, me_records))
    do n = 1, members
      if (several_rank(n) /= rank) cycle
      call unit%open_direct(me_file(n), me_values, writing=.false.)
      do r = 1, me_records
        call unit%get_at(r, all(:, r))
      end do
      call unit%check()
      call unit%finish()
      all = 0.9_r8 * all
      call unit%open_direct(me_file(n), me_values, writing=.true.)
      do r = 1, me_records
        call unit%put_at(r, all(:, r))
      end do
      call unit%finish()
    end do
  end subroutine me_evolve

  !> [one rank]
  subroutine varbc_write(bias)
    real(r8), intent(in) :: bias(:, :)
    type(unit_t) :: unit
    character(40) :: line
    integer :: t, j
    call unit%open('VARBC.cycle', 'formatted', writing=.true.)
    do t = 1, types
      do j = 1, predictors
        write (line, '(a8,i4,es28.16e3)') type_names(t), j, bias(j, t)
        call unit%put_line(line)
      end do
    end do
    call unit%finish()
  end subroutine varbc_write

  !> [collective] bias(predictor, type) on all ranks.
  subroutine varbc_read(bias)
    real(r8), allocatable, intent(out) :: bias(:, :)
    type(unit_t) :: unit
    character(40) :: line
    real(r8) :: flat(predictors * types)
    integer :: i, status
    if (rank == 0) then
      call unit%open('VARBC.cycle', 'formatted', writing=.false.)
      do i = 1, size(flat)
        call unit%get_line(line)
        read (line(13:), *, iostat=status) flat(i)
        if (status /= 0) call fail('VARBC.cycle', 'line ' // text(i), &
            'type, predictor and coefficient', '"' // line // '"')
      end do
      call unit%finish()
    end if
    call from_rank0(flat)
    bias = reshape(flat, [predictors, types])
  end subroutine varbc_read

end module fdv_increments
