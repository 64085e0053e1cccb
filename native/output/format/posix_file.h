// SPDX-License-Identifier: Apache-2.0
// A file by its descriptor. Errors are WEIR_E_FILE and name path, what was done and the cause;
// short transfers and EINTR are gone on with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "output/core/status.h"

namespace weir::output {

class PosixFile {
 public:
  PosixFile() = default;
  PosixFile(PosixFile&& other) noexcept;
  PosixFile& operator=(PosixFile&& other) noexcept;
  PosixFile(const PosixFile&) = delete;
  ~PosixFile();

  // flags as open(2) has them; O_CLOEXEC is added.
  static Result<PosixFile> open(const std::string& path, int flags);
  Status write_at(const void* data, size_t bytes, int64_t offset);
  // The next write_at first looks whether the file is still as long as those before made it, since
  // what another program cut off would come back as zeros. fails: as intact.h has it
  void expect_whole() { expects_whole_ = end_ > 0; }
  // A file that ends before is an error.
  Status read_at(void* data, size_t bytes, int64_t offset) const;
  Result<int64_t> size() const;
  Status resize(int64_t bytes);
  Status sync() const;
  // Reports what the file system reported late; the descriptor is gone in any case.
  Status close();
  int descriptor() const { return fd_; }
  const std::string& path() const { return path_; }

 private:
  int fd_ = -1;
  std::string path_;
  int64_t end_ = 0;  // of what this object wrote
  bool expects_whole_ = false;
};

// WEIR_E_FILE: "cannot <what> <path>: <text of error>".
Status file_error(const char* what, const std::string& path, int error);

}  // namespace weir::output
