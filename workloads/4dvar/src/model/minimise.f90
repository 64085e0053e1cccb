! SPDX-License-Identifier: Apache-2.0
!> The minimisation: linear conjugate gradients (Hestenes and Stiefel 1952) on
!>   J(v) = 1/2 v.v + 1/2 sum ((w (S v)(level, point) - d) / sigma)^2
!> with S the vertical correlations of wavelet.cv, w the linearised operator at the trajectory, d
!  the departures. Rows of
!> observations are on the owners of their grid points, so that only dot products need the other
!  ranks.
module fdv_minimise
  use fdv_kinds, only: r8
  use fdv_fail, only: fail
  use fdv_config, only: iterations, levels
  use fdv_dynamics, only: compute_for
  use fdv_increments, only: me_energy
  use fdv_log, only: log_values
  use fdv_obs, only: at_fg, at_level, at_point, at_sigma
  use fdv_par, only: sum_all, rank
  use fdv_state, only: first_point, my_points
  implicit none (type, external)
  private
  public :: minimise

  real(r8), allocatable :: s(:, :, :), w(:), d(:), sigma(:)
  integer, allocatable :: level(:), point(:)

contains

  !> [collective] matrices is taken over. dx (point, level): the increments. with_me: read the
  !  model-error files in each iteration.
  subroutine minimise(matrices, rows, weights, with_me, seconds, dx)
    real(r8), allocatable, intent(inout) :: matrices(:, :, :)
    real(r8), intent(in) :: rows(:, :), weights(:), seconds
    logical, intent(in) :: with_me
    real(r8), intent(out) :: dx(:, :)
    real(r8), dimension(levels, my_points) :: v, r, p, q
    real(r8) :: before, after, old, new, alpha, energy, energy0, rest
    integer :: i
    call move_alloc(matrices, s)
    w = weights
    d = rows(at_fg, :)
    sigma = rows(at_sigma, :)
    level = nint(rows(at_level, :))
    point = nint(rows(at_point, :)) - first_point(rank) + 1
    v = 0
    before = cost(v)
    r = adjoint(d / sigma**2)
    p = r
    old = sum_all(sum(r**2))
    energy0 = -1
    do i = 1, iterations
      rest = compute_for(seconds / iterations)
      energy = 0
      if (with_me) energy = sum_all(me_energy())
      if (energy0 < 0) energy0 = energy
      if (energy /= energy0) call fail('ME<N>', 'sum of squares', 'the same in each iteration', &
          'another')
      q = p + adjoint(forward(p) / sigma**2)
      alpha = 0
      if (old > 0) alpha = old / sum_all(sum(p * q))
      v = v + alpha * p
      r = r - alpha * q
      new = sum_all(sum(r**2))
      if (old > 0) p = r + (new / old) * p
      old = new
      call log_values('gradient, ME, load', i, [sqrt(new), energy, rest])
    end do
    after = cost(v)
    call log_values('cost before, after', iterations, [before, after])
    if (after > before .or. after /= after) call fail('minimisation', 'cost', &
        'less than at the start', 'more')
    dx = transpose(correlated(v))
  end subroutine minimise

  !> S v, column by column; S is symmetric.
  function correlated(v) result(x)
    real(r8), intent(in) :: v(:, :)
    real(r8) :: x(size(v, 1), size(v, 2))
    integer :: i
    do i = 1, size(v, 2)
      x(:, i) = matmul(s(:, :, mod(first_point(rank) + i - 2, size(s, 3)) + 1), v(:, i))
    end do
  end function correlated

  !> The observed equivalents of S v.
  function forward(v) result(y)
    real(r8), intent(in) :: v(:, :)
    real(r8) :: y(size(d)), x(size(v, 1), size(v, 2))
    integer :: j
    x = correlated(v)
    do j = 1, size(y)
      y(j) = w(j) * x(level(j), point(j))
    end do
  end function forward

  function adjoint(y) result(v)
    real(r8), intent(in) :: y(:)
    real(r8) :: v(levels, my_points)
    integer :: j
    v = 0
    do j = 1, size(y)
      v(level(j), point(j)) = v(level(j), point(j)) + w(j) * y(j)
    end do
    v = correlated(v)
  end function adjoint

  function cost(v) result(j)
    real(r8), intent(in) :: v(:, :)
    real(r8) :: j
    j = 0.5_r8 * sum_all(sum(v**2) + sum(((forward(v) - d) / sigma)**2))
  end function cost

end module fdv_minimise
