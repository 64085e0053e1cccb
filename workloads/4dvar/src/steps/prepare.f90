! SPDX-License-Identifier: Apache-2.0
!> The step prepare: makes all that the first trajectory reads, by rank 0 alone.
module fdv_prepare
  use fdv_kinds, only: r8
  use fdv_fail, only: fail
  use fdv_clib, only: c_link, c_mkdir, c_name, error_text
  use fdv_config
  use fdv_ecma, only: ecma_make
  use fdv_grib, only: grib_writer_t
  use fdv_increments, only: predictors, varbc_write
  use fdv_par, only: rank
  use fdv_state, only: gridded_params, spectral_params, surface_param
  use fdv_synthetic, only: grid_truth, noise
  use fdv_waves, only: wavelet_write, waves_write
  implicit none (type, external)
  private
  public :: find_points, prepare

contains

  !> [any rank] The number of points of the grid, from ecCodes' sample.
  subroutine find_points()
    type(grib_writer_t) :: writer
    call writer%open('', spectral=.false.)
    call config_points(writer%values)
    call writer%finish()
  end subroutine find_points

  !> [rank 0]
  subroutine prepare()
    integer :: error, k
    real(r8) :: no_bias(predictors, types)
    if (rank /= 0) return
    call config_write()
    error = c_mkdir(c_name('init'))
    if (error /= 0) call fail('init', 'directory', 'one that can be made', error_text(error))
    call make_spectral('INIT', 1)
    call make_spectral('BGHR', 2)
    call make_gridded('INIUA', fields, 0.2_r8)
    call make_gridded('BGHRUA', min(2, fields), 0.3_r8)
    call waves_write()
    call wavelet_write()
    no_bias = 0
    call varbc_write(no_bias)
    do k = 1, types
      call ecma_make(k)
    end do
  end subroutine prepare

  !> The file lies in init and is read through a link, which the job script may turn to the output
  !  of a later step.
  subroutine link(name)
    character(*), intent(in) :: name
    integer :: error
    error = c_link(c_name('init/' // name), c_name(name))
    if (error /= 0) call fail(name, 'link', 'one that can be made', error_text(error))
  end subroutine link

  subroutine make_spectral(name, kind)
    character(*), intent(in) :: name
    integer, intent(in) :: kind
    type(grib_writer_t) :: writer
    integer :: p, l
    call writer%open('init/ICMSH' // expver // name, spectral=.true.)
    do p = 1, size(spectral_params)
      do l = 1, levels
        call writer%put(spectral_params(p), l, spectrum(kind, p * 1000 + l, writer%values))
      end do
    end do
    call writer%put(surface_param, 1, spectrum(kind, 0, writer%values))
    call writer%finish()
    call link('ICMSH' // expver // name)
  end subroutine make_spectral

  !> Random coefficients that fall with the third power of the wavenumber, as the atmosphere's do.
  function spectrum(kind, id, n) result(x)
    integer, intent(in) :: kind, id, n
    real(r8) :: x(n)
    integer :: m, k, at
    at = 0
    do m = 0, truncation
      do k = m, truncation
        x(at + 1) = (noise(50 + kind, id, at) - 0.5_r8) / (1 + k)**3
        x(at + 2) = merge(0.0_r8, (noise(50 + kind, id, at + 1) - 0.5_r8) / (1 + k)**3, m == 0)
        at = at + 2
      end do
    end do
  end function spectrum

  subroutine make_gridded(name, n, amplitude)
    character(*), intent(in) :: name
    integer, intent(in) :: n
    real(r8), intent(in) :: amplitude
    type(grib_writer_t) :: writer
    real(r8) :: x(points)
    integer :: p, l, i
    call writer%open('init/ICMGG' // expver // name, spectral=.false.)
    do p = 1, n
      do l = 1, levels
        x = [(grid_truth(i, l, p) + amplitude * sin(60 * real(i, r8) / points + l), i=1, points)]
        call writer%put(gridded_params(p), l, x)
      end do
    end do
    call writer%finish()
    call link('ICMGG' // expver // name)
  end subroutine make_gridded

end module fdv_prepare
