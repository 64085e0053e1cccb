! SPDX-License-Identifier: Apache-2.0
!> What the model writes through libweir, and reads to begin again: streams history, statistics and
!  restart, of the channel and of its nest.
module sw_output
  use mpi_f08, only: MPI_Comm
  use sw_dynamics, only: domain_t, ih, iu, iv, vorticity
  use sw_kinds, only: r8
  use sw_options, only: options_t
  use weir
  implicit none (type, external)
  private
  public :: output_t

  ! fields of the history: u, v, h, relative and potential vorticity
  integer, parameter :: shown = 5

  type :: output_t
    type(weir_stream_t) :: history, statistics, restart
    type(weir_field_t) :: field(shown)     !< of the history
    type(weir_field_t) :: whole(3)         !< u, v, h in double precision: restart and statistics
    integer :: layers = 1
    logical :: with_history = .false., with_statistics = .false., with_restart = .false.
  contains
    procedure :: define, read, write
  end type output_t

contains

  !> [collective] prefix goes before all names: "" for the channel.
  subroutine define(self, context, o, d, prefix)
    class(output_t), intent(inout) :: self
    type(weir_context_t), intent(inout) :: context
    type(options_t), intent(in) :: o
    type(domain_t), intent(in) :: d
    character(*), intent(in) :: prefix
    character(*), parameter :: names(3) = [character(1) :: 'u', 'v', 'h']
    character(*), parameter :: units(3) = [character(5) :: 'm s-1', 'm s-1', 'm']
    type(weir_decomposition_t) :: tiles(4), with_halo(4)
    type(weir_axis_t) :: layer
    integer :: k
    call place('west', 0._r8, 0.5_r8, tiles(1), with_halo(1))
    call place('south', 0.5_r8, 0._r8, tiles(2), with_halo(2))
    call place('cell', 0.5_r8, 0.5_r8, tiles(3), with_halo(3))
    call place('corner', 0._r8, 0._r8, tiles(4), with_halo(4))
    self%layers = o%layers
    if (o%layers > 1) call layer%create(context, prefix // 'layer', [(real(k, r8), k=1, &
        o%layers)], units='1')
    do k = 1, 3
      call shown_field(self%field(k), tiles(k), trim(names(k)), trim(units(k)))
      call self%whole(k)%create(with_halo(k), prefix // trim(names(k)) // '_full', weir_float64, &
          units=trim(units(k)))
    end do
    call shown_field(self%field(4), tiles(4), 'zeta', 's-1')
    call shown_field(self%field(5), tiles(4), 'q', 'm-1 s-1')
    call define_streams(self, context, o, prefix)
  contains
    !> The tiles of points that lie (x, y) cells from the south-western corners of the cells.
    subroutine place(name, x, y, tiles, with_halo)
      character(*), intent(in) :: name
      real(r8), intent(in) :: x, y
      type(weir_decomposition_t), intent(inout) :: tiles, with_halo
      type(weir_grid_t) :: grid
      integer :: i
      call grid%create_plane(context, prefix // name, [(d%x0 + (i + x) * d%dx, i=0, d%tile%nx &
          - 1)], &
                             [(d%y0 + (i + y) * d%dy, i=0, d%tile%ny - 1)])
      call tiles%create_block(grid, prefix // name // '_tiles', d%tile%i0 + 1, d%tile%ni, &
          d%tile%j0 + 1, d%tile%nj)
      call with_halo%create_block(grid, prefix // name // '_state', d%tile%i0 + 1, d%tile%ni, &
          d%tile%j0 + 1, d%tile%nj)
      call with_halo%set_halo(1, 1, 1, 1)
    end subroutine place

    subroutine shown_field(field, tiles, name, units)
      type(weir_field_t), intent(inout) :: field
      type(weir_decomposition_t), intent(in) :: tiles
      character(*), intent(in) :: name, units
      if (o%layers > 1) then
        call field%create(tiles, prefix // name, weir_float32, axes=[layer], units=units)
      else
        call field%create(tiles, prefix // name, weir_float32, units=units)
      end if
    end subroutine shown_field
  end subroutine define

  subroutine define_streams(self, context, o, prefix)
    class(output_t), intent(inout) :: self
    type(weir_context_t), intent(inout) :: context
    type(options_t), intent(in) :: o
    character(*), intent(in) :: prefix
    integer :: k
    self%with_history = o%history_every > 0
    self%with_statistics = self%with_history .and. o%statistics
    self%with_restart = o%restart_every > 0
    if (self%with_history) then
      call self%history%create(context, prefix // 'history', in_directory('history.'), &
          trim(o%format))
      call self%history%set_every(o%history_every * o%dt)
      do k = 1, shown
        call self%history%add(self%field(k))
      end do
    end if
    if (self%with_statistics) then
      call self%statistics%create(context, prefix // 'statistics', in_directory('statistics.'), &
          trim(o%format))
      call self%statistics%set_every(o%history_every * o%dt)
      call self%statistics%add(self%whole(iu), weir_maximum)
      call self%statistics%add(self%whole(iv), weir_minimum)
      call self%statistics%add(self%whole(ih), weir_mean)
    end if
    if (self%with_restart) then
      call self%restart%create(context, prefix // 'restart', &
          in_directory('restart.%Y%m%dT%H%M%S.'), trim(o%format))
      call self%restart%set_every(o%restart_every * o%dt)
      call self%restart%set_rotation(1)
      do k = 1, 3
        call self%restart%add(self%whole(k))
      end do
    end if
  contains
    pure function in_directory(name) result(path)
      character(*), intent(in) :: name
      character(:), allocatable :: path
      path = trim(o%directory) // '/' // prefix // name // trim(merge('zarr', 'nc  ', &
          o%format == 'zarr'))
    end function in_directory
  end subroutine define_streams

  !> [collective] The state of a restart file: every rank reads its own part, whatever number of
  !  ranks wrote it.
  subroutine read(self, d, path)
    class(output_t), intent(inout) :: self
    type(domain_t), intent(inout) :: d
    character(*), intent(in) :: path
    integer :: k
    do k = 1, 3
      call self%whole(k)%get(d%state(:, :, k), path)
    end do
  end subroutine read

  !> [collective] Within a step of the context: what the streams want at this one.
  subroutine write(self, d)
    class(output_t), intent(inout) :: self
    type(domain_t), intent(in) :: d
    logical :: wanted
    integer :: k
    wanted = self%with_statistics
    if (self%with_restart) then
      if (self%restart%is_due()) wanted = .true.
    end if
    if (wanted) then
      do k = 1, 3
        call self%whole(k)%put(d%state(:, :, k))
      end do
    end if
    if (self%with_history) then
      if (self%history%is_due()) call write_history(self, d)
    end if
  end subroutine write

  !> Into the places that the library lends, so that what is computed for output alone is never
  !  copied.
  subroutine write_history(self, d)
    class(output_t), intent(inout) :: self
    type(domain_t), intent(in) :: d
    real(r8) :: zeta(d%tile%ni, d%tile%nj), q(d%tile%ni, d%tile%nj)
    integer :: k
    call vorticity(d, zeta, q)
    do k = 1, 3
      call show(self, k, d%state(1:d%tile%ni, 1:d%tile%nj, k), d%tile%ni, d%tile%nj)
    end do
    call show(self, 4, zeta, d%tile%ni, d%tile%nj)
    call show(self, 5, q, d%tile%ni, d%tile%nj)
  end subroutine write_history

  subroutine show(self, k, x, ni, nj)
    use, intrinsic :: iso_fortran_env, only: real32
    class(output_t), intent(inout) :: self
    integer, intent(in) :: k, ni, nj
    real(r8), intent(in) :: x(:, :)
    real(real32), pointer, contiguous :: flat(:, :), thick(:, :, :)
    integer :: layer
    if (self%layers == 1) then
      call self%field(k)%lend(flat, [ni, nj])
      flat = real(x, real32)
      call self%field(k)%put(flat)
    else
      call self%field(k)%lend(thick, [ni, nj, self%layers])
      do layer = 1, self%layers
        thick(:, :, layer) = real(x, real32)
      end do
      call self%field(k)%put(thick)
    end if
  end subroutine show
end module sw_output
