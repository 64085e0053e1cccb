! SPDX-License-Identifier: Apache-2.0
! What missing.c does, through the module weir: its files are the same.
program missing
  use, intrinsic :: ieee_arithmetic, only: ieee_quiet_nan, ieee_value
  use, intrinsic :: iso_fortran_env, only: int16, int32, int64, int8, real32, real64
  use mpi_f08
  use weir
  implicit none (type, external)

  integer, parameter :: points = 8, steps = 3, types = 6, forms = 4, absent = -99
  character(len=7), parameter :: type_names(0:types - 1) = [character(len=7) :: "float32", &
      "float64", "int32", "int64", "int16", &
                                                            "int8"]
  character(len=7), parameter :: form_names(forms) = [character(len=7) :: "number", "single", &
      "whole", "integer"]
  type(weir_context_t) :: context
  type(weir_grid_t) :: grid
  type(weir_decomposition_t) :: part
  type(weir_stream_t) :: snapshots, means
  type(weir_field_t) :: fields(forms, 0:types - 1, 0:types - 1), edge(0:types - 1)
  type(MPI_Comm) :: model
  character(len=64) :: prefix
  character(len=200) :: message
  integer :: kind, in_files, form, step, stat

  call get_command_argument(1, prefix)
  call MPI_Init()
  call weir_init(MPI_COMM_WORLD, "", model, context)
  call grid%create_plane(context, "plane", [0d0, 1d0, 2d0, 3d0], [0d0, 1d0])
  call grid%set_mapping("crs", "lambert_conformal_conic")
  call grid%set_mapping_attribute("standard_parallel", [30d0, 60d0])
  call grid%set_mapping_attribute("earth_radius", 6371229d0)
  call grid%set_mapping_attribute("longitude_of_central_meridian", -97.5)
  call grid%set_mapping_attribute("crs_wkt", "PROJCRS[]")
  call part%create_block(grid, "all", 1, 4, 1, 2)
  call snapshots%create(context, "snapshots", trim(prefix) // "_%Y%m%d.nc")
  call snapshots%set_every(43200d0)
  call snapshots%set_rotation(7)
  call snapshots%set_rotation("day")
  call snapshots%set_existing("refuse")
  call means%create(context, "means", trim(prefix) // "_means.nc")
  call means%set_every(86400d0)
  do kind = 0, types - 1
    do in_files = 0, types - 1
      do form = 1, forms
        associate (f => fields(form, in_files, kind))
          call make(f, trim(type_names(kind)) // "_" // trim(type_names(in_files)) // "_" &
              // trim(form_names(form)), kind)
          call means%add(f, weir_mean)
          call f%set_file_type(in_files)
          select case (form)
          case (1)
            call f%set_attribute("missing_value", real(absent, real64))
          case (2)
            call f%set_attribute("missing_value", real(absent, real32))
          case (3)
            call f%set_attribute("missing_value", int(absent, int64))
          case (4)
            call f%set_attribute("missing_value", absent)
          end select
        end associate
      end do
    end do
    call make(edge(kind), trim(type_names(kind)) // "_edge", kind)
  end do
  call edge(weir_float32)%set_attribute("missing_value", ieee_value(1.0, ieee_quiet_nan))
  call edge(weir_float64)%set_attribute("missing_value", 1d300)
  call edge(weir_float64)%set_attribute("missing_value", 1e20, stat, message)
  if (stat == 0 .or. index(message, &
      "field 'float64_edge': missing_value is given in single precision") /= 1) error stop "1e20"
  call edge(weir_int32)%set_attribute("missing_value", -huge(1_int32) - 1_int32)
  call edge(weir_int64)%set_attribute("missing_value", huge(1_int64) - 1_int64)
  call edge(weir_int16)%set_attribute("missing_value", int(huge(1_int16), int32))
  call edge(weir_int8)%set_attribute("missing_value", -128)
  do step = 0, steps - 1
    call context%step(43200d0 * step)
    do kind = 0, types - 1
      do in_files = 0, types - 1
        do form = 1, forms
          call put(fields(form, in_files, kind), kind)
        end do
      end do
      call put(edge(kind), kind)
    end do
    call context%end_step()
  end do
  call context%finalize()
  call MPI_Finalize()

contains

  subroutine make(f, name, kind)
    type(weir_field_t), intent(inout) :: f
    character(len=*), intent(in) :: name
    integer, intent(in) :: kind

    call f%create(part, name, kind, units="1")
    call snapshots%add(f)
  end subroutine make

  subroutine put(f, kind)
    type(weir_field_t), intent(inout) :: f
    integer, intent(in) :: kind
    integer :: values(points), i

    values = [(i + 10 * step, i = 0, points - 1)]
    if (step == 1) values(4) = absent
    if (step > 0) values(6) = absent
    if (step == 0) values(7) = absent
    select case (kind)
    case (weir_float32)
      call f%put(real(values, real32))
    case (weir_float64)
      call f%put(real(values, real64))
    case (weir_int32)
      call f%put(int(values, int32))
    case (weir_int64)
      call f%put(int(values, int64))
    case (weir_int16)
      call f%put(int(values, int16))
    case (weir_int8)
      call f%put(int(values, int8))
    end select
  end subroutine put
end program missing
