! SPDX-License-Identifier: Apache-2.0
!> Fortran units, checked against the ledger as files are: sequential unformatted records of reals,
!  direct-access records,
!> and lines of text. The checksum is that of the values (of the lines), not of the record marks;
!  damaged marks show as a
!> failing READ.
module fdv_unit
  use fdv_kinds, only: i8, name_len, r8
  use fdv_fail, only: fail, text
  use fdv_clib, only: sum_add, sum_t, sum_value
  use fdv_ledger, only: ledger_check, ledger_check_bytes, ledger_expect, ledger_note
  implicit none (type, external)
  private

  type, public :: unit_t
    character(name_len) :: name = ''
    integer :: unit = -1
    logical :: writing = .false., sequential = .true.
    integer :: records = 0
    type(sum_t) :: sum
    integer(i8) :: total = 0          !< direct access: sum of the records' checksums, in any order
  contains
    procedure :: open => unit_open
    procedure :: open_direct => unit_open_direct
    procedure :: put => unit_put
    procedure :: get => unit_get
    procedure :: put_at => unit_put_at
    procedure :: get_at => unit_get_at
    procedure :: put_line => unit_put_line
    procedure :: get_line => unit_get_line
    procedure :: check => unit_check
    procedure :: finish => unit_finish
  end type unit_t

  character(*), parameter :: changed = 'the file is not what was written'

contains

  !> form: 'formatted' or 'unformatted'.
  subroutine unit_open(self, name, form, writing)
    class(unit_t), intent(inout) :: self
    character(*), intent(in) :: name, form
    logical, intent(in) :: writing
    integer :: status
    character(200) :: message
    call begin(self, name, writing, .true.)
    if (writing) then
      open (newunit=self%unit, file=name, form=form, access='sequential', status='replace', &
          action='write', &
            iostat=status, iomsg=message)
    else
      open (newunit=self%unit, file=name, form=form, access='sequential', status='old', &
          action='read', &
            iostat=status, iomsg=message)
    end if
    if (status /= 0) call fail(name, 'open', 'success', message)
  end subroutine unit_open

  !> Records of n reals each, to be read and written in any order.
  subroutine unit_open_direct(self, name, n, writing)
    class(unit_t), intent(inout) :: self
    character(*), intent(in) :: name
    integer, intent(in) :: n
    logical, intent(in) :: writing
    integer :: status
    character(200) :: message
    call begin(self, name, writing, .false.)
    if (writing) then
      open (newunit=self%unit, file=name, form='unformatted', access='direct', recl=8 * n, &
          status='replace', &
            action='write', iostat=status, iomsg=message)
    else
      open (newunit=self%unit, file=name, form='unformatted', access='direct', recl=8 * n, &
          status='old', &
            action='read', iostat=status, iomsg=message)
    end if
    if (status /= 0) call fail(name, 'open', 'success', message)
  end subroutine unit_open_direct

  subroutine begin(self, name, writing, sequential)
    class(unit_t), intent(inout) :: self
    character(*), intent(in) :: name
    logical, intent(in) :: writing, sequential
    integer(i8) :: bytes
    if (.not. writing) then
      bytes = ledger_expect(name)
      if (sequential) call ledger_check_bytes(name)
    end if
    self%sequential = sequential
    self%name = name
    self%writing = writing
    self%records = 0
    self%sum = sum_t()
    self%total = 0
  end subroutine begin

  subroutine unit_put(self, values)
    class(unit_t), intent(inout) :: self
    real(r8), intent(in), contiguous :: values(:)
    integer :: status
    character(200) :: message
    write (self%unit, iostat=status, iomsg=message) values
    if (status /= 0) call fail(self%name, 'write', 'success', message)
    call sum_add(self%sum, values, 8_i8 * size(values))
    self%records = self%records + 1
  end subroutine unit_put

  subroutine unit_get(self, values)
    class(unit_t), intent(inout) :: self
    real(r8), intent(out), contiguous :: values(:)
    integer :: status
    character(200) :: message
    self%records = self%records + 1
    read (self%unit, iostat=status, iomsg=message) values
    if (status /= 0) call fail(self%name, 'record ' // text(self%records), text(size(values)) &
        // ' reals', message, changed)
    call sum_add(self%sum, values, 8_i8 * size(values))
  end subroutine unit_get

  subroutine unit_put_at(self, record, values)
    class(unit_t), intent(inout) :: self
    integer, intent(in) :: record
    real(r8), intent(in), contiguous :: values(:)
    integer :: status
    character(200) :: message
    write (self%unit, rec=record, iostat=status, iomsg=message) values
    if (status /= 0) call fail(self%name, 'write of record ' // text(record), 'success', message)
    self%total = self%total + record_sum(record, values)
  end subroutine unit_put_at

  subroutine unit_get_at(self, record, values)
    class(unit_t), intent(inout) :: self
    integer, intent(in) :: record
    real(r8), intent(out), contiguous :: values(:)
    integer :: status
    character(200) :: message
    read (self%unit, rec=record, iostat=status, iomsg=message) values
    if (status /= 0) call fail(self%name, 'record ' // text(record), text(size(values)) &
        // ' reals', message, changed)
    self%total = self%total + record_sum(record, values)
  end subroutine unit_get_at

  !> The record's number is part of it, so that exchanged records are found.
  integer(i8) function record_sum(record, values)
    integer, intent(in) :: record
    real(r8), intent(in), contiguous :: values(:)
    type(sum_t) :: sum
    call sum_add(sum, [record], 4_i8)
    call sum_add(sum, values, 8_i8 * size(values))
    record_sum = sum_value(sum)
  end function record_sum

  subroutine unit_put_line(self, line)
    class(unit_t), intent(inout) :: self
    character(*), intent(in) :: line
    integer :: status
    character(200) :: message
    write (self%unit, '(a)', iostat=status, iomsg=message) line
    if (status /= 0) call fail(self%name, 'write', 'success', message)
    call sum_add(self%sum, [line], len(line, i8))
    self%records = self%records + 1
  end subroutine unit_put_line

  !> line must have the length with which it was written.
  subroutine unit_get_line(self, line)
    class(unit_t), intent(inout) :: self
    character(*), intent(out) :: line
    integer :: status
    character(200) :: message
    self%records = self%records + 1
    read (self%unit, '(a)', iostat=status, iomsg=message) line
    if (status /= 0) call fail(self%name, 'line ' // text(self%records), 'a line of text', &
        message, changed)
    call sum_add(self%sum, [line], len(line, i8))
  end subroutine unit_get_line

  !> [direct access] All records have been read once since the last check.
  subroutine unit_check(self)
    class(unit_t), intent(inout) :: self
    call ledger_check(trim(self%name), self%total)
    self%total = 0
  end subroutine unit_check

  subroutine unit_finish(self)
    class(unit_t), intent(inout) :: self
    integer :: status
    integer(i8) :: value
    character(200) :: message
    value = sum_value(self%sum) + self%total
    close (self%unit, iostat=status, iomsg=message)
    if (status /= 0) call fail(self%name, 'close', 'success', message)
    if (self%writing) then
      call ledger_note(trim(self%name), value, raw=self%sequential)
    else if (self%records > 0) then
      call ledger_check(trim(self%name), value)
    end if
  end subroutine unit_finish

end module fdv_unit
