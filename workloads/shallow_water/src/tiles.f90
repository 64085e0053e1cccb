! SPDX-License-Identifier: Apache-2.0
!> The ranks' tiles of a domain of nx x ny cells, and the exchange of their halos. A tile's arrays
!  have one row of halo around ni x nj cells:
!> (0:ni+1, 0:nj+1). West-east is periodic or bounded; south and north are always bounds.
module sw_tiles
  use mpi_f08, only: MPI_Cart_coords, MPI_Cart_create, MPI_Cart_shift, MPI_Comm, MPI_Comm_rank, &
      MPI_Comm_size, &
    MPI_Dims_create, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, MPI_Sendrecv, MPI_STATUS_IGNORE
  use sw_kinds, only: r8
  implicit none (type, external)
  private
  public :: tile_t, make_tile, exchange

  type :: tile_t
    type(MPI_Comm) :: comm
    integer :: rank = 0, ranks = 1
    integer :: nx = 0, ny = 0           !< cells of the domain
    integer :: i0 = 0, j0 = 0           !< cells before this tile
    integer :: ni = 0, nj = 0           !< cells of this tile
    ! neighbours' ranks; MPI_PROC_NULL at a bound
    integer :: west = 0, east = 0, south = 0, north = 0
    logical :: at_west = .false., at_east = .false., at_south = .false., at_north = .false.
  end type tile_t

contains

  !> [collective] px x py ranks, 0: MPI's choice.
  function make_tile(comm, nx, ny, periodic, px, py) result(t)
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: nx, ny, px, py
    logical, intent(in) :: periodic
    type(tile_t) :: t
    integer :: dims(2), coords(2)
    t%nx = nx
    t%ny = ny
    call MPI_Comm_size(comm, t%ranks)
    dims = [py, px]
    call MPI_Dims_create(t%ranks, 2, dims)
    call MPI_Cart_create(comm, 2, dims, [.false., periodic], .false., t%comm)
    call MPI_Comm_rank(t%comm, t%rank)
    call MPI_Cart_coords(t%comm, t%rank, 2, coords)
    call MPI_Cart_shift(t%comm, 0, 1, t%south, t%north)
    call MPI_Cart_shift(t%comm, 1, 1, t%west, t%east)
    call part(nx, dims(2), coords(2), t%i0, t%ni)
    call part(ny, dims(1), coords(1), t%j0, t%nj)
    t%at_south = t%south == MPI_PROC_NULL
    t%at_north = t%north == MPI_PROC_NULL
    t%at_west = t%west == MPI_PROC_NULL
    t%at_east = t%east == MPI_PROC_NULL
  end function make_tile

  pure subroutine part(n, parts, which, before, count)
    integer, intent(in) :: n, parts, which
    integer, intent(out) :: before, count
    before = which * (n / parts) + min(which, mod(n, parts))
    count = n / parts + merge(1, 0, which < mod(n, parts))
  end subroutine part

  !> [collective] Fill the halo of all fields of x from the neighbours, corners included. What lies
  !  beyond a bound is left alone.
  subroutine exchange(t, x)
    type(tile_t), intent(in) :: t
    real(r8), intent(inout) :: x(0:, 0:, :)
    real(r8) :: out(t%nj, size(x, 3)), in(t%nj, size(x, 3)), row(0:t%ni + 1, size(x, 3)), &
        got(0:t%ni + 1, size(x, 3))
    out = x(1, 1:t%nj, :)
    call swap(t, out, t%west, in, t%east, size(out))
    if (.not. t%at_east) x(t%ni + 1, 1:t%nj, :) = in
    out = x(t%ni, 1:t%nj, :)
    call swap(t, out, t%east, in, t%west, size(out))
    if (.not. t%at_west) x(0, 1:t%nj, :) = in
    row = x(:, 1, :)
    call swap(t, row, t%south, got, t%north, size(row))
    if (.not. t%at_north) x(:, t%nj + 1, :) = got
    row = x(:, t%nj, :)
    call swap(t, row, t%north, got, t%south, size(row))
    if (.not. t%at_south) x(:, 0, :) = got
  end subroutine exchange

  subroutine swap(t, out, to, in, from, count)
    type(tile_t), intent(in) :: t
    integer, intent(in) :: to, from, count
    real(r8), intent(in) :: out(*)
    real(r8), intent(inout) :: in(*)
    call MPI_Sendrecv(out, count, MPI_DOUBLE_PRECISION, to, 7, in, count, MPI_DOUBLE_PRECISION, &
        from, 7, t%comm, MPI_STATUS_IGNORE)
  end subroutine swap
end module sw_tiles
