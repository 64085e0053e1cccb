! SPDX-License-Identifier: Apache-2.0
!> The sizes of an experiment, kept in the namelist file fort.4 of the work directory. Decides
!  names, defaults and limits; the
!> command line (options.f90) sets single values by the same names.
module fdv_config
  use fdv_kinds, only: i8, r8
  use fdv_fail, only: fail, text
  implicit none (type, external)
  private
  public :: config_set, config_read, config_write, config_points, config_tiny, config_scale, &
      config_problem, geometry

  character(*), parameter, public :: config_file = 'fort.4', expver = 'weir'

  ! reduced Gaussian grid number of the gridded fields
  integer, public, protected :: grid = 48
  ! points of that grid, found by the step prepare
  integer, public, protected :: points = 0
  integer, public, protected :: truncation = 95      !< triangular truncation of the spectral fields
  integer, public, protected :: levels = 20
  integer, public, protected :: fields = 5           !< upper-air gridded parameters
  integer, public, protected :: edition = 1          !< of GRIB
  integer, public, protected :: timesteps = 12       !< of a trajectory
  ! trajectory states written, and time slots of observations
  integer, public, protected :: dumps = 2
  integer, public, protected :: iterations = 8       !< of a minimisation
  integer, public, protected :: members = 4          !< files ME<N>
  integer, public, protected :: me_records = 250     !< records in each
  integer, public, protected :: me_values = 1024     !< reals in a record
  integer, public, protected :: wave_records = 400   !< in specwavein
  integer, public, protected :: wave_values = 256    !< reals in a record
  integer, public, protected :: subgrids = 3         !< files wam_subgrid_<N>
  integer, public, protected :: subgrid_values = 150000
  integer, public, protected :: types = 12           !< observation types
  integer, public, protected :: pools = 32
  integer, public, protected :: group = 8            !< pools in one file
  integer, public, protected :: tables = 9           !< of each observation type
  integer, public, protected :: reports = 8000       !< of each observation type
  integer, public, protected :: thin = 3             !< one report in so many goes to CCMA
  integer, public, protected :: seed = 2009122100
  ! seconds of computing in traj0; the other steps in proportion
  real(r8), public, protected :: compute = 4.0_r8

  namelist /fourdvar/ grid, points, truncation, levels, fields, edition, timesteps, dumps, &
      iterations, members, &
    me_records, me_values, wave_records, wave_values, subgrids, subgrid_values, types, pools, &
        group, tables, reports, &
    thin, seed, compute

contains

  !> Sets one value by name, as in the namelist. problem is allocated when that is not possible.
  subroutine config_set(name, value, problem)
    character(*), intent(in) :: name, value
    character(:), allocatable, intent(out) :: problem
    character(200) :: message
    character(:), allocatable :: line
    integer :: status
    if (verify(value, '0123456789.eE+-') /= 0 .or. len_trim(value) == 0) then
      problem = '--' // name // ': expected a number, found "' // trim(value) // '"'
      return
    end if
    line = '&fourdvar ' // name // '=' // trim(value) // ' /'
    read (line, nml=fourdvar, iostat=status, iomsg=message)
    if (status /= 0) problem = '--' // name // ' ' // trim(value) // ': ' // trim(message)
  end subroutine config_set

  subroutine config_points(n)
    integer, intent(in) :: n
    points = n
  end subroutine config_points

  !> The profile of the tests: a few megabytes, less than two seconds a step.
  subroutine config_tiny()
    grid = 32; truncation = 31; levels = 4; fields = 2; timesteps = 4; dumps = 2; iterations = 3
    members = 2; me_records = 20; me_values = 64; wave_records = 40; wave_values = 32; subgrids = 1
    subgrid_values = 4000; types = 4; pools = 8; group = 2; tables = 6; reports = 60; compute &
        = 0.2_r8
  end subroutine config_tiny

  !> Multiplies what is counted or stored by about f; the grid stays.
  subroutine config_scale(f)
    real(r8), intent(in) :: f
    levels = min(200, max(2, nint(levels * f)))
    reports = max(pools, nint(reports * f))
    me_records = max(2, nint(me_records * f))
    wave_records = max(2, nint(wave_records * f))
    subgrid_values = max(16, nint(subgrid_values * f))
  end subroutine config_scale

  !> Empty when all values are within their limits, else what is wrong.
  function config_problem() result(problem)
    character(:), allocatable :: problem
    problem = ''
    call within('grid', grid, 32, 2000)
    call within('truncation', truncation, 21, 1279)
    call within('levels', levels, 2, 200)
    call within('fields', fields, 1, 5)
    call within('edition', edition, 1, 2)
    call within('timesteps', timesteps, 1, 100000)
    call within('dumps', dumps, 1, timesteps)
    call within('iterations', iterations, 1, 1000)
    call within('members', members, 1, 999)
    call within('me_records', me_records, 1, 10000000)
    call within('me_values', me_values, 1, 1000000)
    call within('wave_records', wave_records, 1, 10000000)
    call within('wave_values', wave_values, 1, 10000000)
    call within('subgrids', subgrids, 1, 99)
    call within('subgrid_values', subgrid_values, 1, 100000000)
    call within('types', types, 1, 24)
    call within('pools', pools, 1, 4096)
    call within('group', group, 1, pools)
    call within('tables', tables, 5, 12)
    call within('reports', reports, 1, 10000000)
    call within('thin', thin, 1, 1000)
    if (.not. (compute >= 0 .and. compute <= 86400)) problem &
        = 'compute must be within 0 and 86400 seconds'
  contains
    subroutine within(name, value, low, high)
      character(*), intent(in) :: name
      integer, intent(in) :: value, low, high
      if (value >= low .and. value <= high) return
      problem = name // ' must be within ' // text(low) // ' and ' // text(high) // ', is ' &
          // text(value)
    end subroutine within
  end function config_problem

  !> What may not change between prepare and the last step, as one line.
  function geometry() result(line)
    character(:), allocatable :: line
    integer :: all(20), i
    all = [grid, points, truncation, levels, fields, edition, dumps, members, me_records, &
        me_values, wave_records, &
           wave_values, subgrids, subgrid_values, types, pools, group, tables, reports, thin]
    line = text(all(1))
    do i = 2, size(all)
      line = line // ' ' // text(all(i))
    end do
  end function geometry

  subroutine config_read()
    integer :: status
    character(200) :: message
    open (4, file=config_file, form='formatted', status='old', action='read', iostat=status, &
        iomsg=message)
    if (status /= 0) call fail(config_file, 'open', 'the namelist that the step prepare wrote', &
        trim(message), &
                               'run prepare first, or name its directory with --work')
    read (4, nml=fourdvar, iostat=status, iomsg=message)
    if (status /= 0) call fail(config_file, 'namelist fourdvar', 'known names and numbers', &
        trim(message))
    close (4)
  end subroutine config_read

  subroutine config_write()
    integer :: status
    character(200) :: message
    open (4, file=config_file, form='formatted', status='replace', action='write', iostat=status, &
        iomsg=message)
    if (status /= 0) call fail(config_file, 'open', 'a writable directory', trim(message))
    write (4, nml=fourdvar)
    close (4)
  end subroutine config_write

end module fdv_config
