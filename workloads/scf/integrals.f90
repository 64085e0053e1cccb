! SPDX-License-Identifier: Apache-2.0
!> The records of two-electron integrals: how many are in each, which, and their values, all known
!  from file and number.
!> A record: count (negative in the last one), that many labels (four indices of one byte in each),
!  that many values.
module scf_integrals
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  implicit none (type, external)
  private
  public :: record_count, fill, record_bytes
  integer, parameter, public :: overhead_bytes = 4 + 8 ! count, and the two markers around a record

contains

  !> Steele, Lea and Flood's mixing function; sums and products of 64 bits wrap.
  elemental function mix(file, number) result(x)
    integer, intent(in) :: file
    integer(int64), intent(in) :: number
    integer(int64) :: x
    x = ieor(ishft(int(file, int64), 44), number) + (-7046029254386353131_int64)
    x = ieor(x, ishft(x, -30)) * (-4658895280553007687_int64)
    x = ieor(x, ishft(x, -27)) * (-7723592293110705685_int64)
    x = ieor(x, ishft(x, -31))
  end function mix

  !> Integrals in record `number` of a file.
  integer function record_count(file, number, smallest, largest)
    integer, intent(in) :: file, number, smallest, largest
    record_count = smallest + int(modulo(mix(file + 65536, int(number, int64)), int(largest &
        - smallest + 1, int64)))
  end function record_count

  !> Bytes that a record of n integrals takes in the file.
  integer(int64) function record_bytes(n)
    integer, intent(in) :: n
    record_bytes = overhead_bytes + 12_int64 * n
  end function record_bytes

  !> Labels and values of all integrals of a record; indices are below `basis`.
  subroutine fill(file, number, basis, labels, values)
    integer, intent(in) :: file, number, basis
    integer(int32), intent(out) :: labels(:)
    real(real64), intent(out) :: values(:)
    integer(int64) :: x
    integer :: i, k, index
    do i = 1, size(labels)
      x = mix(file, ishft(int(number, int64), 16) + i)
      values(i) = real(ibits(x, 0, 52), real64) * 2.0_real64**(-52) - 0.5_real64
      labels(i) = 0
      do k = 0, 3
        index = mod(int(ibits(x, 12 * k, 12)), basis)
        labels(i) = ior(labels(i), ishft(int(index, int32), 8 * k))
      end do
    end do
  end subroutine fill
end module scf_integrals
