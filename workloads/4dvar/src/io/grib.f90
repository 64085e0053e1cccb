! SPDX-License-Identifier: Apache-2.0
!> GRIB files of the experiment: reading by rank 0 with distribution to all, and writing by rank 0
!  of what all hold. The C
!> side (grib.c) calls ecCodes.
module fdv_grib
  use, intrinsic :: iso_c_binding
  use fdv_kinds, only: i8, name_len, r8
  use fdv_fail, only: fail, text
  use fdv_clib, only: c_name, error_text, posix_file, sum_t, sum_value
  use fdv_config, only: edition, grid, truncation
  use fdv_file, only: block_4m, file_t
  use fdv_ledger, only: ledger_check, ledger_check_bytes, ledger_expect
  implicit none (type, external)
  private

  !> A GRIB file open to read, on one rank.
  type, public :: grib_reader_t
    character(name_len) :: name = ''
    type(c_ptr) :: handle = c_null_ptr
    integer :: messages = 0
  contains
    procedure :: open => reader_open
    procedure :: next => reader_next
    procedure :: finish => reader_finish
  end type grib_reader_t

  !> A GRIB file being written, on one rank; requests of 4 MiB.
  type, public :: grib_writer_t
    type(file_t) :: file
    type(c_ptr) :: message = c_null_ptr
    integer :: values = 0             !< reals in a field
  contains
    procedure :: open => writer_open
    procedure :: put => writer_put
    procedure :: finish => writer_finish
  end type grib_writer_t

  interface
    function c_open(name, error) bind(C, name='fdv_grib_open') result(grib)
      import :: c_char, c_int, c_ptr
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), intent(out) :: error
      type(c_ptr) :: grib
    end function c_open

    function c_next(grib, param, level, values) bind(C, name='fdv_grib_next') result(error)
      import :: c_int, c_ptr
      type(c_ptr), value :: grib
      integer(c_int), intent(out) :: param, level, values
      integer(c_int) :: error
    end function c_next

    function c_values(grib, values, count) bind(C, name='fdv_grib_values') result(error)
      import :: c_double, c_int, c_ptr
      type(c_ptr), value :: grib
      integer(c_int), value :: count
      real(c_double), intent(out) :: values(count)
      integer(c_int) :: error
    end function c_values

    function c_close(grib, sum) bind(C, name='fdv_grib_close') result(bytes)
      import :: c_int64_t, c_ptr, sum_t
      type(c_ptr), value :: grib
      type(sum_t), intent(out) :: sum
      integer(c_int64_t) :: bytes
    end function c_close

    function c_sample(edition, truncation, grid, values) bind(C, &
        name='fdv_grib_sample') result(message)
      import :: c_int, c_ptr
      integer(c_int), value :: edition, truncation, grid
      integer(c_int), intent(out) :: values
      type(c_ptr) :: message
    end function c_sample

    function c_encode(message, param, level, values, count, bytes, length) bind(C, &
        name='fdv_grib_encode') result(error)
      import :: c_double, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: message
      integer(c_int), value :: param, level, count
      real(c_double), intent(in) :: values(count)
      type(c_ptr), intent(out) :: bytes
      integer(c_int64_t), intent(out) :: length
      integer(c_int) :: error
    end function c_encode

    subroutine c_delete(message) bind(C, name='fdv_grib_delete')
      import :: c_ptr
      type(c_ptr), value :: message
    end subroutine c_delete

    subroutine c_error(error, out, out_bytes) bind(C, name='fdv_grib_error')
      import :: c_char, c_int
      integer(c_int), value :: error
      character(kind=c_char), intent(out) :: out(*)
      integer(c_int), value :: out_bytes
    end subroutine c_error
  end interface

contains

  function words(error) result(s)
    integer(c_int), intent(in) :: error
    character(:), allocatable :: s
    character(200) :: buffer
    call c_error(error, buffer, len(buffer, c_int))
    s = 'ecCodes: ' // buffer(:index(buffer, c_null_char) - 1)
  end function words

  subroutine reader_open(self, name)
    class(grib_reader_t), intent(inout) :: self
    character(*), intent(in) :: name
    integer(c_int) :: error
    integer(i8) :: bytes
    bytes = ledger_expect(name)
    call ledger_check_bytes(name)   ! a damaged message could end ecCodes instead of being reported
    self%name = name
    self%messages = 0
    self%handle = c_open(c_name(name), error)
    if (.not. c_associated(self%handle)) call fail(name, 'open', 'success', error_text(error))
  end subroutine reader_open

  !> The next message must be of this parameter and level, with size(values) values.
  subroutine reader_next(self, param, level, values)
    class(grib_reader_t), intent(inout) :: self
    integer, intent(in) :: param, level
    real(r8), intent(out) :: values(:)
    integer(c_int) :: error, p, l, n
    character(:), allocatable :: what
    self%messages = self%messages + 1
    what = 'message ' // text(self%messages)
    error = c_next(self%handle, p, l, n)
    if (error /= 0) call fail(self%name, what, 'a whole GRIB message', words(error))
    if (n == 0) call fail(self%name, what, 'a GRIB message', 'the end of the file')
    if (p /= param .or. l /= level .or. n /= size(values)) call fail(self%name, what, &
        described(param, level, size(values)), &
                                                                    described(p, l, n))
    error = c_values(self%handle, values, n)
    if (error /= 0) call fail(self%name, what, 'values that can be decoded', words(error))
  end subroutine reader_next

  pure function described(param, level, values) result(s)
    integer, intent(in) :: param, level, values
    character(:), allocatable :: s
    s = 'parameter ' // text(param) // ' level ' // text(level) // ' with ' // text(values) &
        // ' values'
  end function described

  !> The file must end here, and be what was written.
  subroutine reader_finish(self)
    class(grib_reader_t), intent(inout) :: self
    integer(c_int) :: error, p, l, n
    type(sum_t) :: sum
    integer(i8) :: bytes
    error = c_next(self%handle, p, l, n)
    if (error /= 0 .or. n /= 0) call fail(self%name, 'messages', text(self%messages), 'more')
    bytes = c_close(self%handle, sum)
    call ledger_check(trim(self%name), sum_value(sum))
  end subroutine reader_finish

  !> spectral: spherical harmonics, else reduced Gaussian grid.
  subroutine writer_open(self, name, spectral)
    class(grib_writer_t), intent(inout) :: self
    character(*), intent(in) :: name
    logical, intent(in) :: spectral
    self%message = c_sample(edition, merge(truncation, 0, spectral), grid, self%values)
    if (.not. c_associated(self%message)) call fail(name, 'sample of ecCodes', 'one for grid ' &
        // text(grid) // &
      ' and GRIB edition ' // text(edition), 'none', &
          'the grids are those of reduced_gg_pl_<N> in the samples directory')
    self%file%raw = .true.
    if (name /= '') call self%file%open(name, posix_file, .true., block_4m)
  end subroutine writer_open

  subroutine writer_put(self, param, level, values)
    class(grib_writer_t), intent(inout) :: self
    integer, intent(in) :: param, level
    real(r8), intent(in) :: values(:)
    integer(c_int) :: error
    integer(c_int64_t) :: length
    type(c_ptr) :: at
    character(1), pointer :: bytes(:)
    error = c_encode(self%message, param, level, values, size(values), at, length)
    if (error /= 0) call fail(self%file%name, described(param, level, size(values)), &
        'an encoded message', words(error))
    call c_f_pointer(at, bytes, [length])
    call self%file%put(bytes, length)
  end subroutine writer_put

  subroutine writer_finish(self)
    class(grib_writer_t), intent(inout) :: self
    call c_delete(self%message)
    if (self%file%name /= '') call self%file%finish()
  end subroutine writer_finish

end module fdv_grib
