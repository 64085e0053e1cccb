! SPDX-License-Identifier: Apache-2.0
!> A nest: a finer domain (three cells for each of the parent's, each way) inside a parent, which
!  gives it its state on the bounds, interpolated
!> in space (bilinear) and time (linear), and towards which it is drawn near them (Davies 1976, Q.
!  J. R. Meteorol. Soc. 102, 405-418). It tells
!> the parent nothing. Of the parent every rank knows the strips along the nest's bounds alone.
module sw_nest
  use mpi_f08, only: MPI_Allreduce, MPI_DOUBLE_PRECISION, MPI_IN_PLACE, MPI_SUM
  use sw_channel, only: allocate_domain
  use sw_dynamics, only: bounds_t, domain_t, ih, iu, iv
  use sw_kinds, only: r8
  use sw_options, only: options_t
  use sw_tiles, only: exchange, make_tile
  implicit none (type, external)
  private
  public :: nest_t, make_nest

  integer, parameter, public :: ratio = 3
  ! parent's cells of a strip on either side of the bound
  integer, parameter :: outside = 2, inside = 3
  integer, parameter :: zone = 4                !< cells that are drawn towards the parent

  !> Cells (first(1):, first(2):) of the parent, its numbers from 1.
  type :: piece_t
    integer :: first(2) = 0, count(2) = 0
    real(r8), allocatable :: before(:, :, :), after(:, :, :)
  end type piece_t

  type, extends(bounds_t) :: nest_t
    integer :: i0 = 0, j0 = 0                   !< parent's cells before the nest
    ! where in the parent's step the nest's one begins, 0 to 1
    real(r8) :: at = 0
    real(r8) :: length = 0                      !< the nest's step as a part of the parent's
    type(piece_t) :: strip(4)                   !< south, north, west, east
  contains
    procedure :: apply => apply_bounds
    procedure :: follow
    procedure :: relax
  end type nest_t

contains

  !> [collective] The nest with its state interpolated from the parent's.
  subroutine make_nest(o, parent, d, nest)
    type(options_t), intent(in) :: o
    type(domain_t), intent(in) :: parent
    type(domain_t), intent(out) :: d
    type(nest_t), intent(out) :: nest
    type(piece_t) :: box
    integer :: i, j, k
    nest%i0 = o%nest_i0
    nest%j0 = o%nest_j0
    nest%length = 1._r8 / ratio
    d%tile = make_tile(parent%tile%comm, o%nest_ni * ratio, o%nest_nj * ratio, .false., 0, 0)
    d%dx = parent%dx / ratio
    d%dy = parent%dy / ratio
    d%x0 = nest%i0 * parent%dx
    d%y0 = nest%j0 * parent%dy
    d%f0 = parent%f0
    d%beta = parent%beta
    d%middle = parent%middle
    call allocate_domain(d)
    box = piece(nest%i0 + 1 - outside, o%nest_ni + 2 * outside, nest%j0 + 1 - outside, o%nest_nj &
        + 2 * outside)
    call collect(parent, box%first, box%count, box%after)
    do k = 1, 3
      do j = 0, d%tile%nj + 1
        do i = 0, d%tile%ni + 1
          d%state(i, j, k) = inside_box(box, k, i, j)
        end do
      end do
    end do
    nest%strip = [piece(nest%i0 + 1 - outside, o%nest_ni + 2 * outside, nest%j0 + 1 - outside, &
        outside + inside), &
                  piece(nest%i0 + 1 - outside, o%nest_ni + 2 * outside, nest%j0 + 1 + o%nest_nj &
                      - inside, outside + inside), &
                  piece(nest%i0 + 1 - outside, outside + inside, nest%j0 + 1 - outside, &
                      o%nest_nj + 2 * outside), &
                  piece(nest%i0 + 1 + o%nest_ni - inside, outside + inside, nest%j0 + 1 - outside, &
                      o%nest_nj + 2 * outside)]
    call nest%follow(parent)
    call nest%follow(parent)
    call exchange(d%tile, d%state)
  contains
    real(r8) function inside_box(box, k, i, j)
      type(piece_t), intent(in) :: box
      integer, intent(in) :: k, i, j
      integer :: a, b
      real(r8) :: wa, wb
      call place(k, d%tile%i0 + i, nest%i0, iu, a, wa)
      call place(k, d%tile%j0 + j, nest%j0, iv, b, wb)
      a = a - box%first(1) + 1
      b = b - box%first(2) + 1
      associate (x => box%after)
        inside_box = (1 - wb) * ((1 - wa) * x(a, b, k) + wa * x(a + 1, b, k)) &
                     + wb * ((1 - wa) * x(a, b + 1, k) + wa * x(a + 1, b + 1, k))
      end associate
    end function inside_box
  end subroutine make_nest

  pure function piece(i, ni, j, nj) result(p)
    integer, intent(in) :: i, ni, j, nj
    type(piece_t) :: p
    p%first = [i, j]
    p%count = [ni, nj]
  end function piece

  !> Between which of the parent's points (a and a + 1, from 1) the nest's point n of field k lies
  !  along a dimension; w is the second's weight.
  !> Fields that lie on the faces of this dimension are `staggered`.
  pure subroutine place(k, n, before, staggered, a, w)
    integer, intent(in) :: k, n, before, staggered
    integer, intent(out) :: a
    real(r8), intent(out) :: w
    real(r8) :: x
    x = merge((n - 1) / real(ratio, r8) + 1, (n - 0.5_r8) / ratio + 0.5_r8, k == staggered) + before
    a = floor(x)
    w = x - a
  end subroutine place

  !> [collective] Values of a piece of the parent, on all ranks: each adds its own cells to zeros,
  !  which changes no bit of them.
  subroutine collect(parent, first, count, x)
    type(domain_t), intent(in) :: parent
    integer, intent(in) :: first(2), count(2)
    real(r8), allocatable, intent(inout) :: x(:, :, :)
    integer :: low(2), high(2)
    if (.not. allocated(x)) allocate (x(count(1), count(2), 3))
    x = 0
    associate (t => parent%tile)
      low = max(first, [t%i0, t%j0] + 1)
      high = min(first + count - 1, [t%i0 + t%ni, t%j0 + t%nj])
      if (all(low <= high)) then
        x(low(1) - first(1) + 1:high(1) - first(1) + 1, low(2) - first(2) + 1:high(2) - first(2) &
            + 1, :) = &
          parent%state(low(1) - t%i0:high(1) - t%i0, low(2) - t%j0:high(2) - t%j0, :)
      end if
      call MPI_Allreduce(MPI_IN_PLACE, x, size(x), MPI_DOUBLE_PRECISION, MPI_SUM, t%comm)
    end associate
  end subroutine collect

  !> [collective] The parent has made a step: what was after is before.
  subroutine follow(self, parent)
    class(nest_t), intent(inout) :: self
    type(domain_t), intent(in) :: parent
    integer :: s
    do s = 1, size(self%strip)
      if (allocated(self%strip(s)%after)) self%strip(s)%before = self%strip(s)%after
      call collect(parent, self%strip(s)%first, self%strip(s)%count, self%strip(s)%after)
    end do
  end subroutine follow

  !> The parent's field k at the nest's point (i, j), numbers in the nest from 1, at a time within
  !  the parent's step.
  pure real(r8) function sample(self, k, i, j, time)
    class(nest_t), intent(in) :: self
    integer, intent(in) :: k, i, j
    real(r8), intent(in) :: time
    integer :: a, b, s
    real(r8) :: wa, wb
    call place(k, i, self%i0, iu, a, wa)
    call place(k, j, self%j0, iv, b, wb)
    sample = 0
    do s = 1, size(self%strip)
      associate (p => self%strip(s))
        if (any([a, b] < p%first) .or. any([a, b] + 1 > p%first + p%count - 1)) cycle
        sample = (1 - time) * bilinear(p%before(:, :, k), a - p%first(1) + 1, b - p%first(2) + 1) &
                 + time * bilinear(p%after(:, :, k), a - p%first(1) + 1, b - p%first(2) + 1)
        return
      end associate
    end do
  contains
    pure real(r8) function bilinear(x, a, b)
      real(r8), intent(in) :: x(:, :)
      integer, intent(in) :: a, b
      bilinear = (1 - wb) * ((1 - wa) * x(a, b) + wa * x(a + 1, b)) + wb * ((1 - wa) * x(a, b &
          + 1) + wa * x(a + 1, b + 1))
    end function bilinear
  end function sample

  subroutine apply_bounds(self, d, fraction)
    class(nest_t), intent(in) :: self
    type(domain_t), intent(inout) :: d
    real(r8), intent(in) :: fraction
    real(r8) :: time
    integer :: i, j, k
    time = self%at + fraction * self%length
    associate (t => d%tile)
      do k = 1, 3
        do j = 0, t%nj + 1
          if (t%at_west) d%state(0, j, k) = here(0, j)
          if (t%at_west .and. k == iu) d%state(1, j, k) = here(1, j)
          if (t%at_east) d%state(t%ni + 1, j, k) = here(t%ni + 1, j)
        end do
        do i = 0, t%ni + 1
          if (t%at_south) d%state(i, 0, k) = here(i, 0)
          if (t%at_south .and. k == iv) d%state(i, 1, k) = here(i, 1)
          if (t%at_north) d%state(i, t%nj + 1, k) = here(i, t%nj + 1)
        end do
      end do
    end associate
  contains
    pure real(r8) function here(i, j)
      integer, intent(in) :: i, j
      here = sample(self, k, d%tile%i0 + i, d%tile%j0 + j, time)
    end function here
  end subroutine apply_bounds

  !> After a step of the nest: draw the cells near the bounds towards the parent, the nearer the
  !  more.
  subroutine relax(self, d)
    class(nest_t), intent(in) :: self
    type(domain_t), intent(inout) :: d
    integer :: i, j, k, x, y, far
    real(r8) :: w
    do k = 1, 3
      do j = 1, d%tile%nj
        do i = 1, d%tile%ni
          x = d%tile%i0 + i
          y = d%tile%j0 + j
          far = min(x - 1, d%tile%nx - x, y - 1, d%tile%ny - y)
          if (far >= zone) cycle
          w = 0.5_r8 * (1 - real(far, r8) / zone)**2
          d%state(i, j, k) = (1 - w) * d%state(i, j, k) + w * sample(self, k, x, y, self%at &
              + self%length)
        end do
      end do
    end do
    call exchange(d%tile, d%state)
    call self%apply(d, 1._r8)
  end subroutine relax
end module sw_nest
