! SPDX-License-Identifier: Apache-2.0
!> Results of a step as GRIB files under the long names of a fields data base; the job script links
!  them to the names that the
!> next step reads.
module fdv_fdb
  use fdv_fail, only: fail
  use fdv_clib, only: c_mkdir, c_name, error_text
  use fdv_config, only: expver
  use fdv_par, only: rank
  use fdv_state, only: gg, lnsp, sp, write_gridded, write_spectral
  implicit none (type, external)
  private
  public :: fdb_write

  character(*), parameter :: directory = 'fdb/:rd:oper:g:' // expver // ':20091220::'

contains

  !> [collective] The state in memory, spectral and, with_grid, gridded.
  subroutine fdb_write(step, with_grid)
    character(*), intent(in) :: step
    logical, intent(in) :: with_grid
    integer :: error
    if (rank == 0) then
      error = c_mkdir(c_name('fdb'))
      if (error == 0) error = c_mkdir(c_name(directory))
      if (error /= 0) call fail(directory, 'directory', 'one that can be made', error_text(error))
    end if
    call write_spectral(directory // '/:0:0:0:4v:' // step // ':sh', sp, lnsp)
    if (with_grid) call write_gridded(directory // '/:0:0:0:4v:' // step // ':gg', gg)
  end subroutine fdb_write

end module fdv_fdb
