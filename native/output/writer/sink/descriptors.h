// SPDX-License-Identifier: Apache-2.0
// Open files of a sink by number, and plain writes to them.
#pragma once

#include <sys/uio.h>

#include <string>
#include <vector>

#include "output/core/status.h"
#include "output/writer/buffer.h"

namespace weir::output::writer {

// The memory of a piece from byte `from` on.
std::vector<iovec> parts_of(const Piece& piece, size_t from);

class Descriptors {
 public:
  explicit Descriptors(int files) : files_(static_cast<size_t>(files)) {}
  ~Descriptors() { (void)close(); }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  Status open(int file, const std::string& path);
  Status close();
  int operator[](int file) const { return files_[static_cast<size_t>(file)].fd; }
  // What follows the first `written` bytes of a piece, by as many calls as the system needs.
  Status write_rest(const Piece& piece, size_t written) const;
  Status failed(int file, int error) const;

 private:
  struct File {
    int fd = -1;
    std::string path;
  };
  std::vector<File> files_;
};

}  // namespace weir::output::writer
