// SPDX-License-Identifier: Apache-2.0
// Which names are names of files: the recorder counts the calls on files apart from those on all
// else, and the reader shows them apart.
#pragma once

#include <stddef.h>

#include <string_view>

namespace weir::wire {

// Whether `text` stands in the name at `begin`. at(i) is character i of the name.
template <class At>
constexpr bool has_at(size_t size, At at, size_t begin, std::string_view text) {
  if (size - begin < text.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (at(begin + i) != text[i]) return false;
  }
  return true;
}

// Shared memory of MPI libraries in /dev/shm: UCX, MPICH, Open MPI, PMIx, PSM, Intel MPI, MVAPICH2,
// Cray MPICH.
inline constexpr std::string_view kSegments[] = {
    "ucx_shm_posix_", "mpich_shar_tmp",  "vader_segment.", "sm_segment.",
    "osc_rdma.",      "pmix-gds-shmem.", "psm_shm.",       "psm2_shm.",
    "Intel_MPI_",     "ib_shmem-",       "slot_shmem-",    "cray-shared-mem-coll-kvs"};
// Session directories: ompi.NODE.UID of Open MPI 4, prte.NODE.PID.UID and prterun.NODE.PID.UID of
// Open MPI 5; pmix_dstor_* of PMIx, in them or alone.
inline constexpr std::string_view kSessions[] = {"ompi.", "prte.", "prterun."};

// Whether [begin, slash) is a name, a dot and digits.
template <class At>
constexpr bool ends_in_number(At at, size_t begin, size_t slash) {
  size_t digits = slash;
  while (digits > begin && at(digits - 1) >= '0' && at(digits - 1) <= '9') --digits;
  return digits < slash && digits > begin + 1 && at(digits - 1) == '.';
}

// Memory that processes of an MPI library share by files: a means to send messages, no data of the
// run. Absolute names, without repeated slashes at their beginning.
template <class At>
constexpr bool names_an_mpi_segment(size_t size, At at) {
  constexpr std::string_view kMemory = "/dev/shm/";
  if (has_at(size, at, 0, kMemory)) {
    for (const std::string_view segment : kSegments) {
      if (has_at(size, at, kMemory.size(), segment)) return true;
    }
  }
  size_t begin = 1;  // of a component that is a directory
  for (size_t i = 1; i < size; ++i) {
    if (at(i) != '/') continue;
    if (at(begin) == 'o' || at(begin) == 'p') {
      if (has_at(size, at, begin, "pmix_dstor_")) return true;
      for (const std::string_view session : kSessions) {
        if (has_at(size, at, begin, session) && ends_in_number(at, begin + session.size(), i))
          return true;
      }
    }
    begin = i + 1;
    if (begin == size) break;
  }
  return false;
}

// Memory without a name of its own, made by memfd_create: "/memfd:WHAT (deleted)".
template <class At>
constexpr bool names_memory(size_t size, At at) {
  constexpr std::string_view kEnd = " (deleted)";
  return has_at(size, at, 0, "/memfd:") && size > kEnd.size() &&
         has_at(size, at, size - kEnd.size(), kEnd);
}

// Absolute names are files, but for what the kernel makes up: /dev (where /dev/shm holds files),
// /proc and /sys; memory of memfd_create; and segments of MPI libraries. Pipes and sockets have no
// absolute names. at(i) is character i of the name.
template <class At>
constexpr bool names_a_file(size_t size, At at) {
  size_t begin = 0;
  while (begin + 1 < size && at(begin) == '/' && at(begin + 1) == '/') ++begin;
  if (!has_at(size, at, begin, "/")) return false;
  for (const std::string_view tree : {"/dev", "/proc", "/sys"}) {
    const size_t end = begin + tree.size();
    const bool is_in = has_at(size, at, begin, tree) && (size == end || at(end) == '/');
    if (is_in && !has_at(size, at, begin, "/dev/shm/")) return false;
  }
  const auto from_root = [=](size_t i) { return at(begin + i); };
  return !names_memory(size - begin, from_root) && !names_an_mpi_segment(size - begin, from_root);
}

constexpr bool names_a_file(std::string_view text) {
  return names_a_file(text.size(), [text](size_t i) { return text[i]; });
}

}  // namespace weir::wire
