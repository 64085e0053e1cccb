// SPDX-License-Identifier: Apache-2.0
// A trace file mapped for reading, and copies of fields out of it that never reach beyond it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "wire/format.h"

namespace weir::reader {

class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  // Empty string on success, otherwise what failed.
  [[nodiscard]] std::string open(const char* path);

  const char* data() const { return data_; }
  uint64_t size() const { return size_; }
  bool holds(uint64_t offset, uint64_t bytes) const {
    return offset <= size_ && bytes <= size_ - offset;
  }

  // The records of a chunk that begins at `chunk`, without those that blank() has taken out.
  const char* records(uint64_t chunk) const {
    return has_blanks_.load(std::memory_order_acquire) ? blanked(chunk)
                                                       : data_ + chunk + sizeof(wire::ChunkHeader);
  }

  // From now on so many bytes of records behind the chunk's header have zeros in these records.
  // Threads: one at a time, beside any that read other chunks. memory: that of the chunk, up to
  // kMostBlanked of all; then the chunk is zeros.
  void blank(uint64_t chunk, uint64_t bytes, const std::vector<uint64_t>& records,
             uint64_t record_bytes) const;

  // Copy of a struct; before: holds(offset, sizeof(T)). One copy, so that a writer cannot change it
  // between checks.
  template <class T>
  T copy(uint64_t offset) const {
    T value;
    std::memcpy(&value, data_ + offset, sizeof value);
    return value;
  }

  // The mapping stays, its descriptor goes: next_stored() must not be asked any more.
  void close_descriptor();

  // These bytes will not be read again soon: they need not stay in the memory of this process. What
  // is left of a page at both ends stays.
  void leave(uint64_t offset, uint64_t bytes) const;

  // So many bytes of a piece were read, by any thread, and will not be read again soon. The kernel
  // maps what lies around a page that is read, of pieces that were left before too: from time to
  // time all pages of all files leave of which this was called. A page that is in use comes back.
  // cost: some system calls for each kAtOnceBytes of all files.
  void done(uint64_t bytes) const;

  // The same as leave(), with what the kernel may have mapped around them: at the end of a stretch
  // that was read from end to end.
  void leave_around(uint64_t offset, uint64_t bytes) const {
    leave(offset - std::min(offset, kFolioBytes),
          std::min(offset, kFolioBytes) + bytes + kFolioBytes);
  }

  // First byte at or behind `offset` that the file system stores, or size() when only holes follow.
  uint64_t next_stored(uint64_t offset) const;

 private:
  // The kernel may map so much around a byte that is read.
  static constexpr uint64_t kFolioBytes = 2 << 20;

  static constexpr uint64_t kMostBlanked = 64 << 20;

  const char* blanked(uint64_t chunk) const;

  mutable std::atomic<bool> has_blanks_ = false;
  mutable std::shared_mutex blanks_mutex_;
  mutable std::unordered_map<uint64_t, std::unique_ptr<char[]>> blanks_;  // by chunk; null: zeros
  mutable uint64_t blanked_bytes_ = 0;
  const char* data_ = nullptr;
  uint64_t size_ = 0;
  int descriptor_ = -1;
  mutable std::atomic<bool> is_read_ = false;  // among those that done() lets leave
};

// What one thread reads of a file from its beginning to its end: the pages leave some MiB at a
// time, as each call of the system stops the other threads.
class Window {
 public:
  explicit Window(const Mapping& file) : file_(&file) {}

  // These bytes were read, behind those before.
  void take(uint64_t offset, uint64_t bytes) {
    if (end_ == 0) first_ = offset;
    end_ = offset + bytes;
    if (end_ - first_ >= kAtOnceBytes) leave();
  }

  void leave() {
    if (end_ != 0) file_->leave_around(first_, end_ - first_);
    end_ = 0;
  }

 private:
  static constexpr uint64_t kAtOnceBytes = 8 << 20;

  const Mapping* file_;
  uint64_t first_ = 0, end_ = 0;
};

}  // namespace weir::reader
