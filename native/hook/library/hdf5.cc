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
// H5I_type_t, of every version; 0: of none.
constexpr int kFile = 1, kGroup = 2, kType = 3, kSpace = 4, kDataSet = 5;
constexpr size_t kNameBytes = 1024, kPathBytes = 4096;
constexpr char kUnnamed[] = "(unnamed when written)";

struct Transfer {
  uint32_t name;
  uint64_t bytes;
};

int kind_of(const CallSite& site, Identifier what) {
  const auto get = ask<int (*)(Identifier)>(site, "H5Iget_type");
  return what > 0 && get != nullptr ? get(what) : 0;
}
bool is_a(const CallSite& site, int kind, Identifier what) { return kind_of(site, what) == kind; }

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
  const int list = defaults != nullptr ? kind_of(site, *defaults) : 0;
  int collective = 0;
  if (list <= 0 || !is_a(site, list, properties) || get(properties, &collective) < 0)
    return wire::Manner::unknown;
  return collective != 0 ? wire::Manner::collective : wire::Manner::independent;
}

// A data set's name, for calls that move no data of the program.
uint32_t name_of_set(const CallSite& site, Identifier set) {
  return look_up(site, set, 0, 0, 0).name;
}

uint32_t name_of_path(const char* path) {
  return path != nullptr ? trace::process().names().path_id(path) : 0;
}

// 6 before HDF5 1.12, 7 since. What is the other number there is in no file: calls on attributes
// refuse it, too.
bool is_attribute(int kind) { return kind == 6 || kind == 7; }

// The name of the file that a file, a group, a data set or an attribute belongs to.
uint32_t name_of_owner(const CallSite& site, Identifier object) {
  char path[kPathBytes];
  const int kind = kind_of(site, object);
  const bool has_file =
      kind == kFile || kind == kGroup || kind == kDataSet || is_attribute(kind);
  if (!has_file || !text_from(site, "H5Fget_name", object, path, sizeof path)) return 0;
  return name_of_path(path);
}
uint32_t name_of_file(const CallSite& site, Identifier file) {
  return is_a(site, kFile, file) ? name_of_owner(site, file) : 0;
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

// name: of the file or data set, found before the call.
#define WEIR_HDF5_CALL(R, op, symbol, name, parameters, ...)                                      \
  WEIR_OPTIONAL_HOOK(R, symbol, WEIR_LIST parameters) {                                           \
    WEIR_BOUND(symbol);                                                                           \
    const CallSite site(bound);                                                                   \
    const auto real = WEIR_BOUND_REAL(symbol);                                                    \
    if (WEIR_LIKELY(begin_library_call() == 0)) return real(__VA_ARGS__);                         \
    return on_file(Op::op, Function::symbol, name, [&] { return real(__VA_ARGS__); });            \
  }
WEIR_HDF5_CALL(int64_t, kLibraryCreate, H5Fcreate, name_of_path(path),
               (const char* path, unsigned flags, int64_t making, int64_t access), path, flags,
               making, access)
WEIR_HDF5_CALL(int64_t, kLibraryOpen, H5Fopen, name_of_path(path),
               (const char* path, unsigned flags, int64_t access), path, flags, access)
WEIR_HDF5_CALL(int, kLibraryClose, H5Fclose, name_of_file(site, file), (int64_t file), file)
// The object is a file or anything in it.
WEIR_HDF5_CALL(int, kLibrarySync, H5Fflush, name_of_owner(site, object),
               (int64_t object, int scope), object, scope)
WEIR_HDF5_CALL(int64_t, kLibraryDefine, H5Dcreate2, name_of_owner(site, where),
               (int64_t where, const char* name, int64_t type, int64_t space, int64_t linking,
                int64_t making, int64_t access),
               where, name, type, space, linking, making, access)
WEIR_HDF5_CALL(int, kLibraryDefine, H5Dset_extent, name_of_set(site, set),
               (int64_t set, const uint64_t* size), set, size)
// Chunks that wait in the library's cache are compressed and written when the data set is closed.
WEIR_HDF5_CALL(int, kLibraryClose, H5Dclose, name_of_set(site, set), (int64_t set), set)
// Groups and attributes. An attribute is written into the header of its object, which the library
// holds in memory as a rule.
WEIR_HDF5_CALL(int64_t, kLibraryDefine, H5Gcreate2, name_of_owner(site, where),
               (int64_t where, const char* name, int64_t linking, int64_t making, int64_t access),
               where, name, linking, making, access)
WEIR_HDF5_CALL(int64_t, kLibraryDefine, H5Acreate2, name_of_owner(site, where),
               (int64_t where, const char* name, int64_t type, int64_t space, int64_t making,
                int64_t access),
               where, name, type, space, making, access)
WEIR_HDF5_CALL(int, kLibraryDefine, H5Awrite, name_of_owner(site, attribute),
               (int64_t attribute, int64_t type, const void* data), attribute, type, data)
WEIR_HDF5_CALL(int, kLibraryDefine, H5Aclose, name_of_owner(site, attribute), (int64_t attribute),
               attribute)
