! SPDX-License-Identifier: Apache-2.0
!> One observation type of ECMA as a whole: all its tables, made by prepare, read and checked
!  against each other, screened
!> for CCMA, and updated with the departures of the analysis.
module fdv_ecma
  use fdv_kinds, only: i8, r8
  use fdv_fail, only: fail, text
  use fdv_clib, only: c_mkdir, c_name, error_text
  use fdv_config, only: dumps, levels, points, pools, reports, tables, thin
  use fdv_obs
  use fdv_odb_iomap, only: iomap_read, iomap_write
  use fdv_odb_layout
  use fdv_odb_table, only: table_read, table_write, table_write_file
  use fdv_synthetic, only: grid_truth, noise
  implicit none (type, external)
  private
  public :: ecma_make, base_directories, ecma_load, ecma_store, ecma_screen, ecma_match

  type, public :: table_rows_t
    real(r8), allocatable :: rows(:, :)
  end type table_rows_t

  integer, parameter :: active = 1, rejected = 2, thinned = 3
  real(r8), parameter :: gross = 10            ! departures beyond so many sigma are rejected

contains

  !> [one rank] Directories of a base.
  subroutine base_directories(kind)
    integer, intent(in) :: kind
    integer :: g
    call make(base_name(kind))
    do g = 1, group_count()
      call make(base_name(kind) // '/' // text(g))
    end do
  contains
    subroutine make(name)
      character(*), intent(in) :: name
      integer :: error
      error = c_mkdir(c_name(name))
      if (error /= 0) call fail(name, 'directory', 'one that can be made', error_text(error))
    end subroutine make
  end subroutine base_directories

  !> [one rank] The base as the observations arrive.
  subroutine ecma_make(kind)
    integer, intent(in) :: kind
    integer :: g, t, pool, range(2), i
    real(r8), allocatable :: rows(:, :)
    integer, allocatable :: n(:)
    call base_directories(kind)
    call iomap_write(kind)
    n = [(report_count(kind, pool), pool=1, pools)]
    do g = 1, group_count()
      range = pool_range(g)
      do t = 1, tables
        associate (table => ecma_tables(t))
          if (table%rows_per_report == 0) then
            i = dumps * (range(2) - range(1) + 1)
          else
            i = table%rows_per_report * sum(n(range(1):range(2)))
          end if
          allocate (rows(table%columns + 2, i))
        end associate
        i = 0
        do pool = range(1), range(2)
          call make_rows(kind, t, pool, n(pool), rows, i)
        end do
        call table_write_file(kind, g, t, rows)
        deallocate (rows)
      end do
    end do
  end subroutine ecma_make

  !> Pools are filled unevenly, and now and then not at all.
  integer function report_count(kind, pool)
    integer, intent(in) :: kind, pool
    report_count = nint(real(reports, r8) / pools * (0.5_r8 + noise(4, kind, pool)))
    if (mod(pool + kind, 7) == 0) report_count = 0
  end function report_count

  subroutine make_rows(kind, table, pool, n, rows, at)
    integer, intent(in) :: kind, table, pool, n
    real(r8), intent(inout) :: rows(:, :)
    integer, intent(inout) :: at
    integer :: i, j, per
    per = ecma_tables(table)%rows_per_report
    if (per == 0) then
      do i = 1, dumps
        rows(:, at + i) = [real(r8) :: pool, i, i, (n + dumps - i) / dumps]
      end do
      at = at + dumps
      return
    end if
    do i = 1, n
      do j = 1, per
        at = at + 1
        rows(1:3, at) = [real(r8) :: pool, (i - 1) * per + j, pool * 1000000_i8 + i]
        call fill_row(kind, table, pool, i, j, rows(4:, at))
      end do
    end do
  end subroutine make_rows

  !> The columns behind seqno.
  subroutine fill_row(kind, table, pool, i, j, columns)
    integer, intent(in) :: kind, table, pool, i, j
    real(r8), intent(out) :: columns(:)
    integer :: point, level, id, k
    real(r8) :: error
    id = pool * 65536 + i
    point = 1 + min(points - 1, int(noise(5, kind, id) * points))
    level = 1 + mod(i * bodies + j, levels)
    select case (table)
    case (hdr)
      columns = [real(r8) :: point, mod(i - 1, dumps) + 1, 90 - 180.0_r8 * point / points, 360 &
          * noise(6, kind, id), bodies]
    case (index)
      columns = real((i - 1) * bodies + 1, r8)
    case (body)
      error = 0.2_r8 * (noise(7 + j, kind, id) - 0.5_r8) + 0.05_r8
      if (noise(20 + j, kind, id) < 0.02_r8) error = error + 5
      columns = [real(r8) :: level, grid_truth(point, level, 1) + error, 0.1_r8, 133]
    case (update)
      columns = 0
    case default
      columns = [(noise(30 + k, kind, id) * 300, k=1, size(columns))]
    end select
  end subroutine fill_row

  !> [collective] All tables of a type, with the checks that tie them together.
  subroutine ecma_load(kind, by_all, all)
    integer, intent(in) :: kind
    logical, intent(in) :: by_all
    type(table_rows_t), allocatable, intent(out) :: all(:)
    integer :: t, n
    call iomap_read(kind)
    allocate (all(tables))
    do t = 1, tables
      call table_read(kind, t, by_all, all(t)%rows)
    end do
    n = size(all(hdr)%rows, 2)
    do t = 1, tables
      associate (per => ecma_tables(t)%rows_per_report, rows => all(t)%rows)
        if (per == 0) cycle
        if (size(rows, 2) /= per * n) call fail(base_name(kind) // '/' &
            // trim(ecma_tables(t)%name), 'rows', text(per * n), &
                                                text(size(rows, 2)))
        if (any(rows(3, ::per) /= all(hdr)%rows(3, :))) call fail(base_name(kind) // '/' &
            // trim(ecma_tables(t)%name), &
          'seqno', 'those of hdr', 'others')
      end associate
    end do
    if (nint(sum(all(timeslot_index)%rows(4, :))) /= n) call fail(base_name(kind) &
        // '/timeslot_index', 'reports', &
      text(n), text(nint(sum(all(timeslot_index)%rows(4, :)))))
  end subroutine ecma_load

  !> [collective] Writes the tables from first to last back.
  subroutine ecma_store(kind, by_all, all, first, last)
    integer, intent(in) :: kind, first, last
    logical, intent(in) :: by_all
    type(table_rows_t), intent(in) :: all(:)
    integer :: t
    do t = first, last
      call table_write(kind, t, by_all, all(t)%rows)
    end do
  end subroutine ecma_store

  !> [not collective] Status of each row of a type from its departure; used marks those that go to
  !  CCMA.
  subroutine ecma_screen(rows, updates, used)
    real(r8), intent(in) :: rows(:, :)
    real(r8), intent(inout) :: updates(:, :)
    logical, intent(out) :: used(:)
    integer :: j, status
    do j = 1, size(rows, 2)
      status = active
      if (mod((nint(rows(at_number, j)) - 1) / bodies, thin) /= 0) status = thinned
      if (abs(rows(at_fg, j)) > gross * rows(at_sigma, j)) status = rejected
      updates(4:6, j) = [real(r8) :: rows(at_fg, j), 0, status]
      used(j) = status == active
    end do
  end subroutine ecma_screen

  !> [not collective] Puts CCMA's analysis departures of a type into ECMA's updates; each active row
  !  must have its partner.
  subroutine ecma_match(kind, ccma, updates)
    integer, intent(in) :: kind
    real(r8), intent(in) :: ccma(:, :)
    real(r8), intent(inout) :: updates(:, :)
    integer :: j, next
    next = 0
    do j = 1, size(updates, 2)
      if (nint(updates(6, j)) /= active) cycle
      do
        next = next + 1
        if (next > size(ccma, 2)) call fail('CCMA', 'rows of ' // base_name(kind), &
            'one for each active row', 'fewer')
        if (nint(ccma(at_type, next)) == kind) exit
      end do
      if (ccma(at_seqno, next) /= updates(3, j)) call fail('CCMA', 'seqno in ' // base_name(kind), &
        text(nint(updates(3, j), i8)), text(nint(ccma(at_seqno, next), i8)))
      updates(5, j) = ccma(at_an, next)
    end do
    if (count(nint(ccma(at_type, next + 1:)) == kind) > 0) &
      call fail('CCMA', 'rows of ' // base_name(kind), 'one for each active row', 'more')
  end subroutine ecma_match

end module fdv_ecma
