! SPDX-License-Identifier: Apache-2.0
!> Files that rank 0 reads for all: the wave model's spectra (specwavein, Fortran records) and
!  sub-grid information
!> (wam_subgrid_<N>, large reads), and the background error covariances (wavelet.cv, very many small
!  records).
module fdv_waves
  use fdv_kinds, only: i8, r8
  use fdv_fail, only: text
  use fdv_clib, only: posix_file
  use fdv_config, only: levels, subgrid_values, subgrids, truncation, wave_records, wave_values
  use fdv_file, only: block_4m, file_t
  use fdv_par, only: from_rank0, rank
  use fdv_synthetic, only: noise
  use fdv_unit, only: unit_t
  implicit none (type, external)
  private
  public :: waves_write, waves_read, wavelet_write, wavelet_read, wavelet_bands

contains

  integer function wavelet_bands()
    wavelet_bands = 16 * (truncation + 1)
  end function wavelet_bands

  !> [one rank]
  subroutine waves_write()
    type(unit_t) :: spectra
    type(file_t) :: subgrid
    real(r8) :: record(wave_values)
    real(r8), allocatable :: values(:)
    integer :: i, j
    call spectra%open('specwavein', 'unformatted', writing=.true.)
    do i = 1, wave_records
      record = [(noise(1, i, j), j=1, wave_values)]
      call spectra%put(record)
    end do
    call spectra%finish()
    do i = 0, subgrids - 1
      values = [(noise(2, i, j), j=1, subgrid_values)]
      call subgrid%open('wam_subgrid_' // text(i), posix_file, .true., block_4m)
      call subgrid%put(values, 8 * size(values, kind=i8))
      call subgrid%finish()
    end do
  end subroutine waves_write

  !> [collective] Mean of all spectra and of all sub-grid values, on all ranks.
  subroutine waves_read(means)
    real(r8), intent(out) :: means(2)
    type(unit_t) :: spectra
    type(file_t) :: subgrid
    real(r8) :: record(wave_values), values(subgrid_values)
    integer :: i
    means = 0
    if (rank == 0) then
      call spectra%open('specwavein', 'unformatted', writing=.false.)
      do i = 1, wave_records
        call spectra%get(record)
        means(1) = means(1) + sum(record) / (real(wave_records, r8) * wave_values)
      end do
      call spectra%finish()
      do i = 0, subgrids - 1
        call subgrid%open('wam_subgrid_' // text(i), posix_file, .false., block_4m)
        call subgrid%get(values, 8 * size(values, kind=i8))
        means(2) = means(2) + sum(values) / (real(subgrids, r8) * subgrid_values)
        call subgrid%finish()
      end do
    end if
    call from_rank0(means)
  end subroutine waves_read

  !> [one rank] A vertical correlation matrix for each band, one record for each row.
  subroutine wavelet_write()
    type(unit_t) :: unit
    real(r8) :: row(levels), width
    integer :: band, l, k
    call unit%open('wavelet.cv', 'unformatted', writing=.true.)
    do band = 1, wavelet_bands()
      width = 0.5_r8 + noise(3, band, 0)
      do l = 1, levels
        row = [(0.2_r8 * exp(-((l - k) / width)**2), k=1, levels)]
        call unit%put(row)
      end do
    end do
    call unit%finish()
  end subroutine wavelet_write

  !> [collective] matrices(:, :, band) on all ranks.
  subroutine wavelet_read(matrices)
    real(r8), allocatable, target, intent(out) :: matrices(:, :, :)
    real(r8), pointer, contiguous :: flat(:)
    type(unit_t) :: unit
    integer :: band, l
    allocate (matrices(levels, levels, wavelet_bands()))
    if (rank == 0) then
      call unit%open('wavelet.cv', 'unformatted', writing=.false.)
      do band = 1, wavelet_bands()
        do l = 1, levels
          call unit%get(matrices(:, l, band))
        end do
      end do
      call unit%finish()
    end if
    flat(1:size(matrices)) => matrices
    call from_rank0(flat)
  end subroutine wavelet_read

end module fdv_waves
