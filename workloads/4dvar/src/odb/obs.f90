! SPDX-License-Identifier: Apache-2.0
!> Observations in memory: one row for each observed value, on the owner of its pool or, while it is
!  compared with the
!> model, on the owner of its grid point. Builds rows from tables of ECMA and CCMA and writes CCMA's
!  tables from rows.
module fdv_obs
  use fdv_kinds, only: i8, r8
  use fdv_fail, only: fail, text
  use fdv_clib, only: posix_file
  use fdv_config, only: dumps, levels, points, pools, types
  use fdv_file, only: block_4m, file_t
  use fdv_odb_layout
  use fdv_odb_table, only: table_read, table_write
  use fdv_par, only: exchange_rows, owner_of, sum_all_counts, rank
  use fdv_state, only: first_point
  implicit none (type, external)
  private
  public :: ecma_rows, ccma_read, ccma_write, ccma_write_departures, to_points, to_pools, &
      mask_write, mask_check

  !> Columns of a row; home: position on the owner of the pool.
  integer, parameter, public :: at_pool = 1, at_number = 2, at_seqno = 3, at_type = 4, at_point &
      = 5, at_slot = 6, &
    at_level = 7, at_value = 8, at_sigma = 9, at_fg = 10, at_an = 11, at_home = 12, row_width = 12

  character(*), parameter :: mask_file = 'poolmask.CCMA'

contains

  !> [not collective] Rows of one type of ECMA from its tables hdr and body.
  subroutine ecma_rows(kind, hdr_rows, body_rows, rows)
    integer, intent(in) :: kind
    real(r8), intent(in) :: hdr_rows(:, :), body_rows(:, :)
    real(r8), allocatable, intent(out) :: rows(:, :)
    integer :: j, report
    if (size(body_rows, 2) /= bodies * size(hdr_rows, 2)) call fail(base_name(kind), &
        'rows of body', &
      text(bodies * size(hdr_rows, 2)), text(size(body_rows, 2)))
    allocate (rows(row_width, size(body_rows, 2)))
    do j = 1, size(rows, 2)
      report = (j - 1) / bodies + 1
      if (hdr_rows(3, report) /= body_rows(3, j)) call fail(base_name(kind), 'seqno of body', &
        text(nint(hdr_rows(3, report), i8)), text(nint(body_rows(3, j), i8)))
      rows(at_pool:at_seqno, j) = body_rows(1:3, j)
      rows(at_type, j) = kind
      rows(at_point:at_slot, j) = hdr_rows(4:5, report)
      rows(at_level:at_sigma, j) = body_rows(4:6, j)
      rows(at_fg:at_an, j) = 0
    end do
    call check_places(base_name(kind), rows)
  end subroutine ecma_rows

  !> What an index is made of must lie in its limits, whatever the file says.
  subroutine check_places(name, rows)
    character(*), intent(in) :: name
    real(r8), intent(in) :: rows(:, :)
    integer :: j
    do j = 1, size(rows, 2)
      call within(rows(at_type, j), types, 'type')
      call within(rows(at_point, j), points, 'point')
      call within(rows(at_slot, j), dumps, 'time slot')
      call within(rows(at_level, j), levels, 'level')
    end do
  contains
    subroutine within(x, limit, what)
      real(r8), intent(in) :: x
      integer, intent(in) :: limit
      character(*), intent(in) :: what
      character(24) :: found
      if (x >= 1 .and. x <= limit) return
      write (found, '(es12.4)') x
      call fail(name, what, '1 to ' // text(limit), found)
    end subroutine within
  end subroutine check_places

  !> [collective] All rows of CCMA whose pools this rank owns.
  subroutine ccma_read(rows)
    real(r8), allocatable, intent(out) :: rows(:, :)
    real(r8), allocatable :: h(:, :), b(:, :), d(:, :)
    integer :: j
    call table_read(0, ccma_hdr, .false., h)
    call table_read(0, ccma_body, .false., b)
    call table_read(0, ccma_depar, .false., d)
    if (size(h, 2) /= size(b, 2) .or. size(h, 2) /= size(d, 2)) call fail('CCMA', &
        'rows of body and depar', &
      text(size(h, 2)), text(size(b, 2)) // ' and ' // text(size(d, 2)))
    allocate (rows(row_width, size(h, 2)))
    do j = 1, size(rows, 2)
      if (h(3, j) /= b(3, j) .or. h(3, j) /= d(3, j)) call fail('CCMA', 'seqno of body and depar', &
        text(nint(h(3, j), i8)), text(nint(b(3, j), i8)) // ' and ' // text(nint(d(3, j), i8)))
    end do
    rows(at_pool:at_slot, :) = h
    rows(at_level:at_sigma, :) = b(4:6, :)
    rows(at_fg:at_an, :) = d(4:5, :)
    call check_places('CCMA', rows)
  end subroutine ccma_read

  !> [collective] Makes CCMA of these rows.
  subroutine ccma_write(rows)
    real(r8), intent(in) :: rows(:, :)
    call table_write(0, ccma_hdr, .false., rows(at_pool:at_slot, :))
    call table_write(0, ccma_body, .false., rows([at_pool, at_number, at_seqno, at_level, &
        at_value, at_sigma], :))
    call ccma_write_departures(rows)
  end subroutine ccma_write

  subroutine ccma_write_departures(rows)
    real(r8), intent(in) :: rows(:, :)
    call table_write(0, ccma_depar, .false., rows([at_pool, at_number, at_seqno, at_fg, at_an], :))
  end subroutine ccma_write_departures

  !> [collective] Sends rows to the owners of their grid points.
  subroutine to_points(rows, there)
    real(r8), intent(inout) :: rows(:, :)
    real(r8), allocatable, intent(out) :: there(:, :)
    integer :: j
    rows(at_home, :) = [(real(j, r8), j=1, size(rows, 2))]
    call exchange_rows(rows, [(owner_of(nint(rows(at_point, j)), first_point), j=1, size(rows, &
        2))], there)
  end subroutine to_points

  !> [collective] Brings them back to the owners of their pools, each to its place in rows.
  subroutine to_pools(there, rows)
    real(r8), intent(in) :: there(:, :)
    real(r8), intent(inout) :: rows(:, :)
    real(r8), allocatable :: back(:, :)
    integer :: j
    call exchange_rows(there, [(pool_owner(nint(there(at_pool, j))), j=1, size(there, 2))], back)
    do j = 1, size(back, 2)
      rows(:, nint(back(at_home, j))) = back(:, j)
    end do
  end subroutine to_pools

  !> [collective] How many rows of each type and pool are in CCMA: written by rank 0.
  subroutine mask_write(rows)
    real(r8), intent(in) :: rows(:, :)
    integer(i8) :: counts(types, pools)
    type(file_t) :: file
    call count_rows(rows, counts)
    if (rank /= 0) return
    call file%open(mask_file, posix_file, .true., block_4m)
    call file%put(counts, 8 * size(counts, kind=i8))
    call file%finish()
  end subroutine mask_write

  !> [collective] The rows read from CCMA are as many as were written.
  subroutine mask_check(rows)
    real(r8), intent(in) :: rows(:, :)
    integer(i8) :: counts(types, pools), expected(types, pools)
    type(file_t) :: file
    integer :: at(2)
    call count_rows(rows, counts)
    if (rank /= 0) return
    call file%open(mask_file, posix_file, .false., block_4m)
    call file%get(expected, 8 * size(expected, kind=i8))
    call file%finish()
    if (all(counts == expected)) return
    at = findloc(counts /= expected, .true.)
    call fail('CCMA', 'rows of ' // trim(type_names(at(1))) // ' in pool ' // text(at(2)), &
              text(expected(at(1), at(2))), text(counts(at(1), at(2))))
  end subroutine mask_check

  subroutine count_rows(rows, counts)
    real(r8), intent(in) :: rows(:, :)
    integer(i8), intent(out) :: counts(:, :)
    integer :: j
    counts = 0
    do j = 1, size(rows, 2)
      associate (n => counts(nint(rows(at_type, j)), nint(rows(at_pool, j))))
        n = n + 1
      end associate
    end do
    call sum_all_counts(counts)
  end subroutine count_rows

end module fdv_obs
