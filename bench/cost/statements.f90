! SPDX-License-Identifier: Apache-2.0
! The same for a Fortran WRITE statement of one real: unformatted, sequential.
!
!   statements LOOP COUNT DIRECTORY     prints: LOOP COUNT wall_ns cpu_ns
program statements
  use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_long
  implicit none

  type, bind(c) :: timespec
    integer(c_long) :: seconds, ns
  end type timespec

  interface
    integer(c_int) function clock_gettime(clock, t) bind(c)
      import :: c_int, timespec
      integer(c_int), value :: clock
      type(timespec), intent(out) :: t
    end function clock_gettime
  end interface

  integer(c_int), parameter :: monotonic = 1, process_cpu = 2
  character(len=4096) :: loop, count_text, directory
  integer(c_int64_t) :: i, count, wall, cpu
  integer :: unit
  real :: x

  call get_command_argument(1, loop)
  call get_command_argument(2, count_text)
  call get_command_argument(3, directory)
  read (count_text, *) count
  open (newunit=unit, file=trim(directory)//"/data", form="unformatted", status="replace", &
      action="write")
  x = 1.0
  wall = now(monotonic)
  cpu = now(process_cpu)
  do i = 1, count
    write (unit) x
  end do
  cpu = now(process_cpu) - cpu
  wall = now(monotonic) - wall
  close (unit)
  print "(a, 3(1x, i0))", trim(loop), count, wall, cpu

contains

  integer(c_int64_t) function now(clock)
    integer(c_int), intent(in) :: clock
    type(timespec) :: t
    integer(c_int) :: failed
    failed = clock_gettime(clock, t)
    if (failed /= 0) error stop "clock_gettime"
    now = t%seconds * 1000000000_c_int64_t + t%ns
  end function now
end program statements
