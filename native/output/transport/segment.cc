// SPDX-License-Identifier: Apache-2.0
#include "output/transport/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "output/core/file_size.h"
#include "output/transport/process.h"

namespace weir::output {

namespace {

constexpr int64_t kHugePage = 2 << 20;
constexpr int64_t kPiece = 64 << 20;
constexpr int64_t kReserve = 64 << 20;  // of the node's or job's memory, left alone

Status refused(int64_t bytes, const char* call, int error) {
  return {WEIR_E_MEMORY, "no memory for " + std::to_string(bytes) +
                             " bytes of output buffers on this rank (" + call + ": " +
                             strerror(error) + "); " +
                             (error == EFBIG ? "raise the limit of file sizes (ulimit -f), " : "") +
                             "set client_memory, or write fewer fields in a stream"};
}

// posix_fallocate is cut short by signals, which profilers send all the time. It takes pages until
// the system kills a process for them, so what is left is looked at before each piece: other ranks
// of the node take theirs at the same time.
int allocate(int descriptor, int64_t bytes) {
  int error = EINTR;
  for (int64_t at = 0; at < bytes;) {
    const int64_t piece = bytes - at < kPiece ? bytes - at : kPiece;
    if (bytes > kHugePage && piece + kReserve > available_bytes()) return ENOMEM;
    while ((error = posix_fallocate(descriptor, at, piece)) == EINTR) {
    }
    if (error != 0) return error;
    at += piece;
  }
  return 0;
}

}  // namespace

Segment::~Segment() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
  if (descriptor_ >= 0) close(descriptor_);
}

Status Segment::create(int64_t bytes) {
  bytes_ = bytes < kHugePage ? (bytes + 4095) / 4096 * 4096
                             : (bytes + kHugePage - 1) / kHugePage * kHugePage;
  if (bytes_ == 0) return {};
  if (const int64_t left = available_bytes(); bytes_ > kHugePage && bytes_ > left - kReserve) {
    return {WEIR_E_MEMORY, "output buffers of this rank need " + std::to_string(bytes_) +
                               " bytes, and the node or the job's limit has " +
                               std::to_string(left) +
                               " left; set client_memory, or write fewer fields in a stream"};
  }
  const FileSizeSignalBlocked blocked;
  descriptor_ = memfd_create("weir output", MFD_CLOEXEC);
  if (descriptor_ < 0) return refused(bytes_, "memfd_create", errno);
  if (ftruncate(descriptor_, bytes_) != 0) return refused(bytes_, "ftruncate", errno);
  void* mapped = mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE, MAP_SHARED,
                      descriptor_, 0);
  if (mapped == MAP_FAILED) return refused(bytes_, "mmap", errno);
  data_ = static_cast<char*>(mapped);
  madvise(data_, static_cast<size_t>(bytes_), MADV_HUGEPAGE);
  if (const int error = allocate(descriptor_, bytes_); error != 0)
    return refused(bytes_, "posix_fallocate", error);
  for (int64_t at = 0; at < bytes_; at += 4096) static_cast<volatile char*>(data_)[at] = 0;
  return {};
}

Status Segment::map(int pid, int descriptor, int64_t bytes) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(descriptor);
  const int opened = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) return {WEIR_E_MEMORY, path + ": " + strerror(errno)};
  void* mapped =
      mmap(nullptr, static_cast<size_t>(bytes), PROT_READ, MAP_SHARED | MAP_POPULATE, opened, 0);
  const int error = errno;
  close(opened);
  if (mapped == MAP_FAILED) return {WEIR_E_MEMORY, path + ": mmap: " + strerror(error)};
  data_ = static_cast<char*>(mapped);
  bytes_ = bytes;
  madvise(data_, static_cast<size_t>(bytes_), MADV_HUGEPAGE);
  return {};
}

}  // namespace weir::output
