! SPDX-License-Identifier: Apache-2.0
!> What a run is: read from a namelist file, checked before anything begins.
module sw_options
  use sw_kinds, only: r8
  implicit none (type, external)
  private
  public :: options_t, read_options

  type :: options_t
    ! &grid
    integer :: nx = 96, ny = 64                        !< cells
    real(r8) :: dx = 50000, dy = 50000                 !< metres
    integer :: px = 0, py = 0                          !< ranks along x and y; 0: MPI's choice
    ! &physics
    character(16) :: case = 'jet'                      !< jet, instability, rest
    real(r8) :: depth = 1000, f0 = 1e-4_r8, beta = 0   !< metres, s-1, m-1 s-1
    real(r8) :: speed = 20, width = 300000             !< of the jet: m s-1, metres
    real(r8) :: perturbation = 0                       !< m s-1, of the meridional wind
    integer :: wavenumber = 1                          !< waves around the channel
    ! &run
    real(r8) :: dt = 100                               !< seconds
    integer :: steps = 10
    real(r8) :: work_s = 0                             !< further computing in each step, seconds
    ! steps between lines of mass and energy; 0: first and last
    integer :: report_every = 0
    ! the channel's restart file; the nest's lies beside it, nest_...
    character(256) :: restart_from = ''
    ! the step that the state has, when it was read
    integer :: first_step = 0
    ! &output
    character(256) :: config = ''                      !< of the output library
    integer :: history_every = 0                       !< steps; 0: none
    integer :: restart_every = 0
    ! a stream of means and extremes, as often as history
    logical :: statistics = .false.
    ! history has this many copies of each field, for volume
    integer :: layers = 1
    character(256) :: directory = '.'
    character(16) :: format = 'cdf5'
    ! &nest
    logical :: nested = .false.
    integer :: nest_i0 = 0, nest_j0 = 0                !< parent's cells before the nest
    ! parent's cells that it covers; it has three times as many each way
    integer :: nest_ni = 0, nest_nj = 0
  end type options_t

contains

  !> message is empty when all is well.
  subroutine read_options(path, o, message)
    character(*), intent(in) :: path
    type(options_t), intent(out) :: o
    character(:), allocatable, intent(out) :: message
    integer :: unit, status
    character(256) :: why
    message = ''
    open (newunit=unit, file=path, status='old', action='read', iostat=status, iomsg=why)
    if (status /= 0) then
      message = trim(path) // ': ' // trim(why)
      return
    end if
    call read_grid(unit, o, status, why)
    if (status == 0) call read_physics(unit, o, status, why)
    if (status == 0) call read_run(unit, o, status, why)
    if (status == 0) call read_output(unit, o, status, why)
    if (status == 0) call read_nest(unit, o, status, why)
    close (unit)
    if (status /= 0) then
      message = trim(path) // ': ' // trim(why)
    else
      message = wrong(o)
      if (message /= '') message = trim(path) // ': ' // message
    end if
  end subroutine read_options

  function wrong(o) result(message)
    type(options_t), intent(in) :: o
    character(:), allocatable :: message
    message = ''
    if (o%nx < 4 .or. o%ny < 4) message = 'nx and ny must be 4 or more'
    if (o%dx <= 0 .or. o%dy <= 0 .or. o%dt <= 0) message = 'dx, dy and dt must be positive'
    if (o%steps < 0 .or. o%layers < 1) message &
        = 'steps must not be negative, layers must be 1 or more'
    if (o%depth <= 0) message = 'depth must be positive'
    if (all(o%case /= [character(16) :: 'jet', 'instability', 'rest'])) then
      message = 'case must be jet, instability or rest, not ' // trim(o%case)
    end if
    if (o%nested) then
      if (min(o%nest_i0, o%nest_j0) < 3 .or. o%nest_i0 + o%nest_ni > o%nx - 3 .or. o%nest_j0 &
          + o%nest_nj > o%ny - 3) then
        message = 'the nest must lie 3 cells or more inside of the domain'
      end if
      if (min(o%nest_ni, o%nest_nj) < 4) message = 'the nest must be 4 cells or more wide'
    end if
  end function wrong

  subroutine read_grid(unit, o, status, why)
    integer, intent(in) :: unit
    type(options_t), intent(inout) :: o
    integer, intent(out) :: status
    character(*), intent(inout) :: why
    integer :: nx, ny, px, py
    real(r8) :: dx, dy
    namelist /grid/ nx, ny, dx, dy, px, py
    nx = o%nx; ny = o%ny; dx = o%dx; dy = o%dy; px = o%px; py = o%py
    rewind (unit)
    read (unit, nml=grid, iostat=status, iomsg=why)
    o%nx = nx; o%ny = ny; o%dx = dx; o%dy = dy; o%px = px; o%py = py
    call absent_is_fine(status)
  end subroutine read_grid

  subroutine read_physics(unit, o, status, why)
    integer, intent(in) :: unit
    type(options_t), intent(inout) :: o
    integer, intent(out) :: status
    character(*), intent(inout) :: why
    character(16) :: case
    real(r8) :: depth, f0, beta, speed, width, perturbation
    integer :: wavenumber
    namelist /physics/ case, depth, f0, beta, speed, width, perturbation, wavenumber
    case = o%case; depth = o%depth; f0 = o%f0; beta = o%beta
    speed = o%speed; width = o%width; perturbation = o%perturbation; wavenumber = o%wavenumber
    rewind (unit)
    read (unit, nml=physics, iostat=status, iomsg=why)
    o%case = case; o%depth = depth; o%f0 = f0; o%beta = beta
    o%speed = speed; o%width = width; o%perturbation = perturbation; o%wavenumber = wavenumber
    call absent_is_fine(status)
  end subroutine read_physics

  subroutine read_run(unit, o, status, why)
    integer, intent(in) :: unit
    type(options_t), intent(inout) :: o
    integer, intent(out) :: status
    character(*), intent(inout) :: why
    real(r8) :: dt, work_s
    integer :: steps, report_every, first_step
    character(256) :: restart_from
    namelist /run/ dt, steps, work_s, report_every, restart_from, first_step
    dt = o%dt; steps = o%steps; work_s = o%work_s; report_every = o%report_every
    restart_from = o%restart_from; first_step = o%first_step
    rewind (unit)
    read (unit, nml=run, iostat=status, iomsg=why)
    o%dt = dt; o%steps = steps; o%work_s = work_s; o%report_every = report_every
    o%restart_from = restart_from; o%first_step = first_step
    call absent_is_fine(status)
  end subroutine read_run

  subroutine read_output(unit, o, status, why)
    integer, intent(in) :: unit
    type(options_t), intent(inout) :: o
    integer, intent(out) :: status
    character(*), intent(inout) :: why
    character(256) :: config, directory
    character(16) :: format
    integer :: history_every, restart_every, layers
    logical :: statistics
    namelist /output/ config, directory, format, history_every, restart_every, layers, statistics
    config = o%config; directory = o%directory; format = o%format; history_every = o%history_every
    restart_every = o%restart_every; layers = o%layers; statistics = o%statistics
    rewind (unit)
    read (unit, nml=output, iostat=status, iomsg=why)
    o%config = config; o%directory = directory; o%format = format; o%history_every = history_every
    o%restart_every = restart_every; o%layers = layers; o%statistics = statistics
    call absent_is_fine(status)
  end subroutine read_output

  subroutine read_nest(unit, o, status, why)
    integer, intent(in) :: unit
    type(options_t), intent(inout) :: o
    integer, intent(out) :: status
    character(*), intent(inout) :: why
    integer :: i0, j0, ni, nj
    namelist /nest/ i0, j0, ni, nj
    i0 = 0; j0 = 0; ni = 0; nj = 0
    rewind (unit)
    read (unit, nml=nest, iostat=status, iomsg=why)
    o%nested = status == 0
    o%nest_i0 = i0; o%nest_j0 = j0; o%nest_ni = ni; o%nest_nj = nj
    call absent_is_fine(status)
  end subroutine read_nest

  !> A group that is not there keeps its defaults.
  pure subroutine absent_is_fine(status)
    integer, intent(inout) :: status
    if (is_iostat_end(status)) status = 0
  end subroutine absent_is_fine
end module sw_options
