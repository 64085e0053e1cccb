! SPDX-License-Identifier: Apache-2.0
!> weir-shallow_water case.nml
program shallow_water
  use mpi_f08, only: MPI_Allreduce, MPI_Comm, MPI_Comm_rank, MPI_COMM_WORLD, MPI_DOUBLE_PRECISION, &
      MPI_Finalize, MPI_Init, &
    MPI_INTEGER, MPI_MAX, MPI_MIN, MPI_Wtime
  use sw_channel, only: make_channel, walls_t
  use sw_diagnostics, only: sums_of, sums_t
  use sw_dynamics, only: advance, domain_t
  use sw_kinds, only: r8
  use sw_nest, only: make_nest, nest_t, ratio
  use sw_options, only: options_t, read_options
  use sw_output, only: output_t
  use sw_tiles, only: exchange
  use weir, only: weir_context_t, weir_costs_t, weir_init
  implicit none (type, external)
  type(options_t) :: o
  type(weir_context_t) :: context
  type(MPI_Comm) :: model
  character(:), allocatable :: message
  character(4096) :: path
  call MPI_Init()
  call get_command_argument(1, path)
  call read_options(trim(path), o, message)
  call end_if_wrong(message)
  call weir_init(MPI_COMM_WORLD, trim(o%config), model, context)
  if (context%is_model()) call run() ! the others have been servers until all was written
  call MPI_Finalize()
contains
  subroutine run()
    type(domain_t) :: d, fine
    type(walls_t) :: walls
    type(nest_t) :: nest
    type(output_t) :: output, fine_output
    real(r8) :: begin
    integer :: step
    begin = MPI_Wtime()
    call make_channel(model, o, d, walls)
    call context%set_attribute('title', 'rotating shallow water, case ' // trim(o%case))
    call context%set_time('2000-01-01 00:00:00', 'proleptic_gregorian')
    call output%define(context, o, d, '')
    if (o%restart_from /= '') then
      call output%read(d, trim(o%restart_from))
      call exchange(d%tile, d%state)
      call walls%apply(d, 0._r8)
    end if
    if (o%nested) then
      call make_nest(o, d, fine, nest)
      call fine_output%define(context, o, fine, 'nest_')
      if (o%restart_from /= '') then
        call fine_output%read(fine, beside(trim(o%restart_from), 'nest_'))
        call exchange(fine%tile, fine%state)
        nest%at = 1 - nest%length
        call nest%apply(fine, 1._r8)
      end if
    end if
    do step = o%first_step, o%first_step + o%steps
      if (step > o%first_step) then
        call advance(d, walls, o%dt)
        if (o%nested) call advance_nest(d, fine, nest)
        call work(o%work_s)
      end if
      if (step > o%first_step .or. o%restart_from == '') then
        call context%step(step * o%dt)
        call output%write(d)
        if (o%nested) call fine_output%write(fine)
        call context%end_step()
      end if
      if (is_reported(step)) then
        call report('step=', d, step)
        if (o%nested) call report('nest step=', fine, step)
      end if
    end do
    call end_output(d, begin)
  end subroutine run

  subroutine advance_nest(d, fine, nest)
    type(domain_t), intent(in) :: d
    type(domain_t), intent(inout) :: fine
    type(nest_t), intent(inout) :: nest
    integer :: part
    call nest%follow(d)
    do part = 0, ratio - 1
      nest%at = part * nest%length
      call advance(fine, nest, o%dt * nest%length)
      call nest%relax(fine)
    end do
  end subroutine advance_nest

  logical function is_reported(step)
    integer, intent(in) :: step
    is_reported = step == o%first_step .or. step == o%first_step + o%steps
    if (o%report_every > 0) is_reported = is_reported .or. mod(step, o%report_every) == 0
  end function is_reported

  !> A file of the same directory whose name has the prefix before it.
  function beside(path, prefix) result(other)
    character(*), intent(in) :: path, prefix
    character(:), allocatable :: other
    integer :: slash
    slash = index(path, '/', back=.true.)
    other = path(:slash) // prefix // path(slash + 1:)
  end function beside

  !> Computes for so long, without a call of MPI: what a model with more physics would do.
  subroutine work(seconds)
    real(r8), intent(in) :: seconds
    real(r8) :: end, x
    integer :: k
    if (seconds <= 0) return
    end = MPI_Wtime() + seconds
    x = 1
    do while (MPI_Wtime() < end)
      do k = 1, 1000
        x = sqrt(x + k)
      end do
    end do
    if (x < 0) print *, x
  end subroutine work

  !> [collective] Ends the output and prints what it has cost, the greatest of all ranks: seconds
  !  that the model spent in it while it ran, at the
  !> end, and as a part of the run.
  subroutine end_output(d, begin)
    type(domain_t), intent(in) :: d
    real(r8), intent(in) :: begin
    type(weir_costs_t) :: costs
    real(r8) :: mine(5), all(5), last
    costs = context%costs()
    last = MPI_Wtime()
    call context%finalize()
    last = MPI_Wtime() - last
    mine = [costs%put_s, costs%wait_s, costs%put_s + costs%wait_s + costs%end_step_s, last, &
        MPI_Wtime() - begin]
    call MPI_Allreduce(mine, all, 5, MPI_DOUBLE_PRECISION, MPI_MAX, d%tile%comm)
    if (d%tile%rank == 0) print '(5(a, es12.5), a, f0.3)', 'output: put_s=', all(1), ' wait_s=', &
        all(2), ' effective_s=', all(3), &
      ' final_s=', all(4), ' elapsed_s=', all(5), ' percent=', 100 * (all(3) + all(4)) / all(5)
  end subroutine end_output

  subroutine report(what, d, step)
    character(*), intent(in) :: what
    type(domain_t), intent(in) :: d
    integer, intent(in) :: step
    type(sums_t) :: s
    s = sums_of(d)
    if (d%tile%rank == 0) print '(a, i0, 3(a, es23.16))', what, step, ' mass=', s%mass, &
        ' energy=', s%energy, ' eddy=', s%eddy
  end subroutine report

  !> [collective] One rank says what is wrong for all, then all end; a launcher that is notified of
  !  an abort may drop the message.
  subroutine end_if_wrong(text)
    use, intrinsic :: iso_fortran_env, only: error_unit
    character(*), intent(in) :: text
    integer :: rank, first
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Allreduce(merge(huge(rank), rank, text == ''), first, 1, MPI_INTEGER, MPI_MIN, &
        MPI_COMM_WORLD)
    if (first == huge(rank)) return
    if (rank == first) write (error_unit, '(a)') 'shallow_water: ' // text
    call MPI_Finalize()
    stop 2, quiet=.true.
  end subroutine end_if_wrong
end program shallow_water
