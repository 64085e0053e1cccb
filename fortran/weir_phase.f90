! SPDX-License-Identifier: Apache-2.0
! Phases of a program for `weir report`, as include/weir/phase.h has them for C: compile this file
! with the model and use the module. Nothing else is linked, and without weir's preload library in
! the process a call does nothing.
!
!     use weir_phase
!     call weir_phase_begin("9write")
!     ...
!     call weir_phase_end("9write")
module weir_phase
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_procpointer, c_funptr, c_int, &
      c_null_char, c_null_ptr, c_ptr
  implicit none (type, external)
  private
  public :: weir_phase_begin, weir_phase_end

  abstract interface
    subroutine recorder_call(event, name) bind(c)
      import :: c_char, c_int
      integer(c_int), value :: event
      character(kind=c_char), intent(in) :: name(*)
    end subroutine recorder_call
  end interface

  interface
    function find_symbol(handle, name) result(address) bind(c, name="dlsym")
      import :: c_char, c_funptr, c_ptr
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: name(*)
      type(c_funptr) :: address
    end function find_symbol
  end interface

  integer(c_int), parameter :: begins = 1, ends = 2
  logical :: looked = .false.
  procedure(recorder_call), pointer :: recorder => null()

contains

  ! Blanks at the end of the name are no part of it.
  subroutine weir_phase_begin(name)
    character(len=*), intent(in) :: name
    call mark(begins, name)
  end subroutine weir_phase_begin

  subroutine weir_phase_end(name)
    character(len=*), intent(in) :: name
    call mark(ends, name)
  end subroutine weir_phase_end

  subroutine mark(event, name)
    integer(c_int), intent(in) :: event
    character(len=*), intent(in) :: name
    type(c_funptr) :: address
    if (.not. looked) then
      address = find_symbol(c_null_ptr, "weir_phase_event" // c_null_char)
      if (c_associated(address)) call c_f_procpointer(address, recorder)
      looked = .true.
    end if
    if (associated(recorder)) call recorder(event, trim(name) // c_null_char)
  end subroutine mark

end module weir_phase
