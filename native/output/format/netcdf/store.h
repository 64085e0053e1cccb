// SPDX-License-Identifier: Apache-2.0
// A driver of HDF5 (virtual file layer) for files whose data others write. What HDF5 writes of its
// own, metadata, stays in memory until apply(): so the file never shows a state between two
// commits. What it would write of data is not written: only the places are noted, so that the
// owners, which have the data, write there.
#pragma once

#include <hdf5.h>

#include <map>
#include <string>
#include <vector>

#include "output/format/netcdf/applied.h"
#include "output/format/netcdf/module.h"

namespace weir::output::netcdf {

class Store {
 public:
  // Opens the file as HDF5 does, through this driver. The handle of HDF5 goes with H5Fclose; the
  // store must live longer. index_bytes: of the nodes that say where chunks are; many lie side by
  // side, which makes one request of their changes, and stay in memory.
  static hid_t open(const char* path, size_t index_bytes, Store& store);

  // Address of the last piece of data that HDF5 gave a place to; HADDR_UNDEF when there was none
  // since the last call.
  haddr_t take_place();
  // The metadata written since the last call, into the file; it is made as long as HDF5 believes it
  // to be. 0 or an errno.
  int apply(bool sync);
  size_t kept_bytes() const;  // of metadata that are not yet in the file
  void remove_journal() { journal_.remove(); }
  // The file has no records yet: what it consists of is metadata and coordinates, so what lies
  // between two changes may be written again with them, by one request.
  void joins_changes() { joins_ = true; }
  // Values that others write there.
  void leave_out(haddr_t address, haddr_t bytes) { applied_.leave_out(address, bytes); }
  // Of the file after the last apply().
  haddr_t length() const { return length_; }
  int find_damage(int fd, int64_t* at) const { return applied_.find_damage(fd, at); }
  // From now on nothing is kept.
  void forget() { forgetting_ = true; }

  int open_file(const char* path);
  void close_file();
  herr_t read(haddr_t address, size_t bytes, char* to) const;
  void write(H5FD_mem_t kind, haddr_t address, size_t bytes, const char* from);
  haddr_t end() const;
  haddr_t allocated = 0;

 private:
  void read_head();
  void join();

  int fd_ = -1;
  haddr_t length_ = 0;                          // of the file
  Extents kept_;                                // metadata by address, without overlaps
  Applied applied_;
  bool joins_ = false;
  Journal journal_;
  haddr_t place_ = HADDR_UNDEF;
  bool forgetting_ = false;
};

}  // namespace weir::output::netcdf
