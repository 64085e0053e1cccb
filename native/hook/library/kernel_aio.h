// SPDX-License-Identifier: Apache-2.0
// Asynchronous I/O of the kernel (io_submit, io_getevents): each request is a record of its own,
// from its submission to the call that collected it, with the bytes that were moved. Called by the
// hooks of libaio and of syscall().
#pragma once

#include <linux/aio_abi.h>

#include "hook/observe.h"

namespace weir::hook {

// Set while libaio makes its system calls, which may pass the hook of syscall().
extern WEIR_OWN WEIR_THREAD bool within_aio_library;

// One io_submit. Files under layers leave them: the kernel is to find their bytes.
class Submission {
 public:
  Submission(uint64_t context, long count, iocb* const* list);
  // What may be handed to the kernel: all that was asked for, or those before the first one on a
  // file whose bytes a layer transforms. 0 of more: the call fails with EINVAL.
  long count() const { return allowed_; }
  bool is_refused() const { return allowed_ == 0 && asked_ > 0; }
  // accepted: what the kernel took; failure: a positive errno, or 0.
  void end(long accepted, int failure);

 private:
  uint64_t start_ = 0;
  iocb* const* list_;
  long asked_, allowed_;
  uint32_t file_ = 0;  // of all requests; 0: of several
  bool recorded_ = false;
};

// io_getevents and io_pgetevents, after the call that began at start.
void collected(uint64_t start, const io_event* events, long count, int failure);

// Before io_destroy: requests that no call has collected are recorded as they were asked for.
void context_ends(uint64_t context);
// The same of all contexts, before the process ends.
void process_ends_with_requests();
// In a forked child, which has no contexts.
void forget_requests();

}  // namespace weir::hook
