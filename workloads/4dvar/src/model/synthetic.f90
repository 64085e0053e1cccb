! SPDX-License-Identifier: Apache-2.0
!> The values that the step prepare makes: smooth fields and reproducible noise, functions of the
!  seed and of indices only.
module fdv_synthetic
  use fdv_kinds, only: i8, r8
  use fdv_config, only: levels, points, seed
  implicit none (type, external)
  private
  public :: noise, grid_truth

contains

  !> Uniform in (0, 1); splitmix64 (Steele, Lea, Flood 2014) of the seed and three indices.
  pure function noise(a, b, c) result(x)
    integer, intent(in) :: a, b, c
    real(r8) :: x
    integer(i8) :: z
    z = int(seed, i8) + 1000003_i8 * a + 69069_i8 * ishft(int(b, i8), 20) + ishft(int(c, i8), 44)
    z = z * (-7046029254386353131_i8)
    z = ieor(z, ishft(z, -30)) * (-4658895280553007687_i8)
    z = ieor(z, ishft(z, -27)) * (-7723592293110705685_i8)
    z = ieor(z, ishft(z, -31))
    x = (real(ishft(z, -12), r8) + 0.5_r8) / 4503599627370496.0_r8
  end function noise

  !> The field that is to be found by the analysis, at a grid point, level and gridded parameter.
  pure function grid_truth(point, level, param) result(x)
    integer, intent(in) :: point, level, param
    real(r8) :: x, place, height
    real(r8), parameter :: pi = 3.14159265358979_r8
    place = real(point, r8) / points
    height = real(level, r8) / levels
    x = param + sin(14 * pi * place) * cos(pi * height) + 0.3_r8 * cos(50 * pi * place + param)
  end function grid_truth

end module fdv_synthetic
