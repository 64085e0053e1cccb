// SPDX-License-Identifier: Apache-2.0
#include "output/format/netcdf/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace weir::output::netcdf {

int Store::open_file(const char* path) {
  fd_ = ::open(path, O_RDWR | O_CLOEXEC);
  journal_ = Journal(path);
  struct stat status;
  if (fd_ < 0 || ::fstat(fd_, &status) != 0) return errno;
  length_ = static_cast<haddr_t>(status.st_size);
  read_head();
  return 0;
}

// HDF5 reads the metadata of each variable by some small requests.
void Store::read_head() {
  constexpr haddr_t kMost = 4 << 20;
  std::vector<char> head(std::min(length_, kMost));
  if (read(0, head.size(), head.data()) == 0) applied_.take_head(std::move(head));
}

void Store::close_file() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

haddr_t Store::end() const {
  const haddr_t kept = kept_.empty() ? 0 : kept_.rbegin()->first + kept_.rbegin()->second.size();
  return std::max({length_, kept, allocated});
}

size_t Store::kept_bytes() const {
  size_t bytes = 0;
  for (const auto& [address, extent] : kept_) bytes += extent.size();
  return bytes;
}

haddr_t Store::take_place() { return std::exchange(place_, HADDR_UNDEF); }

herr_t Store::read(haddr_t address, size_t bytes, char* to) const {
  const std::vector<char>& head = applied_.head();
  size_t have = 0;
  if (address < head.size()) {
    have = std::min<size_t>(bytes, head.size() - address);
    std::memcpy(to, head.data() + address, have);
  }
  while (have < bytes) {
    const ssize_t n = ::pread(fd_, to + have, bytes - have, static_cast<off_t>(address + have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    have += static_cast<size_t>(n);
  }
  std::memset(to + have, 0, bytes - have);
  auto it = kept_.upper_bound(address);
  if (it != kept_.begin()) --it;
  for (; it != kept_.end() && it->first < address + bytes; ++it) {
    const haddr_t from = std::max(address, it->first),
                  until = std::min(address + bytes, it->first + it->second.size());
    if (from < until)
      std::memcpy(to + (from - address), it->second.data() + (from - it->first), until - from);
  }
  return 0;
}

void Store::write(H5FD_mem_t kind, haddr_t address, size_t bytes, const char* from) {
  if (kind == H5FD_MEM_DRAW) {
    place_ = address;
    return;
  }
  if (forgetting_ || bytes == 0) return;
  // One entry of this and all that it overlaps.
  haddr_t begin = address, until = address + bytes;
  auto first = kept_.upper_bound(address);
  if (first != kept_.begin() && std::prev(first)->first + std::prev(first)->second.size() > address)
    --first;
  if (first != kept_.end() && first->first <= begin &&
      first->first + first->second.size() >= until) {
    std::memcpy(first->second.data() + (begin - first->first), from, bytes);
    return;
  }
  auto last = first;
  for (; last != kept_.end() && last->first < address + bytes; ++last) {
    begin = std::min(begin, last->first);
    until = std::max<haddr_t>(until, last->first + last->second.size());
  }
  std::vector<char> merged(until - begin);
  for (auto it = first; it != last; ++it)
    std::memcpy(merged.data() + (it->first - begin), it->second.data(), it->second.size());
  std::memcpy(merged.data() + (address - begin), from, bytes);
  kept_.erase(first, last);
  kept_.emplace(begin, std::move(merged));
}

// A change and the next one become one where they touch; in the head with what lies between them.
void Store::join() {
  constexpr haddr_t kMostBetween = 4096;
  const std::vector<char>& head = applied_.head();
  auto at = kept_.begin();
  for (auto next = at; at != kept_.end() && (next = std::next(at)) != kept_.end();) {
    const haddr_t end = at->first + at->second.size(), between = next->first - end;
    if (between > (joins_ && next->first <= head.size() ? kMostBetween : 0)) {
      at = next;
      continue;
    }
    if (between > 0) {
      const auto from = head.begin() + static_cast<std::ptrdiff_t>(end);
      at->second.insert(at->second.end(), from, from + static_cast<std::ptrdiff_t>(between));
    }
    at->second.insert(at->second.end(), next->second.begin(), next->second.end());
    kept_.erase(next);
  }
}

int Store::apply(bool sync) {
  applied_.add(kept_);
  join();
  struct stat status;
  if (::fstat(fd_, &status) != 0) return errno;
  length_ = static_cast<haddr_t>(status.st_size);
  if (length_ < allocated) {
    if (::ftruncate(fd_, static_cast<off_t>(allocated)) != 0) return errno;
    length_ = allocated;
  }
  if (int error = journal_.write(kept_, sync); error != 0) return error;
  if (int error = write_extents(fd_, kept_); error != 0) return error;
  kept_.clear();
  if (sync && ::fdatasync(fd_) != 0) return errno;
  return journal_.clear();
}

namespace {

// What HDF5 hands around. `opening` passes the store to the driver's open: calls of the module come
// one at a time.
struct Handle {
  H5FD_t base;
  Store* store;
};
Store* opening = nullptr;

Store& store_of(const H5FD_t* file) { return *reinterpret_cast<const Handle*>(file)->store; }

H5FD_t* driver_open(const char* path, unsigned, hid_t, haddr_t) {
  if (!opening || opening->open_file(path) != 0) return nullptr;
  return &(new Handle{{}, opening})->base;
}
herr_t driver_close(H5FD_t* file) {
  store_of(file).close_file();
  delete reinterpret_cast<Handle*>(file);
  return 0;
}
int driver_compare(const H5FD_t* a, const H5FD_t* b) { return a < b ? -1 : a > b; }
herr_t driver_query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA;
  return 0;
}
haddr_t driver_get_eoa(const H5FD_t* file, H5FD_mem_t) { return store_of(file).allocated; }
herr_t driver_set_eoa(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  store_of(file).allocated = address;
  return 0;
}
haddr_t driver_get_eof(const H5FD_t* file, H5FD_mem_t) { return store_of(file).end(); }
herr_t driver_read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t bytes, void* to) {
  return store_of(file).read(address, bytes, static_cast<char*>(to));
}
herr_t driver_write(H5FD_t* file, H5FD_mem_t kind, hid_t, haddr_t address, size_t bytes,
                    const void* from) {
  store_of(file).write(kind, address, bytes, static_cast<const char*>(from));
  return 0;
}

hid_t driver() {
  static hid_t id = H5I_INVALID_HID;
  if (id >= 0) return id;
  static H5FD_class_t driver_class = {};
#if H5_VERSION_GE(1, 14, 0)
  driver_class.version = H5FD_CLASS_VERSION;
  driver_class.value = static_cast<H5FD_class_value_t>(600);  // of the numbers that anybody may use
#endif
  driver_class.name = "weir";
  driver_class.maxaddr = static_cast<haddr_t>(1) << 62;
  driver_class.fc_degree = H5F_CLOSE_STRONG;
  driver_class.open = driver_open;
  driver_class.close = driver_close;
  driver_class.cmp = driver_compare;
  driver_class.query = driver_query;
  driver_class.get_eoa = driver_get_eoa;
  driver_class.set_eoa = driver_set_eoa;
  driver_class.get_eof = driver_get_eof;
  driver_class.read = driver_read;
  driver_class.write = driver_write;
  // Data, which owners write at once, never go to where metadata were: the committed state may
  // still need them.
  const H5FD_mem_t apart[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(apart), std::end(apart), driver_class.fl_map);
  return id = H5FDregister(&driver_class);
}

}  // namespace

// HDF5's cache of metadata, which has 2 MiB of its own.
static bool make_room(hid_t access, size_t index_bytes) {
  constexpr size_t kMost = 128 << 20;  // HDF5's limit
  H5AC_cache_config_t config = {};
  config.version = H5AC__CURR_CACHE_CONFIG_VERSION;
  if (H5Pget_mdc_config(access, &config) < 0) return false;
  config.set_initial_size = true;
  config.initial_size = std::min(std::max(config.initial_size, 4 * index_bytes), kMost);
  config.max_size = std::max(config.max_size, config.initial_size);
  config.min_size = std::max(config.min_size, config.initial_size);
  return H5Pset_mdc_config(access, &config) >= 0;
}

hid_t Store::open(const char* path, size_t index_bytes, Store& store) {
  constexpr size_t kMany = 192 << 10;
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  hid_t file = H5I_INVALID_HID;
  opening = &store;
  if (access >= 0 && H5Pset_driver(access, driver(), nullptr) >= 0 &&
      H5Pset_alignment(access, 1 << 20, 4096) >= 0 &&
      (index_bytes < kMany || (H5Pset_meta_block_size(access, index_bytes) >= 0 &&
                               make_room(access, index_bytes)))) {
    file = H5Fopen(path, H5F_ACC_RDWR, access);
  }
  opening = nullptr;
  if (access >= 0) H5Pclose(access);
  return file;
}

}  // namespace weir::output::netcdf
