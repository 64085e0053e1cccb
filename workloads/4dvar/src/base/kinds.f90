! SPDX-License-Identifier: Apache-2.0
!> The kinds every other module uses, and nothing else.
module fdv_kinds
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  implicit none (type, external)
  private
  integer, parameter, public :: i4 = int32, i8 = int64, r8 = real64
  integer, parameter, public :: name_len = 128
end module fdv_kinds
