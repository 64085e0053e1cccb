! SPDX-License-Identifier: Apache-2.0
! The Fortran face: halos, sections, kinds, lent places, reading back, and what errors become.
! Prints one line for each fact.
program faces
  use, intrinsic :: iso_fortran_env, only: int16, int32, int64, real32, real64
  use mpi_f08
  use weir
  implicit none (type, external)
  integer, parameter :: nx = 12, ny = 10, nz = 3
  type(weir_context_t) :: context
  type(MPI_Comm) :: model
  type(weir_grid_t) :: grid
  type(weir_decomposition_t) :: haloed, plain, scattered
  type(weir_axis_t) :: level
  type(weir_field_t) :: u, k, n, lent, late
  type(weir_stream_t) :: history
  real(real64), allocatable :: x(:, :, :), wide(:, :, :), back(:, :, :)
  integer(int32), allocatable :: numbers(:)
  integer(int16), allocatable :: small(:, :)
  real(real32), pointer, contiguous :: place(:, :)
  character(len=1024) :: errmsg
  integer :: bounds(4), rank, ranks, j1, nj, i, j, l, stat

  call MPI_Init()
  call weir_init(MPI_COMM_WORLD, "", model, context)
  call MPI_Comm_rank(model, rank)
  call MPI_Comm_size(model, ranks)
  bounds = [0, 4, 4, ny] ! rank 1 of 3 has no points
  j1 = bounds(rank + 1) + 1
  nj = bounds(rank + 2) - bounds(rank + 1)
  call define()

  allocate (x(0:nx + 1, nj, nz), wide(nx + 2, nj, 2 * nz), back(0:nx + 1, nj, nz), small(nx, nj))
  x = -1
  do l = 1, nz
    do j = 1, nj
      do i = 1, nx
        x(i, j, l) = value(i, j1 + j - 1, l)
      end do
    end do
  end do
  numbers = [(1000 + i, i = rank + 1, nx * ny, ranks)]
  small = int(j1, int16)
  wide(:, :, 2:2 * nz:2) = x

  call u%put(x, stat, errmsg)
  call say(stat == 3, "put outside of a step is an error of order: " // errmsg)
  call context%step(0.0_real64)
  call n%put(numbers)
  call k%put(small)
  if (nj > 0) then
    call u%put(x(:, :, 1:2), stat, errmsg)
    call say(stat == 1 .and. index(errmsg, "halo included") > 0, "a wrong shape is reported: " &
        // errmsg)
  end if
  call u%put(real(x, real32), stat, errmsg)
  call say(stat == 1 .and. index(errmsg, "another type") > 0, "a wrong type is reported: " &
      // errmsg)
  call u%put(wide(:, :, 2:2 * nz:2)) ! a section that is not contiguous
  call lent%lend(place, [nx, nj], stat, errmsg)
  call say(stat == 0 .and. (associated(place) .or. nj == 0), "a place is lent")
  if (associated(place)) then
    place = real(rank, real32)
    call lent%put(place)
  else
    call lent%put([real(real32) ::])
  end if
  call context%end_step()
  call late%create(plain, "late", weir_float32, stat=stat, errmsg=errmsg)
  call say(stat == 3, "definitions have ended: " // errmsg)
  call context%step(-5.0_real64, stat, errmsg)
  call say(stat == 3, "time does not go back: " // errmsg)
  call context%finalize()
  call say(.not. context%is_model(), "nothing is left of the context")
  call read_back()
  call MPI_Finalize()

contains

  subroutine define()
    call grid%create_plane(context, "channel", [(1000.0_real64 * i, i = 1, nx)], [(1000.0_real64 &
        * j, j = 1, ny)])
    call level%create(context, "level", [(real(l, real64), l = 1, nz)])
    call haloed%create_block(grid, "haloed", 1, nx, j1, nj)
    call haloed%set_halo(1, 1, 0, 0)
    call plain%create_block(grid, "plain", 1, nx, j1, nj)
    call scattered%create_indices(grid, "scattered", [(i, i = rank + 1, nx * ny, ranks)])
    call u%create(haloed, "u", weir_float64, axes=[level], units="m s-1", &
        standard_name="eastward_wind")
    call u%set_attribute("missing_value", -999.0_real64)
    call k%create(plain, "k", weir_int16, units="1")
    call n%create(scattered, "n", weir_int32, units="1")
    call lent%create(plain, "lent", weir_float32, units="1")
    call history%create(context, "history", "faces.nc")
    call history%add(u)
    call history%add(k)
    call history%add(n)
    call history%add(lent)
    call history%add(k, name="k_again")
  end subroutine define

  ! In a context of its own: the file has got its name.
  subroutine read_back()
    call weir_init(MPI_COMM_WORLD, "", model, context)
    call define()
    back = 0
    call u%get(back, "faces.nc")
    call say(all(back(1:nx, :, :) == x(1:nx, :, :)) .and. all(back(0, :, :) == 0) &
        .and. all(back(nx + 1, :, :) == 0), &
             "get brings back what was put, and leaves the halo alone")
    numbers = 0
    call n%get(numbers, "faces.nc", 1)
    call say(all(numbers == [(1000 + i, i = rank + 1, nx * ny, ranks)]), &
        "lists of indices come back")
    call u%get(back, "faces.nc", 2, stat, errmsg)
    call say(stat == 1, "a record that is not there is reported: " // errmsg)
    call u%get(back, "nowhere.nc", stat=stat, errmsg=errmsg)
    call say(stat == 6, "a file that is not there is reported: " // errmsg)
    call history%create(context, "other", "x_%q.nc") ! ends the program
  end subroutine read_back

  pure real(real64) function value(i, j, l)
    integer, intent(in) :: i, j, l

    value = i + 100 * j + 10000 * l
  end function value

  subroutine say(fact, text)
    logical, intent(in) :: fact
    character(len=*), intent(in) :: text

    if (rank == 0 .or. .not. fact) write (*, "(a, i0, 2a)") merge("yes   ", "WRONG ", fact), rank, &
        " ", trim(text)
    flush (6)
  end subroutine say
end program faces
