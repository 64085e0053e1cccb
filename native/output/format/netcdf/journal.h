// SPDX-License-Identifier: Apache-2.0
// A commit of metadata is some twenty small writes. They are noted beside the file first, so that a
// kill between two of them can be mended: <file>.journal exists while the file grows, and is valid
// only while a commit is being applied. Data are not in it.
//     8 bytes "weirjrn1", 8 bytes n, 8 bytes checksum of what follows (FNV-1a, 64 bits), n bytes:
//     extents of 8 bytes address, 8 bytes length, bytes; all little-endian
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace weir::output::netcdf {

using Extents = std::map<uint64_t, std::vector<char>>;  // by address in the file

// From the end to the begin: HDF5's superblock, which says how long the file is, comes last. 0 or
// an errno, here and below.
int write_extents(int fd, const Extents& extents);

class Journal {
 public:
  Journal() = default;
  explicit Journal(const std::string& file) : file_(file), path_(file + ".journal") {}
  Journal(const Journal&) = delete;
  Journal& operator=(Journal&& other) noexcept;
  ~Journal();

  // Returns when the extents may be applied.
  int write(const Extents& extents, bool sync);
  // They are applied.
  int clear();
  // Unless it is valid.
  void remove();
  // Applies a valid journal that a dead process left; then removes it.
  int replay();

 private:
  std::string file_, path_;
  int fd_ = -1;
  bool valid_ = false;
};

}  // namespace weir::output::netcdf
