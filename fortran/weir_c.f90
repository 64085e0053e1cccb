! SPDX-License-Identifier: Apache-2.0
! The C functions of include/weir as Fortran sees them, and what turns their errors into Fortran's.
! Programs use the module weir.
module weir_c
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int64_t, c_null_char, c_ptr
  use, intrinsic :: iso_fortran_env, only: error_unit, int64
  use mpi_f08, only: MPI_Comm_rank, MPI_COMM_WORLD, MPI_Initialized
  implicit none (type, external)
  public

  type, bind(c) :: c_error_t
    integer(c_int) :: code = 0
    character(kind=c_char) :: message(1020) = c_null_char
  end type c_error_t

  type, bind(c) :: c_costs_t
    real(c_double) :: put_s, wait_s, end_step_s, final_s
    integer(c_int64_t) :: put_bytes, frames
  end type c_costs_t

  integer, parameter :: weir_name_length = 256 ! of objects, in messages

  interface
    integer(c_int) function weir_init_f(world, config, model_comm, context, err) bind(c)
      import :: c_int, c_char, c_ptr, c_error_t
      integer(c_int), value :: world
      character(kind=c_char), intent(in) :: config(*)
      integer(c_int), intent(out) :: model_comm
      type(c_ptr), intent(out) :: context
      type(c_error_t), intent(inout) :: err
    end function weir_init_f

    integer(c_int) function weir_serve_f(world, config, err) bind(c)
      import :: c_int, c_char, c_error_t
      integer(c_int), value :: world
      character(kind=c_char), intent(in) :: config(*)
      type(c_error_t), intent(inout) :: err
    end function weir_serve_f

    integer(c_int) function weir_context_set_time(context, reference, calendar, err) bind(c)
      import :: c_int, c_char, c_ptr, c_error_t
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: reference(*), calendar(*)
      type(c_error_t), intent(inout) :: err
    end function weir_context_set_time

    integer(c_int) function weir_context_end_definition(context, err) bind(c)
      import :: c_int, c_ptr, c_error_t
      type(c_ptr), value :: context
      type(c_error_t), intent(inout) :: err
    end function weir_context_end_definition

    integer(c_int) function c_step(context, time_s, err) bind(c, name="weir_step")
      import :: c_int, c_double, c_ptr, c_error_t
      type(c_ptr), value :: context
      real(c_double), value :: time_s
      type(c_error_t), intent(inout) :: err
    end function c_step

    integer(c_int) function c_end_step(context, err) bind(c, name="weir_end_step")
      import :: c_int, c_ptr, c_error_t
      type(c_ptr), value :: context
      type(c_error_t), intent(inout) :: err
    end function c_end_step

    integer(c_int) function weir_field_set_missing_int64(field, value, err) bind(c)
      import :: c_int, c_int64_t, c_ptr, c_error_t
      type(c_ptr), value :: field
      integer(c_int64_t), value :: value
      type(c_error_t), intent(inout) :: err
    end function weir_field_set_missing_int64

    integer(c_int) function c_finalize(context, costs, err) bind(c, name="weir_finalize_costs")
      import :: c_int, c_ptr, c_error_t, c_costs_t
      type(c_ptr), intent(inout) :: context
      type(c_costs_t), intent(out) :: costs
      type(c_error_t), intent(inout) :: err
    end function c_finalize

    integer(c_int) function c_abandon(context, err) bind(c, name="weir_abandon")
      import :: c_int, c_ptr, c_error_t
      type(c_ptr), intent(inout) :: context
      type(c_error_t), intent(inout) :: err
    end function c_abandon

    integer(c_int) function weir_context_costs(context, costs, err) bind(c)
      import :: c_int, c_ptr, c_error_t, c_costs_t
      type(c_ptr), value :: context
      type(c_costs_t), intent(out) :: costs
      type(c_error_t), intent(inout) :: err
    end function weir_context_costs

    integer(c_int) function weir_grid_create_lonlat(context, name, nx, x, ny, y, grid, err) bind(c)
      import :: c_int, c_int64_t, c_double, c_char, c_ptr, c_error_t
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: nx, ny
      real(c_double), intent(in) :: x(*), y(*)
      type(c_ptr), intent(out) :: grid
      type(c_error_t), intent(inout) :: err
    end function weir_grid_create_lonlat

    integer(c_int) function weir_grid_create_plane(context, name, nx, x, ny, y, grid, err) bind(c)
      import :: c_int, c_int64_t, c_double, c_char, c_ptr, c_error_t
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: nx, ny
      real(c_double), intent(in) :: x(*), y(*)
      type(c_ptr), intent(out) :: grid
      type(c_error_t), intent(inout) :: err
    end function weir_grid_create_plane

    integer(c_int) function weir_grid_create_gaussian(context, name, nx, ny, grid, err) bind(c)
      import :: c_int, c_int64_t, c_char, c_ptr, c_error_t
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: nx, ny
      type(c_ptr), intent(out) :: grid
      type(c_error_t), intent(inout) :: err
    end function weir_grid_create_gaussian

    integer(c_int) function weir_grid_create_curvilinear(context, name, nx, ny, grid, err) bind(c)
      import :: c_int, c_int64_t, c_char, c_ptr, c_error_t
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: nx, ny
      type(c_ptr), intent(out) :: grid
      type(c_error_t), intent(inout) :: err
    end function weir_grid_create_curvilinear

    integer(c_int) function weir_grid_create_unstructured(context, name, size, grid, err) bind(c)
      import :: c_int, c_int64_t, c_char, c_ptr, c_error_t
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: size
      type(c_ptr), intent(out) :: grid
      type(c_error_t), intent(inout) :: err
    end function weir_grid_create_unstructured

    integer(c_int) function weir_grid_set_lonlat(grid, decomposition, lon, lat, err) bind(c)
      import :: c_int, c_double, c_ptr, c_error_t
      type(c_ptr), value :: grid, decomposition
      real(c_double), intent(in), optional :: lon(*), lat(*)
      type(c_error_t), intent(inout) :: err
    end function weir_grid_set_lonlat

    integer(c_int) function weir_grid_set_mapping(grid, name, grid_mapping_name, err) bind(c)
      import :: c_int, c_char, c_ptr, c_error_t
      type(c_ptr), value :: grid
      character(kind=c_char), intent(in) :: name(*), grid_mapping_name(*)
      type(c_error_t), intent(inout) :: err
    end function weir_grid_set_mapping

    integer(c_int) function weir_grid_set_mapping_text(grid, name, value, err) bind(c)
      import :: c_int, c_char, c_ptr, c_error_t
      type(c_ptr), value :: grid
      character(kind=c_char), intent(in) :: name(*), value(*)
      type(c_error_t), intent(inout) :: err
    end function weir_grid_set_mapping_text

    integer(c_int) function weir_grid_set_mapping_numbers(grid, name, count, values, err) bind(c)
      import :: c_int, c_double, c_char, c_ptr, c_error_t
      type(c_ptr), value :: grid
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: count
      real(c_double), intent(in) :: values(*)
      type(c_error_t), intent(inout) :: err
    end function weir_grid_set_mapping_numbers

    integer(c_int) function weir_decomposition_create_block(grid, name, i0, ni, j0, nj, &
        decomposition, err) bind(c)
      import :: c_int, c_int64_t, c_char, c_ptr, c_error_t
      type(c_ptr), value :: grid
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: i0, ni, j0, nj
      type(c_ptr), intent(out) :: decomposition
      type(c_error_t), intent(inout) :: err
    end function weir_decomposition_create_block

    integer(c_int) function weir_decomposition_create_indices(grid, name, count, indices, &
        decomposition, err) bind(c)
      import :: c_int, c_int64_t, c_char, c_ptr, c_error_t
      type(c_ptr), value :: grid
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: count
      integer(c_int64_t), intent(in) :: indices(*)
      type(c_ptr), intent(out) :: decomposition
      type(c_error_t), intent(inout) :: err
    end function weir_decomposition_create_indices

    integer(c_int) function weir_decomposition_set_halo(decomposition, west, east, south, north, &
        err) bind(c)
      import :: c_int, c_int64_t, c_ptr, c_error_t
      type(c_ptr), value :: decomposition
      integer(c_int64_t), value :: west, east, south, north
      type(c_error_t), intent(inout) :: err
    end function weir_decomposition_set_halo

    integer(c_int64_t) function weir_decomposition_local_size(decomposition) bind(c)
      import :: c_int64_t, c_ptr
      type(c_ptr), value :: decomposition
    end function weir_decomposition_local_size

    integer(c_int) function weir_axis_create(context, name, size, values, units, axis, err) bind(c)
      import :: c_int, c_int64_t, c_double, c_char, c_ptr, c_error_t
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: name(*), units(*)
      integer(c_int64_t), value :: size
      real(c_double), intent(in) :: values(*)
      type(c_ptr), intent(out) :: axis
      type(c_error_t), intent(inout) :: err
    end function weir_axis_create

    integer(c_int) function weir_axis_set_bounds(axis, bounds, err) bind(c)
      import :: c_int, c_double, c_ptr, c_error_t
      type(c_ptr), value :: axis
      real(c_double), intent(in) :: bounds(*)
      type(c_error_t), intent(inout) :: err
    end function weir_axis_set_bounds

    integer(c_int) function weir_field_create(decomposition, name, type, axis_count, axes, field, &
        err) bind(c)
      import :: c_int, c_char, c_ptr, c_error_t
      type(c_ptr), value :: decomposition
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: type, axis_count
      type(c_ptr), intent(in) :: axes(*)
      type(c_ptr), intent(out) :: field
      type(c_error_t), intent(inout) :: err
    end function weir_field_create

    integer(c_int) function weir_field_set_file_type(field, type, err) bind(c)
      import :: c_int, c_ptr, c_error_t
      type(c_ptr), value :: field
      integer(c_int), value :: type
      type(c_error_t), intent(inout) :: err
    end function weir_field_set_file_type

    integer(c_int) function weir_field_set_compression(field, compression, err) bind(c)
      import :: c_int, c_char, c_ptr, c_error_t
      type(c_ptr), value :: field
      character(kind=c_char), intent(in) :: compression(*)
      type(c_error_t), intent(inout) :: err
    end function weir_field_set_compression

    integer(c_int) function weir_field_set_chunk(field, count, chunk, err) bind(c)
      import :: c_int, c_int64_t, c_ptr, c_error_t
      type(c_ptr), value :: field
      integer(c_int), value :: count
      integer(c_int64_t), intent(in) :: chunk(*)
      type(c_error_t), intent(inout) :: err
    end function weir_field_set_chunk

    integer(c_int64_t) function weir_field_local_size(field) bind(c)
      import :: c_int64_t, c_ptr
      type(c_ptr), value :: field
    end function weir_field_local_size

    integer(c_int) function weir_field_array_shape(field, shape) bind(c)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: field
      integer(c_int64_t), intent(out) :: shape(6)
    end function weir_field_array_shape

    integer(c_int) function weir_field_memory_type(field) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: field
    end function weir_field_memory_type

    integer(c_int) function weir_put(field, data, err) bind(c)
      import :: c_int, c_ptr, c_error_t
      type(c_ptr), value :: field, data
      type(c_error_t), intent(inout) :: err
    end function weir_put

    integer(c_int) function weir_field_lend(field, data, err) bind(c)
      import :: c_int, c_ptr, c_error_t
      type(c_ptr), value :: field
      type(c_ptr), intent(out) :: data
      type(c_error_t), intent(inout) :: err
    end function weir_field_lend

    integer(c_int) function weir_get(field, path, record, data, err) bind(c)
      import :: c_int, c_int64_t, c_char, c_ptr, c_error_t
      type(c_ptr), value :: field, data
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int64_t), value :: record
      type(c_error_t), intent(inout) :: err
    end function weir_get

    integer(c_int) function weir_stream_create(context, name, path, format, stream, err) bind(c)
      import :: c_int, c_char, c_ptr, c_error_t
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: name(*), path(*), format(*)
      type(c_ptr), intent(out) :: stream
      type(c_error_t), intent(inout) :: err
    end function weir_stream_create

    integer(c_int) function weir_stream_set_every(stream, seconds, err) bind(c)
      import :: c_int, c_double, c_ptr, c_error_t
      type(c_ptr), value :: stream
      real(c_double), value :: seconds
      type(c_error_t), intent(inout) :: err
    end function weir_stream_set_every

    integer(c_int) function weir_stream_set_every_steps(stream, steps, err) bind(c)
      import :: c_int, c_int64_t, c_ptr, c_error_t
      type(c_ptr), value :: stream
      integer(c_int64_t), value :: steps
      type(c_error_t), intent(inout) :: err
    end function weir_stream_set_every_steps

    integer(c_int) function weir_stream_set_rotation(stream, frames, err) bind(c)
      import :: c_int, c_int64_t, c_ptr, c_error_t
      type(c_ptr), value :: stream
      integer(c_int64_t), value :: frames
      type(c_error_t), intent(inout) :: err
    end function weir_stream_set_rotation

    integer(c_int) function weir_stream_set_rotation_period(stream, period, err) bind(c)
      import :: c_int, c_char, c_ptr, c_error_t
      type(c_ptr), value :: stream
      character(kind=c_char), intent(in) :: period(*)
      type(c_error_t), intent(inout) :: err
    end function weir_stream_set_rotation_period

    integer(c_int) function weir_stream_set_existing(stream, existing, err) bind(c)
      import :: c_int, c_char, c_ptr, c_error_t
      type(c_ptr), value :: stream
      character(kind=c_char), intent(in) :: existing(*)
      type(c_error_t), intent(inout) :: err
    end function weir_stream_set_existing

    integer(c_int) function weir_stream_add_field(stream, field, operation, err) bind(c)
      import :: c_int, c_ptr, c_error_t
      type(c_ptr), value :: stream, field
      integer(c_int), value :: operation
      type(c_error_t), intent(inout) :: err
    end function weir_stream_add_field

    integer(c_int) function weir_stream_add_field_as(stream, field, operation, name, err) bind(c)
      import :: c_int, c_char, c_ptr, c_error_t
      type(c_ptr), value :: stream, field
      integer(c_int), value :: operation
      character(kind=c_char), intent(in) :: name(*)
      type(c_error_t), intent(inout) :: err
    end function weir_stream_add_field_as

    integer(c_int) function weir_stream_is_due(stream) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: stream
    end function weir_stream_is_due

    integer(c_int) function weir_context_set_text(context, name, value, err) bind(c)
      import :: c_int, c_char, c_ptr, c_error_t
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: name(*), value(*)
      type(c_error_t), intent(inout) :: err
    end function weir_context_set_text

    integer(c_int) function weir_axis_set_text(axis, name, value, err) bind(c)
      import :: c_int, c_char, c_ptr, c_error_t
      type(c_ptr), value :: axis
      character(kind=c_char), intent(in) :: name(*), value(*)
      type(c_error_t), intent(inout) :: err
    end function weir_axis_set_text

    integer(c_int) function weir_field_set_text(field, name, value, err) bind(c)
      import :: c_int, c_char, c_ptr, c_error_t
      type(c_ptr), value :: field
      character(kind=c_char), intent(in) :: name(*), value(*)
      type(c_error_t), intent(inout) :: err
    end function weir_field_set_text

    integer(c_int) function weir_context_set_number(context, name, value, err) bind(c)
      import :: c_int, c_char, c_double, c_ptr, c_error_t
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: name(*)
      real(c_double), value :: value
      type(c_error_t), intent(inout) :: err
    end function weir_context_set_number

    integer(c_int) function weir_field_set_number(field, name, value, err) bind(c)
      import :: c_int, c_char, c_double, c_ptr, c_error_t
      type(c_ptr), value :: field
      character(kind=c_char), intent(in) :: name(*)
      real(c_double), value :: value
      type(c_error_t), intent(inout) :: err
    end function weir_field_set_number
  end interface

contains

  ! The text without trailing blanks, as C wants it.
  pure function c_text(text)
    character(len=*), intent(in) :: text
    character(kind=c_char, len=len_trim(text) + 1) :: c_text

    c_text = trim(text) // c_null_char
  end function c_text

  ! What a call's status becomes: stat and errmsg when they are there, else the end of the program
  ! with a message.
  subroutine settle(procedure_name, err, stat, errmsg)
    character(len=*), intent(in) :: procedure_name
    type(c_error_t), intent(in) :: err
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(len=size(err%message)) :: text
    integer :: i

    if (present(stat)) stat = err%code
    if (err%code == 0) return
    text = ""
    do i = 1, size(err%message)
      if (err%message(i) == c_null_char) exit
      text(i:i) = err%message(i)
    end do
    if (present(errmsg)) errmsg = text
    if (present(stat)) return
    write (error_unit, "(a, i0, 4a)") "weir: rank ", world_rank(), ": ", procedure_name, ": ", &
        trim(text)
    error stop 1
  end subroutine settle

  integer function world_rank()
    logical :: running

    world_rank = 0
    call MPI_Initialized(running)
    if (running) call MPI_Comm_rank(MPI_COMM_WORLD, world_rank)
  end function world_rank

  ! An error of the Fortran side itself.
  pure function argument_error(text) result(err)
    character(len=*), intent(in) :: text
    type(c_error_t) :: err
    integer :: i

    err%code = 1 ! WEIR_E_ARGUMENT
    do i = 1, min(len(text), size(err%message) - 1)
      err%message(i) = text(i:i)
    end do
  end function argument_error

  ! Whether an array of the shape `extents` holds what `wanted` does, in its order: the same shape,
  ! or as many elements in other dimensions.
  pure logical function fits(extents, wanted)
    integer(int64), intent(in) :: extents(:), wanted(:)

    if (size(extents) == size(wanted)) then
      fits = all(extents == wanted)
    else
      fits = product(extents) == product(wanted)
    end if
  end function fits

  ! "12 x 4 x 3"
  pure function shape_text(extents)
    integer(int64), intent(in) :: extents(:)
    character(len=:), allocatable :: shape_text
    character(len=20 * size(extents) + 20) :: text

    write (text, "(*(i0, :, ' x '))") extents
    shape_text = trim(text)
  end function shape_text
end module weir_c
