! SPDX-License-Identifier: Apache-2.0
module sw_kinds
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none (type, external)
  private
  integer, parameter, public :: r8 = real64
  real(r8), parameter, public :: gravity = 9.80616_r8 !< m s-2
  real(r8), parameter, public :: pi = 3.14159265358979323846_r8
end module sw_kinds
