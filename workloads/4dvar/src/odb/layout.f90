! SPDX-License-Identifier: Apache-2.0
!> The observation data bases. ECMA has all reports, one sub-base for each observation type; CCMA
!  has those that are
!> used, of all types together. A base is split into pools; the pools of one group share a file for
!  each table. Decides the
!> names, the columns, which rank owns a pool and which rank handles the files of a group.
module fdv_odb_layout
  use fdv_fail, only: text
  use fdv_config, only: group, pools
  use fdv_par, only: ranks
  implicit none (type, external)
  private
  public :: base_name, table_file, iomap_file, group_count, group_of, pool_range, pool_owner, &
      group_rank, several_rank

  character(8), parameter, public :: type_names(24) = [character(8) :: 'conv', 'satob', 'airs', &
      'iasi', 'hirs', 'amsua', &
    'mhs', 'amsub', 'amsre', 'windsat', 'scatt', 'gpsro', 'reo3', 'ssmi', 'tmi', 'ssmis', 'geos', &
        'ers', 'qscat', &
    'meris', 'tcwv', 'lidar', 'profiler', 'limb']

  type, public :: table_t
    character(16) :: name
    integer :: columns
    integer :: rows_per_report        !< 0: one row for each time slot
  end type table_t

  integer, parameter, public :: hdr = 1, index = 2, timeslot_index = 3, body = 4, update = 5

  !> hdr: seqno point slot latitude longitude bodies; index: seqno first row of body;
  !  timeslot_index: slot reports;
  !> body: seqno level value sigma varno; update: seqno first-guess departure, analysis departure,
  !  status; others: seqno and more.
  type(table_t), parameter, public :: ecma_tables(12) = [ &
    table_t('hdr', 6, 1), table_t('index', 2, 1), table_t('timeslot_index', 2, 0), table_t('body', &
        5, 3), &
    table_t('update', 4, 3), table_t('radiance', 4, 1), table_t('radiance_body', 6, 1), &
        table_t('errstat', 4, 1), &
    table_t('surfemiss', 8, 1), table_t('sat', 4, 1), table_t('reo3', 3, 1), table_t('modsurf', 5, &
        1)]

  !> hdr: seqno type point slot; body: seqno level value sigma; depar: seqno first-guess departure,
  !  analysis departure.
  integer, parameter, public :: ccma_hdr = 1, ccma_body = 2, ccma_depar = 3
  type(table_t), parameter, public :: ccma_tables(3) = [ &
    table_t('hdr', 4, 1), table_t('body', 4, 1), table_t('depar', 3, 1)]

  integer, parameter, public :: bodies = 3

contains

  !> kind 0 is CCMA, else an observation type of ECMA.
  pure function base_name(kind) result(s)
    integer, intent(in) :: kind
    character(:), allocatable :: s
    if (kind == 0) then
      s = 'CCMA'
    else
      s = 'ECMA.' // trim(type_names(kind))
    end if
  end function base_name

  pure function iomap_file(kind) result(s)
    integer, intent(in) :: kind
    character(:), allocatable :: s
    s = base_name(kind)
    s = s // '/' // s(:4) // '.iomap'
  end function iomap_file

  pure function table_file(kind, g, table) result(s)
    integer, intent(in) :: kind, g, table
    character(:), allocatable :: s
    s = base_name(kind) // '/' // text(g) // '/'
    if (kind == 0) then
      s = s // trim(ccma_tables(table)%name)
    else
      s = s // trim(ecma_tables(table)%name)
    end if
  end function table_file

  pure integer function group_count()
    group_count = (pools + group - 1) / group
  end function group_count

  pure integer function group_of(pool)
    integer, intent(in) :: pool
    group_of = (pool - 1) / group + 1
  end function group_of

  !> First and last pool of a group.
  pure function pool_range(g) result(range)
    integer, intent(in) :: g
    integer :: range(2)
    range = [(g - 1) * group + 1, min(pools, g * group)]
  end function pool_range

  pure integer function pool_owner(pool)
    integer, intent(in) :: pool
    pool_owner = mod(pool - 1, ranks)
  end function pool_owner

  !> The rank that handles item i of a kind that several ranks, about every second, share.
  pure integer function several_rank(i)
    integer, intent(in) :: i
    integer :: several
    several = max(min(ranks, 2), (ranks + 1) / 2)
    several_rank = mod(i - 1, several) * ranks / several
  end function several_rank

  !> The rank that reads or writes the files of a group: one of several, or of all.
  pure integer function group_rank(g, by_all)
    integer, intent(in) :: g
    logical, intent(in) :: by_all
    if (by_all) then
      group_rank = mod(g - 1, ranks)
    else
      group_rank = several_rank(g)
    end if
  end function group_rank

end module fdv_odb_layout
