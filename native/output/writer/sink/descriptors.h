// SPDX-License-Identifier: Apache-2.0
// Open files of a sink by number, and plain writes to them.
#pragma once

#include <string>
#include <vector>

#include "output/core/status.h"

namespace weir::output::writer {

class Descriptors {
 public:
  explicit Descriptors(int files) : files_(static_cast<size_t>(files)) {}
  ~Descriptors() { (void)close(); }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  Status open(int file, const std::string& path);
  Status close();
  int operator[](int file) const { return files_[static_cast<size_t>(file)].fd; }
  // By as many calls as the system needs.
  Status pwrite_all(int file, const char* bytes, size_t count, int64_t offset) const;
  Status failed(int file, int error) const;

 private:
  struct File {
    int fd = -1;
    std::string path;
  };
  std::vector<File> files_;
};

}  // namespace weir::output::writer
