! SPDX-License-Identifier: Apache-2.0
!> The ledger: for every file of the work directory its size and the checksum of what was written,
!  so that what a step reads is
!> known to be what an earlier step wrote. Kept in the file LEDGER, which rank 0 reads at the start
!  of a step and replaces
!> at its end; in between each rank notes what it writes. Also: which steps are done, and with how
!  many ranks.
module fdv_ledger
  use, intrinsic :: iso_c_binding, only: c_int
  use mpi_f08
  use fdv_kinds, only: i8, name_len
  use fdv_fail, only: fail, fail_together, hex, text
  use fdv_clib, only: c_bytes_sum, c_name, c_rename, c_size_of, error_text, resolved, sum_add, &
      sum_t, sum_value
  use fdv_config, only: geometry
  use fdv_par, only: from_rank0, rank, ranks
  implicit none (type, external)
  private
  public :: ledger_load, ledger_new, ledger_save, ledger_expect, ledger_check, ledger_check_bytes, &
      ledger_note
  public :: ranks_of, step_number

  character(*), parameter :: ledger_file = 'LEDGER', entry_format = '(2(z16.16,1x),i16,1x,a)'
  character(8), parameter :: steps(0:5) = [character(8) :: 'prepare', 'traj0', 'min0', 'traj1', &
      'min1', 'traj2']
  integer, parameter :: line_len = name_len + 56
  integer :: done(0:5) = 0                      ! ranks that ran the step; 0: it is not done

  type :: entry_t
    character(name_len) :: name = ''
    integer(i8) :: bytes = 0, value = 0
    ! checksum of all bytes of the file, 0 where it is not kept
    integer(i8) :: raw = 0
    logical :: mine = .false.                   ! noted by this rank in this step
  end type entry_t
  type(entry_t), allocatable :: entries(:)      ! open addressing; a power of two, at most half full
  integer :: used = 0

contains

  subroutine ledger_new()
    if (allocated(entries)) deallocate (entries)
    allocate (entries(0:1023))
    used = 0
    done = 0
  end subroutine ledger_new

  !> 0 for prepare, up to 5 for traj2; -1 for what is not a step.
  pure integer function step_number(step)
    character(*), intent(in) :: step
    do step_number = ubound(steps, 1), 0, -1
      if (steps(step_number) == step) return
    end do
  end function step_number

  !> Ranks with which the step ran, 0 if it did not.
  integer function ranks_of(step)
    character(*), intent(in) :: step
    ranks_of = done(step_number(step))
  end function ranks_of

  !> [collective] Reads the ledger and makes sure that the step may run now.
  subroutine ledger_load(step)
    character(*), intent(in) :: step
    character(line_len), allocatable :: lines(:)
    integer :: n, i, at
    call ledger_new()
    if (rank == 0) call read_lines(lines)
    if (rank == 0) n = size(lines)
    call from_rank0(n)
    if (rank /= 0) allocate (lines(n))
    call from_rank0(lines)
    if (lines(1)(10:) /= geometry()) call fail_together('fort.4', 'sizes', lines(1)(10:), &
        geometry(), &
      'they may not change after prepare; run prepare again')
    read (lines(2)(6:), *) done
    at = step_number(step)
    if (done(at - 1) == 0) call fail_together(ledger_file, 'steps done', steps(at - 1), &
        'that it is not done', &
      'run ' // trim(steps(at - 1)) // ' before ' // step)
    done(at:) = 0
    do i = 3, n
      call add_line(lines(i))
    end do
  end subroutine ledger_load

  subroutine read_lines(lines)
    character(line_len), allocatable, intent(out) :: lines(:)
    character(line_len) :: line
    type(sum_t) :: sum
    integer :: unit, status, n, i
    open (newunit=unit, file=ledger_file, form='formatted', status='old', action='read', &
        iostat=status)
    if (status /= 0) call fail(ledger_file, 'open', 'the ledger that the step prepare writes', &
        'none', 'run prepare first')
    read (unit, '(a)', iostat=status) line
    read (line, '(8x,i12)', iostat=status) n
    if (status /= 0 .or. line(:8) /= 'entries ') call fail(ledger_file, 'first line', &
        'entries and their number', &
                                                            trim(line))
    if (n < 0 .or. n > 100000000) call fail(ledger_file, 'entries', '0 to 100000000', text(n))
    allocate (lines(n + 2))
    do i = 1, n + 2
      read (unit, '(a)', iostat=status) lines(i)
      if (status /= 0) call fail(ledger_file, 'lines', text(n + 4), text(i))
      call sum_add(sum, [lines(i)], len_trim(lines(i), i8))
    end do
    read (unit, '(a)', iostat=status) line
    close (unit)
    if (line /= hex(sum_value(sum))) call fail(ledger_file, 'checksum', trim(line), &
        hex(sum_value(sum)), &
                                               'the ledger was changed; run prepare and all steps again')
    if (lines(1)(:9) /= 'geometry ' .or. lines(2)(:5) /= 'done ') &
      call fail(ledger_file, 'lines 2 and 3', 'geometry and done', trim(lines(1)))
  end subroutine read_lines

  subroutine add_line(line)
    character(*), intent(in) :: line
    type(entry_t) :: entry
    integer :: status
    read (line, entry_format, iostat=status) entry%value, entry%raw, entry%bytes, entry%name
    if (status /= 0) call fail(ledger_file, 'entry', 'two checksums, bytes and name', trim(line))
    call put(entry)
  end subroutine add_line

  recursive subroutine put(entry)
    type(entry_t), intent(in) :: entry
    type(entry_t), allocatable :: old(:)
    integer :: at, i
    if (2 * used > size(entries)) then
      call move_alloc(entries, old)
      allocate (entries(0:2 * size(old) - 1))
      used = 0
      do i = 0, ubound(old, 1)
        if (old(i)%name /= '') call put(old(i))
      end do
    end if
    at = slot(entry%name)
    if (entries(at)%name == '') used = used + 1
    entries(at) = entry
  end subroutine put

  integer function slot(name)
    character(*), intent(in) :: name
    type(sum_t) :: sum
    call sum_add(sum, [name], len_trim(name, i8))
    slot = int(iand(sum_value(sum), int(size(entries) - 1, i8)))
    do while (entries(slot)%name /= '' .and. entries(slot)%name /= name)
      slot = iand(slot + 1, size(entries) - 1)
    end do
  end function slot

  !> [one rank] Before a file is read: it is there, and as long as it was written. Returns its
  !  length.
  function ledger_expect(name) result(bytes)
    character(*), intent(in) :: name
    integer(i8) :: bytes, found
    character(:), allocatable :: key
    key = resolved(name)
    associate (entry => entries(slot(key)))
      if (entry%name == '') call fail(name, 'ledger', 'an entry for this file', 'none', &
                                      'no step that is done wrote it; run prepare and all steps again')
      bytes = entry%bytes
    end associate
    found = c_size_of(c_name(name))
    if (found < 0) call fail(name, 'size', text(bytes) // ' bytes', error_text(int(-found, c_int)))
    if (found /= bytes) call fail(name, 'size', text(bytes) // ' bytes', text(found) // ' bytes', &
                                  'it was cut, grew, or its writer did not finish')
  end function ledger_expect

  !> [one rank] After a file was read from beginning to end.
  subroutine ledger_check(name, value)
    character(*), intent(in) :: name
    integer(i8), intent(in) :: value
    associate (entry => entries(slot(resolved(name))))
      if (entry%value /= value) call fail(name, 'checksum', hex(entry%value), hex(value), &
                                          'the file is not what was written')
    end associate
  end subroutine ledger_check

  !> [one rank] The file's bytes, marks of records included, are those that were noted with raw.
  subroutine ledger_check_bytes(name)
    character(*), intent(in) :: name
    associate (entry => entries(slot(resolved(name))))
      if (entry%raw /= raw_sum(name)) call fail(name, 'checksum of its bytes', hex(entry%raw), &
          hex(raw_sum(name)), &
                                                'the file is not what was written')
    end associate
  end subroutine ledger_check_bytes

  integer(i8) function raw_sum(name)
    character(*), intent(in) :: name
    integer(c_int) :: error
    error = c_bytes_sum(c_name(name), raw_sum)
    if (error /= 0) call fail(name, 'reading its bytes', 'success', error_text(error))
  end function raw_sum

  !> [one rank] After a file was written and closed. raw: keep the checksum of the bytes too.
  subroutine ledger_note(name, value, raw)
    character(*), intent(in) :: name
    integer(i8), intent(in) :: value
    logical, intent(in) :: raw
    type(entry_t) :: entry
    character(:), allocatable :: key
    key = resolved(name)
    if (len(key) > name_len) call fail(name, 'length of the name', 'at most ' // text(name_len), &
        text(len(key)))
    entry = entry_t(name=key, bytes=c_size_of(c_name(name)), value=value, mine=.true.)
    if (entry%bytes < 0) call fail(name, 'size', 'the file just written', &
        error_text(int(-entry%bytes, c_int)))
    if (raw) entry%raw = raw_sum(name)
    call put(entry)
  end subroutine ledger_note

  !> [collective] Collects what all ranks noted, replaces the ledger, and says that the step is
  !  done.
  subroutine ledger_save(step)
    character(*), intent(in) :: step
    character(line_len), allocatable :: mine(:), all(:)
    integer :: counts(0:ranks - 1), starts(0:ranks - 1), i, n
    allocate (mine(count(entries%mine)))
    n = 0
    do i = 0, ubound(entries, 1)
      if (.not. entries(i)%mine) cycle
      n = n + 1
      write (mine(n), entry_format) entries(i)%value, entries(i)%raw, entries(i)%bytes, &
          entries(i)%name
    end do
    call MPI_Allgather(n * line_len, 1, MPI_INTEGER, counts, 1, MPI_INTEGER, MPI_COMM_WORLD)
    starts = [(sum(counts(:i - 1)), i=0, ranks - 1)]
    allocate (all(sum(counts) / line_len))
    call MPI_Gatherv(mine, n * line_len, MPI_CHARACTER, all, counts, starts, MPI_CHARACTER, 0, &
        MPI_COMM_WORLD)
    done(step_number(step)) = ranks
    if (rank /= 0) return
    do i = 1, size(all)
      call add_line(all(i))
    end do
    call write_ledger()
  end subroutine ledger_save

  !> The last line is the checksum of all but the first.
  subroutine write_ledger()
    integer :: unit, i
    character(line_len) :: line
    type(sum_t) :: sum
    open (newunit=unit, file=ledger_file // '.new', form='formatted', status='replace', &
        action='write')
    write (unit, '(a,i12)') 'entries ', used
    line = 'geometry ' // geometry()
    call write_line()
    write (line, '(a,6i7)') 'done ', done
    call write_line()
    do i = 0, ubound(entries, 1)
      if (entries(i)%name == '') cycle
      write (line, entry_format) entries(i)%value, entries(i)%raw, entries(i)%bytes, &
          trim(entries(i)%name)
      call write_line()
    end do
    write (unit, '(a)') hex(sum_value(sum))
    close (unit)
    i = c_rename(c_name(ledger_file // '.new'), c_name(ledger_file))
    if (i /= 0) call fail(ledger_file, 'rename', 'a writable directory', error_text(i))
  contains
    subroutine write_line()
      write (unit, '(a)') trim(line)
      call sum_add(sum, [line], len_trim(line, i8))
    end subroutine write_line
  end subroutine write_ledger

end module fdv_ledger
