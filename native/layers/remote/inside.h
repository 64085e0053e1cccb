// SPDX-License-Identifier: Apache-2.0
// Shared by the transport's files: what a rank knows of the others, the messages, and the
// operations under way.
#pragma once

#include "layers/remote/transport.h"
#include "layers/machinery/node/lock.h"
#include "base/clock.h"

namespace weir::remote {

inline constexpr int kAskTag = 1, kAnswerTag = 16;  // and one more for each call
inline constexpr uint32_t kCalls = 4;               // under way at once in a rank
inline constexpr uint32_t kAnswers = 8;             // of a serving rank
inline constexpr uint64_t kMillisecond = 1'000'000;
inline constexpr uint64_t kLimitNs = 4000 * kMillisecond;  // of one operation

enum class Op : uint32_t { kLook = 1, kGet, kPut, kSwap };

// What is sent; a put's bytes follow it.
struct Ask {
  Op op;
  uint32_t from, tag, bytes;
  uint64_t store, at, expected, wanted;
};
// What comes back; a get's bytes follow it.
struct Answer {
  uint64_t fine, found;
};
inline constexpr uint64_t kAskBytes = sizeof(Ask) + kMostBytes,
                          kAnswerBytes = sizeof(Answer) + kMostBytes;

enum CallState : uint32_t { kIdle, kFilling, kAsked, kUnderWay, kOver, kFailed, kAbandoned };

// A thread of the program fills it and waits on `state`; the transport's thread does the rest. One
// that came too late stays as it is: MPI may still write into its memory.
struct Call {
  uint32_t state;
  uint32_t to;  // rank
  Handle sent, received;
  bool is_sent, is_received;
  Ask* ask;
  Answer* answer;
};

struct Transport {
  Mpi mpi;
  Handle communicator;
  Memory memory;
  void (*in_thread)();
  node::Identity owner;
  uint32_t nodes, own_node, most_ranks;
  const uint32_t* leaders;  // rank by node
  bool leads;
  uint32_t running;  // the thread is there
  uint32_t stopping;
  uint32_t off;
  uint32_t bell;     // changes when there is something to do
  Call calls[kCalls];
};
extern WEIR_OWN Transport transport;

using base::now_ns;
// The thread, and its end: false when it did not end within the time.
bool start_thread();
bool stop_thread(uint64_t at_most_ns);

// Serving, by the thread alone. begin: false without memory. step: whether something went on. end:
// nothing is under way any more.
bool begin_serving();
bool serve();
void end_serving();

// One operation; `look` asks only whether somebody answers.
bool carry(uint32_t home, Ask ask, const Pieces& out, const Pieces& in, uint64_t* found);

}  // namespace weir::remote
