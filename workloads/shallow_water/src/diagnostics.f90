! SPDX-License-Identifier: Apache-2.0
!> Sums over a domain: what the scheme conserves, and what grows when a jet is unstable.
module sw_diagnostics
  use mpi_f08, only: MPI_Allreduce, MPI_DOUBLE_PRECISION, MPI_IN_PLACE, MPI_SUM
  use sw_dynamics, only: domain_t, ih, iu, iv
  use sw_kinds, only: gravity, r8
  implicit none (type, external)
  private
  public :: sums_t, sums_of

  type :: sums_t
    real(r8) :: mass = 0      !< m3
    real(r8) :: energy = 0    !< kinetic and potential, m5 s-2 (per density)
    real(r8) :: eddy = 0      !< kinetic energy of the meridional wind
  end type sums_t

contains

  !> [collective] The energy is the one that the discrete equations conserve.
  function sums_of(d) result(s)
    type(domain_t), intent(in) :: d
    type(sums_t) :: s
    real(r8) :: total(3), uh, vh
    integer :: i, j
    total = 0
    associate (x => d%state)
      do j = 1, d%tile%nj
        do i = 1, d%tile%ni
          uh = 0.5_r8 * (x(i - 1, j, ih) + x(i, j, ih)) * x(i, j, iu)
          vh = 0.5_r8 * (x(i, j - 1, ih) + x(i, j, ih)) * x(i, j, iv)
          total(1) = total(1) + x(i, j, ih)
          total(2) = total(2) + 0.5_r8 * (gravity * x(i, j, ih)**2 + uh * x(i, j, iu) + vh * x(i, &
              j, iv))
          total(3) = total(3) + 0.5_r8 * vh * x(i, j, iv)
        end do
      end do
    end associate
    call MPI_Allreduce(MPI_IN_PLACE, total, 3, MPI_DOUBLE_PRECISION, MPI_SUM, d%tile%comm)
    total = total * d%dx * d%dy
    s = sums_t(total(1), total(2), total(3))
  end function sums_of
end module sw_diagnostics
