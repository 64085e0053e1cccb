// SPDX-License-Identifier: Apache-2.0
#include "output/format/netcdf/applied.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <string_view>

namespace weir::output::netcdf {
namespace {

size_t checksum(const char* data, size_t bytes) {
  return std::hash<std::string_view>()({data, bytes});
}

// As many bytes as there are. 0 or an errno.
int read_range(int fd, uint64_t address, size_t bytes, std::vector<char>& to) {
  to.resize(bytes);
  size_t have = 0;
  while (have < bytes) {
    const ssize_t n =
        ::pread(fd, to.data() + have, bytes - have, static_cast<off_t>(address + have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) break;
    have += static_cast<size_t>(n);
  }
  to.resize(have);
  return 0;
}

}  // namespace

void Applied::add(const Extents& extents) {
  for (const auto& [address, bytes] : extents) {
    if (address < head_.size())
      std::copy_n(bytes.begin(), std::min<size_t>(bytes.size(), head_.size() - address),
                  head_.begin() + static_cast<std::ptrdiff_t>(address));
    const uint64_t begin = std::max<uint64_t>(address, head_.size()),
                   end = address + bytes.size();
    if (begin >= end) continue;
    auto old = sums_.upper_bound(begin);
    if (old != sums_.begin() && std::prev(old)->first + std::prev(old)->second.bytes > begin) --old;
    while (old != sums_.end() && old->first < end) old = sums_.erase(old);
    sums_[begin] = {end - begin, checksum(bytes.data() + (begin - address), end - begin)};
  }
}

void Applied::leave_out(uint64_t address, uint64_t bytes) {
  if (address >= head_.size()) return;
  uint64_t& until = left_out_[address];
  until = std::max(until, address + bytes);
}

// -1: none. Between the values that are left out.
int64_t Applied::damage_in_head(const std::vector<char>& there) const {
  size_t from = 0;
  const auto differs = [&](size_t until) {
    for (; from < until; from++) {
      if (from >= there.size() || there[from] != head_[from]) return true;
    }
    return false;
  };
  for (const auto& [address, until] : left_out_) {
    if (differs(address)) return static_cast<int64_t>(from);
    from = std::max<size_t>(from, until);
  }
  return differs(head_.size()) ? static_cast<int64_t>(from) : -1;
}

int Applied::find_damage(int fd, int64_t* at) const {
  constexpr uint64_t kMostBetween = 64 << 10, kMostAtOnce = 4 << 20;
  std::vector<char> there;
  *at = -1;
  if (const int error = read_range(fd, 0, head_.size(), there); error != 0) return error;
  *at = damage_in_head(there);
  for (auto sum = sums_.begin(); *at < 0 && sum != sums_.end();) {
    const uint64_t begin = sum->first;
    uint64_t end = begin + sum->second.bytes;
    auto last = std::next(sum);
    for (; last != sums_.end() && last->first - end <= kMostBetween &&
           last->first + last->second.bytes - begin <= kMostAtOnce;
         ++last)
      end = last->first + last->second.bytes;
    if (const int error = read_range(fd, begin, end - begin, there); error != 0) return error;
    for (; *at < 0 && sum != last; ++sum) {
      const auto& [address, expected] = *sum;
      const uint64_t here = address - begin;
      if (here + expected.bytes > there.size() ||
          checksum(there.data() + here, expected.bytes) != expected.checksum)
        *at = static_cast<int64_t>(address);
    }
  }
  return 0;
}

}  // namespace weir::output::netcdf
