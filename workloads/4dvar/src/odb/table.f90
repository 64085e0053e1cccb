! SPDX-License-Identifier: Apache-2.0
!> Tables of a data base: from the files of several (or all) ranks to the owners of the pools, and
!  back. A file has one
!> section for each pool of its group: the pool's number, its rows, its columns, each a small
!  request, and the rows.
!> In memory a row starts with pool and number in the pool, then the columns.
module fdv_odb_table
  use fdv_kinds, only: i8, r8
  use fdv_fail, only: fail, text
  use fdv_clib, only: stdio_file
  use fdv_file, only: block_64k, file_t
  use fdv_odb_layout
  use fdv_par, only: exchange_rows, rank
  implicit none (type, external)
  private
  public :: table_read, table_write, table_write_file

contains

  integer function columns_of(kind, table)
    integer, intent(in) :: kind, table
    if (kind == 0) then
      columns_of = ccma_tables(table)%columns
    else
      columns_of = ecma_tables(table)%columns
    end if
  end function columns_of

  !> [collective] Rows of the pools that this rank owns, ordered by pool and number.
  subroutine table_read(kind, table, by_all, rows)
    integer, intent(in) :: kind, table
    logical, intent(in) :: by_all
    real(r8), allocatable, intent(out) :: rows(:, :)
    real(r8), allocatable :: mine(:, :)
    integer :: g
    allocate (mine(columns_of(kind, table) + 2, 0))
    do g = 1, group_count()
      if (group_rank(g, by_all) == rank) call append_file(kind, g, table, mine)
    end do
    call exchange_rows(mine, [(pool_owner(nint(mine(1, g))), g=1, size(mine, 2))], rows)
    call sort_rows(rows)
  end subroutine table_read

  subroutine append_file(kind, g, table, rows)
    integer, intent(in) :: kind, g, table
    real(r8), allocatable, intent(inout) :: rows(:, :)
    type(file_t) :: file
    integer :: section(3), pool, range(2), at, i
    real(r8), allocatable :: grown(:, :), data(:, :)
    call file%open(table_file(kind, g, table), stdio_file, .false., block_64k)
    range = pool_range(g)
    do pool = range(1), range(2)
      call read_head(file, section)
      if (section(1) /= pool) call fail(file%name, 'pool', text(pool), text(section(1)))
      if (section(3) /= columns_of(kind, table)) call fail(file%name, 'columns', &
          text(columns_of(kind, table)), &
                                                           text(section(3)))
      if (section(2) < 0 .or. 8_i8 * section(2) * section(3) > file%bytes) &
        call fail(file%name, 'rows', 'between 0 and ' // text(file%bytes / (8 * section(3))), &
            text(section(2)))
      allocate (data(section(3), section(2)))
      if (section(2) > 0) call file%get(data, 8 * size(data, kind=i8))
      at = size(rows, 2)
      allocate (grown(section(3) + 2, at + section(2)))
      grown(:, :at) = rows
      grown(1, at + 1:) = pool
      grown(2, at + 1:) = [(i, i=1, section(2))]
      grown(3:, at + 1:) = data
      call move_alloc(grown, rows)
      deallocate (data)
    end do
    call file%finish()
  end subroutine append_file

  !> Pool, rows, columns: three requests of four bytes.
  subroutine read_head(file, section)
    type(file_t), intent(inout) :: file
    integer, intent(out) :: section(3)
    integer :: i
    do i = 1, 3
      call file%get(section(i:i), 4_i8)
    end do
  end subroutine read_head

  !> [collective] The reverse of table_read: the owners' rows go to the files, which are made anew.
  subroutine table_write(kind, table, by_all, rows)
    integer, intent(in) :: kind, table
    logical, intent(in) :: by_all
    real(r8), intent(in) :: rows(:, :)
    real(r8), allocatable :: mine(:, :)
    integer :: g, pools_here(2), i
    call exchange_rows(rows, [(group_rank(group_of(nint(rows(1, i))), by_all), i=1, size(rows, &
        2))], mine)
    call sort_rows(mine)
    do g = 1, group_count()
      if (group_rank(g, by_all) /= rank) cycle
      pools_here = pool_range(g)
      associate (pool => nint(mine(1, :)))
        call table_write_file(kind, g, table, mine(:, findfirst(pool, &
            pools_here(1)):findfirst(pool, pools_here(2) + 1) - 1))
      end associate
    end do
  end subroutine table_write

  !> [one rank] rows are all rows of the group, ordered by pool.
  subroutine table_write_file(kind, g, table, rows)
    integer, intent(in) :: kind, g, table
    real(r8), intent(in) :: rows(:, :)
    type(file_t) :: file
    integer :: pool, range(2), at, past, columns
    real(r8), allocatable :: data(:, :)
    columns = columns_of(kind, table)
    range = pool_range(g)
    call file%open(table_file(kind, g, table), stdio_file, .true., block_64k)
    past = 1
    do pool = range(1), range(2)
      at = past
      do while (past <= size(rows, 2))
        if (nint(rows(1, past)) /= pool) exit
        past = past + 1
      end do
      call file%put([pool], 4_i8)
      call file%put([past - at], 4_i8)
      call file%put([columns], 4_i8)
      data = rows(3:, at:past - 1)
      if (past > at) call file%put(data, 8 * size(data, kind=i8))
    end do
    call file%finish()
  end subroutine table_write_file

  !> Index of the first element that is at least value, in ascending order; size + 1 when there is
  !  none.
  pure integer function findfirst(sorted, value)
    integer, intent(in) :: sorted(:), value
    integer :: low, high, middle
    low = 1; high = size(sorted) + 1
    do while (low < high)
      middle = (low + high) / 2
      if (sorted(middle) < value) then
        low = middle + 1
      else
        high = middle
      end if
    end do
    findfirst = low
  end function findfirst

  !> Orders rows by pool and number: they come in runs of whole pools, so the runs are sorted.
  subroutine sort_rows(rows)
    real(r8), allocatable, intent(inout) :: rows(:, :)
    integer, allocatable :: start(:), order(:)
    real(r8), allocatable :: sorted(:, :)
    integer :: i, j, n, at, keep
    start = pack([(i, i=1, size(rows, 2))], [(run_starts(i), i=1, size(rows, 2))])
    n = size(start)
    order = [(i, i=1, n)]
    do i = 2, n
      keep = order(i)
      j = i - 1
      do while (j >= 1)
        if (rows(1, start(order(j))) <= rows(1, start(keep))) exit
        order(j + 1) = order(j)
        j = j - 1
      end do
      order(j + 1) = keep
    end do
    start = [start, size(rows, 2) + 1]
    allocate (sorted, mold=rows)
    at = 0
    do i = 1, n
      j = start(order(i) + 1) - start(order(i))
      sorted(:, at + 1:at + j) = rows(:, start(order(i)):start(order(i) + 1) - 1)
      at = at + j
    end do
    call move_alloc(sorted, rows)
  contains
    logical function run_starts(i)
      integer, intent(in) :: i
      run_starts = i == 1
      if (i > 1) run_starts = nint(rows(1, i)) /= nint(rows(1, i - 1))
    end function run_starts
  end subroutine sort_rows

end module fdv_odb_table
