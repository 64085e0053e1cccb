! SPDX-License-Identifier: Apache-2.0
!> The steps traj0, traj1 and traj2: a forecast from the initial fields, compared with the
!  observations. The first makes CCMA of
!> ECMA, the last writes ECMA back; the others hand their trajectory to the minimisation.
module fdv_trajectory
  use fdv_kinds, only: r8
  use fdv_config, only: compute, dumps, fields, levels, timesteps, types
  use fdv_dynamics, only: compute_for, model_norms, model_step
  use fdv_ecma
  use fdv_fdb, only: fdb_write
  use fdv_increments, only: increment_read, varbc_read
  use fdv_log, only: log_values
  use fdv_obs
  use fdv_odb_iomap, only: iomap_read, iomap_write
  use fdv_odb_layout, only: update, hdr, body
  use fdv_par, only: sum_all, rank, wait_all
  use fdv_state
  use fdv_traj, only: traj_t
  use fdv_waves, only: waves_read
  implicit none (type, external)
  private
  public :: trajectory, bias_of

contains

  !> [collective] outer: 0, 1 or 2.
  subroutine trajectory(step, outer)
    character(*), intent(in) :: step
    integer, intent(in) :: outer
    type(table_rows_t), allocatable :: updates(:)
    real(r8), allocatable :: rows(:, :), bias(:, :)
    real(r8) :: means(2)
    call read_spectral('INIT', sp, lnsp)
    call read_gridded('INIUA', gg)
    if (outer > 0) call compare_background()
    call waves_read(means)
    call log_values('wave means', 0, means)
    call varbc_read(bias)
    if (outer == 2) call compare_increment()
    call wait_all()
    if (outer == 0) then
      call load_ecma(rows, updates)
    else
      call iomap_read(0)
      call ccma_read(rows)
      call mask_check(rows)
    end if
    call forecast(outer, bias, rows)
    select case (outer)
    case (0)
      call reduce(rows, updates)
    case (1)
      call ccma_write_departures(rows)
    case (2)
      call ccma_write_departures(rows)
      call write_back(rows)
    end select
    call fdb_write(step, with_grid=outer == 2)
  end subroutine trajectory

  !> Distance of the initial fields from the background.
  subroutine compare_background()
    real(r8) :: b_sp(my_values, levels, size(sp, 3)), b_lnsp(my_values), b_gg(my_points, levels, &
        min(2, fields))
    call read_spectral('BGHR', b_sp, b_lnsp)
    call read_gridded('BGHRUA', b_gg)
    call log_values('from background', 0, [sqrt(sum_all(sum((b_sp - sp)**2))), &
                                          sqrt(sum_all(sum((b_gg - gg(:, :, :size(b_gg, 3)))**2)))])
  end subroutine compare_background

  subroutine compare_increment()
    real(r8) :: dx(my_points, levels)
    call increment_read(1, dx)
    call log_values('increment', 1, [sqrt(sum_all(sum(dx**2))), sqrt(sum_all(sum((gg(:, :, 1) &
        - dx)**2)))])
  end subroutine compare_increment

  !> rows: all types one after the other; updates: their update tables.
  subroutine load_ecma(rows, updates)
    real(r8), allocatable, intent(out) :: rows(:, :)
    type(table_rows_t), allocatable, intent(out) :: updates(:)
    type(table_rows_t), allocatable :: all(:), parts(:)
    integer :: k, at
    allocate (updates(types), parts(types))
    do k = 1, types
      call ecma_load(k, .false., all)
      call ecma_rows(k, all(hdr)%rows, all(body)%rows, parts(k)%rows)
      call move_alloc(all(update)%rows, updates(k)%rows)
    end do
    allocate (rows(row_width, sum([(size(parts(k)%rows, 2), k=1, types)])))
    at = 0
    do k = 1, types
      rows(:, at + 1:at + size(parts(k)%rows, 2)) = parts(k)%rows
      at = at + size(parts(k)%rows, 2)
    end do
  end subroutine load_ecma

  !> Bias correction of an observation: a polynomial in the level.
  pure real(r8) function bias_of(bias, row)
    real(r8), intent(in) :: bias(:, :), row(:)
    integer :: j
    bias_of = 0
    do j = size(bias, 1), 1, -1
      bias_of = bias_of * (row(at_level) / levels) + bias(j, nint(row(at_type)))
    end do
  end function bias_of

  !> The forecast; in each time slot the observations of that slot are compared, and the state is
  !  written.
  subroutine forecast(outer, bias, rows)
    integer, intent(in) :: outer
    real(r8), intent(in) :: bias(:, :)
    real(r8), intent(inout) :: rows(:, :)
    real(r8), allocatable :: there(:, :)
    type(traj_t) :: traj
    real(r8) :: norms(2), rest
    integer :: i, slot
    call to_points(rows, there)
    if (outer < 2) call traj%open(outer, writing=.true.)
    slot = 0
    do i = 1, timesteps
      if (slot < dumps .and. (i - 1) * dumps >= slot * timesteps) then
        slot = slot + 1
        call compare(slot, merge(at_an, at_fg, outer == 2), bias, there)
        if (outer < 2) call traj%put(sp, gg)
      end if
      call model_step()
      rest = compute_for(compute * share(outer) / timesteps)
      call model_norms(norms(1), norms(2))
      call log_values('norms, load', i, [norms, rest])
    end do
    if (outer < 2) call traj%finish()
    call to_pools(there, rows)
  end subroutine forecast

  !> Wall times of the reference in proportion to traj0: 309, 163 and 322 s.
  pure real(r8) function share(outer)
    integer, intent(in) :: outer
    real(r8), parameter :: shares(0:2) = [1.0_r8, 0.53_r8, 1.04_r8]
    share = shares(outer)
  end function share

  subroutine compare(slot, column, bias, there)
    integer, intent(in) :: slot, column
    real(r8), intent(in) :: bias(:, :)
    real(r8), intent(inout) :: there(:, :)
    integer :: j
    do j = 1, size(there, 2)
      if (nint(there(at_slot, j)) /= slot) cycle
      there(column, j) = there(at_value, j) - bias_of(bias, there(:, j)) - &
                         gg(nint(there(at_point, j)) - first_point(rank) + 1, nint(there(at_level, &
                             j)), 1)
    end do
  end subroutine compare

  !> ECMA's updates, and CCMA from what is used.
  subroutine reduce(rows, updates)
    real(r8), intent(in) :: rows(:, :)
    type(table_rows_t), intent(inout) :: updates(:)
    type(table_rows_t) :: one(update)
    logical :: used(size(rows, 2))
    integer :: k, at, n, j
    at = 0
    do k = 1, types
      n = size(updates(k)%rows, 2)
      call ecma_screen(rows(:, at + 1:at + n), updates(k)%rows, used(at + 1:at + n))
      at = at + n
      call move_alloc(updates(k)%rows, one(update)%rows)
      call ecma_store(k, .false., one, update, update)
    end do
    if (rank == 0) call base_directories(0)
    if (rank == 0) call iomap_write(0)
    call wait_all()
    call ccma_write(rows(:, pack([(j, j=1, size(rows, 2))], used)))
    call mask_write(rows(:, pack([(j, j=1, size(rows, 2))], used)))
    call log_values('reports used, all', 0, [sum_all(real(count(used), r8)), &
        sum_all(real(size(used), r8))])
  end subroutine reduce

  !> CCMA's departures into ECMA, all of which is written back by all ranks.
  subroutine write_back(rows)
    real(r8), intent(in) :: rows(:, :)
    type(table_rows_t), allocatable :: all(:)
    integer :: k
    do k = 1, types
      call ecma_load(k, .true., all)
      call ecma_match(k, rows, all(update)%rows)
      call wait_all()
      call ecma_store(k, .true., all, 1, size(all))
    end do
  end subroutine write_back

end module fdv_trajectory
