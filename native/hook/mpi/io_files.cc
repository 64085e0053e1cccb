// SPDX-License-Identifier: Apache-2.0
// The files that are open through MPI-IO, by handle, and the calls that close, size, view and
// otherwise manage them, from C and Fortran.
#include "hook/mpi/io.h"
#include "hook/mpi/views.h"

namespace weir::hook {
namespace {

constexpr size_t kFiles = 4096, kProbes = 32;
constexpr int kSeekSet = 600;  // MPI_SEEK_SET, of every implementation since ROMIO
constinit MpiFile files[kFiles] = {};

constinit Profiled<Handle(int)> file_f2c{"PMPI_File_f2c"}, type_f2c{"PMPI_Type_f2c"};

// A handle's place is one of those behind the place that its address gives.
MpiFile& probed(Handle file, size_t probe) {
  const uint64_t first = (file >> 4) * 0x9e3779b97f4a7c15u >> 40;
  return files[(first + probe) % kFiles];
}

uint32_t name_of(Handle file) {
  const MpiFile* const found = mpi_file(file);
  return found != nullptr ? found->name : 0;
}

}  // namespace

MpiFile* mpi_file(Handle file) {
  for (size_t i = 0; i < kProbes; ++i) {
    MpiFile& at = probed(file, i);
    if (base::load(&at.handle) == file) return file != 0 ? &at : nullptr;
  }
  return nullptr;
}

MpiFile* remember_mpi_file(Handle file, uint32_t name) {
  if (MpiFile* const known = mpi_file(file); known != nullptr)
    forget_mpi_file(known);  // closed unseen, and opened anew
  for (size_t i = 0; i < kProbes; ++i) {
    MpiFile& at = probed(file, i);
    Handle expected = 0;
    if (base::load(&at.handle) != 0 || !base::compare_exchange(&at.handle, &expected, file))
      continue;
    at.name = name;
    at.view_bytes = 1;
    at.displacement = 0;
    return &at;
  }
  trace::process().count_failure();
  return nullptr;
}

void forget_mpi_file(MpiFile* file) {
  if (file != nullptr) base::store(&file->handle, Handle{0});
}

Handle file_of_fortran(int file) { return from_fortran(file_f2c, file); }
Handle type_of_fortran(int type) { return from_fortran(type_f2c, type); }

namespace {

// The path of a file that a call names, as the trace has it.
uint32_t path_of(const char* name) {
  return name != nullptr ? trace::process().names().path_id(without_file_system(name)) : 0;
}

template <typename Real>
int managing(Op op, Handle file, uint64_t offset, uint64_t size, Real real) {
  const uint32_t name = name_of(file);
  int error = 0;
  const Span span = timed(error, real);
  keep_file_call(op, name, error, span, offset, size);
  return error;
}

template <typename Real>
int closing(Handle file, Real real) {
  MpiFile* const known = mpi_file(file);
  const uint32_t name = known != nullptr ? known->name : 0;
  forget_mpi_file(known);  // before MPI gives the handle to another file, of another thread
  int error = 0;
  const Span span = timed(error, real);
  keep_file_call(Op::kMpiFileClose, name, error, span, kUnknownOffset, 0);
  return error;
}

template <typename Real>
int deleting(const char* path, Real real) {
  int error = 0;
  const Span span = timed(error, real);
  keep_file_call(Op::kMpiFileDelete, path_of(path), error, span, kUnknownOffset, 0);
  return error;
}

// Offsets of a view are known when it has no holes: its elements then lie one behind the other from
// the displacement on.
void look_through(Handle file, const View& view, const ViewSizes& sizes) {
  MpiFile* const known = mpi_file(file);
  if (known == nullptr) return;
  const bool plain = sizes.bytes >= 0 && sizes.lower == 0 && sizes.extent == sizes.bytes &&
                     sizes.unit > 0 && sizes.unit <= UINT32_MAX && view.displacement >= 0;
  known->view_bytes = plain ? static_cast<uint32_t>(sizes.unit) : 0;
  known->displacement = view.displacement;
}

template <typename Real>
int viewing(Handle file, const View& view, Real real) {
  int error = 0;
  const Span span = timed(error, real);
  const int before = errno;
  const ViewSizes sizes = error == 0 ? sizes_of(view) : ViewSizes{};
  if (error == 0) {
    look_through(file, view, sizes);
    note_view(name_of(file), view, sizes);
  }
  const uint64_t at =
      view.displacement >= 0 ? clip(static_cast<uint64_t>(view.displacement)) : kUnknownOffset;
  keep_file_call(Op::kMpiFileSetView, name_of(file), error, span, at,
                 sizes.bytes > 0 ? static_cast<uint64_t>(sizes.bytes) : 0);
  errno = before;
  return error;
}

// Where a seek ends is known when it is not relative.
uint64_t sought(Handle file, int64_t offset, int whence) {
  return whence == kSeekSet ? place_of({Op::kMpiFileSeek, Place::given, file, offset, 0, 0})
                            : kUnknownOffset;
}

}  // namespace
}  // namespace weir::hook

using namespace weir::hook;

#define WEIR_UNLESS_OBSERVED(symbol, ...) \
  if (WEIR_LIKELY(!observed())) return WEIR_BOUND_REAL(symbol)(__VA_ARGS__)
#define WEIR_MANAGED(symbol, op, offset, size, ...) \
  WEIR_UNLESS_OBSERVED(symbol, __VA_ARGS__);        \
  return managing(Op::op, file, offset, size, [&] { return WEIR_BOUND_REAL(symbol)(__VA_ARGS__); });

WEIR_OPTIONAL_HOOK(int, MPI_File_close, Handle* file) {
  WEIR_BOUND(MPI_File_close);
  WEIR_UNLESS_OBSERVED(MPI_File_close, file);
  return closing(file != nullptr ? *file : 0,
                 [&] { return WEIR_BOUND_REAL(MPI_File_close)(file); });
}
WEIR_OPTIONAL_HOOK(int, MPI_File_delete, const char* name, Handle info) {
  WEIR_BOUND(MPI_File_delete);
  WEIR_UNLESS_OBSERVED(MPI_File_delete, name, info);
  return deleting(name, [&] { return WEIR_BOUND_REAL(MPI_File_delete)(name, info); });
}
WEIR_OPTIONAL_HOOK(int, MPI_File_set_size, Handle file, int64_t size) {
  WEIR_BOUND(MPI_File_set_size);
  WEIR_MANAGED(MPI_File_set_size, kMpiFileSetSize, kUnknownOffset, static_cast<uint64_t>(size),
               file, size)
}
WEIR_OPTIONAL_HOOK(int, MPI_File_preallocate, Handle file, int64_t size) {
  WEIR_BOUND(MPI_File_preallocate);
  WEIR_MANAGED(MPI_File_preallocate, kMpiFilePreallocate, kUnknownOffset,
               static_cast<uint64_t>(size), file, size)
}
WEIR_OPTIONAL_HOOK(int, MPI_File_seek, Handle file, int64_t offset, int whence) {
  WEIR_BOUND(MPI_File_seek);
  WEIR_MANAGED(MPI_File_seek, kMpiFileSeek, sought(file, offset, whence), 0, file, offset, whence)
}
WEIR_OPTIONAL_HOOK(int, MPI_File_seek_shared, Handle file, int64_t offset, int whence) {
  WEIR_BOUND(MPI_File_seek_shared);
  WEIR_MANAGED(MPI_File_seek_shared, kMpiFileSeek, sought(file, offset, whence), 0, file, offset,
               whence)
}
WEIR_OPTIONAL_HOOK(int, MPI_File_sync, Handle file) {
  WEIR_BOUND(MPI_File_sync);
  WEIR_MANAGED(MPI_File_sync, kMpiFileSync, kUnknownOffset, 0, file)
}
WEIR_OPTIONAL_HOOK(int, MPI_File_set_info, Handle file, Handle info) {
  WEIR_BOUND(MPI_File_set_info);
  WEIR_MANAGED(MPI_File_set_info, kMpiFileSetInfo, kUnknownOffset, 0, file, info)
}
WEIR_OPTIONAL_HOOK(int, MPI_File_set_view, Handle file, int64_t displacement, Handle etype,
                   Handle filetype, const char* representation, Handle info) {
  WEIR_BOUND(MPI_File_set_view);
  WEIR_UNLESS_OBSERVED(MPI_File_set_view, file, displacement, etype, filetype, representation,
                       info);
  return viewing(file, {displacement, etype, filetype}, [&] {
    return WEIR_BOUND_REAL(MPI_File_set_view)(file, displacement, etype, filetype, representation,
                                              info);
  });
}

#define WEIR_FORTRAN_MANAGED(symbol, op, offset, size, ...) \
  WEIR_UNLESS_OBSERVED(symbol, __VA_ARGS__);                \
  const Handle handle = file_of_fortran(*file);             \
  managing(Op::op, handle, offset, size,                    \
           [&] { return WEIR_BOUND_REAL(symbol)(__VA_ARGS__), error_of(error); });

#define WEIR_FORTRAN_FILES(close_, delete_, set_size, preallocate, seek, seek_shared, sync_,      \
                           set_info, set_view)                                                    \
  WEIR_OPTIONAL_HOOK(void, close_, int* file, int* error) {                                       \
    WEIR_BOUND(close_);                                                                           \
    WEIR_UNLESS_OBSERVED(close_, file, error);                                                    \
    closing(file_of_fortran(*file),                                                               \
            [&] { return WEIR_BOUND_REAL(close_)(file, error), error_of(error); });               \
  }                                                                                               \
  WEIR_OPTIONAL_HOOK(void, delete_, const char* name, int* info, int* error, size_t length) {     \
    WEIR_BOUND(delete_);                                                                          \
    WEIR_UNLESS_OBSERVED(delete_, name, info, error, length);                                     \
    char room[kFortranPathBytes];                                                                 \
    deleting(text_of_fortran(name, length, room, sizeof room), [&] {                              \
      return WEIR_BOUND_REAL(delete_)(name, info, error, length), error_of(error);                \
    });                                                                                           \
  }                                                                                               \
  WEIR_OPTIONAL_HOOK(void, set_size, int* file, int64_t* size, int* error) {                      \
    WEIR_BOUND(set_size);                                                                         \
    WEIR_FORTRAN_MANAGED(set_size, kMpiFileSetSize, kUnknownOffset, static_cast<uint64_t>(*size), \
                         file, size, error)                                                       \
  }                                                                                               \
  WEIR_OPTIONAL_HOOK(void, preallocate, int* file, int64_t* size, int* error) {                   \
    WEIR_BOUND(preallocate);                                                                      \
    WEIR_FORTRAN_MANAGED(preallocate, kMpiFilePreallocate, kUnknownOffset,                        \
                         static_cast<uint64_t>(*size), file, size, error)                         \
  }                                                                                               \
  WEIR_OPTIONAL_HOOK(void, seek, int* file, int64_t* offset, int* whence, int* error) {           \
    WEIR_BOUND(seek);                                                                             \
    WEIR_FORTRAN_MANAGED(seek, kMpiFileSeek, sought(handle, *offset, *whence), 0, file, offset,   \
                         whence, error)                                                           \
  }                                                                                               \
  WEIR_OPTIONAL_HOOK(void, seek_shared, int* file, int64_t* offset, int* whence, int* error) {    \
    WEIR_BOUND(seek_shared);                                                                      \
    WEIR_FORTRAN_MANAGED(seek_shared, kMpiFileSeek, sought(handle, *offset, *whence), 0, file,    \
                         offset, whence, error)                                                   \
  }                                                                                               \
  WEIR_OPTIONAL_HOOK(void, sync_, int* file, int* error) {                                        \
    WEIR_BOUND(sync_);                                                                            \
    WEIR_FORTRAN_MANAGED(sync_, kMpiFileSync, kUnknownOffset, 0, file, error)                     \
  }                                                                                               \
  WEIR_OPTIONAL_HOOK(void, set_info, int* file, int* info, int* error) {                          \
    WEIR_BOUND(set_info);                                                                         \
    WEIR_FORTRAN_MANAGED(set_info, kMpiFileSetInfo, kUnknownOffset, 0, file, info, error)         \
  }                                                                                               \
  WEIR_OPTIONAL_HOOK(void, set_view, int* file, int64_t* displacement, int* etype, int* filetype, \
                     const char* representation, int* info, int* error, size_t length) {          \
    WEIR_BOUND(set_view);                                                                         \
    WEIR_UNLESS_OBSERVED(set_view, file, displacement, etype, filetype, representation, info,     \
                         error, length);                                                          \
    viewing(file_of_fortran(*file),                                                               \
            {*displacement, type_of_fortran(*etype), type_of_fortran(*filetype)}, [&] {           \
              return WEIR_BOUND_REAL(set_view)(file, displacement, etype, filetype,               \
                                               representation, info, error, length),              \
                     error_of(error);                                                             \
            });                                                                                   \
  }
#define WEIR_SPELLED(name, end)                                                       \
  WEIR_FORTRAN_FILES(name##close##end, name##delete##end, name##set_size##end,        \
                     name##preallocate##end, name##seek##end, name##seek_shared##end, \
                     name##sync##end, name##set_info##end, name##set_view##end)
WEIR_SPELLED(mpi_file_, _)
WEIR_SPELLED(mpi_file_, __)
WEIR_SPELLED(mpi_file_, )
WEIR_SPELLED(mpi_file_, _f08_)
WEIR_FORTRAN_FILES(MPI_FILE_CLOSE, MPI_FILE_DELETE, MPI_FILE_SET_SIZE, MPI_FILE_PREALLOCATE,
                   MPI_FILE_SEEK, MPI_FILE_SEEK_SHARED, MPI_FILE_SYNC, MPI_FILE_SET_INFO,
                   MPI_FILE_SET_VIEW)
