! SPDX-License-Identifier: Apache-2.0
!> The log of a step: formatted lines of rank 0 on unit 61, in NODE.001_01.<step>.
module fdv_log
  use fdv_kinds, only: r8
  use fdv_fail, only: fail
  use fdv_par, only: rank
  implicit none (type, external)
  private
  public :: log_open, log_close, log_values

  integer, parameter :: unit = 61

contains

  !> [any rank] Only rank 0 writes; others return.
  subroutine log_open(step)
    character(*), intent(in) :: step
    integer :: status
    character(200) :: message
    if (rank /= 0) return
    open (unit, file='NODE.001_01.' // step, form='formatted', status='replace', action='write', &
        iostat=status, &
          iomsg=message)
    if (status /= 0) call fail('NODE.001_01.' // step, 'open', 'a writable directory', message)
  end subroutine log_open

  subroutine log_values(what, number, values)
    character(*), intent(in) :: what
    integer, intent(in) :: number
    real(r8), intent(in) :: values(:)
    if (rank == 0) write (unit, '(1x,a20,i8,8es18.9)') what, number, values
  end subroutine log_values

  subroutine log_close()
    if (rank == 0) close (unit)
  end subroutine log_close

end module fdv_log
