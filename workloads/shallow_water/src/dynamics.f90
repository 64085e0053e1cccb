! SPDX-License-Identifier: Apache-2.0
!> The rotating shallow-water equations in vector-invariant form on an Arakawa C grid, in the
!  energy-conserving form of Sadourny (1975),
!> J. Atmos. Sci. 32, 680-689; fourth-order Runge-Kutta in time. Fields of a state: u on western
!  faces, v on southern faces, depth h in
!> cells. Potential vorticity q lies on the south-western corners.
module sw_dynamics
  use sw_kinds, only: gravity, r8
  use sw_tiles, only: exchange, tile_t
  implicit none (type, external)
  private
  public :: domain_t, advance, bounds_t, vorticity

  integer, parameter, public :: iu = 1, iv = 2, ih = 3

  type :: domain_t
    type(tile_t) :: tile
    real(r8) :: dx = 0, dy = 0, x0 = 0, y0 = 0     !< metres; x0, y0: the south-western corner
    real(r8) :: f0 = 0, beta = 0, middle = 0       !< f = f0 + beta (y - middle)
    real(r8), allocatable :: f(:)                  !< on southern faces, (0:nj+1)
    real(r8), allocatable :: state(:, :, :)        !< (0:ni+1, 0:nj+1, u v h)
    real(r8), allocatable :: base(:, :, :), slope(:, :, :), sum(:, :, :) !< of Runge-Kutta
  end type domain_t

  !> Sets what lies on and beyond the bounds of a domain, after the exchange of halos.
  type, abstract :: bounds_t
  contains
    procedure(apply), deferred :: apply
  end type bounds_t
  abstract interface
    subroutine apply(self, d, fraction)
      import :: bounds_t, domain_t, r8
      implicit none (type, external)
      class(bounds_t), intent(in) :: self
      type(domain_t), intent(inout) :: d
      real(r8), intent(in) :: fraction !< of the time step
    end subroutine apply
  end interface

contains

  !> [collective] One time step.
  subroutine advance(d, bounds, dt)
    type(domain_t), intent(inout) :: d
    class(bounds_t), intent(in) :: bounds
    real(r8), intent(in) :: dt
    real(r8), parameter :: at(4) = [0._r8, 0.5_r8, 0.5_r8, 1._r8], weight(4) = [1._r8, 2._r8, &
        2._r8, 1._r8]
    integer :: stage
    d%base = d%state
    do stage = 1, 4
      if (stage > 1) d%state = d%base + (at(stage) * dt) * d%slope
      call exchange(d%tile, d%state)
      call bounds%apply(d, at(stage))
      call tendencies(d)
      if (stage == 1) then
        d%sum = d%slope
      else
        d%sum = d%sum + weight(stage) * d%slope
      end if
    end do
    d%state = d%base + (dt / 6) * d%sum
    call exchange(d%tile, d%state)
    call bounds%apply(d, 1._r8)
  end subroutine advance

  subroutine tendencies(d)
    type(domain_t), intent(inout) :: d
    d%slope = 0
    call slopes(d%tile%ni, d%tile%nj, d%dx, d%dy, d%f, d%state(:, :, iu), d%state(:, :, iv), &
        d%state(:, :, ih), d%slope(:, :, iu), &
                d%slope(:, :, iv), d%slope(:, :, ih))
  end subroutine tendencies

  subroutine slopes(ni, nj, dx, dy, f, u, v, h, du, dv, dh)
    integer, intent(in) :: ni, nj
    real(r8), intent(in) :: dx, dy, f(0:nj + 1)
    real(r8), intent(in), dimension(0:ni + 1, 0:nj + 1) :: u, v, h
    real(r8), intent(inout), dimension(0:ni + 1, 0:nj + 1) :: du, dv, dh
    real(r8) :: q(ni + 1, nj + 1), uh(ni + 1, 0:nj + 1), vh(0:ni + 1, nj + 1), b(0:ni, 0:nj)
    integer :: i, j
    do j = 0, nj + 1
      do i = 1, ni + 1
        uh(i, j) = 0.5_r8 * (h(i - 1, j) + h(i, j)) * u(i, j)
      end do
    end do
    do j = 1, nj + 1
      do i = 0, ni + 1
        vh(i, j) = 0.5_r8 * (h(i, j - 1) + h(i, j)) * v(i, j)
      end do
    end do
    do j = 1, nj + 1
      do i = 1, ni + 1
        q(i, j) = (f(j) + curl(i, j)) / corner_depth(i, j)
      end do
    end do
    do j = 0, nj
      do i = 0, ni
        b(i, j) = gravity * h(i, j) + 0.25_r8 * ((u(i, j)**2 + u(i + 1, j)**2) + (v(i, j)**2 &
            + v(i, j + 1)**2))
      end do
    end do
    do j = 1, nj
      do i = 1, ni
        du(i, j) = 0.25_r8 * (q(i, j) * (vh(i - 1, j) + vh(i, j)) + q(i, j + 1) * (vh(i - 1, j &
            + 1) + vh(i, j + 1))) &
                   - (b(i, j) - b(i - 1, j)) / dx
        dv(i, j) = -0.25_r8 * (q(i, j) * (uh(i, j - 1) + uh(i, j)) + q(i + 1, j) * (uh(i + 1, j &
            - 1) + uh(i + 1, j))) &
                   - (b(i, j) - b(i, j - 1)) / dy
        dh(i, j) = -((uh(i + 1, j) - uh(i, j)) / dx + (vh(i, j + 1) - vh(i, j)) / dy)
      end do
    end do
  contains
    pure real(r8) function curl(i, j)
      integer, intent(in) :: i, j
      curl = (v(i, j) - v(i - 1, j)) / dx - (u(i, j) - u(i, j - 1)) / dy
    end function curl
    pure real(r8) function corner_depth(i, j)
      integer, intent(in) :: i, j
      corner_depth = 0.25_r8 * ((h(i - 1, j - 1) + h(i, j - 1)) + (h(i - 1, j) + h(i, j)))
    end function corner_depth
  end subroutine slopes

  !> Relative and potential vorticity on the south-western corners of the tile's cells.
  subroutine vorticity(d, zeta, q)
    type(domain_t), target, intent(in) :: d
    real(r8), intent(out) :: zeta(:, :), q(:, :)
    real(r8), pointer :: u(:, :), v(:, :), h(:, :)
    integer :: i, j
    u(0:, 0:) => d%state(:, :, iu)
    v(0:, 0:) => d%state(:, :, iv)
    h(0:, 0:) => d%state(:, :, ih)
    do j = 1, d%tile%nj
      do i = 1, d%tile%ni
        zeta(i, j) = (v(i, j) - v(i - 1, j)) / d%dx - (u(i, j) - u(i, j - 1)) / d%dy
        q(i, j) = (d%f(j) + zeta(i, j)) / (0.25_r8 * ((h(i - 1, j - 1) + h(i, j - 1)) + (h(i - 1, &
            j) + h(i, j))))
      end do
    end do
  end subroutine vorticity
end module sw_dynamics
