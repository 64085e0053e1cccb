! SPDX-License-Identifier: Apache-2.0
!> The iomap of a data base: a few lines of text that say which pools each group of files has. Every
!  rank that opens the
!> base reads it, in one small request, and makes sure that the base has the pools it expects.
module fdv_odb_iomap
  use fdv_kinds, only: i8
  use fdv_fail, only: fail, text
  use fdv_clib, only: posix_file
  use fdv_file, only: block_64k, file_t
  use fdv_odb_layout, only: base_name, group_count, iomap_file, pool_range
  implicit none (type, external)
  private
  public :: iomap_write, iomap_read

  integer, parameter :: line_len = 40

contains

  !> [one rank]
  subroutine iomap_write(kind)
    integer, intent(in) :: kind
    type(file_t) :: file
    character(line_len), allocatable :: lines(:)
    call file%open(iomap_file(kind), posix_file, .true., block_64k)
    lines = expected_lines(kind)
    call file%put(lines, size(lines, kind=i8) * line_len)
    call file%finish()
  end subroutine iomap_write

  !> [any rank]
  subroutine iomap_read(kind)
    integer, intent(in) :: kind
    type(file_t) :: file
    character(line_len), allocatable :: lines(:), expected(:)
    integer :: i
    expected = expected_lines(kind)
    call file%open(iomap_file(kind), posix_file, .false., block_64k)
    if (file%bytes /= size(expected, kind=i8) * line_len) &
      call fail(iomap_file(kind), 'lines', text(size(expected)), text(file%bytes / line_len))
    allocate (lines(size(expected)))
    call file%get(lines, file%bytes)
    do i = 1, size(lines)
      if (lines(i) /= expected(i)) call fail(iomap_file(kind), 'line ' // text(i), '"' &
          // trim(expected(i)(:line_len - 1)) // &
        '"', '"' // trim(lines(i)(:line_len - 1)) // '"', &
            'the base was made for other pools, or the file was changed')
    end do
    call file%finish()
  end subroutine iomap_read

  function expected_lines(kind) result(lines)
    integer, intent(in) :: kind
    character(line_len), allocatable :: lines(:)
    integer :: g
    allocate (lines(0:group_count()))
    write (lines(0), '(a,1x,a,i5,a)') 'iomap', base_name(kind), group_count(), ' groups'
    do g = 1, group_count()
      write (lines(g), '(a,i5,a,i5,a,i5)') 'group', g, ' pools', minval(pool_range(g)), ' to', &
          maxval(pool_range(g))
    end do
    lines(:)(line_len:) = new_line('a')
  end function expected_lines

end module fdv_odb_iomap
