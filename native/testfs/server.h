// SPDX-License-Identifier: Apache-2.0
// The server that the mounts pretend to talk to: when a request that arrived now would be answered.
//
// Nobody plays the server: each request reserves its turn in a word of shared memory that says
// until when the server is busy, and sleeps until its answer is due. Mounts with a bucket of the
// same name reserve in the same words, so they share one metadata server and one bandwidth as the
// nodes of a cluster do.
#pragma once

#include <string>

#include "testfs/state.h"

namespace weir::testfs {

// Until when the server is busy, CLOCK_MONOTONIC.
struct Bucket {
  Word metadata_busy_until_ns;
  Word data_busy_until_ns;
};

class Server {
 public:
  // The bucket of the file of this name, which is made when it is not there; empty: one of this
  // mount's own.
  [[nodiscard]] bool open(const Options& options, const std::string& bucket_path);
  // Removes the bucket's file when no other mount has it.
  void close();

  // When a request that arrived at `arrival_ns` and moves so many bytes is answered.
  uint64_t answer_ns(Cost cost, uint64_t arrival_ns, uint64_t bytes);

 private:
  const Options* options_ = nullptr;
  Bucket own_ = {};
  Bucket* bucket_ = &own_;
  std::string path_;
  int fd_ = -1;
};

// The errno with which a rule of the options fails this request, or 0.
[[nodiscard]] int injected_error(Options& options, Kind kind);

// The number of bytes of a write that still fit, of those wanted; they are taken.
[[nodiscard]] uint64_t take_space(Options& options, uint64_t wanted);

// Sleeps until then, and while the file system hangs.
void wait_until(const Options& options, uint64_t deadline_ns);

}  // namespace weir::testfs
