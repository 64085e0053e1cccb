// SPDX-License-Identifier: Apache-2.0
// HDF5's transfers of data sets, and its files. Everything is asked for before the call: a later
// question would clear the library's error stack, which is the program's to read. Nothing is asked
// of a wrong identifier, which would put an error there.
#include <string.h>

#include "hook/library/library.h"
#include "hook/mpi/io.h"

namespace weir::hook {
namespace {

using Identifier = int64_t;  // hid_t; of HDF5 1.8 the low half alone
constexpr int kType = 3, kSpace = 4, kDataSet = 5;  // H5I_type_t, of every version
constexpr size_t kNameBytes = 1024, kPathBytes = 4096;
constexpr char kUnnamed[] = "(unnamed when written)";

struct Transfer {
  uint32_t name;
  uint64_t bytes;
};

bool is_a(const CallSite& site, int kind, Identifier what) {
  const auto get = ask<int (*)(Identifier)>(site, "H5Iget_type");
  return what > 0 && get != nullptr && get(what) == kind;
}

// The text that one of HDF5's naming functions gives; false when it is longer than the room.
bool text_from(const CallSite& site, const char* function, Identifier what, char* to, size_t size) {
  const auto get = ask<ssize_t (*)(Identifier, char*, size_t)>(site, function);
  if (get == nullptr) return false;
  const ssize_t length = get(what, to, size);
  return length > 0 && static_cast<size_t>(length) < size;
}

// Elements of the selection: in memory, else in the file, else all of the data set.
int64_t elements_of(const CallSite& site, Identifier set, Identifier in_memory,
                    Identifier in_file) {
  const auto count = ask<int64_t (*)(Identifier)>(site, "H5Sget_select_npoints");
  const auto whole = ask<Identifier (*)(Identifier)>(site, "H5Dget_space");
  const auto close = ask<int (*)(Identifier)>(site, "H5Sclose");
  if (count == nullptr || whole == nullptr || close == nullptr) return 0;
  if (is_a(site, kSpace, in_memory)) return count(in_memory);
  if (is_a(site, kSpace, in_file)) return count(in_file);
  const Identifier space = whole(set);
  if (space < 0) return 0;
  const int64_t elements = count(space);
  close(space);
  return elements;
}

Transfer look_up(const CallSite& site, Identifier set, Identifier type, Identifier in_memory,
                 Identifier in_file) {
  Transfer found{0, 0};
  char name[kNameBytes], path[kPathBytes];
  if (!is_a(site, kDataSet, set)) return found;
  name[0] = 0;
  bool named = text_from(site, "H5Iget_name", set, name, sizeof name);
  if (name[0] == 0) {  // h5py links a data set to its name when it is written
    memcpy(name, kUnnamed, sizeof kUnnamed);
    named = true;
  }
  if (named && text_from(site, "H5Fget_name", set, path, sizeof path))
    found.name = name_of_variable("hdf5", path, name);
  const auto size = ask<size_t (*)(Identifier)>(site, "H5Tget_size");
  if (size == nullptr || !is_a(site, kType, type)) return found;
  const int64_t elements = elements_of(site, set, in_memory, in_file);
  if (elements > 0) found.bytes = static_cast<uint64_t>(elements) * size(type);
  return found;
}

// Whether all ranks make the transfer together (H5Pset_dxpl_mpio); a serial HDF5 has no such
// property. A list is one by comparison with the library's own list of defaults.
wire::Manner manner_of(const CallSite& site, Identifier properties) {
  const auto get = ask<int (*)(Identifier, int*)>(site, "H5Pget_dxpl_mpio");
  if (get == nullptr || properties <= 0)
    return get == nullptr ? wire::Manner::unknown : wire::Manner::independent;
  const auto* const defaults = ask<const Identifier*>(site, "H5P_LST_DATASET_XFER_ID_g");
  const auto kind = ask<int (*)(Identifier)>(site, "H5Iget_type");
  int collective = 0;
  if (defaults == nullptr || kind == nullptr || kind(properties) != kind(*defaults) ||
      get(properties, &collective) < 0)
    return wire::Manner::unknown;
  return collective != 0 ? wire::Manner::collective : wire::Manner::independent;
}

// A data set's name, for calls that move no data of the program.
uint32_t name_of_set(const CallSite& site, Identifier set) {
  return look_up(site, set, 0, 0, 0).name;
}

// The name of the file that an object belongs to.
uint32_t name_of_owner(const CallSite& site, Identifier object) {
  char path[kPathBytes];
  const auto get = ask<int (*)(Identifier)>(site, "H5Iget_type");
  constexpr int kFile = 1, kGroup = 2;
  const int kind = object > 0 && get != nullptr ? get(object) : 0;
  if (kind != kFile && kind != kGroup && kind != kDataSet) return 0;
  if (!text_from(site, "H5Fget_name", object, path, sizeof path)) return 0;
  return trace::process().names().path_id(path);
}

uint32_t name_of_file(const CallSite& site, Identifier file) {
  constexpr int kFile = 1;
  char path[kPathBytes];
  if (!is_a(site, kFile, file) || !text_from(site, "H5Fget_name", file, path, sizeof path))
    return 0;
  return trace::process().names().path_id(path);
}

template <typename Real>
auto on_file(Op op, wire::Function function, uint32_t name, Real real) {
  const uint64_t start = base::ticks();
  const auto result = real();
  const uint64_t end = base::ticks();
  end_library_call({op, Layer::hdf5, wire::numbered(function), name, 0, result < 0}, {start, end});
  return result;
}

}  // namespace
}  // namespace weir::hook

using namespace weir::hook;
using weir::wire::Function;

#define WEIR_HDF5_TRANSFER(op, symbol)                                                            \
  WEIR_OPTIONAL_HOOK(int, symbol, int64_t set, int64_t type, int64_t in_memory, int64_t in_file,  \
                     int64_t properties, void* data) {                                            \
    WEIR_BOUND(symbol);                                                                           \
    const CallSite site(bound);                                                                   \
    const auto real = WEIR_BOUND_REAL(symbol);                                                    \
    if (WEIR_LIKELY(begin_library_call() == 0))                                                   \
      return real(set, type, in_memory, in_file, properties, data);                               \
    const Transfer about = look_up(site, set, type, in_memory, in_file);                          \
    const weir::wire::Manner manner = manner_of(site, properties);                                \
    const uint64_t start = weir::base::ticks();                                                   \
    const int result = real(set, type, in_memory, in_file, properties, data);                     \
    const bool failed = result < 0;                                                               \
    end_library_call({Op::op, Layer::hdf5, weir::wire::numbered(Function::symbol, manner),        \
                      about.name, failed ? 0 : about.bytes, failed},                              \
                     {start, weir::base::ticks()});                                               \
    return result;                                                                                \
  }
WEIR_HDF5_TRANSFER(kLibraryPut, H5Dwrite)
WEIR_HDF5_TRANSFER(kLibraryGet, H5Dread)

#define WEIR_HDF5_OPENS(op, symbol, parameters, ...)                                           \
  WEIR_OPTIONAL_HOOK(int64_t, symbol, WEIR_LIST parameters) {                                  \
    WEIR_BOUND(symbol);                                                                        \
    const CallSite site(bound);                                                                \
    const auto real = WEIR_BOUND_REAL(symbol);                                                 \
    if (WEIR_LIKELY(begin_library_call() == 0)) return real(__VA_ARGS__);                      \
    const uint32_t name = path != nullptr ? weir::trace::process().names().path_id(path) : 0; \
    return on_file(Op::op, Function::symbol, name, [&] { return real(__VA_ARGS__); });         \
  }
WEIR_HDF5_OPENS(kLibraryCreate, H5Fcreate,
                (const char* path, unsigned flags, int64_t making, int64_t access), path, flags,
                making, access)
WEIR_HDF5_OPENS(kLibraryOpen, H5Fopen, (const char* path, unsigned flags, int64_t access), path,
                flags, access)

WEIR_OPTIONAL_HOOK(int, H5Fclose, int64_t file) {
  WEIR_BOUND(H5Fclose);
  const CallSite site(bound);
  const auto real = WEIR_BOUND_REAL(H5Fclose);
  if (WEIR_LIKELY(begin_library_call() == 0)) return real(file);
  return on_file(Op::kLibraryClose, Function::H5Fclose, name_of_file(site, file),
                 [&] { return real(file); });
}

// The object is a file or anything in it.
WEIR_OPTIONAL_HOOK(int, H5Fflush, int64_t object, int scope) {
  WEIR_BOUND(H5Fflush);
  const CallSite site(bound);
  const auto real = WEIR_BOUND_REAL(H5Fflush);
  if (WEIR_LIKELY(begin_library_call() == 0)) return real(object, scope);
  return on_file(Op::kLibrarySync, Function::H5Fflush, name_of_owner(site, object),
                 [&] { return real(object, scope); });
}
WEIR_OPTIONAL_HOOK(int64_t, H5Dcreate2, int64_t where, const char* name, int64_t type,
                   int64_t space, int64_t linking, int64_t making, int64_t access) {
  WEIR_BOUND(H5Dcreate2);
  const CallSite site(bound);
  const auto real = WEIR_BOUND_REAL(H5Dcreate2);
  if (WEIR_LIKELY(begin_library_call() == 0)) {
    return real(where, name, type, space, linking, making, access);
  }
  return on_file(Op::kLibraryDefine, Function::H5Dcreate2, name_of_owner(site, where),
                 [&] { return real(where, name, type, space, linking, making, access); });
}
WEIR_OPTIONAL_HOOK(int, H5Dset_extent, int64_t set, const uint64_t* size) {
  WEIR_BOUND(H5Dset_extent);
  const CallSite site(bound);
  const auto real = WEIR_BOUND_REAL(H5Dset_extent);
  if (WEIR_LIKELY(begin_library_call() == 0)) return real(set, size);
  return on_file(Op::kLibraryDefine, Function::H5Dset_extent, name_of_set(site, set),
                 [&] { return real(set, size); });
}
// Chunks that wait in the library's cache are compressed and written when the data set is closed.
WEIR_OPTIONAL_HOOK(int, H5Dclose, int64_t set) {
  WEIR_BOUND(H5Dclose);
  const CallSite site(bound);
  const auto real = WEIR_BOUND_REAL(H5Dclose);
  if (WEIR_LIKELY(begin_library_call() == 0)) return real(set);
  return on_file(Op::kLibraryClose, Function::H5Dclose, name_of_set(site, set),
                 [&] { return real(set); });
}
