// SPDX-License-Identifier: Apache-2.0
#include "reader/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace weir::reader {
namespace {

constexpr uint64_t kAtOnceBytes = 8 << 20;

// Files of which pieces were read since pages left.
struct Read {
  std::mutex mutex;
  std::vector<const Mapping*> files;
  std::atomic<uint64_t> bytes = 0;
};

Read& read_files() {
  static Read* const made = new Read;  // files may be closed at the end of the program
  return *made;
}

}  // namespace

std::string Mapping::open(const char* path) {
  descriptor_ = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) return std::string("cannot open: ") + strerror(errno);
  struct stat status;
  if (fstat(descriptor_, &status) != 0) return std::string("cannot stat: ") + strerror(errno);
  if (!S_ISREG(status.st_mode)) return "not a regular file";
  size_ = static_cast<uint64_t>(status.st_size);
  if (size_ == 0) return "";
  void* place = mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor_, 0);
  if (place == MAP_FAILED) {
    size_ = 0;
    return std::string("cannot map: ") + strerror(errno);
  }
  data_ = static_cast<const char*>(place);
  return "";
}

void Mapping::leave(uint64_t offset, uint64_t bytes) const {
  const uint64_t first = (offset + wire::kPageBytes - 1) & ~(wire::kPageBytes - 1),
                 end = std::min(offset + bytes, size_) & ~(wire::kPageBytes - 1);
  if (first < end) madvise(const_cast<char*>(data_) + first, end - first, MADV_DONTNEED);
}

void Mapping::done(uint64_t bytes) const {
  Read& read = read_files();
  if (!is_read_.exchange(true)) {
    const std::lock_guard lock(read.mutex);
    read.files.push_back(this);
  }
  if (read.bytes.fetch_add(bytes) + bytes < kAtOnceBytes) return;
  const std::lock_guard lock(read.mutex);
  if (read.bytes < kAtOnceBytes) return;  // another thread was faster
  read.bytes = 0;
  for (const Mapping* one : read.files) {
    one->is_read_ = false;
    one->leave(0, one->size_);
  }
  read.files.clear();
}

uint64_t Mapping::next_stored(uint64_t offset) const {
  if (offset >= size_) return size_;
  const off_t stored = lseek(descriptor_, static_cast<off_t>(offset), SEEK_DATA);
  if (stored < 0) return errno == ENXIO ? size_ : offset;
  return static_cast<uint64_t>(stored) < size_ ? static_cast<uint64_t>(stored) : size_;
}

void Mapping::close_descriptor() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

Mapping::~Mapping() {
  if (is_read_) {
    const std::lock_guard lock(read_files().mutex);
    std::erase(read_files().files, this);
  }
  if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
  close_descriptor();
}

void Mapping::blank(uint64_t chunk, uint64_t bytes, const std::vector<uint64_t>& records,
                    uint64_t record_bytes) const {
  std::unique_ptr<char[]> copy;
  if (bytes <= kMostBlanked - blanked_bytes_) {
    blanked_bytes_ += bytes;
    copy = std::make_unique<char[]>(bytes);
    std::memcpy(copy.get(), data_ + chunk + sizeof(wire::ChunkHeader), bytes);
    for (const uint64_t record : records)
      std::memset(copy.get() + record * record_bytes, 0, record_bytes);
  }
  const std::unique_lock lock(blanks_mutex_);
  blanks_[chunk] = std::move(copy);
  has_blanks_.store(true, std::memory_order_release);
}

const char* Mapping::blanked(uint64_t chunk) const {
  alignas(64) static constexpr char kZeros[wire::kMaxChunkBytes] = {};
  const std::shared_lock lock(blanks_mutex_);
  const auto found = blanks_.find(chunk);
  if (found == blanks_.end()) return data_ + chunk + sizeof(wire::ChunkHeader);
  return found->second != nullptr ? found->second.get() : kZeros;
}

}  // namespace weir::reader
