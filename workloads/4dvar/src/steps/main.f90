! SPDX-License-Identifier: Apache-2.0
!> weir-4dvar: one step of a data assimilation in the shape of ECMWF's 4D-Var. See README.md.
program weir_4dvar
  use fdv_config, only: config_read
  use fdv_fail, only: fail_setup, fail_together, text
  use fdv_ledger, only: ledger_load, ledger_new, ledger_save, ranks_of
  use fdv_log, only: log_close, log_open
  use fdv_minimisation, only: minimisation
  use fdv_options, only: options_apply, options_step
  use fdv_par, only: par_end, par_init, ranks, wait_all
  use fdv_prepare, only: find_points, prepare
  use fdv_state, only: state_setup
  use fdv_trajectory, only: trajectory
  implicit none (type, external)
  character(:), allocatable :: step

  call par_init()
  step = options_step()
  call fail_setup(step)
  if (step == 'prepare') then
    call options_apply(step)
    call find_points()
    call ledger_new()
    call prepare()
  else
    call config_read()
    call options_apply(step)
    call ledger_load(step)
    if (step(:3) == 'min') call same_ranks('traj' // step(4:4))
    call log_open(step)
    call state_setup()
    call wait_all()
    select case (step)
    case ('traj0', 'traj1', 'traj2')
      call trajectory(step, index('012', step(5:5)) - 1)
    case ('min0', 'min1')
      call minimisation(step, index('01', step(4:4)) - 1)
    end select
    call log_close()
  end if
  call ledger_save(step)
  call wait_all()
  call par_end()

contains

  !> A trajectory is in one file for each rank, so the minimisation needs as many.
  subroutine same_ranks(before)
    character(*), intent(in) :: before
    if (ranks_of(before) /= ranks) call fail_together('trajectory of ' // before, 'ranks', &
        text(ranks_of(before)), text(ranks), &
      'start this step with -n ' // text(ranks_of(before)) // ', or run ' // before // ' again')
  end subroutine same_ranks

end program weir_4dvar
