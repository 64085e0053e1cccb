! SPDX-License-Identifier: Apache-2.0
!> Self-consistent field iterations of a computational chemistry code: each rank reads a file of its
!  own, sequential and unformatted,
!> of N**4 integrals, once in every iteration, and assembles its part of a matrix of N**2 elements.
!  --setup writes the files.
program scf
  use, intrinsic :: iso_c_binding, only: c_int
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64, output_unit
  use mpi_f08
  use scf_integrals
  use scf_options
  implicit none (type, external)
  real(real64), parameter :: shortest_sleep_s = 1e-3_real64
  interface
    integer(c_int) function usleep(microseconds) bind(c)
      import :: c_int
      integer(c_int), value :: microseconds
    end function usleep
  end interface
  integer :: rank, ranks
  character(:), allocatable :: file
  integer(int32), allocatable :: labels(:), expected_labels(:)
  real(real64), allocatable :: values(:), expected(:), fock(:, :), density(:, :)
  real(real64) :: io_wait_s, started, energy
  integer(int64) :: statements, bytes, wrong

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call read_options()
  allocate (labels(largest), expected_labels(largest), values(largest), expected(largest))
  allocate (fock(0:basis - 1, 0:basis - 1), density(0:basis - 1, 0:basis - 1))
  file = dir // '/integrals.' // number_text(rank)
  io_wait_s = 0
  statements = 0
  bytes = 0
  wrong = 0
  energy = 0
  call MPI_Barrier(MPI_COMM_WORLD)
  started = MPI_Wtime()
  if (setup) then
    call write_file()
  else
    call iterate()
  end if
  call end_if_failed()
  call MPI_Barrier(MPI_COMM_WORLD)
  call results(MPI_Wtime() - started)
  call MPI_Finalize()
  if (wrong /= 0) stop 1, quiet=.true.

contains

  function number_text(n) result(s)
    integer, intent(in) :: n
    character(4) :: s
    write (s, '(i4.4)') n
  end function number_text

  subroutine write_file()
    integer :: unit, record, n, status
    integer(int64) :: total
    real(real64) :: begun
    character(200) :: message
    message = ''
    begun = MPI_Wtime()
    open (newunit=unit, file=file, form='unformatted', access='sequential', action='write', &
        status='replace', iostat=status, &
      iomsg=message)
    io_wait_s = io_wait_s + MPI_Wtime() - begun
    if (status /= 0) then
      call fail(file // ': ' // trim(message))
      return
    end if
    total = 0
    record = 0
    do while (total < megabytes * 1e6_real64 .and. .not. failed)
      record = record + 1
      n = record_count(rank, record, smallest, largest)
      call fill(rank, record, basis, labels(:n), values(:n))
      total = total + record_bytes(n)
      begun = MPI_Wtime()
      write (unit, iostat=status, iomsg=message) merge(n, -n, total < megabytes * 1e6_real64), &
          labels(:n), values(:n)
      io_wait_s = io_wait_s + MPI_Wtime() - begun
      if (status /= 0) call fail(file // ': ' // trim(message))
      statements = statements + 1
    end do
    bytes = total
    begun = MPI_Wtime()
    close (unit, iostat=status, iomsg=message)
    io_wait_s = io_wait_s + MPI_Wtime() - begun
    if (status /= 0) call fail(file // ': ' // trim(message))
  end subroutine write_file

  subroutine iterate()
    integer :: unit, iteration, status
    real(real64) :: begun
    character(200) :: message
    message = ''
    begun = MPI_Wtime()
    open (newunit=unit, file=file, form='unformatted', access='sequential', action='read', &
        status='old', iostat=status, &
      iomsg=message)
    io_wait_s = io_wait_s + MPI_Wtime() - begun
    if (status /= 0) call fail(file // ': ' // trim(message))
    call end_if_failed()
    density = 1.0_real64 / basis
    do iteration = 1, iterations
      fock = 0
      call read_records(unit)
      call end_if_failed()
      call MPI_Allreduce(MPI_IN_PLACE, fock, basis * basis, MPI_DOUBLE_PRECISION, MPI_SUM, &
          MPI_COMM_WORLD)
      energy = sum(fock * density)
      density = 0.5_real64 * density + 0.5_real64 * fock / max(1.0_real64, sqrt(sum(fock**2)))
      begun = MPI_Wtime()
      rewind (unit)
      io_wait_s = io_wait_s + MPI_Wtime() - begun
    end do
    close (unit)
  end subroutine iterate

  !> One iteration: every record of the file, up to the one that says it is the last.
  subroutine read_records(unit)
    integer, intent(in) :: unit
    integer :: record, n, status
    integer(int64) :: done
    real(real64) :: begun, computed_s
    character(200) :: message
    record = 0
    n = 1
    done = 0
    computed_s = 0
    message = ''
    do while (n > 0)
      record = record + 1
      begun = MPI_Wtime()
      read (unit, iostat=status, iomsg=message) n, labels(:abs(n)), values(:abs(n))
      io_wait_s = io_wait_s + MPI_Wtime() - begun
      if (status /= 0) call fail(file // ': record ' // number_text(record) // ': ' &
          // trim(message))
      if (failed) return
      statements = statements + 1
      done = done + record_bytes(abs(n))
      begun = MPI_Wtime()
      call check(record, abs(n))
      if (failed) return
      call assemble(abs(n))
      computed_s = computed_s + MPI_Wtime() - begun
      call compute(computed_s, compute_s * real(done, real64) / (megabytes * 1e6_real64))
    end do
    bytes = bytes + done
  end subroutine read_records

  !> Each value and label must be the one that was written.
  subroutine check(record, n)
    integer, intent(in) :: record, n
    if (n /= record_count(rank, record, smallest, largest)) then
      call fail(file // ': was written with other sizes; give the same to --setup and to the run')
      return
    end if
    call fill(rank, record, basis, expected_labels(:n), expected(:n))
    wrong = wrong + count(labels(:n) /= expected_labels(:n), kind=int64) &
      + count(transfer(values(:n), 0_int64, n) /= transfer(expected(:n), 0_int64, n), kind=int64)
  end subroutine check

  !> The Coulomb part of the Fock matrix: F(i,j) = sum over k, l of (ij|kl) D(k,l).
  subroutine assemble(n)
    integer, intent(in) :: n
    integer :: m, i, j, k, l
    do m = 1, n
      i = ibits(labels(m), 0, 8)
      j = ibits(labels(m), 8, 8)
      k = ibits(labels(m), 16, 8)
      l = ibits(labels(m), 24, 8)
      if (max(i, j, k, l) < basis) fock(i, j) = fock(i, j) + values(m) * density(k, l)
    end do
  end subroutine assemble

  !> The rest of an iteration's computing, in step with the file: goes on until `computed_s` is what
  !  it should be by now. The rank
  !> sleeps: here ranks are more than cores, on the machines that this stands for each has its own.
  subroutine compute(computed_s, until_s)
    real(real64), intent(inout) :: computed_s
    real(real64), intent(in) :: until_s
    real(real64) :: begun
    if (until_s - computed_s < shortest_sleep_s) return
    begun = MPI_Wtime()
    if (usleep(int(1e6_real64 * (until_s - computed_s), c_int)) /= 0) call fail('usleep')
    computed_s = computed_s + MPI_Wtime() - begun
  end subroutine compute

  !> [collective] The line of results, sums over all ranks; mpp_s is the elapsed time of all ranks
  !  added up.
  subroutine results(elapsed_s)
    real(real64), intent(in) :: elapsed_s
    real(real64) :: longest, all_seconds(2)
    integer(int64) :: all_counts(3)
    all_seconds = [io_wait_s, elapsed_s]
    all_counts = [statements, bytes, wrong]
    call MPI_Allreduce(elapsed_s, longest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
    call MPI_Allreduce(MPI_IN_PLACE, all_seconds, 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    call MPI_Allreduce(MPI_IN_PLACE, all_counts, 3, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD)
    wrong = all_counts(3)
    if (rank /= 0) return
    write (output_unit, '(4(a, i0), 3(a, a), a, i0)') 'scf: ranks=', ranks, ' requests=', &
        all_counts(1), ' bytes=', all_counts(2), &
      ' iterations=', merge(0, iterations, setup), ' io_wait_s=', seconds(all_seconds(1)), &
          ' elapsed_s=', seconds(longest), &
      ' mpp_s=', seconds(all_seconds(2)), ' wrong=', wrong
    if (.not. setup) write (output_unit, '(a, es22.14)') 'scf: energy=', energy
    flush (output_unit)
  end subroutine results

  function seconds(x) result(s)
    real(real64), intent(in) :: x
    character(:), allocatable :: s
    character(24) :: text
    write (text, '(f24.6)') x
    s = trim(adjustl(text))
  end function seconds
end program scf
