// SPDX-License-Identifier: Apache-2.0
// The data accesses of MPI-IO, called from C; MPICH's Fortran ends here too. The hooks are made
// from mpi_io.def.
#include "hook/mpi/io.h"

namespace weir::hook {
namespace {

constinit Profiled<int(Handle, int64_t*)> get_position{"PMPI_File_get_position"};
constinit Profiled<int(int, int*)> error_class{"PMPI_Error_class"};

}  // namespace

uint64_t place_of(const FileAccess& access) {
  if (access.place != Place::given && access.place != Place::own) return kUnknownOffset;
  const MpiFile* const file = mpi_file(access.file);
  if (file == nullptr || file->view_bytes == 0) return kUnknownOffset;
  int64_t offset = access.offset;
  if (access.place == Place::own) {
    const auto position = get_position.get();
    if (position == nullptr || position(access.file, &offset) != 0) return kUnknownOffset;
  }
  int64_t at = 0;
  if (offset < 0 || __builtin_mul_overflow(offset, int64_t{file->view_bytes}, &at) ||
      __builtin_add_overflow(at, file->displacement, &at)) {
    return kUnknownOffset;
  }
  return clip(static_cast<uint64_t>(at));
}

void keep_file_call(Op op, uint32_t name, int error, Span span, uint64_t offset, uint64_t size) {
  Call call{op, Layer::mpi_io, 0, 0, name, span.start, span.end, offset, clip(size)};
  if (WEIR_UNLIKELY(error != 0)) {
    const auto classify = error_class.get();
    int found = 0;
    call.flags = wire::kError;
    if (classify != nullptr && classify(error, &found) == 0)
      call.error = static_cast<uint8_t>(found < 255 ? found : 255);
  }
  record_call(call);
}

// The type's size is asked for when MPI has accepted the type: a wrong one is the program's to hear
// of, in its own way.
void record_access(const FileAccess& access, uint64_t at, int error, Span span) {
  const int before = errno;
  int64_t bytes = 0;
  if (error == 0 && access.count > 0) {
    const int64_t unit = bytes_of_type(access.type);
    if (unit < 0 || __builtin_mul_overflow(unit, access.count, &bytes)) bytes = 0;
  }
  const MpiFile* const file = mpi_file(access.file);
  keep_file_call(access.op, file != nullptr ? file->name : 0, error, span, at,
                 static_cast<uint64_t>(bytes));
  errno = before;
}

}  // namespace weir::hook

using namespace weir::hook;

#define WEIR_ACCESS(symbol, op, place, offset, count, type, ...)             \
  if (WEIR_LIKELY(!observed())) return WEIR_BOUND_REAL(symbol)(__VA_ARGS__); \
  return accessing({Op::op, Place::place, file, offset, count, type},        \
                   [&] { return WEIR_BOUND_REAL(symbol)(__VA_ARGS__); });

#define WEIR_LAST(symbol, Count, op, place)                                            \
  WEIR_OPTIONAL_HOOK(int, symbol, Handle file, void* buffer, Count count, Handle type, \
                     void* last) {                                                     \
    WEIR_BOUND(symbol);                                                                \
    WEIR_ACCESS(symbol, op, place, 0, count, type, file, buffer, count, type, last)    \
  }
#define WEIR_AT_LAST(symbol, Count, op, place)                                                   \
  WEIR_OPTIONAL_HOOK(int, symbol, Handle file, int64_t offset, void* buffer, Count count,        \
                     Handle type, void* last) {                                                  \
    WEIR_BOUND(symbol);                                                                          \
    WEIR_ACCESS(symbol, op, place, offset, count, type, file, offset, buffer, count, type, last) \
  }
#define WEIR_BEGIN(symbol, Count, op, place)                                             \
  WEIR_OPTIONAL_HOOK(int, symbol, Handle file, void* buffer, Count count, Handle type) { \
    WEIR_BOUND(symbol);                                                                  \
    WEIR_ACCESS(symbol, op, place, 0, count, type, file, buffer, count, type)            \
  }
#define WEIR_AT_BEGIN(symbol, Count, op, place)                                            \
  WEIR_OPTIONAL_HOOK(int, symbol, Handle file, int64_t offset, void* buffer, Count count,  \
                     Handle type) {                                                        \
    WEIR_BOUND(symbol);                                                                    \
    WEIR_ACCESS(symbol, op, place, offset, count, type, file, offset, buffer, count, type) \
  }

// Each for an int and, since MPI 4, for a large count.
#define WEIR_IO_last(op, name, place) \
  WEIR_LAST(MPI_File_##name, int, op, place) WEIR_LAST(MPI_File_##name##_c, int64_t, op, place)
#define WEIR_IO_at_last(op, name, place)        \
  WEIR_AT_LAST(MPI_File_##name, int, op, place) \
  WEIR_AT_LAST(MPI_File_##name##_c, int64_t, op, place)
#define WEIR_IO_begin(op, name, place) \
  WEIR_BEGIN(MPI_File_##name, int, op, place) WEIR_BEGIN(MPI_File_##name##_c, int64_t, op, place)
#define WEIR_IO_at_begin(op, name, place)        \
  WEIR_AT_BEGIN(MPI_File_##name, int, op, place) \
  WEIR_AT_BEGIN(MPI_File_##name##_c, int64_t, op, place)
#define WEIR_IO_end(op, name, place)                                                  \
  WEIR_OPTIONAL_HOOK(int, MPI_File_##name, Handle file, void* buffer, void* status) { \
    WEIR_BOUND(MPI_File_##name);                                                      \
    WEIR_ACCESS(MPI_File_##name, op, place, 0, 0, 0, file, buffer, status)            \
  }

#define WEIR_MPI_IO(shape, op, name, NAME, place) WEIR_IO_##shape(op, name, place)
#include "hook/mpi/io.def"
#undef WEIR_MPI_IO
