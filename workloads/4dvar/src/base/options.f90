! SPDX-License-Identifier: Apache-2.0
!> The command line: weir-4dvar STEP [--work DIR] [--tiny] [--scale F] [--NAME VALUE]... Every rank
!  reads it, rank 0 says what
!> is wrong with it. Sizes are set with prepare alone; a step may change compute and iterations.
module fdv_options
  use, intrinsic :: iso_c_binding, only: c_int
  use, intrinsic :: iso_fortran_env, only: error_unit, output_unit
  use fdv_kinds, only: r8
  use fdv_clib, only: c_chdir, c_name, error_text
  use fdv_config
  use fdv_ledger, only: step_number
  use fdv_par, only: par_end, rank
  implicit none (type, external)
  private
  public :: options_step, options_apply

contains

  function argument(i) result(s)
    integer, intent(in) :: i
    character(:), allocatable :: s
    integer :: n
    call get_command_argument(i, length=n)
    allocate (character(n) :: s)
    call get_command_argument(i, s)
  end function argument

  subroutine usage(problem)
    character(*), intent(in) :: problem
    if (rank == 0) then
      write (error_unit, '(a)') 'weir-4dvar: ' // problem
      write (error_unit, '(a)') 'usage: weir-4dvar prepare|traj0|min0|traj1|min1|traj2 [--work DIR] [--tiny] [--scale F] ' // &
                                '[--NAME VALUE]...; weir-4dvar --help lists the names'
      flush (error_unit)
    end if
    call par_end()
    stop 2, quiet=.true.
  end subroutine usage

  subroutine help()
    if (rank == 0) then
      write (output_unit, '(a)') 'weir-4dvar STEP [--work DIR] [--tiny] [--scale F] [--NAME VALUE]...', &
        'STEP: prepare, then traj0, min0, traj1, min1, traj2 in this order, in the same --work directory.', &
        'prepare: --tiny takes the sizes of the tests, --scale F multiplies levels, reports and records, and', &
        '  grid truncation levels fields edition timesteps dumps iterations members me_records me_values', &
        '  wave_records wave_values subgrids subgrid_values types pools group tables reports thin seed compute', &
        '  set single sizes (fort.4 of the work directory then holds them all).', &
        'steps: --compute SECONDS and --iterations N override what prepare set.'
    end if
    call par_end()
    stop
  end subroutine help

  !> The step asked for; the working directory is changed to --work on the way.
  function options_step() result(step)
    character(:), allocatable :: step, name
    integer :: i
    integer(c_int) :: error
    if (command_argument_count() == 0) call usage('no step given')
    step = argument(1)
    if (step == '--help' .or. step == '-h') call help()
    if (step_number(step) < 0) call usage('"' // step // '" is not a step')
    i = 2
    do while (i <= command_argument_count())
      name = argument(i)
      if (name == '--work') then
        if (i == command_argument_count()) call usage('--work needs a directory')
        error = c_chdir(c_name(argument(i + 1)))
        if (error /= 0) call usage('--work ' // argument(i + 1) // ': ' // error_text(error))
      end if
      i = i + merge(1, 2, name == '--tiny')
    end do
  end function options_step

  !> Sizes and other values, in the order in which they are given.
  subroutine options_apply(step)
    character(*), intent(in) :: step
    character(:), allocatable :: name, problem
    integer :: i
    i = 2
    do while (i <= command_argument_count())
      name = argument(i)
      if (name(:min(2, len(name))) /= '--') call usage('"' // name // '" is not an option')
      name = name(3:)
      if (step /= 'prepare' .and. name /= 'work' .and. name /= 'compute' &
          .and. name /= 'iterations') &
        call usage('--' // name // ' is for prepare only')
      if (name == 'tiny') then
        call config_tiny()
        i = i + 1
        cycle
      end if
      if (i == command_argument_count()) call usage('--' // name // ' needs a value')
      call apply(name, argument(i + 1))
      i = i + 2
    end do
    problem = config_problem()
    if (problem /= '') call usage(problem)
  end subroutine options_apply

  subroutine apply(name, value)
    character(*), intent(in) :: name, value
    character(:), allocatable :: problem
    real(r8) :: f
    integer :: status
    if (name == 'work') return
    if (name == 'scale') then
      read (value, *, iostat=status) f
      if (status /= 0) call usage('--scale: expected a number, found "' // value // '"')
      if (.not. (f >= 0.1_r8 &
          .and. f <= 1000)) call usage('--scale must be within 0.1 and 1000, is ' // value)
      call config_scale(f)
      return
    end if
    call config_set(name, value, problem)
    if (allocated(problem)) call usage(problem)
  end subroutine apply

end module fdv_options
