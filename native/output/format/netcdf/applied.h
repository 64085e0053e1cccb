// SPDX-License-Identifier: Apache-2.0
// What the metadata of a growing file must be, to see what another program changed: the bytes of
// the file's head as they were read and written since, checksums of what was written behind it.
#pragma once

#include <map>
#include <vector>

#include "output/format/netcdf/journal.h"

namespace weir::output::netcdf {

class Applied {
 public:
  void take_head(std::vector<char> bytes) { head_ = std::move(bytes); }
  const std::vector<char>& head() const { return head_; }
  // Written into the file. Extents behind the head that share bytes with earlier ones replace them.
  void add(const Extents& extents);
  // Values, which others write: not looked at.
  void leave_out(uint64_t address, uint64_t bytes);
  // The first byte that is another one in the file, or the first of an extent with another
  // checksum; -1: none. Reads the head, and extents that lie near each other, by one request. 0 or
  // an errno.
  int find_damage(int fd, int64_t* at) const;

 private:
  int64_t damage_in_head(const std::vector<char>& there) const;

  struct Sum {
    uint64_t bytes;
    size_t checksum;
  };
  std::vector<char> head_;
  std::map<uint64_t, Sum> sums_;           // by address, without overlaps
  std::map<uint64_t, uint64_t> left_out_;  // of the head: until, by address
};

}  // namespace weir::output::netcdf
