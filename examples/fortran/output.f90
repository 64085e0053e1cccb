! SPDX-License-Identifier: Apache-2.0
! A model that is only its output: temperature on three levels and surface pressure of a small
! globe, every hour for six hours. The same fields as examples/c/output.c and
! examples/python/output.py write, and the same files to the byte.
!
!     L=<weir>/lib/<mpi>
!     mpifort -o output output.f90 -I$L -L$L -lweirf -lweir -Wl,-rpath,$L
!     mpirun -n 4 ./output [output.toml]
!
program output
  use, intrinsic :: iso_fortran_env, only: real32, real64
  use mpi_f08
  use weir
  implicit none (type, external)
  integer, parameter :: nx = 36, ny = 18, levels = 3, steps = 7
  type(weir_context_t) :: context
  type(MPI_Comm) :: model
  character(len=400) :: config

  config = ""
  if (command_argument_count() > 0) call get_command_argument(1, config)
  call MPI_Init()
  ! Without the argument stat an error ends the program with a message.
  call weir_init(MPI_COMM_WORLD, config, model, context)
  ! Ranks that are not of the model have been servers; all is written when weir_init returns there.
  if (context%is_model()) then
    call run()
    call context%finalize()
  end if
  call MPI_Finalize()

contains

  subroutine run()
    type(weir_grid_t) :: grid
    type(weir_decomposition_t) :: blocks
    type(weir_axis_t) :: plev
    type(weir_field_t) :: ta, ps
    type(weir_stream_t) :: history
    real(real32), allocatable :: ta_data(:, :, :)
    real(real64), allocatable :: ps_data(:, :)
    integer :: rank, ranks, dims(2), i1, ni, j1, nj, i, j, k, step

    call MPI_Comm_rank(model, rank)
    call MPI_Comm_size(model, ranks)
    dims = 0
    call MPI_Dims_create(ranks, 2, dims)
    call share(nx, dims(1), mod(rank, dims(1)), i1, ni)
    call share(ny, dims(2), rank / dims(1), j1, nj)

    call context%set_time("2026-11-21 00:00:00", "proleptic_gregorian")
    call context%set_attribute("title", "output example")
    call grid%create_lonlat(context, "globe", [(10.0_real64 * i, i = 0, nx - 1)], [(-85.0_real64 &
        + 10 * j, j = 0, ny - 1)])
    call plev%create(context, "plev", [850.0_real64, 500.0_real64, 250.0_real64], units="hPa")
    call plev%set_attribute("standard_name", "air_pressure")
    call plev%set_attribute("positive", "down")
    call blocks%create_block(grid, "blocks", i1, ni, j1, nj) ! from 1
    call ta%create(blocks, "ta", weir_float32, axes=[plev], units="K", &
        standard_name="air_temperature")
    call ps%create(blocks, "ps", weir_float64, units="Pa", standard_name="surface_air_pressure")
    call history%create(context, "history", "history_%Y%m%d%H.nc")
    call history%set_every(3600.0_real64)
    call history%set_rotation(3) ! frames of a file
    call history%add(ta)
    call history%add(ps)

    allocate (ta_data(ni, nj, levels), ps_data(ni, nj))
    do step = 0, steps - 1
      ps_data = reshape([((100000 + value(i, j, 1, step), i = i1, i1 + ni - 1), j = j1, j1 + nj &
          - 1)], [ni, nj])
      do k = 1, levels
        ta_data(:, :, k) = real(reshape([((value(i, j, k, step), i = i1, i1 + ni - 1), j = j1, &
            j1 + nj - 1)], [ni, nj]), real32)
      end do
      call context%step(3600.0_real64 * step)
      call ta%put(ta_data)
      call ps%put(ps_data)
      call context%end_step() ! returns before the data are on disk, in modes with servers
    end do
  end subroutine run

  ! Any numbers, the same in all three languages and exact in real32.
  pure real(real64) function value(i, j, level, step)
    integer, intent(in) :: i, j, level, step

    value = 250 + (mod(((j - 1) * nx + i - 1) * 7, 1013) + (level - 1) * 40 + step * 3) / 8.0_real64
  end function value

  ! Columns or rows of this rank: blocks as equal as possible.
  pure subroutine share(n, parts, part, first, count)
    integer, intent(in) :: n, parts, part
    integer, intent(out) :: first, count

    first = n * part / parts + 1
    count = n * (part + 1) / parts - first + 1
  end subroutine share
end program output
