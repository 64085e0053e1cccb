! SPDX-License-Identifier: Apache-2.0
!> shallow_water case.nml
program shallow_water
  use mpi_f08, only: MPI_Abort, MPI_Comm, MPI_COMM_WORLD, MPI_Finalize, MPI_Init
  use sw_channel, only: make_channel, walls_t
  use sw_diagnostics, only: sums_of, sums_t
  use sw_dynamics, only: advance, domain_t
  use sw_nest, only: make_nest, nest_t, ratio
  use sw_options, only: options_t, read_options
  implicit none (type, external)
  type(options_t) :: o
  type(domain_t) :: d, fine
  type(walls_t) :: walls
  type(nest_t) :: nest
  character(:), allocatable :: message
  character(4096) :: path
  integer :: step
  call MPI_Init()
  call get_command_argument(1, path)
  call read_options(trim(path), o, message)
  if (message /= '') call fail(message)
  call make_channel(MPI_COMM_WORLD, o, d, walls)
  if (o%nested) call make_nest(o, d, fine, nest)
  call report(0)
  do step = 1, o%steps
    call advance(d, walls, o%dt)
    if (o%nested) call advance_nest()
    if (step == o%steps) then
      call report(step)
    else if (o%report_every > 0) then
      if (mod(step, o%report_every) == 0) call report(step)
    end if
  end do
  call MPI_Finalize()
contains
  subroutine advance_nest()
    integer :: part
    call nest%follow(d)
    do part = 0, ratio - 1
      nest%at = part * nest%length
      call advance(fine, nest, o%dt * nest%length)
      call nest%relax(fine)
    end do
  end subroutine advance_nest
  subroutine report(step)
    integer, intent(in) :: step
    call line('step=', d, step)
    if (o%nested) call line('nest step=', fine, step)
  end subroutine report
  subroutine line(what, of, step)
    character(*), intent(in) :: what
    type(domain_t), intent(in) :: of
    integer, intent(in) :: step
    type(sums_t) :: s
    s = sums_of(of)
    if (d%tile%rank == 0) print '(a, i0, 3(a, es23.16))', what, step, ' mass=', s%mass, ' energy=', s%energy, ' eddy=', s%eddy
  end subroutine line
  subroutine fail(text)
    use, intrinsic :: iso_fortran_env, only: error_unit
    character(*), intent(in) :: text
    write (error_unit, '(a)') 'shallow_water: ' // text
    call MPI_Abort(MPI_COMM_WORLD, 2)
  end subroutine fail
end program shallow_water
