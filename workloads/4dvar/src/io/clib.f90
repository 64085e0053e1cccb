! SPDX-License-Identifier: Apache-2.0
!> Interfaces of the C side (sum.c, file.c, path.c, grib.c). Everything about them is said in the C
!  headers.
module fdv_clib
  use, intrinsic :: iso_c_binding
  implicit none (type, external)
  private
  public :: c_name, error_text, resolved

  type, bind(C), public :: sum_t
    integer(c_int64_t) :: state = 0, bytes = 0, word = 0
    integer(c_int32_t) :: fill = 0, unused = 0
  end type sum_t

  integer(c_int), parameter, public :: stdio_file = 1, posix_file = 2

  interface
    subroutine sum_add(sum, data, bytes) bind(C, name='fdv_sum_add')
      import :: sum_t, c_int64_t
      type(sum_t), intent(inout) :: sum
      type(*), intent(in) :: data(*)
      integer(c_int64_t), value :: bytes
    end subroutine sum_add

    pure function sum_value(sum) bind(C, name='fdv_sum_value') result(value)
      import :: sum_t, c_int64_t
      type(sum_t), intent(in) :: sum
      integer(c_int64_t) :: value
    end function sum_value

    function file_open(name, kind, writing, block_bytes, error) bind(C, &
        name='fdv_file_open') result(file)
      import :: c_char, c_int, c_int64_t, c_ptr
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: kind, writing
      integer(c_int64_t), value :: block_bytes
      integer(c_int), intent(out) :: error
      type(c_ptr) :: file
    end function file_open

    function file_read(file, data, bytes) bind(C, name='fdv_file_read') result(moved)
      import :: c_ptr, c_int64_t
      type(c_ptr), value :: file
      type(*), intent(inout) :: data(*)
      integer(c_int64_t), value :: bytes
      integer(c_int64_t) :: moved
    end function file_read

    function file_write(file, data, bytes) bind(C, name='fdv_file_write') result(moved)
      import :: c_ptr, c_int64_t
      type(c_ptr), value :: file
      type(*), intent(in) :: data(*)
      integer(c_int64_t), value :: bytes
      integer(c_int64_t) :: moved
    end function file_write

    function file_close(file, sum) bind(C, name='fdv_file_close') result(error)
      import :: c_ptr, c_int, sum_t
      type(c_ptr), value :: file
      type(sum_t), intent(out) :: sum
      integer(c_int) :: error
    end function file_close

    function c_chdir(name) bind(C, name='fdv_chdir') result(error)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int) :: error
    end function c_chdir

    function c_mkdir(name) bind(C, name='fdv_mkdir') result(error)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int) :: error
    end function c_mkdir

    function c_rename(from, to) bind(C, name='fdv_rename') result(error)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: from(*), to(*)
      integer(c_int) :: error
    end function c_rename

    function c_link(target, name) bind(C, name='fdv_link') result(error)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: target(*), name(*)
      integer(c_int) :: error
    end function c_link

    function c_size_of(name) bind(C, name='fdv_size') result(bytes)
      import :: c_char, c_int64_t
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t) :: bytes
    end function c_size_of

    function c_bytes_sum(name, value) bind(C, name='fdv_bytes_sum') result(error)
      import :: c_char, c_int, c_int64_t
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), intent(out) :: value
      integer(c_int) :: error
    end function c_bytes_sum

    subroutine c_resolve(name, out, out_bytes) bind(C, name='fdv_resolve')
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      character(kind=c_char), intent(out) :: out(*)
      integer(c_int), value :: out_bytes
    end subroutine c_resolve

    subroutine c_wait_for_launcher() bind(C, name='fdv_wait_for_launcher')
    end subroutine c_wait_for_launcher

    subroutine c_error_text(error, out, out_bytes) bind(C, name='fdv_error_text')
      import :: c_char, c_int
      integer(c_int), value :: error
      character(kind=c_char), intent(out) :: out(*)
      integer(c_int), value :: out_bytes
    end subroutine c_error_text
  end interface

  public :: sum_add, sum_value, file_open, file_read, file_write, file_close
  public :: c_chdir, c_mkdir, c_rename, c_link, c_size_of, c_bytes_sum, c_wait_for_launcher

contains

  pure function c_name(name) result(c)
    character(*), intent(in) :: name
    character(:), allocatable :: c
    c = trim(name) // c_null_char
  end function c_name

  function error_text(error) result(s)
    integer(c_int), intent(in) :: error
    character(:), allocatable :: s
    character(200) :: buffer
    call c_error_text(error, buffer, len(buffer, c_int))
    s = buffer(:index(buffer, c_null_char) - 1)
  end function error_text

  !> The name under which the ledger keeps a file: links followed, below the work directory.
  function resolved(name) result(s)
    character(*), intent(in) :: name
    character(:), allocatable :: s
    character(1000) :: buffer
    call c_resolve(c_name(name), buffer, len(buffer, c_int))
    s = buffer(:index(buffer, c_null_char) - 1)
  end function resolved

end module fdv_clib
