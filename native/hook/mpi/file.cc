// SPDX-License-Identifier: Apache-2.0
// MPI_File_open, recorded, and with the hints of the rules: the program's own MPI_Info, copied,
// with the rules' pairs set over it. The implementation (OMPIO, ROMIO) gets them as if the program
// had set them, and MPI_File_get_info tells which it took.
#include "hook/mpi/file.h"

#include <fcntl.h>
#include <string.h>

#include "hook/mpi/io.h"
#include "base/scratch.h"
#include "base/syscall.h"

namespace weir::hook {
namespace {

constexpr int kCreate = 1, kWriteOnly = 4,
              kReadWrite = 8;  // MPI_MODE_*, of every implementation since ROMIO

constinit const rules::Rules* known = nullptr;
constinit int own_rank = -1;

int open_flags(int mode) {
  const int access = (mode & kReadWrite) != 0   ? O_RDWR
                     : (mode & kWriteOnly) != 0 ? O_WRONLY
                                                : O_RDONLY;
  return access | ((mode & kCreate) != 0 ? O_CREAT : 0);
}

const rules::Hints* hints_for(const char* name, int mode) {
  if (known == nullptr || known->hint_count == 0 || mpi_depth != 0 || name == nullptr)
    return nullptr;
  const base::Scratch room;
  char* const working = room.data();
  if (working == nullptr) return nullptr;
  constexpr size_t kHalf = base::Scratch::kBytes / 2;
  char* const path = working + kHalf;
  const long size = base::working_directory(working, kHalf);
  const base::Text begin = base::failed(size) ? base::Text{} : base::text(working);
  if (!rules::make_absolute(begin, base::text(without_file_system(name)), path, kHalf))
    return nullptr;
  rules::Open what;
  what.path = path;
  what.flags = open_flags(mode);
  what.rank = own_rank;
  return rules::match_hints(*known, what);
}

// Somebody wants to know of this open: the recorder, or rules with hints.
bool is_looked_at() {
  return mpi_depth == 0 && (recording() || (known != nullptr && known->hint_count != 0));
}

// An info with the hints: the program's copied, or a new one. 0: none, or MPI refused.
class Hinted {
 public:
  Hinted() = default;
  Hinted(const rules::Hints& hints, Handle info) {
    const auto create = profiled<int (*)(Handle*)>("PMPI_Info_create");
    const auto copy = profiled<int (*)(Handle, Handle*)>("PMPI_Info_dup");
    const auto set = profiled<int (*)(Handle, const char*, const char*)>("PMPI_Info_set");
    if (create == nullptr || copy == nullptr || set == nullptr) return;
    const int failed = is_no_info(info) ? create(&info_) : copy(info, &info_);
    if (failed != 0) {
      info_ = 0;
      return;
    }
    for (uint32_t i = 0; i < hints.count; ++i)
      set(info_, hints.pairs[i].key.data, hints.pairs[i].value.data);
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

struct Opening {
  Handle communicator, info;
  const char* name;
  int mode;
};

// real(info) opens the file and returns MPI's error; handle(), asked for behind it, is the file's.
template <typename Real, typename Of>
int opening(const Opening& what, Real real, Of handle) {
  const rules::Hints* const hints = hints_for(what.name, what.mode);
  const bool recorded = observed();
  if (WEIR_LIKELY(hints == nullptr && !recorded)) return real(what.info);
  const Hinted hinted = hints != nullptr ? Hinted(*hints, what.info) : Hinted();
  const Handle info = hinted.info() != 0 ? hinted.info() : what.info;
  int error = 0;
  const Span span = timed(error, [&] { return real(info); });
  if (recorded)
    record_opened({what.communicator, info, error == 0 ? handle() : 0, what.name, what.mode}, error,
                  span);
  return error;
}

}  // namespace

void set_hints(const rules::Rules& rules, int rank) {
  known = &rules;
  own_rank = rank;
}

bool has_hints() { return known != nullptr; }

}  // namespace weir::hook

using namespace weir::hook;

WEIR_OPTIONAL_HOOK(int, MPI_File_open, Handle communicator, const char* name, int mode, Handle info,
                   Handle* file) {
  WEIR_BOUND(MPI_File_open);
  return opening(
      {communicator, info, name, mode},
      [&](Handle given) {
        return WEIR_BOUND_REAL(MPI_File_open)(communicator, name, mode, given, file);
      },
      [&] { return *file; });
}

// The hints go in as Fortran's number of the info that has them.
#define WEIR_FORTRAN_FILE_OPEN(symbol)                                                        \
  WEIR_OPTIONAL_HOOK(void, symbol, int* communicator, const char* name, int* mode, int* info, \
                     int* file, int* error, size_t length) {                                  \
    WEIR_BOUND(symbol);                                                                       \
    char room[kFortranPathBytes];                                                             \
    const char* const path =                                                                  \
        is_looked_at() ? text_of_fortran(name, length, room, sizeof room) : nullptr;          \
    if (path == nullptr)                                                                      \
      return WEIR_BOUND_REAL(symbol)(communicator, name, mode, info, file, error, length);    \
    const Handle own = from_fortran("PMPI_Info_f2c", *info);                                  \
    opening(                                                                                  \
        {from_fortran("PMPI_Comm_f2c", *communicator), own, path, *mode},                     \
        [&](Handle given) {                                                                   \
          int number = given == own ? *info : to_fortran("PMPI_Info_c2f", given);             \
          WEIR_BOUND_REAL(symbol)(communicator, name, mode, &number, file, error, length);    \
          return error_of(error);                                                             \
        },                                                                                    \
        [&] { return file_of_fortran(*file); });                                              \
  }
WEIR_FORTRAN_FILE_OPEN(mpi_file_open_)
WEIR_FORTRAN_FILE_OPEN(mpi_file_open__)
WEIR_FORTRAN_FILE_OPEN(mpi_file_open)
WEIR_FORTRAN_FILE_OPEN(MPI_FILE_OPEN)
WEIR_FORTRAN_FILE_OPEN(mpi_file_open_f08_)
