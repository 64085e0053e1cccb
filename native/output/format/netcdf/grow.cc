// SPDX-License-Identifier: Apache-2.0
// netCDF-4 files that grow by records: HDF5 keeps the metadata (extents, index of chunks) and says
// where each chunk goes; the bytes are the owners' business. One rank of the file does this, with
// the serial library; no MPI-IO is needed for many to write.
#include <hdf5.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "output/format/netcdf/journal.h"
#include "output/format/netcdf/parts.h"
#include "output/format/netcdf/quiet.h"
#include "output/format/netcdf/store.h"

namespace weir::output::netcdf {
namespace {

struct Growing {
  std::string path;
  bool sync = false;
  Store store;
  hid_t file = H5I_INVALID_HID;
  std::vector<hid_t> sets;      // of the description's variables; invalid: written at creation
  std::vector<hid_t> extended;  // those with time
  hid_t time = H5I_INVALID_HID; // the dimension's own, when no variable is called like it
  std::vector<bool> chunked;
};

bool failed(Why& why, const std::string& what, const Growing& g, const Quiet& quiet) {
  return say(why, ("cannot " + what).c_str(), g.path.c_str(), quiet.reason());
}

// -1: it has no dimension.
int64_t records_of(hid_t set) {
  hsize_t lengths[H5S_MAX_RANK];
  const hid_t space = H5Dget_space(set);
  const int rank = H5Sget_simple_extent_dims(space, lengths, nullptr);
  H5Sclose(space);
  return rank > 0 ? static_cast<int64_t>(lengths[0]) : -1;
}

bool open_sets(Growing& g, const FileDescription& description, const Quiet& quiet, Why& why) {
  const hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
  H5Pset_chunk_cache(access, 0, 0, 0);  // no chunk is ever in HDF5's memory
  bool has_time = description.time < 0;
  bool fine = true;
  for (const Variable& v : description.variables) {
    hid_t set = H5I_INVALID_HID;
    if (v.over_time || v.values.empty()) {
      set = H5Dopen2(g.file, v.name.c_str(), access);
      if (set < 0) fine = failed(why, "find " + v.name + " in", g, quiet);
    }
    g.sets.push_back(set);
    g.chunked.push_back(!v.chunk.empty());
    if (v.over_time && set >= 0) g.extended.push_back(set);
    if (!has_time && v.name == description.dimensions[description.time].name) has_time = true;
  }
  if (!has_time && fine) {
    g.time = H5Dopen2(g.file, description.dimensions[description.time].name.c_str(), access);
    if (g.time >= 0) g.extended.push_back(g.time);
  }
  H5Pclose(access);
  if (fine && !g.extended.empty() && records_of(g.extended[0]) == 0) g.store.joins_changes();
  return fine;
}

// A node of the tree of chunks for each variable that grows (HDF5 File Format, III.A.1: 64 chunks,
// each with its address, between 65 keys of its size and its place).
size_t index_bytes(const FileDescription& description) {
  size_t bytes = 0;
  for (const Variable& v : description.variables) {
    if (v.over_time) bytes += 24 + 64 * 8 + 65 * (8 + 8 * (v.dimensions.size() + 2));
  }
  return bytes;
}

// A chunk's place: HDF5 "writes" it, without any bytes being looked at or written.
haddr_t place_chunk(Growing& g, hid_t set, const Piece& piece) {
  const size_t bytes = static_cast<size_t>(piece.bytes);
  void* untouched =
      mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (untouched == MAP_FAILED) return HADDR_UNDEF;
  hsize_t start[9];
  for (int d = 0; d < 8; d++) start[d] = static_cast<hsize_t>(piece.start[d]);
  g.store.take_place();
  const herr_t done = H5Dwrite_chunk(set, H5P_DEFAULT, 0, start, bytes, untouched);
  munmap(untouched, bytes);
  return done < 0 ? HADDR_UNDEF : g.store.take_place();
}

// A contiguous variable has its place with the first element that is written.
haddr_t place_whole(hid_t set) {
  haddr_t address = H5Dget_offset(set);
  if (address != HADDR_UNDEF) return address;
  const hid_t space = H5Dget_space(set), type = H5Dget_type(set), memory = H5Screate(H5S_SCALAR);
  const hsize_t start[8] = {}, count[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  const double zero = 0;  // as many bytes as the largest type has
  if (H5Sget_simple_extent_ndims(space) > 0)
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr);
  if (H5Dwrite(set, type, memory, space, H5P_DEFAULT, &zero) >= 0) address = H5Dget_offset(set);
  H5Sclose(memory);
  H5Tclose(type);
  H5Sclose(space);
  return address;
}

}  // namespace

void* grow(const FileDescription& description, const char* path, bool sync, Why& why) {
  Growing* g = new Growing;
  g->path = path;
  g->sync = sync;
  {
    const Quiet quiet;
    register_zstd();
    g->file = Store::open(path, index_bytes(description), g->store);
    if (g->file >= 0 ? open_sets(*g, description, quiet, why) : failed(why, "open", *g, quiet))
      return g;
  }
  finish(g);
  return nullptr;
}

bool extend(void* growing, int64_t records, Why& why) {
  Growing& g = *static_cast<Growing*>(growing);
  const Quiet quiet;
  for (hid_t set : g.extended) {
    hsize_t lengths[H5S_MAX_RANK];
    const hid_t space = H5Dget_space(set);
    const bool has_time = H5Sget_simple_extent_dims(space, lengths, nullptr) > 0;
    H5Sclose(space);
    lengths[0] = static_cast<hsize_t>(records);
    if (!has_time || H5Dset_extent(set, lengths) < 0) return failed(why, "extend", g, quiet);
  }
  return true;
}

bool place(void* growing, Piece* pieces, int64_t count, Why& why) {
  Growing& g = *static_cast<Growing*>(growing);
  const Quiet quiet;
  for (int64_t i = 0; i < count; i++) {
    Piece& piece = pieces[i];
    const size_t v = static_cast<size_t>(piece.variable);
    const haddr_t address =
        g.chunked[v] ? place_chunk(g, g.sets[v], piece) : place_whole(g.sets[v]);
    if (address == HADDR_UNDEF) return failed(why, "find room in", g, quiet);
    piece.address = static_cast<int64_t>(address);
    g.store.leave_out(address, static_cast<haddr_t>(piece.bytes));
  }
  return true;
}

bool commit(void* growing, Why& why) {
  Growing& g = *static_cast<Growing*>(growing);
  const Quiet quiet;
  if (H5Fflush(g.file, H5F_SCOPE_GLOBAL) < 0) return failed(why, "write the metadata of", g, quiet);
  const size_t bytes = g.store.kept_bytes();
  const int error = g.store.apply(g.sync);
  return error == 0 || say_errno(why, "cannot write " + std::to_string(bytes) +
                                          " bytes of metadata to", g.path.c_str(), error);
}

bool find_damage(void* growing, int descriptor, int64_t* least_bytes, int64_t* at, Why& why) {
  const Growing& g = *static_cast<Growing*>(growing);
  *least_bytes = static_cast<int64_t>(g.store.length());
  const int error = g.store.find_damage(descriptor, at);
  return error == 0 || say_errno(why, "cannot read the metadata of", g.path.c_str(), error);
}

void finish(void* growing) {
  Growing* g = static_cast<Growing*>(growing);
  g->store.forget();
  const Quiet quiet;
  for (hid_t set : g->sets) {
    if (set >= 0) H5Dclose(set);
  }
  if (g->time >= 0) H5Dclose(g->time);
  if (g->file >= 0) H5Fclose(g->file);
  g->store.remove_journal();
  delete g;
}

bool recover(const char* path, Why& why) {
  const int error = Journal(path).replay();
  return error == 0 || say_errno(why, "cannot complete the metadata of", path, error);
}

}  // namespace weir::output::netcdf
