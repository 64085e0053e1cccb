// SPDX-License-Identifier: Apache-2.0
// The serving side: one receive is always posted; what comes is done at once in this rank's memory,
// and the answer is on its way while the next is received. All of it in the transport's thread.
#include "layers/remote/inside.h"
#include "base/syscall.h"

namespace weir::remote {
namespace {

struct Sending {
  Handle request;
  bool under_way;
  Answer* answer;
};

struct Server {
  Ask* asked;
  Handle request;
  bool posted;
  bool wedged;  // MPI failed: nothing more is served
  Sending sending[kAnswers];
};
constinit Server server{};

void post() {
  const Mpi& mpi = transport.mpi;
  server.posted = mpi.receive(server.asked, static_cast<int>(kAskBytes), mpi.byte, mpi.any_source,
                              kAskTag, transport.communicator, &server.request) == 0;
  server.wedged = !server.posted;
}

bool execute(const Ask& ask, Answer& answer) {
  const Memory& memory = transport.memory;
  if (ask.bytes > kMostBytes) return false;
  switch (ask.op) {
    case Op::kLook: return true;
    case Op::kGet: return memory.get(ask.store, ask.at, &answer + 1, ask.bytes);
    case Op::kPut: return memory.put(ask.store, ask.at, &ask + 1, ask.bytes);
    case Op::kSwap: return memory.swap(ask.store, ask.at, ask.expected, ask.wanted, &answer.found);
  }
  return false;
}

void answer_to(const Ask& ask, Sending& s) {
  const Mpi& mpi = transport.mpi;
  if (ask.from >= static_cast<uint32_t>(mpi.ranks) || ask.bytes > kMostBytes) return;
  s.answer->fine = execute(ask, *s.answer) ? 1 : 0;
  const auto bytes = static_cast<int>(sizeof(Answer) + (ask.op == Op::kGet ? ask.bytes : 0));
  const int to = static_cast<int>(ask.from), tag = static_cast<int>(ask.tag);
  s.under_way =
      mpi.send(s.answer, bytes, mpi.byte, to, tag, transport.communicator, &s.request) == 0;
}

// An answer's place; null while all are on their way.
Sending* free_place(bool* moved) {
  Sending* found = nullptr;
  for (Sending& s : server.sending) {
    if (s.under_way && tested(transport.mpi, &s.request) != Tested::kPending) {
      s.under_way = false;
      *moved = true;
    }
    if (!s.under_way && found == nullptr) found = &s;
  }
  return found;
}

}  // namespace

bool begin_serving() {
  const uint64_t bytes = kAskBytes + kAnswers * kAnswerBytes;
  const long got =
      base::map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
  if (base::failed(got)) return false;
  auto* at = reinterpret_cast<char*>(got);
  server.asked = reinterpret_cast<Ask*>(at);
  for (uint32_t i = 0; i < kAnswers; ++i)
    server.sending[i].answer = reinterpret_cast<Answer*>(at + kAskBytes + i * kAnswerBytes);
  return true;
}

bool serve() {
  if (server.wedged) return false;
  bool moved = false;
  Sending* place = free_place(&moved);
  if (place == nullptr) return moved;
  if (!server.posted) {
    post();
    return true;
  }
  const Tested now = tested(transport.mpi, &server.request);
  if (now == Tested::kPending) return moved;
  if (now == Tested::kFailed) {
    server.wedged = true;
    return true;
  }
  answer_to(*server.asked, *place);
  post();
  return true;
}

void end_serving() {
  const Mpi& mpi = transport.mpi;
  const uint64_t limit = now_ns() + 1000 * kMillisecond;
  bool all = false;
  while (!all && now_ns() < limit) {
    all = true;
    for (Sending& s : server.sending) {
      if (s.under_way && tested(mpi, &s.request) == Tested::kPending) all = false;
      else s.under_way = false;
    }
    if (!all) base::yield();
  }
  if (!server.posted || server.wedged) return;
  mpi.cancel(&server.request);
  while (tested(mpi, &server.request) == Tested::kPending && now_ns() < limit) base::yield();
  server.posted = false;
}

}  // namespace weir::remote
