! SPDX-License-Identifier: Apache-2.0
! Shapes of Fortran arrays: coordinates in one and two dimensions and both kinds, fields of up to
! six dimensions, and what is said of a wrong shape, on the rank that has it and on those that would
! wait for it. Prints one line for each fact. Three ranks.
program shapes
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  use mpi_f08
  use weir
  implicit none (type, external)
  integer, parameter :: nx = 6, ny = 9, nj = 3
  type(weir_context_t) :: context
  type(MPI_Comm) :: model
  type(weir_grid_t) :: sheet, twin, mesh
  type(weir_decomposition_t) :: blocks, same, cells
  type(weir_axis_t) :: axes(4)
  type(weir_field_t) :: deep, wide, flat, spots
  type(weir_stream_t) :: history
  real(real32) :: lon(0:nx + 1, 0:nj + 1), lat(0:nx + 1, 0:nj + 1), x(nx, nj), back(nx, nj)
  real(real64) :: six(0:nx + 1, nj, 2, 1, 3, 2), read6(0:nx + 1, nj, 2, 1, 3, 2), five(nx &
      * ny / 3, 2, 1, 3, 2)
  real(real32), pointer, contiguous :: place(:, :)
  character(len=1024) :: errmsg
  integer :: rank, ranks, i, j, stat

  call MPI_Init()
  call weir_init(MPI_COMM_WORLD, "", model, context)
  call MPI_Comm_rank(model, rank)
  call MPI_Comm_size(model, ranks)
  do j = 0, nj + 1
    do i = 0, nx + 1
      lon(i, j) = real(10 * i + nj * rank + j, real32)
      lat(i, j) = real(nj * rank + j, real32)
    end do
  end do
  call define()
  call coordinates()
  call context%step(0.0_real64)
  call put_all()
  call context%end_step()
  call context%finalize()
  call read_back()
  call MPI_Finalize()

contains

  subroutine define()
    character(len=1), parameter :: names(4) = ["a", "b", "c", "d"]
    integer, parameter :: sizes(4) = [2, 1, 3, 2]

    call sheet%create_curvilinear(context, "sheet", nx, ny)
    call blocks%create_block(sheet, "blocks", 1, nx, nj * rank + 1, nj)
    call blocks%set_halo(1, 1, 0, 0)
    call same%create_block(sheet, "same", 1, nx, nj * rank + 1, nj)
    call twin%create_curvilinear(context, "twin", nx, ny)
    call mesh%create_unstructured(context, "mesh", int(nx * ny, int64))
    call cells%create_indices(mesh, "cells", [(i, i=rank + 1, nx * ny, ranks)])
    do i = 1, 4
      call axes(i)%create(context, names(i), [(real(j, real64), j=1, sizes(i))])
    end do
    call deep%create(blocks, "deep", weir_float64, axes=axes)
    call wide%create(cells, "wide", weir_float64, axes=axes)
    call flat%create(same, "flat", weir_float32)
    call spots%create(cells, "spots", weir_float32)
    call history%create(context, "history", "shapes.nc")
    call history%add(deep)
    call history%add(wide)
    call history%add(flat)
    call history%add(spots)
  end subroutine define

  subroutine coordinates()
    ! One rank is wrong; the others hear of it at once, and know that it was not they.
    if (rank == 1) then
      call sheet%set_lonlat(blocks, lon, lat, stat, errmsg)
      call say(stat == 1 .and. &
               index(errmsg, "grid 'sheet', decomposition 'blocks': lon has the shape 8 x 5 and &
               &lat 8 x 5; expected 6 x 3 (without &
               &halo)") == 1, "lon and lat with halo: " // errmsg)
    else
      call sheet%set_lonlat(blocks, lon(1:nx, 1:nj), lat(1:nx, 1:nj), stat, errmsg)
      call say(stat == 1 .and. index(errmsg, "refused there") > 0, &
          "another rank's lon and lat: " // errmsg)
    end if
    call sheet%set_lonlat(blocks, lon(1:nx, 1:nj), lat(1:nx, 1:nj)) ! a section, in two dimensions
    call mesh%set_lonlat(cells, [(real(i, real64), i=rank + 1, nx * ny, ranks)], [(real(i, &
        real64), i=rank + 1, nx * ny, ranks)])
    ! a list has no shape of its own
    call mesh%set_lonlat(cells, reshape(lon(1:nx, 1:nj), [nj, nx]), reshape(lat(1:nx, 1:nj), [nj, &
        nx]))
    call sheet%set_lonlat(blocks, real(reshape(lon(1:nx, 1:nj), [nx * nj]), real64), &
                          real(reshape(lat(1:nx, 1:nj), [nx * nj]), real64))
    call axes(1)%set_bounds(reshape([(real(i, real64), i=1, 6)], [2, 3]), stat, errmsg)
    call say(stat == 1 .and. &
        errmsg == "axis 'a': the bounds have the shape 2 x 3; expected 2 x 2", &
        "wrong bounds: " // errmsg)
  end subroutine coordinates

  subroutine put_all()
    six = reshape([(real(1000 * rank + i, real64), i=1, size(six))], shape(six))
    five = reshape([(real(1000 * rank + i, real64), i=1, size(five))], shape(five))
    x = lat(1:nx, 1:nj)
    call deep%put(six(1:nx, :, :, :, :, :), stat, errmsg)
    call say(stat == 1 .and. &
             errmsg == "field 'deep': the array has the shape 6 x 3 x 2 x 1 x 3 x 2; &
             &expected 8 x 3 x 2 x 1 x 3 x 2 (halo included)", &
             "six dimensions without halo: " // errmsg)
    call flat%put(lat, stat, errmsg)
    call say(stat == 1 .and. &
        errmsg == "field 'flat': the array has the shape 8 x 5; expected 6 x 3 (halo included)", &
                 "too much: " // errmsg)
    call flat%put(transpose(x), stat, errmsg)
    call say(stat == 1 .and. index(errmsg, "shape 3 x 6; expected 6 x 3") > 0, "turned round: " &
        // errmsg)
    call flat%put(real(x, real64), stat, errmsg)
    call say(stat == 1 .and. &
        errmsg == "field 'flat': the array is of another type, real(real64); &
        &expected real(real32)", &
        "kind: " // errmsg)
    call flat%lend(place, [nj, nx], stat, errmsg)
    call say(stat == 1 .and. errmsg == "field 'flat': a place of the shape 3 x 6; expected 6 x 3", &
        "lent: " // errmsg)
    call deep%put(six)
    call wide%put(five)
    call flat%put(x)
    call spots%put(reshape(x, [nx * nj]))
  end subroutine put_all

  subroutine read_back()
    call weir_init(MPI_COMM_WORLD, "", model, context)
    call define()
    if (rank == 1) then
      call flat%get(back(:, 1:2), "shapes.nc", stat=stat, errmsg=errmsg)
      call say(stat == 1 .and. &
               index(errmsg, "field 'flat': the array has the shape 6 x 2; expected 6 x 3") == 1, &
                   "short: " // errmsg)
    else
      call flat%get(back, "shapes.nc", stat=stat, errmsg=errmsg)
      call say(stat == 1 .and. &
        index(errmsg, "field 'flat': the array of a rank is null, or was refused there") > 0, &
                   "another's: " // errmsg)
    end if
    call flat%get(back, "shapes.nc")
    call say(all(back == x), "two dimensions come back")
    read6 = -1
    call deep%get(read6, "shapes.nc")
    call say(all(read6(1:nx, :, :, :, :, :) == six(1:nx, :, :, :, :, :)) .and. &
             all(read6(0, :, :, :, :, :) < 0), "six dimensions come back")
    five = 0
    call wide%get(five, "shapes.nc")
    call say(all(five == reshape([(real(1000 * rank + i, real64), i=1, size(five))], &
        shape(five))), "five dimensions come back")
    call context%finalize()
  end subroutine read_back

  subroutine say(fact, text)
    logical, intent(in) :: fact
    character(len=*), intent(in) :: text

    write (*, "(a, i0, 2a)") merge("yes   ", "WRONG ", fact), rank, " ", trim(text)
    flush (6)
  end subroutine say
end program shapes
