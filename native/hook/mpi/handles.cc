// SPDX-License-Identifier: Apache-2.0
#include "hook/mpi/handles.h"

#include <stdlib.h>
#include <string.h>

#include "base/syscall.h"

namespace weir::hook {

WEIR_THREAD int mpi_depth = 0;

namespace {

using wire::MpiKind;

// The longest MPI_MAX_LIBRARY_VERSION_STRING known is MPICH's.
constexpr size_t kVersionBytes = 8192 + 1;

bool is_of_mpich() {
  constexpr const char* kDerivatives[] = {"MPICH", "Intel(R) MPI", "MVAPICH", "ParaStation"};
  for (const char* name : kDerivatives) {
    if (strstr(mpi_version(), name) != nullptr) return true;
  }
  return false;
}

// Files alone are pointers in every implementation.
bool is_int(const char* converter) {
  return mpi_kind() == MpiKind::kMpich && strncmp(converter, "PMPI_File_", 10) != 0;
}

}  // namespace

// A program that names the object may hold it itself (copy relocation): it is asked first.
Handle open_mpi_object(const char* name) {
  return reinterpret_cast<Handle>(find_function(name, Library::mpi));
}

const char* mpi_version() {
  static char text[kVersionBytes];
  if (text[0] != 0) return text;
  const auto version = profiled<int (*)(char*, int*)>("PMPI_Get_library_version");
  int length = 0;
  if (version == nullptr || version(text, &length) != 0) return "";
  text[sizeof text - 1] = 0;
  return text;
}

void say_unless_quiet(const char* message) {
  const char* quiet = getenv("WEIR_QUIET");
  if (quiet == nullptr || *quiet == 0 || *quiet == '0') base::say(2, message, strlen(message));
}

MpiKind mpi_kind() {
  static MpiKind known = MpiKind::kNone;
  MpiKind kind = base::load_relaxed(&known);
  if (WEIR_LIKELY(kind != MpiKind::kNone)) return kind;
  kind = open_mpi_object("ompi_mpi_comm_world") != 0 ? MpiKind::kOpenMpi
         : is_of_mpich()                             ? MpiKind::kMpich
                                                     : MpiKind::kOther;
  base::store_relaxed(&known, kind);
  return kind;
}

Handle from_fortran(const char* converter, int handle) {
  if (is_int(converter)) return static_cast<uint32_t>(handle);
  const auto convert = profiled<Handle (*)(int)>(converter);
  return convert != nullptr ? convert(handle) : 0;
}

Handle from_fortran(Profiled<Handle(int)>& converter, int handle) {
  if (is_int(converter.name)) return static_cast<uint32_t>(handle);
  const auto convert = converter.get();
  return convert != nullptr ? convert(handle) : 0;
}

int64_t bytes_of_type(Handle type) {
  static constinit Profiled<int(Handle, int64_t*)> type_size{"PMPI_Type_size_x"};
  const auto size = type_size.get();
  int64_t bytes = 0;
  return size != nullptr && size(type, &bytes) == 0 ? bytes : -1;
}

int to_fortran(const char* converter, Handle handle) {
  if (is_int(converter)) return static_cast<int>(handle);
  const auto convert = profiled<int (*)(Handle)>(converter);
  return convert != nullptr ? convert(handle) : 0;
}

}  // namespace weir::hook
