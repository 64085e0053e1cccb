! SPDX-License-Identifier: Apache-2.0
!> The ranks: who am I, which part of a vector is mine, and the exchanges the steps need. All
!  procedures are collective
!> over MPI_COMM_WORLD unless they say otherwise.
module fdv_par
  use mpi_f08
  use fdv_kinds, only: i8, r8
  implicit none (type, external)
  private
  public :: par_init, par_end, partition, owner_of, scatter_part, gather_part, exchange_rows
  public :: sum_all, sum_all_vector, sum_all_counts, wait_all, from_rank0
  integer, public, protected :: rank = 0, ranks = 1

  interface from_rank0
    module procedure bcast_i4, bcast_r8, bcast_text
  end interface

contains

  subroutine par_init()
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  end subroutine par_init

  subroutine par_end()
    call MPI_Finalize()
  end subroutine par_end

  subroutine wait_all()
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine wait_all

  !> [not collective] first(t) is the first of n items that rank t owns, first(ranks) = n + 1;
  !  blocks of nearly equal size.
  pure function partition(n) result(first)
    integer, intent(in) :: n
    integer :: first(0:ranks), t
    do t = 0, ranks
      first(t) = int(int(n, i8) * t / ranks) + 1
    end do
  end function partition

  !> [not collective] Rank that owns item i of a partition.
  pure function owner_of(i, first) result(t)
    integer, intent(in) :: i, first(0:)
    integer :: t
    t = min(ranks - 1, int(int(i, i8) * ranks / max(1, first(ranks) - 1)))
    do while (i < first(t))
      t = t - 1
    end do
    do while (i >= first(t + 1))
      t = t + 1
    end do
  end function owner_of

  !> Rank 0 hands each rank its part of whole; whole is looked at on rank 0 only.
  subroutine scatter_part(whole, first, part)
    real(r8), intent(in) :: whole(:)
    integer, intent(in) :: first(0:)
    real(r8), intent(out) :: part(:)
    call MPI_Scatterv(whole, first(1:ranks) - first(0:ranks - 1), first(0:ranks - 1) - 1, &
        MPI_DOUBLE_PRECISION, &
                      part, size(part), MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
  end subroutine scatter_part

  !> The reverse of scatter_part.
  subroutine gather_part(part, first, whole)
    real(r8), intent(in) :: part(:)
    integer, intent(in) :: first(0:)
    real(r8), intent(inout) :: whole(:)
    call MPI_Gatherv(part, size(part), MPI_DOUBLE_PRECISION, whole, first(1:ranks) &
        - first(0:ranks - 1), &
                     first(0:ranks - 1) - 1, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
  end subroutine gather_part

  !> Sends column j of rows to rank dest(j). received holds the columns sent here, by sender and
  !  then in the sender's order.
  subroutine exchange_rows(rows, dest, received)
    real(r8), intent(in) :: rows(:, :)
    integer, intent(in) :: dest(:)
    real(r8), allocatable, intent(out) :: received(:, :)
    integer :: send(0:ranks - 1), recv(0:ranks - 1), send_at(0:ranks - 1), recv_at(0:ranks - 1), &
        at(0:ranks - 1)
    integer :: j, t, w
    real(r8), allocatable :: sorted(:, :)
    w = size(rows, 1)
    send = 0
    do j = 1, size(dest)
      send(dest(j)) = send(dest(j)) + 1
    end do
    call MPI_Alltoall(send, 1, MPI_INTEGER, recv, 1, MPI_INTEGER, MPI_COMM_WORLD)
    send_at(0) = 0; recv_at(0) = 0
    do t = 1, ranks - 1
      send_at(t) = send_at(t - 1) + send(t - 1)
      recv_at(t) = recv_at(t - 1) + recv(t - 1)
    end do
    allocate (sorted(w, size(dest)), received(w, sum(recv)))
    at = send_at
    do j = 1, size(dest)
      at(dest(j)) = at(dest(j)) + 1
      sorted(:, at(dest(j))) = rows(:, j)
    end do
    call MPI_Alltoallv(sorted, send * w, send_at * w, MPI_DOUBLE_PRECISION, &
                       received, recv * w, recv_at * w, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD)
  end subroutine exchange_rows

  function sum_all(x) result(total)
    real(r8), intent(in) :: x
    real(r8) :: total
    call MPI_Allreduce(x, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  end function sum_all

  subroutine sum_all_vector(x)
    real(r8), intent(inout) :: x(:)
    call MPI_Allreduce(MPI_IN_PLACE, x, size(x), MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  end subroutine sum_all_vector

  subroutine sum_all_counts(n)
    integer(i8), intent(inout) :: n(:, :)
    call MPI_Allreduce(MPI_IN_PLACE, n, size(n), MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD)
  end subroutine sum_all_counts

  subroutine bcast_i4(i)
    integer, intent(inout) :: i
    call MPI_Bcast(i, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
  end subroutine bcast_i4

  subroutine bcast_r8(x)
    real(r8), intent(inout) :: x(:)
    call MPI_Bcast(x, size(x), MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
  end subroutine bcast_r8

  subroutine bcast_text(s)
    character(*), intent(inout) :: s(:)
    call MPI_Bcast(s, len(s) * size(s), MPI_CHARACTER, 0, MPI_COMM_WORLD)
  end subroutine bcast_text

end module fdv_par
