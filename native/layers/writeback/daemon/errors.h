// SPDX-License-Identifier: Apache-2.0
// What could not be written: one line of JSON for each file, in the node's directory and in the
// run's when there is one.
#pragma once

#include <stdint.h>

#include <mutex>
#include <string>

namespace weir::daemon {

// A string of JSON. Bytes that are no ASCII are written as Python's surrogateescape reads them:
// paths need not be UTF-8.
std::string quoted(const std::string& text);

class Errors {
 public:
  Errors(const std::string& directory, const std::string& run);
  // run: of the `weir run` that started the process (node::run_number()); 0: none did, or it is not
  // known.
  void add(const std::string& path, int error, uint64_t lost_bytes, uint32_t pid, uint64_t run);

 private:
  std::mutex lock_;
  std::string files_[2];
};

}  // namespace weir::daemon
