// SPDX-License-Identifier: Apache-2.0
// MPI_File_open with the hints of the rules: the program's own MPI_Info, copied, with the rules' pairs set over it. The
// implementation (OMPIO, ROMIO) gets them as if the program had set them, and MPI_File_get_info tells which it took. Handles are
// passed as they come: a pointer for Open MPI, an int for MPICH and its kin.
#include "hook/mpi_file.h"

#include <fcntl.h>
#include <string.h>

#include "hook/mpi_handles.h"
#include "hook/observe.h"
#include "os/scratch.h"
#include "os/syscall.h"

namespace weir::hook {
namespace {

constexpr int kCreate = 1, kWriteOnly = 4, kReadWrite = 8;  // MPI_MODE_*, of every implementation since ROMIO

constinit const rules::Rules* known = nullptr;
constinit int own_rank = -1;
WEIR_THREAD bool inside;  // Fortran's wrappers may end in MPI_File_open

// Only the low half of an int's register is meant.
bool is_none(Handle info) {
  const Handle open_mpi_none = open_mpi_object("ompi_mpi_info_null");
  return open_mpi_none != 0 ? info == open_mpi_none : static_cast<uint32_t>(info) == kMpichNoInfo;
}

int open_flags(int mode) {
  const int access = (mode & kReadWrite) != 0 ? O_RDWR : (mode & kWriteOnly) != 0 ? O_WRONLY : O_RDONLY;
  return access | ((mode & kCreate) != 0 ? O_CREAT : 0);
}

// ROMIO's names may begin with a file system, "lustre:/scratch/x"; a path that has a slash before the colon has no such prefix.
const char* without_prefix(const char* name) {
  const char* colon = strchr(name, ':');
  const char* slash = strchr(name, '/');
  return colon != nullptr && colon - name > 1 && (slash == nullptr || colon < slash) ? colon + 1 : name;
}

const rules::Hints* hints_for(const char* name, int mode) {
  if (known == nullptr || known->hint_count == 0 || inside || name == nullptr) return nullptr;
  const os::Scratch room;
  char* const folder = room.data();
  if (folder == nullptr) return nullptr;
  constexpr size_t kHalf = os::Scratch::kBytes / 2;
  char* const path = folder + kHalf;
  const long size = os::working_directory(folder, kHalf);
  const base::Text directory = os::failed(size) ? base::Text{} : base::text(folder);
  if (!rules::make_absolute(directory, base::text(without_prefix(name)), path, kHalf)) return nullptr;
  rules::Open what;
  what.path = path;
  what.flags = open_flags(mode);
  what.rank = own_rank;
  return rules::match_hints(*known, what);
}

// An info with the hints: the program's copied, or a new one. 0: MPI refused.
class Hinted {
 public:
  Hinted(const rules::Hints& hints, Handle info) {
    const auto create = profiled<int (*)(Handle*)>("PMPI_Info_create");
    const auto copy = profiled<int (*)(Handle, Handle*)>("PMPI_Info_dup");
    const auto set = profiled<int (*)(Handle, const char*, const char*)>("PMPI_Info_set");
    if (create == nullptr || copy == nullptr || set == nullptr) return;
    const int failed = is_none(info) ? create(&info_) : copy(info, &info_);
    if (failed != 0) {
      info_ = 0;
      return;
    }
    for (uint32_t i = 0; i < hints.count; ++i) set(info_, hints.pairs[i].key.data, hints.pairs[i].value.data);
  }
  ~Hinted() {
    const auto free = profiled<int (*)(Handle*)>("PMPI_Info_free");
    if (info_ != 0 && free != nullptr) free(&info_);
  }
  Hinted(const Hinted&) = delete;
  Hinted& operator=(const Hinted&) = delete;

  Handle info() const { return info_; }

 private:
  Handle info_ = 0;
};

const rules::Hints* hints_for_fortran(const char* name, size_t length, int mode) {
  if (known == nullptr || known->hint_count == 0 || length >= os::Scratch::kBytes) return nullptr;
  const os::Scratch room;
  char* const text = room.data();
  if (text == nullptr) return nullptr;
  while (length > 0 && name[length - 1] == ' ') --length;
  memcpy(text, name, length);
  text[length] = 0;
  return hints_for(text, mode);
}

// real(info) opens the file.
template <typename Real>
void opening_of_fortran(const char* name, size_t length, int mode, int* info, Real real) {
  const rules::Hints* const hints = hints_for_fortran(name, length, mode);
  if (hints == nullptr) return real(info);
  const Hinted hinted(*hints, from_fortran("PMPI_Info_f2c", *info));
  if (hinted.info() == 0) return real(info);
  int replaced = to_fortran("PMPI_Info_c2f", hinted.info());
  const bool before = inside;
  inside = true;
  real(&replaced);
  inside = before;
}

}  // namespace

void set_hints(const rules::Rules& rules, int rank) {
  known = &rules;
  own_rank = rank;
}

}  // namespace weir::hook

using namespace weir::hook;

WEIR_HOOK(int, MPI_File_open, Handle communicator, const char* name, int mode, Handle info, void* file) {
  const weir::rules::Hints* hints = hints_for(name, mode);
  if (hints == nullptr) return WEIR_REAL(MPI_File_open)(communicator, name, mode, info, file);
  const Hinted hinted(*hints, info);
  return WEIR_REAL(MPI_File_open)(communicator, name, mode, hinted.info() != 0 ? hinted.info() : info, file);
}

#define WEIR_FORTRAN_FILE_OPEN(symbol)                                                                                                \
  WEIR_HOOK(void, symbol, void* communicator, const char* name, int* mode, int* info, void* file, int* error, size_t length) {        \
    opening_of_fortran(name, length, *mode, info, [&](int* given) { WEIR_REAL(symbol)(communicator, name, mode, given, file, error, length); }); \
  }
WEIR_FORTRAN_FILE_OPEN(mpi_file_open_)
WEIR_FORTRAN_FILE_OPEN(mpi_file_open__)
WEIR_FORTRAN_FILE_OPEN(mpi_file_open)
WEIR_FORTRAN_FILE_OPEN(MPI_FILE_OPEN)
WEIR_FORTRAN_FILE_OPEN(mpi_file_open_f08_)
