! SPDX-License-Identifier: Apache-2.0
! Contexts, grids, decompositions and axes. Points and indices count from 1 here, as everywhere in
! Fortran.
module weir_grids
  use, intrinsic :: iso_c_binding, only: c_associated, c_double, c_int, c_int64_t, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use mpi_f08, only: MPI_Comm
  use weir_c
  implicit none (type, external)
  private
  public :: weir_context_t, weir_grid_t, weir_decomposition_t, weir_axis_t, weir_costs_t, &
      weir_init, weir_serve

  ! What output has cost this rank; see weir_costs in include/weir/context.h.
  type :: weir_costs_t
    real(real64) :: put_s = 0, wait_s = 0, end_step_s = 0, final_s = 0
    integer(int64) :: put_bytes = 0, frames = 0
  end type weir_costs_t

  type :: weir_context_t
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: is_model, set_time, end_definition, step, end_step, finalize, abandon, costs
    procedure, private :: set_context_text, set_context_number, set_context_single, &
        set_context_integer
    generic :: set_attribute => set_context_text, set_context_number, set_context_single, &
        set_context_integer
  end type weir_context_t

  type :: weir_grid_t
    type(c_ptr) :: handle = c_null_ptr
    character(len=weir_name_length), private :: name = ""
  contains
    procedure :: create_lonlat, create_gaussian, create_plane, create_curvilinear
    procedure, private :: create_unstructured32, create_unstructured64
    generic :: create_unstructured => create_unstructured32, create_unstructured64
    procedure, private :: set_lonlat32_1, set_lonlat32_2, set_lonlat64_1, set_lonlat64_2
    procedure :: set_mapping
    procedure, private :: set_mapping_text, set_mapping_number, set_mapping_single, &
        set_mapping_numbers
    generic :: set_mapping_attribute => set_mapping_text, set_mapping_number, set_mapping_single, &
        set_mapping_numbers
    generic :: set_lonlat => set_lonlat32_1, set_lonlat32_2, set_lonlat64_1, set_lonlat64_2
  end type weir_grid_t

  type :: weir_decomposition_t
    type(c_ptr) :: handle = c_null_ptr
    character(len=weir_name_length), private :: name = ""
    integer(int64), private :: ni = -1, nj = -1 ! of a block
  contains
    procedure :: create_block, set_halo
    procedure, private :: create_indices32, create_indices64
    generic :: create_indices => create_indices32, create_indices64
    procedure :: local_size => decomposition_size
  end type weir_decomposition_t

  type :: weir_axis_t
    type(c_ptr) :: handle = c_null_ptr
    character(len=weir_name_length), private :: name = ""
    integer(int64), private :: values = 0
  contains
    procedure :: create => create_axis
    procedure :: set_attribute => set_axis_text
    procedure :: set_bounds
  end type weir_axis_t

  ! [collective over world] Begin: call weir_init(MPI_COMM_WORLD, "output.toml", model_comm,
  ! context). Ranks for which context%is_model() is false have been servers until now; they go on to
  ! MPI_Finalize.
  interface weir_init
    procedure init_f08, init_integer
  end interface weir_init

  ! [collective over world, with the others' weir_init] This rank, of an executable of its own
  ! (MPMD), is a server: call weir_serve(MPI_COMM_WORLD, "output.toml") returns when the model has
  ! finalized and all is written.
  interface weir_serve
    procedure serve_f08, serve_integer
  end interface weir_serve

contains

  subroutine init_integer(world, config, model_comm, context, stat, errmsg)
    integer, intent(in) :: world
    character(len=*), intent(in) :: config ! "": what WEIR_OUTPUT_CONFIG names, else mode serial
    integer, intent(out) :: model_comm
    type(weir_context_t), intent(out) :: context
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code
    integer(c_int) :: comm

    code = weir_init_f(int(world, c_int), c_text(config), comm, context%handle, err)
    model_comm = int(comm)
    call settle("weir_init", err, stat, errmsg)
  end subroutine init_integer

  subroutine init_f08(world, config, model_comm, context, stat, errmsg)
    type(MPI_Comm), intent(in) :: world
    character(len=*), intent(in) :: config
    type(MPI_Comm), intent(out) :: model_comm
    type(weir_context_t), intent(out) :: context
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call init_integer(world%MPI_VAL, config, model_comm%MPI_VAL, context, stat, errmsg)
  end subroutine init_f08

  subroutine serve_integer(world, config, stat, errmsg)
    integer, intent(in) :: world
    character(len=*), intent(in) :: config
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    code = weir_serve_f(int(world, c_int), c_text(config), err)
    call settle("weir_serve", err, stat, errmsg)
  end subroutine serve_integer

  subroutine serve_f08(world, config, stat, errmsg)
    type(MPI_Comm), intent(in) :: world
    character(len=*), intent(in) :: config
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call serve_integer(world%MPI_VAL, config, stat, errmsg)
  end subroutine serve_f08

  ! Whether this rank computes. After finalize no rank does.
  logical function is_model(self)
    class(weir_context_t), intent(in) :: self

    is_model = c_associated(self%handle)
  end function is_model

  subroutine set_time(self, reference, calendar, stat, errmsg)
    class(weir_context_t), intent(in) :: self
    character(len=*), intent(in) :: reference
    character(len=*), intent(in), optional :: calendar
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code
    character(len=:), allocatable :: name

    name = ""
    if (present(calendar)) name = calendar
    code = weir_context_set_time(self%handle, c_text(reference), c_text(name), err)
    call settle("set_time", err, stat, errmsg)
  end subroutine set_time

  subroutine set_context_text(self, name, value, stat, errmsg)
    class(weir_context_t), intent(in) :: self
    character(len=*), intent(in) :: name, value
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    code = weir_context_set_text(self%handle, c_text(name), c_text(value), err)
    call settle("set_attribute", err, stat, errmsg)
  end subroutine set_context_text

  subroutine set_context_number(self, name, value, stat, errmsg)
    class(weir_context_t), intent(in) :: self
    character(len=*), intent(in) :: name
    real(real64), intent(in) :: value
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    code = weir_context_set_number(self%handle, c_text(name), value, err)
    call settle("set_attribute", err, stat, errmsg)
  end subroutine set_context_number

  subroutine set_context_single(self, name, value, stat, errmsg)
    class(weir_context_t), intent(in) :: self
    character(len=*), intent(in) :: name
    real(real32), intent(in) :: value
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call self%set_attribute(name, real(value, real64), stat, errmsg)
  end subroutine set_context_single

  subroutine set_context_integer(self, name, value, stat, errmsg)
    class(weir_context_t), intent(in) :: self
    character(len=*), intent(in) :: name
    integer(int32), intent(in) :: value
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call self%set_attribute(name, real(value, real64), stat, errmsg)
  end subroutine set_context_integer

  subroutine end_definition(self, stat, errmsg)
    class(weir_context_t), intent(in) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    code = weir_context_end_definition(self%handle, err)
    call settle("end_definition", err, stat, errmsg)
  end subroutine end_definition

  subroutine step(self, time_s, stat, errmsg)
    class(weir_context_t), intent(in) :: self
    real(real64), intent(in) :: time_s
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    code = c_step(self%handle, time_s, err)
    call settle("step", err, stat, errmsg)
  end subroutine step

  subroutine end_step(self, stat, errmsg)
    class(weir_context_t), intent(in) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    code = c_end_step(self%handle, err)
    call settle("end_step", err, stat, errmsg)
  end subroutine end_step

  ! Nothing on ranks that have been servers.
  ! costs: of the whole run, final_s with it. A second call does nothing.
  subroutine finalize(self, stat, errmsg, costs)
    class(weir_context_t), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(weir_costs_t), intent(out), optional :: costs
    type(c_costs_t) :: c
    type(c_error_t) :: err
    integer(c_int) :: code

    code = c_finalize(self%handle, c, err)
    if (present(costs)) costs = weir_costs_t(c%put_s, c%wait_s, c%end_step_s, c%final_s, &
        c%put_bytes, c%frames)
    call settle("finalize", err, stat, errmsg)
  end subroutine finalize

  ! After an error of the program, on this rank alone: nothing more is written, files are closed.
  subroutine abandon(self, stat, errmsg)
    class(weir_context_t), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    code = c_abandon(self%handle, err)
    call settle("abandon", err, stat, errmsg)
  end subroutine abandon

  function costs(self) result(so_far)
    class(weir_context_t), intent(in) :: self
    type(weir_costs_t) :: so_far
    type(c_costs_t) :: c
    type(c_error_t) :: err
    integer(c_int) :: code

    code = weir_context_costs(self%handle, c, err)
    call settle("costs", err)
    so_far = weir_costs_t(c%put_s, c%wait_s, c%end_step_s, c%final_s, c%put_bytes, c%frames)
  end function costs

  subroutine create_lonlat(self, context, name, lon, lat, stat, errmsg)
    class(weir_grid_t), intent(out) :: self
    type(weir_context_t), intent(in) :: context
    character(len=*), intent(in) :: name
    real(real64), intent(in) :: lon(:), lat(:)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    self%name = name
    code = weir_grid_create_lonlat(context%handle, c_text(name), size(lon, kind=c_int64_t), lon, &
        size(lat, kind=c_int64_t), lat, &
                                       self%handle, err)
    call settle("create_lonlat", err, stat, errmsg)
  end subroutine create_lonlat

  subroutine create_gaussian(self, context, name, nx, ny, stat, errmsg)
    class(weir_grid_t), intent(out) :: self
    type(weir_context_t), intent(in) :: context
    character(len=*), intent(in) :: name
    integer, intent(in) :: nx, ny
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    self%name = name
    code = weir_grid_create_gaussian(context%handle, c_text(name), int(nx, c_int64_t), int(ny, &
        c_int64_t), self%handle, err)
    call settle("create_gaussian", err, stat, errmsg)
  end subroutine create_gaussian

  subroutine create_plane(self, context, name, x, y, stat, errmsg)
    class(weir_grid_t), intent(out) :: self
    type(weir_context_t), intent(in) :: context
    character(len=*), intent(in) :: name
    real(real64), intent(in) :: x(:), y(:) ! metres
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    self%name = name
    code = weir_grid_create_plane(context%handle, c_text(name), size(x, kind=c_int64_t), x, &
        size(y, kind=c_int64_t), y, &
                                      self%handle, err)
    call settle("create_plane", err, stat, errmsg)
  end subroutine create_plane

  subroutine create_curvilinear(self, context, name, nx, ny, stat, errmsg)
    class(weir_grid_t), intent(out) :: self
    type(weir_context_t), intent(in) :: context
    character(len=*), intent(in) :: name
    integer, intent(in) :: nx, ny
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    self%name = name
    code = weir_grid_create_curvilinear(context%handle, c_text(name), int(nx, c_int64_t), int(ny, &
        c_int64_t), self%handle, err)
    call settle("create_curvilinear", err, stat, errmsg)
  end subroutine create_curvilinear

  subroutine create_unstructured64(self, context, name, cells, stat, errmsg)
    class(weir_grid_t), intent(out) :: self
    type(weir_context_t), intent(in) :: context
    character(len=*), intent(in) :: name
    integer(int64), intent(in) :: cells
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    self%name = name
    code = weir_grid_create_unstructured(context%handle, c_text(name), cells, self%handle, err)
    call settle("create_unstructured", err, stat, errmsg)
  end subroutine create_unstructured64

  subroutine create_unstructured32(self, context, name, cells, stat, errmsg)
    class(weir_grid_t), intent(out) :: self
    type(weir_context_t), intent(in) :: context
    character(len=*), intent(in) :: name
    integer(int32), intent(in) :: cells
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call create_unstructured64(self, context, name, int(cells, int64), stat, errmsg)
  end subroutine create_unstructured32

  ! Of this rank's points, in degrees, in the order of the decomposition and without halo: (ni, nj)
  ! of a block, or one after the other.
  subroutine set_lonlat64_1(self, decomposition, lon, lat, stat, errmsg)
    class(weir_grid_t), intent(in) :: self
    type(weir_decomposition_t), intent(in) :: decomposition
    real(real64), intent(in) :: lon(:), lat(:)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call set_points(self, decomposition, shape(lon, kind=int64), shape(lat, kind=int64), lon, lat, &
        stat, errmsg)
  end subroutine set_lonlat64_1

  subroutine set_lonlat64_2(self, decomposition, lon, lat, stat, errmsg)
    class(weir_grid_t), intent(in) :: self
    type(weir_decomposition_t), intent(in) :: decomposition
    real(real64), intent(in) :: lon(:, :), lat(:, :)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call set_points(self, decomposition, shape(lon, kind=int64), shape(lat, kind=int64), lon, lat, &
        stat, errmsg)
  end subroutine set_lonlat64_2

  subroutine set_lonlat32_1(self, decomposition, lon, lat, stat, errmsg)
    class(weir_grid_t), intent(in) :: self
    type(weir_decomposition_t), intent(in) :: decomposition
    real(real32), intent(in) :: lon(:), lat(:)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call set_lonlat64_1(self, decomposition, real(lon, real64), real(lat, real64), stat, errmsg)
  end subroutine set_lonlat32_1

  subroutine set_lonlat32_2(self, decomposition, lon, lat, stat, errmsg)
    class(weir_grid_t), intent(in) :: self
    type(weir_decomposition_t), intent(in) :: decomposition
    real(real32), intent(in) :: lon(:, :), lat(:, :)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call set_lonlat64_2(self, decomposition, real(lon, real64), real(lat, real64), stat, errmsg)
  end subroutine set_lonlat32_2

  subroutine set_points(self, decomposition, lon_shape, lat_shape, lon, lat, stat, errmsg)
    class(weir_grid_t), intent(in) :: self
    type(weir_decomposition_t), intent(in) :: decomposition
    integer(int64), intent(in) :: lon_shape(:), lat_shape(:)
    real(real64), intent(in) :: lon(*), lat(*)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err, of_others
    integer(c_int) :: code
    integer(int64), allocatable :: wanted(:)

    if (decomposition%ni < 0) then
      allocate (wanted, source=[decomposition%local_size()])
    else
      allocate (wanted, source=[decomposition%ni, decomposition%nj])
    end if
    if (product(wanted) == 0 .or. (fits(lon_shape, wanted) .and. fits(lat_shape, wanted))) then
      code = weir_grid_set_lonlat(self%handle, decomposition%handle, lon, lat, err)
    else
      err = argument_error("grid '" // trim(self%name) // "', decomposition '" &
          // trim(decomposition%name) &
                           // "': lon has the shape " // shape_text(lon_shape) // " and lat " &
                               // shape_text(lat_shape) &
                           // "; expected " // shape_text(wanted) // " (without halo)")
      ! which wait for this rank
      code = weir_grid_set_lonlat(self%handle, decomposition%handle, err=of_others)
    end if
    call settle("set_lonlat", err, stat, errmsg)
  end subroutine set_points

  ! The grid's mapping to the earth: files have a variable of this name, whose attribute
  ! grid_mapping_name says which ("mercator").
  subroutine set_mapping(self, name, grid_mapping_name, stat, errmsg)
    class(weir_grid_t), intent(in) :: self
    character(len=*), intent(in) :: name, grid_mapping_name
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    code = weir_grid_set_mapping(self%handle, c_text(name), c_text(grid_mapping_name), err)
    call settle("set_mapping", err, stat, errmsg)
  end subroutine set_mapping

  subroutine set_mapping_text(self, name, value, stat, errmsg)
    class(weir_grid_t), intent(in) :: self
    character(len=*), intent(in) :: name, value
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    code = weir_grid_set_mapping_text(self%handle, c_text(name), c_text(value), err)
    call settle("set_mapping_attribute", err, stat, errmsg)
  end subroutine set_mapping_text

  subroutine set_mapping_numbers(self, name, values, stat, errmsg)
    class(weir_grid_t), intent(in) :: self
    character(len=*), intent(in) :: name
    real(real64), intent(in) :: values(:)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    code = weir_grid_set_mapping_numbers(self%handle, c_text(name), size(values, kind=c_int), &
        values, err)
    call settle("set_mapping_attribute", err, stat, errmsg)
  end subroutine set_mapping_numbers

  subroutine set_mapping_number(self, name, value, stat, errmsg)
    class(weir_grid_t), intent(in) :: self
    character(len=*), intent(in) :: name
    real(real64), intent(in) :: value
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call set_mapping_numbers(self, name, [value], stat, errmsg)
  end subroutine set_mapping_number

  subroutine set_mapping_single(self, name, value, stat, errmsg)
    class(weir_grid_t), intent(in) :: self
    character(len=*), intent(in) :: name
    real(real32), intent(in) :: value
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call set_mapping_numbers(self, name, [real(value, real64)], stat, errmsg)
  end subroutine set_mapping_single

  ! This rank has columns i_first to i_first + ni - 1 and rows j_first to j_first + nj - 1, counted
  ! from 1.
  subroutine create_block(self, grid, name, i_first, ni, j_first, nj, stat, errmsg)
    class(weir_decomposition_t), intent(out) :: self
    type(weir_grid_t), intent(in) :: grid
    character(len=*), intent(in) :: name
    integer, intent(in) :: i_first, ni, j_first, nj
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    self%name = name
    self%ni = ni
    self%nj = nj
    code = weir_decomposition_create_block(grid%handle, c_text(name), int(i_first - 1, c_int64_t), &
        int(ni, c_int64_t), &
                                               int(j_first - 1, c_int64_t), int(nj, c_int64_t), &
                                                   self%handle, err)
    call settle("create_block", err, stat, errmsg)
  end subroutine create_block

  subroutine create_indices64(self, grid, name, indices, stat, errmsg)
    class(weir_decomposition_t), intent(out) :: self
    type(weir_grid_t), intent(in) :: grid
    character(len=*), intent(in) :: name
    integer(int64), intent(in) :: indices(:) ! from 1, in the order of this rank's memory
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    self%name = name
    code = weir_decomposition_create_indices(grid%handle, c_text(name), size(indices, &
        kind=c_int64_t), indices - 1, &
                                             self%handle, err)
    call settle("create_indices", err, stat, errmsg)
  end subroutine create_indices64

  subroutine create_indices32(self, grid, name, indices, stat, errmsg)
    class(weir_decomposition_t), intent(out) :: self
    type(weir_grid_t), intent(in) :: grid
    character(len=*), intent(in) :: name
    integer(int32), intent(in) :: indices(:)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call create_indices64(self, grid, name, int(indices, int64), stat, errmsg)
  end subroutine create_indices32

  ! Arrays given to put and get have so many further columns and rows around the block.
  subroutine set_halo(self, west, east, south, north, stat, errmsg)
    class(weir_decomposition_t), intent(in) :: self
    integer, intent(in) :: west, east, south, north
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    code = weir_decomposition_set_halo(self%handle, int(west, c_int64_t), int(east, c_int64_t), &
        int(south, c_int64_t), &
                                           int(north, c_int64_t), err)
    call settle("set_halo", err, stat, errmsg)
  end subroutine set_halo

  integer(int64) function decomposition_size(self)
    class(weir_decomposition_t), intent(in) :: self

    decomposition_size = weir_decomposition_local_size(self%handle)
  end function decomposition_size

  subroutine create_axis(self, context, name, values, units, stat, errmsg)
    class(weir_axis_t), intent(out) :: self
    type(weir_context_t), intent(in) :: context
    character(len=*), intent(in) :: name
    real(real64), intent(in) :: values(:)
    character(len=*), intent(in), optional :: units ! "1" if not given
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code
    character(len=:), allocatable :: of

    of = "1"
    if (present(units)) of = units
    self%name = name
    self%values = size(values, kind=int64)
    code = weir_axis_create(context%handle, c_text(name), size(values, kind=c_int64_t), values, &
        c_text(of), self%handle, err)
    call settle("axis create", err, stat, errmsg)
  end subroutine create_axis

  subroutine set_axis_text(self, name, value, stat, errmsg)
    class(weir_axis_t), intent(in) :: self
    character(len=*), intent(in) :: name, value
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    code = weir_axis_set_text(self%handle, c_text(name), c_text(value), err)
    call settle("set_attribute", err, stat, errmsg)
  end subroutine set_axis_text

  subroutine set_bounds(self, bounds, stat, errmsg)
    class(weir_axis_t), intent(in) :: self
    real(real64), intent(in) :: bounds(:, :) ! (2, values)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_error_t) :: err
    integer(c_int) :: code

    if (any(shape(bounds, kind=int64) /= [2_int64, self%values])) then
      err = argument_error("axis '" // trim(self%name) // "': the bounds have the shape " &
                           // shape_text(shape(bounds, kind=int64)) // "; expected " &
                               // shape_text([2_int64, self%values]))
    else
      code = weir_axis_set_bounds(self%handle, bounds, err)
    end if
    call settle("set_bounds", err, stat, errmsg)
  end subroutine set_bounds
end module weir_grids
