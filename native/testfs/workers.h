// SPDX-License-Identifier: Apache-2.0
// The threads that serve requests. A request sleeps in its thread until its answer is due, so there
// are as many threads as requests were ever in flight at once, up to the limit; libfuse's own loop
// ends and starts threads too eagerly for that.
#pragma once

#include <atomic>

#include "testfs/fuse_api.h"

namespace weir::testfs {

class Workers {
 public:
  // `ended` becomes readable when the file system has been unmounted.
  Workers(fuse_session* session, unsigned most, int ended)
      : session_(session), most_(most), ended_(ended) {}

  // Starts the first thread; false when there can be none.
  [[nodiscard]] bool start();

 private:
  static void* run(void* self);
  void serve();

  fuse_session* session_;
  const unsigned most_;
  const int ended_;
  std::atomic<unsigned> threads_ = 0;
  std::atomic<unsigned> idle_ = 0;
};

}  // namespace weir::testfs
