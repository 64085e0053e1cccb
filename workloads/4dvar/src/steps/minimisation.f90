! SPDX-License-Identifier: Apache-2.0
!> The steps min0 and min1: read the trajectory of the step before, find the increments that fit the
!  observations best, and
!> hand them on. The first writes the model-error files, the second reads them in every iteration.
module fdv_minimisation
  use fdv_kinds, only: r8
  use fdv_config, only: compute, dumps, fields, levels, types
  use fdv_fdb, only: fdb_write
  use fdv_increments
  use fdv_log, only: log_values
  use fdv_minimise, only: minimise
  use fdv_obs
  use fdv_odb_iomap, only: iomap_read
  use fdv_par, only: sum_all, sum_all_vector, rank, wait_all
  use fdv_state
  use fdv_traj, only: traj_t
  use fdv_waves, only: wavelet_read
  implicit none (type, external)
  private
  public :: minimisation

contains

  !> [collective] outer: 0 or 1.
  subroutine minimisation(step, outer)
    character(*), intent(in) :: step
    integer, intent(in) :: outer
    real(r8), allocatable :: rows(:, :), there(:, :), weights(:), matrices(:, :, :), bias(:, :)
    real(r8) :: dx(my_points, levels), earlier(my_points, levels)
    ! wall times of the reference: 359 and 312 s, to 309 of traj0
    real(r8), parameter :: shares(0:1) = [1.16_r8, 1.01_r8]
    call read_spectral('INIT', sp, lnsp)
    call wavelet_read(matrices)
    call varbc_read(bias)
    if (outer == 1) call increment_read(0, earlier)
    call wait_all()
    call iomap_read(0)
    call ccma_read(rows)
    call mask_check(rows)
    call to_points(rows, there)
    call linearise(outer, there, weights)
    call wait_all()
    call minimise(matrices, there, weights, outer == 1, compute * shares(outer), dx)
    call departures(dx, weights, there)
    call to_pools(there, rows)
    call ccma_write_departures(rows)
    call estimate_bias(rows, bias)
    if (rank == 0) call varbc_write(bias)
    gg(:, :, 1) = gg(:, :, 1) + dx
    if (outer == 1) dx = dx + earlier
    call increment_write(outer, dx)
    if (outer == 0) call me_write(dx)
    if (outer == 1) call me_evolve()
    call log_values('increment', outer, [sqrt(sum_all(sum(dx**2)))])
    call fdb_write(step, with_grid=.true.)
  end subroutine minimisation

  !> Reads the trajectory; leaves its first state in gg and gives each observation its linearised
  !  operator.
  subroutine linearise(outer, there, weights)
    integer, intent(in) :: outer
    real(r8), intent(in) :: there(:, :)
    real(r8), allocatable, intent(out) :: weights(:)
    type(traj_t) :: traj
    real(r8) :: x_sp(my_values, levels, size(sp, 3)), x_gg(my_points, levels, fields)
    integer :: slot, j
    allocate (weights(size(there, 2)))
    call traj%open(outer, writing=.false.)
    do slot = 1, dumps
      call traj%get(x_sp, x_gg)
      if (slot == 1) gg = x_gg
      call log_values('trajectory', slot, [sqrt(sum_all(sum(x_sp**2))), &
          sqrt(sum_all(sum(x_gg**2)))])
      do j = 1, size(there, 2)
        if (nint(there(at_slot, j)) == slot) weights(j) = 1 / (1 + 0.01_r8 &
            * abs(x_gg(local_point(there(:, j)), nint(there(at_level, j)), 1)))
      end do
    end do
    call traj%finish()
  end subroutine linearise

  pure integer function local_point(row)
    real(r8), intent(in) :: row(:)
    local_point = nint(row(at_point)) - first_point(rank) + 1
  end function local_point

  !> Analysis departures of the linear problem.
  subroutine departures(dx, weights, there)
    real(r8), intent(in) :: dx(:, :), weights(:)
    real(r8), intent(inout) :: there(:, :)
    integer :: j
    do j = 1, size(there, 2)
      there(at_an, j) = there(at_fg, j) - weights(j) * dx(local_point(there(:, j)), &
          nint(there(at_level, j)))
    end do
  end subroutine departures

  !> Half of the mean departure of each type goes to the constant predictor.
  subroutine estimate_bias(rows, bias)
    real(r8), intent(in) :: rows(:, :)
    real(r8), intent(inout) :: bias(:, :)
    real(r8) :: sums(2 * types)
    integer :: j, k
    sums = 0
    do j = 1, size(rows, 2)
      k = nint(rows(at_type, j))
      sums(2 * k - 1:2 * k) = sums(2 * k - 1:2 * k) + [rows(at_an, j), 1.0_r8]
    end do
    call sum_all_vector(sums)
    do k = 1, types
      if (sums(2 * k) > 0) bias(1, k) = bias(1, k) + 0.5_r8 * sums(2 * k - 1) / sums(2 * k)
    end do
  end subroutine estimate_bias

end module fdv_minimisation
