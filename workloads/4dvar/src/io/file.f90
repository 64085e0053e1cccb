! SPDX-License-Identifier: Apache-2.0
!> Sequential binary files through fread/fwrite or read/write, checked against the ledger: opening
!  to read demands that the
!> file is known and whole, finish compares what was read, or notes what was written. Failures end
!  the program.
module fdv_file
  use, intrinsic :: iso_c_binding, only: c_associated, c_int, c_null_ptr, c_ptr
  use fdv_kinds, only: i8, name_len
  use fdv_fail, only: fail, text
  use fdv_clib
  use fdv_ledger, only: ledger_check, ledger_expect, ledger_note
  implicit none (type, external)
  private

  integer(i8), parameter, public :: block_4m = 4194304_i8, block_64k = 65536_i8

  type, public :: file_t
    character(name_len) :: name = ''
    type(c_ptr) :: handle = c_null_ptr
    logical :: writing = .false.
    ! keep the checksum of the file's bytes too, for a reader that is not this module
    logical :: raw = .false.
    integer(i8) :: bytes = 0      !< whole length, of a file opened to read
    integer(i8) :: moved = 0
  contains
    procedure :: open => file_t_open
    procedure :: put => file_t_put
    procedure :: get => file_t_get
    procedure :: finish => file_t_finish
  end type file_t

contains

  !> kind: stdio_file or posix_file; block_bytes: largest request.
  subroutine file_t_open(self, name, kind, writing, block_bytes)
    class(file_t), intent(inout) :: self
    character(*), intent(in) :: name
    integer(c_int), intent(in) :: kind
    logical, intent(in) :: writing
    integer(i8), intent(in) :: block_bytes
    integer(c_int) :: error
    self%name = name
    self%writing = writing
    self%moved = 0
    if (.not. writing) self%bytes = ledger_expect(name)
    self%handle = file_open(c_name(name), kind, merge(1_c_int, 0_c_int, writing), block_bytes, &
        error)
    if (.not. c_associated(self%handle)) call fail(name, 'open', 'success', error_text(error))
  end subroutine file_t_open

  subroutine file_t_put(self, data, bytes)
    class(file_t), intent(inout) :: self
    type(*), intent(in) :: data(*)
    integer(i8), intent(in) :: bytes
    integer(i8) :: moved
    moved = file_write(self%handle, data, bytes)
    if (moved /= bytes) call fail(self%name, 'write of ' // text(bytes) // ' bytes', 'success', &
        error_text(int(-moved, c_int)))
    self%moved = self%moved + bytes
  end subroutine file_t_put

  subroutine file_t_get(self, data, bytes)
    class(file_t), intent(inout) :: self
    type(*), intent(inout) :: data(*)
    integer(i8), intent(in) :: bytes
    integer(i8) :: moved
    if (self%moved + bytes > self%bytes) call fail(self%name, 'length', text(self%moved + bytes) &
        // ' bytes or more', &
      text(self%bytes) // ' bytes', 'a length within the file is wrong')
    moved = file_read(self%handle, data, bytes)
    if (moved < 0) call fail(self%name, 'read of ' // text(bytes) // ' bytes', 'success', &
        error_text(int(-moved, c_int)))
    if (moved /= bytes) call fail(self%name, 'read at ' // text(self%moved), text(bytes) &
        // ' bytes', text(moved) // ' bytes')
    self%moved = self%moved + bytes
  end subroutine file_t_get

  !> Closes; a file opened to read must have been read from beginning to end.
  subroutine file_t_finish(self)
    class(file_t), intent(inout) :: self
    type(sum_t) :: sum
    integer(c_int) :: error
    error = file_close(self%handle, sum)
    self%handle = c_null_ptr
    if (error /= 0) call fail(self%name, 'close', 'success', error_text(error))
    if (self%writing) then
      call ledger_note(trim(self%name), sum_value(sum), self%raw)
    else
      if (self%moved /= self%bytes) call fail(self%name, 'bytes read', text(self%bytes), &
          text(self%moved))
      call ledger_check(trim(self%name), sum_value(sum))
    end if
  end subroutine file_t_finish

end module fdv_file
