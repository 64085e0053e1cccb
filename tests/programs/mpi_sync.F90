! SPDX-License-Identifier: Apache-2.0
! As mpi_sync.c, in the three interfaces of Fortran: -DMPIFH, -DF90, -DF08. Four ranks.
program p
#if defined F08
  use mpi_f08
#elif defined F90
  use mpi
#endif
  implicit none
#if defined MPIFH
  include 'mpif.h'
#endif
#if defined F08
  type(mpi_comm) :: half, copy
  type(mpi_request) :: requests(4)
  type(mpi_status) :: status, statuses(4)
#define SOURCE_OF(s) s%mpi_source
#else
  integer :: half, copy, requests(4), status(mpi_status_size), statuses(mpi_status_size, 4)
#define SOURCE_OF(s) s(mpi_source)
#endif
  integer :: rank, i, indices(4), done, found, ierr
  integer :: a(64), b(64)
  logical :: flag
  a = 0
  call mpi_init(ierr)
  call mpi_comm_rank(mpi_comm_world, rank, ierr)
  call mpi_barrier(mpi_comm_world, ierr)
  call mpi_bcast(a, 3, mpi_integer, 1, mpi_comm_world, ierr)
  call mpi_allreduce(a, b, 2, mpi_double_precision, mpi_sum, mpi_comm_world, ierr)
  call mpi_gather(a, 6, mpi_integer, b, 6, mpi_integer, 2, mpi_comm_world, ierr)
  call mpi_comm_split(mpi_comm_world, mod(rank, 2), 0, half, ierr)
  call mpi_comm_dup(half, copy, ierr)
  call mpi_barrier(copy, ierr)
  call mpi_comm_free(half, ierr)
  if (rank == 0) then
    call mpi_probe(mpi_any_source, 1, mpi_comm_world, status, ierr)
    call mpi_recv(b, 64, mpi_integer, SOURCE_OF(status), 1, mpi_comm_world, mpi_status_ignore, ierr)
    do i = 1, 3
      call mpi_irecv(b, 64, mpi_integer, mpi_any_source, 1 + i, mpi_comm_world, requests(i), ierr)
    end do
    call mpi_waitall(3, requests, mpi_statuses_ignore, ierr)
    do i = 1, 3
      call mpi_irecv(b, 64, mpi_integer, i, 10, mpi_comm_world, requests(i), ierr)
    end do
    call mpi_waitany(3, requests, found, status, ierr)
    call mpi_waitany(3, requests, found, mpi_status_ignore, ierr)
    call mpi_waitsome(3, requests, done, indices, statuses, ierr)
    call mpi_irecv(b, 64, mpi_integer, 1, 11, mpi_comm_world, requests(1), ierr)
    flag = .false.
    do while (.not. flag)
      call mpi_test(requests(1), flag, mpi_status_ignore, ierr)
    end do
  else
    if (rank == 2) call mpi_send(a, 9, mpi_integer, 0, 1, mpi_comm_world, ierr)
    call mpi_ssend(a, rank, mpi_integer, 0, 1 + rank, mpi_comm_world, ierr)
    call mpi_isend(a, rank, mpi_integer, 0, 10, mpi_comm_world, requests(1), ierr)
    call mpi_wait(requests(1), mpi_status_ignore, ierr)
    if (rank == 1) call mpi_send(a, 1, mpi_integer, 0, 11, mpi_comm_world, ierr)
  end if
  call mpi_sendrecv(a, 1, mpi_integer, mod(rank + 1, 4), 5, b, 4, mpi_integer, mod(rank + 3, 4), &
      5, mpi_comm_world, status, ierr)
  if (SOURCE_OF(status) /= mod(rank + 3, 4)) error stop 'wrong source'
  call mpi_ibarrier(mpi_comm_world, requests(1), ierr)
  call mpi_wait(requests(1), status, ierr)
  call mpi_finalize(ierr)
end program
