! SPDX-License-Identifier: Apache-2.0
!> One time step of a model simple enough to be understood at once: implicit horizontal diffusion
!  and a solid-body rotation
!> of the spectral fields, implicit vertical diffusion of the gridded ones. All of it is local to a
!  rank. Beside it, the
!> computing that stands for everything else a forecast model does.
module fdv_dynamics
  use mpi_f08, only: MPI_Wtime
  use fdv_kinds, only: r8
  use fdv_config, only: levels, truncation
  use fdv_state, only: gg, lnsp, sp, wavenumber
  use fdv_par, only: sum_all, rank
  implicit none (type, external)
  private
  public :: model_step, model_norms, compute_for

  real(r8), allocatable :: work(:)

contains

  subroutine model_step()
    integer :: l, p
    do p = 1, size(sp, 3)
      do l = 1, levels
        call spectral_step(sp(:, l, p))
      end do
    end do
    call spectral_step(lnsp)
    do p = 1, size(gg, 3)
      call vertical_diffusion(gg(:, :, p))
    end do
  end subroutine model_step

  !> Pairs of values are complex coefficients; the angle grows with the wavenumber, so shapes
  !  change.
  subroutine spectral_step(x)
    real(r8), intent(inout) :: x(:)
    real(r8), parameter :: turn = 0.01_r8, damp = 0.001_r8
    real(r8) :: re, im, angle, factor, relative
    integer :: i
    do i = 1, size(x) - 1, 2
      relative = real(wavenumber(i), r8) / truncation
      angle = turn * relative
      factor = 1 / (1 + damp * relative**4)
      re = x(i); im = x(i + 1)
      x(i) = factor * (re * cos(angle) - im * sin(angle))
      x(i + 1) = factor * (re * sin(angle) + im * cos(angle))
    end do
  end subroutine spectral_step

  !> Backward Euler with no flux at top and bottom: the Thomas algorithm on each column.
  subroutine vertical_diffusion(x)
    real(r8), intent(inout) :: x(:, :)
    real(r8), parameter :: k = 0.002_r8
    real(r8) :: upper(levels), diagonal
    integer :: i, l
    do i = 1, size(x, 1)
      upper(1) = -k / (1 + k)
      x(i, 1) = x(i, 1) / (1 + k)
      do l = 2, levels
        diagonal = 1 + merge(k, 2 * k, l == levels) + k * upper(l - 1)
        upper(l) = -k / diagonal
        x(i, l) = (x(i, l) + k * x(i, l - 1)) / diagonal
      end do
      do l = levels - 1, 1, -1
        x(i, l) = x(i, l) - upper(l) * x(i, l + 1)
      end do
    end do
  end subroutine vertical_diffusion

  !> [collective] Root of the sum of squares of all spectral and of all gridded values.
  subroutine model_norms(spectral, gridded)
    real(r8), intent(out) :: spectral, gridded
    spectral = sqrt(sum_all(sum(sp**2)))
    gridded = sqrt(sum_all(sum(gg**2)))
  end subroutine model_norms

  !> Relaxes a one-dimensional Poisson problem for about so many seconds; ranks differ by up to a
  !  tenth, as the physics of
  !> day and night do. Returns the residual, so that the work is wanted.
  function compute_for(seconds) result(residual)
    real(r8), intent(in) :: seconds
    real(r8) :: residual, until
    integer, parameter :: n = 8192
    integer :: i, sweep
    until = MPI_Wtime() + seconds * (1 - 0.1_r8 * mod(rank * 7, 11) / 10)
    if (.not. allocated(work)) then
      allocate (work(0:n + 1))
      work = [(sin(0.01_r8 * i), i=0, n + 1)]
    end if
    residual = 0
    do while (MPI_Wtime() < until)
      do sweep = 1, 20
        do i = 1, n
          work(i) = 0.5_r8 * (work(i - 1) + work(i + 1)) + 1.0e-9_r8
        end do
      end do
      residual = abs(work(n / 2) - work(n / 2 + 1))
    end do
  end function compute_for

end module fdv_dynamics
