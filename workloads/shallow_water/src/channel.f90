! SPDX-License-Identifier: Apache-2.0
!> A channel, periodic from west to east, with free-slip walls in the south and north; and the
!  states that runs begin with.
module sw_channel
  use mpi_f08, only: MPI_Comm
  use sw_dynamics, only: bounds_t, domain_t, ih, iu, iv
  use sw_kinds, only: gravity, pi, r8
  use sw_options, only: options_t
  use sw_tiles, only: exchange, make_tile
  implicit none (type, external)
  private
  public :: walls_t, make_channel, allocate_domain

  type, extends(bounds_t) :: walls_t
  contains
    procedure :: apply => apply_walls
  end type walls_t

contains

  subroutine allocate_domain(d)
    type(domain_t), intent(inout) :: d
    integer :: j
    allocate (d%state(0:d%tile%ni + 1, 0:d%tile%nj + 1, 3), source=0._r8)
    allocate (d%base, d%slope, d%sum, mold=d%state)
    allocate (d%f(0:d%tile%nj + 1))
    d%f = [(d%f0 + d%beta * (d%y0 + (d%tile%j0 + j - 1) * d%dy - d%middle), j=0, d%tile%nj + 1)]
  end subroutine allocate_domain

  !> [collective] The channel with its state at time 0.
  subroutine make_channel(comm, o, d, walls)
    type(MPI_Comm), intent(in) :: comm
    type(options_t), intent(in) :: o
    type(domain_t), intent(out) :: d
    type(walls_t), intent(in) :: walls
    d%tile = make_tile(comm, o%nx, o%ny, .true., o%px, o%py)
    d%dx = o%dx
    d%dy = o%dy
    d%f0 = o%f0
    d%beta = o%beta
    d%middle = 0.5_r8 * o%ny * o%dy
    call allocate_domain(d)
    call balanced_jet(o, d)
    call perturb(o, d)
    call exchange(d%tile, d%state)
    call walls%apply(d, 0._r8)
  end subroutine make_channel

  subroutine apply_walls(self, d, fraction)
    class(walls_t), intent(in) :: self
    type(domain_t), intent(inout) :: d
    real(r8), intent(in) :: fraction
    if (.false.) print *, same_type_as(self, self), fraction ! walls do not change with time
    associate (x => d%state, top => d%tile%nj)
      if (d%tile%at_south) then
        x(:, 0, iu) = x(:, 1, iu)
        x(:, 0, ih) = x(:, 1, ih)
        x(:, 1, iv) = 0
        x(:, 0, iv) = 0
      end if
      if (d%tile%at_north) then
        x(:, top + 1, iu) = x(:, top, iu)
        x(:, top + 1, ih) = x(:, top, ih)
        x(:, top + 1, iv) = 0
      end if
    end associate
  end subroutine apply_walls

  !> A zonal jet u = speed sech^2((y - middle) / width), and the depth with which the discrete
  !  equations leave it as it is: on each corner the flux
  !> of potential vorticity balances the gradient of the Bernoulli function. The depth of a row
  !  follows from that of the row south of it by Newton's
  !> iteration, computed alike by every rank; its mean is then near o%depth.
  subroutine balanced_jet(o, d)
    type(options_t), intent(in) :: o
    type(domain_t), intent(inout) :: d
    real(r8) :: u(o%ny), h(o%ny), f, step
    integer :: j, turn
    u = 0
    if (o%case /= 'rest') u = [(o%speed / cosh(((j - 0.5_r8) * o%dy - d%middle) / o%width)**2, &
        j=1, o%ny)]
    h(1) = o%depth
    if (o%case /= 'rest') h(1) = h(1) + o%f0 * o%speed * o%width / gravity
    do j = 2, o%ny
      f = o%f0 + o%beta * ((j - 1) * o%dy - d%middle)
      h(j) = h(j - 1)
      do turn = 1, 20
        step = imbalance(h(j)) / (0.5_r8 * q_of(h(j)) * u(j) + gravity / o%dy)
        h(j) = h(j) - step
        if (abs(step) <= 1e-15_r8 * o%depth) exit
      end do
    end do
    do j = 1, d%tile%nj
      d%state(1:d%tile%ni, j, iu) = u(d%tile%j0 + j)
      d%state(1:d%tile%ni, j, ih) = h(d%tile%j0 + j)
    end do
  contains
    pure real(r8) function q_of(depth)
      real(r8), intent(in) :: depth
      q_of = (f - (u(j) - u(j - 1)) / o%dy) / (0.5_r8 * (h(j - 1) + depth))
    end function q_of
    pure real(r8) function imbalance(depth)
      real(r8), intent(in) :: depth
      imbalance = 0.5_r8 * q_of(depth) * (h(j - 1) * u(j - 1) + depth * u(j)) &
                  + (gravity * (depth - h(j - 1)) + 0.5_r8 * (u(j)**2 - u(j - 1)**2)) / o%dy
    end function imbalance
  end subroutine balanced_jet

  !> A meridional wind of `wavenumber` waves around the channel, strongest in the middle.
  subroutine perturb(o, d)
    type(options_t), intent(in) :: o
    type(domain_t), intent(inout) :: d
    real(r8) :: x, y
    integer :: i, j
    do j = 1, d%tile%nj
      y = (d%tile%j0 + j - 1) * d%dy - d%middle
      do i = 1, d%tile%ni
        x = (d%tile%i0 + i - 0.5_r8) / o%nx
        d%state(i, j, iv) = o%perturbation * cos(2 * pi * o%wavenumber * x) / cosh(y / o%width)**2
      end do
    end do
  end subroutine perturb
end module sw_channel
