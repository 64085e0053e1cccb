// SPDX-License-Identifier: Apache-2.0
#include "testfs/workers.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

namespace weir::testfs {

bool Workers::start() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  threads_.fetch_add(1);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, run, this);
  pthread_attr_destroy(&attributes);
  if (error != 0) threads_.fetch_sub(1);
  return error == 0;
}

void* Workers::run(void* self) {
  // The kernel may delay each timer by 50 us by default.
  prctl(PR_SET_TIMERSLACK, 1ul);
  static_cast<Workers*>(self)->serve();
  return nullptr;
}

void Workers::serve() {
  fuse_buf buffer = {};
  while (!fuse_session_exited(session_)) {
    idle_.fetch_add(1);
    const int result = fuse_session_receive_buf(session_, &buffer);
    const bool last = idle_.fetch_sub(1) == 1;
    if (result == -EINTR || result == -EAGAIN) continue;
    if (result <= 0) break;
    // Nobody listens any more: one more thread. Two may come to think so at once, which costs
    // nothing.
    if (last && threads_.load(std::memory_order_relaxed) < most_) (void)start();
    fuse_session_process_buf(session_, &buffer);
  }
  fuse_session_exit(session_);
  (void)eventfd_write(ended_, 1);
}

}  // namespace weir::testfs
