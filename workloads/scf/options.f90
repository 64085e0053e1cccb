! SPDX-License-Identifier: Apache-2.0
!> The command line of weir-scf.
module scf_options
  use, intrinsic :: iso_fortran_env, only: error_unit, int64, output_unit, real64
  use mpi_f08
  implicit none (type, external)
  private
  public :: read_options, fail, end_if_failed
  character(:), allocatable, public, protected :: dir
  logical, public, protected :: setup = .false.
  integer, public, protected :: basis = 64, iterations = 4, smallest = 256, largest = 2600
  real(real64), public, protected :: megabytes = 24, compute_s = 0
  logical, public, protected :: failed = .false.
  character(:), allocatable :: failure

contains

  !> What went wrong first on this rank; end_if_failed ends the job with it.
  subroutine fail(message)
    character(*), intent(in) :: message
    if (.not. failed) failure = message
    failed = .true.
  end subroutine fail

  !> [collective] When some rank has failed each of those says why, and all end with status 1.
  !  MPI_Abort would lose the messages that the
  !> launcher has not read yet.
  subroutine end_if_failed()
    integer :: rank
    logical :: any_failed
    call MPI_Allreduce(failed, any_failed, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD)
    if (.not. any_failed) return
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    if (failed) write (error_unit, '(a, i0, 2a)') 'weir-scf: rank ', rank, ': ', failure
    flush (error_unit)
    call MPI_Finalize()
    stop 1, quiet=.true.
  end subroutine end_if_failed

  subroutine leave(unit, text, status)
    integer, intent(in) :: unit, status
    character(*), intent(in) :: text(:)
    integer :: rank, i
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    if (rank == 0) then
      do i = 1, size(text)
        write (unit, '(a)') trim(text(i))
      end do
      flush (unit)
    end if
    call MPI_Finalize()
    if (status == 0) stop
    stop 2, quiet=.true.
  end subroutine leave

  subroutine help()
    call leave(output_unit, [character(100) :: &
      'weir-scf [option]...', &
      '  --dir DIR          directory of the files integrals.NNNN, one for each rank (.)', &
      '  --setup            write the files and end', &
      '  --megabytes X      size of each file in 10^6 bytes (24)', &
      '  --iterations N     SCF iterations, each reads the whole file (4)', &
      '  --basis N          basis functions, at most 255; the matrix has N*N elements (64)', &
      '  --smallest N       integrals in the smallest record, 12 bytes each (256)', &
      '  --largest N        integrals in the largest record (2600)', &
      '  --compute SECONDS  computing in each iteration beside the assembly of the matrix (0)'], 0)
  end subroutine help

  function argument(i) result(s)
    integer, intent(in) :: i
    character(:), allocatable :: s
    integer :: n
    call get_command_argument(i, length=n)
    allocate (character(n) :: s)
    call get_command_argument(i, s)
  end function argument

  !> [collective] After MPI_Init. Ends the program with status 2 for what it does not know.
  subroutine read_options()
    character(:), allocatable :: name, value
    integer :: i, status
    dir = '.'
    i = 1
    do while (i <= command_argument_count())
      name = argument(i)
      i = i + 1
      if (name == '--help' .or. name == '-h') call help()
      if (name == '--setup') then
        setup = .true.
        cycle
      end if
      if (i > command_argument_count()) call refuse(name, 'is no option, or needs a value')
      value = argument(i)
      i = i + 1
      status = 0
      select case (name)
      case ('--dir'); dir = value
      case ('--megabytes'); read (value, *, iostat=status) megabytes
      case ('--iterations'); read (value, *, iostat=status) iterations
      case ('--basis'); read (value, *, iostat=status) basis
      case ('--smallest'); read (value, *, iostat=status) smallest
      case ('--largest'); read (value, *, iostat=status) largest
      case ('--compute'); read (value, *, iostat=status) compute_s
      case default; call refuse(name, 'there is no such option')
      end select
      if (status /= 0) call refuse(name, 'the value is not a number')
    end do
    if (basis < 1 .or. basis > 255 .or. smallest < 1 .or. largest < smallest .or. iterations < 1 &
        .or. megabytes <= 0) &
      call refuse('sizes', 'must be positive, --basis at most 255, --largest at least --smallest')
  end subroutine read_options

  subroutine refuse(name, why)
    character(*), intent(in) :: name, why
    character(200) :: text
    text = 'weir-scf: ' // name // ': ' // why // '; --help lists the options'
    call leave(error_unit, [text], 2)
  end subroutine refuse
end module scf_options
