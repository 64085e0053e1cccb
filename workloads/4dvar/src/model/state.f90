! SPDX-License-Identifier: Apache-2.0
!> The model state, distributed over the ranks: spectral coefficients by coefficient, gridded fields
!  by point. Reads it from
!> and writes it to GRIB files by rank 0.
module fdv_state
  use fdv_kinds, only: r8
  use fdv_config, only: expver, fields, levels, points, truncation
  use fdv_grib, only: grib_reader_t, grib_writer_t
  use fdv_par, only: gather_part, partition, scatter_part, rank, ranks
  implicit none (type, external)
  private
  public :: state_setup, read_spectral, read_gridded, write_spectral, write_gridded

  integer, parameter, public :: spectral_params(3) = [138, 155, 130], surface_param = 152
  integer, parameter, public :: gridded_params(5) = [133, 203, 246, 247, 248]

  real(r8), allocatable, public :: sp(:, :, :)       !< value, level, parameter
  real(r8), allocatable, public :: lnsp(:)
  real(r8), allocatable, public :: gg(:, :, :)       !< point, level, parameter
  integer, allocatable, public :: first_value(:)     !< partition of spectral values
  integer, allocatable, public :: first_point(:)     !< partition of grid points
  ! total wavenumber of each of this rank's spectral values
  integer, allocatable, public :: wavenumber(:)
  integer, public, protected :: my_values = 0, my_points = 0, spectral_size = 0

contains

  subroutine state_setup()
    integer, allocatable :: first(:), total(:)
    integer :: m, n, at
    spectral_size = (truncation + 1) * (truncation + 2)
    allocate (first_value(0:ranks), first_point(0:ranks), first(0:ranks), total(spectral_size))
    first = partition(spectral_size / 2)
    first_value = 2 * (first - 1) + 1
    first_point = partition(points)
    my_values = first_value(rank + 1) - first_value(rank)
    my_points = first_point(rank + 1) - first_point(rank)
    at = 0
    do m = 0, truncation
      do n = m, truncation
        total(at + 1:at + 2) = n
        at = at + 2
      end do
    end do
    wavenumber = total(first_value(rank):first_value(rank + 1) - 1)
    allocate (sp(my_values, levels, 3), lnsp(my_values), gg(my_points, levels, fields))
    sp = 0; lnsp = 0; gg = 0
  end subroutine state_setup

  !> [collective] Spectral fields of a file into x (value, level, parameter) and its surface field
  !  into x0.
  subroutine read_spectral(name, x, x0)
    character(*), intent(in) :: name
    real(r8), intent(out) :: x(:, :, :), x0(:)
    type(grib_reader_t) :: reader
    real(r8) :: whole(merge(spectral_size, 0, rank == 0))
    integer :: p, l
    if (rank == 0) call reader%open('ICMSH' // expver // name)
    do p = 1, size(x, 3)
      do l = 1, levels
        if (rank == 0) call reader%next(spectral_params(p), l, whole)
        call scatter_part(whole, first_value, x(:, l, p))
      end do
    end do
    if (rank == 0) call reader%next(surface_param, 1, whole)
    call scatter_part(whole, first_value, x0)
    if (rank == 0) call reader%finish()
  end subroutine read_spectral

  !> [collective] The first size(x, 3) gridded parameters of a file.
  subroutine read_gridded(name, x)
    character(*), intent(in) :: name
    real(r8), intent(out) :: x(:, :, :)
    type(grib_reader_t) :: reader
    real(r8) :: whole(merge(points, 0, rank == 0))
    integer :: p, l
    if (rank == 0) call reader%open('ICMGG' // expver // name)
    do p = 1, size(x, 3)
      do l = 1, levels
        if (rank == 0) call reader%next(gridded_params(p), l, whole)
        call scatter_part(whole, first_point, x(:, l, p))
      end do
    end do
    if (rank == 0) call reader%finish()
  end subroutine read_gridded

  !> [collective] name is a whole path.
  subroutine write_spectral(name, x, x0)
    character(*), intent(in) :: name
    real(r8), intent(in) :: x(:, :, :), x0(:)
    type(grib_writer_t) :: writer
    real(r8) :: whole(merge(spectral_size, 0, rank == 0))
    integer :: p, l
    if (rank == 0) call writer%open(name, spectral=.true.)
    do p = 1, size(x, 3)
      do l = 1, levels
        call gather_part(x(:, l, p), first_value, whole)
        if (rank == 0) call writer%put(spectral_params(p), l, whole)
      end do
    end do
    call gather_part(x0, first_value, whole)
    if (rank == 0) call writer%put(surface_param, 1, whole)
    if (rank == 0) call writer%finish()
  end subroutine write_spectral

  !> [collective] name is a whole path.
  subroutine write_gridded(name, x)
    character(*), intent(in) :: name
    real(r8), intent(in) :: x(:, :, :)
    type(grib_writer_t) :: writer
    real(r8) :: whole(merge(points, 0, rank == 0))
    integer :: p, l
    if (rank == 0) call writer%open(name, spectral=.false.)
    do p = 1, size(x, 3)
      do l = 1, levels
        call gather_part(x(:, l, p), first_point, whole)
        if (rank == 0) call writer%put(gridded_params(p), l, whole)
      end do
    end do
    if (rank == 0) call writer%finish()
  end subroutine write_gridded

end module fdv_state
