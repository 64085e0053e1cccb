// SPDX-License-Identifier: Apache-2.0
// Operations of this rank on other nodes, and the thread that carries them.
#include "layers/remote/inside.h"

#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/syscall.h"
#include "base/thread.h"

namespace weir::remote {
namespace {

constexpr uint64_t kStackBytes = 2u << 20;  // MPI's progress runs on it
constexpr int kYields = 50;                 // rounds without work before the thread sleeps at all

void copy_out(char* to, const Pieces& from, uint64_t bytes) {
  uint64_t skip = from.skip;
  for (int i = 0; i < from.count && bytes > 0; ++i) {
    const iovec& v = from.pieces[i];
    if (skip >= v.iov_len) {
      skip -= v.iov_len;
      continue;
    }
    const uint64_t n = v.iov_len - skip < bytes ? v.iov_len - skip : bytes;
    memcpy(to, static_cast<const char*>(v.iov_base) + skip, n);
    to += n;
    bytes -= n;
    skip = 0;
  }
}

void copy_in(const char* from, const Pieces& to, uint64_t bytes) {
  uint64_t skip = to.skip;
  for (int i = 0; i < to.count && bytes > 0; ++i) {
    const iovec& v = to.pieces[i];
    if (skip >= v.iov_len) {
      skip -= v.iov_len;
      continue;
    }
    const uint64_t n = v.iov_len - skip < bytes ? v.iov_len - skip : bytes;
    memcpy(static_cast<char*>(v.iov_base) + skip, from, n);
    from += n;
    bytes -= n;
    skip = 0;
  }
}

void ring() {
  base::fetch_add(&transport.bell, 1u);
  node::wake(&transport.bell);
}

void turn_off() { base::store(&transport.off, 1u); }

// A call of one's own, with its memory; null: too many are under way for too long.
Call* take_call(uint64_t limit) {
  while (up()) {
    for (Call& c : transport.calls) {
      uint32_t idle = kIdle;
      if (!base::compare_exchange(&c.state, &idle, uint32_t{kFilling})) continue;
      if (c.ask != nullptr) return &c;
      const long got = base::map(kAskBytes + kAnswerBytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
      if (base::failed(got)) {
        base::store(&c.state, uint32_t{kIdle});
        return nullptr;
      }
      c.ask = reinterpret_cast<Ask*>(got);
      c.answer = reinterpret_cast<Answer*>(reinterpret_cast<char*>(got) + kAskBytes);
      return &c;
    }
    if (now_ns() > limit) return nullptr;
    uint32_t nothing = 0;
    node::sleep_on(&nothing, 0, kMillisecond / 10);
  }
  return nullptr;
}

// Until the thread has it done, or the time is over. False: then the call is not the caller's any
// more.
bool wait_for(Call& c, uint64_t limit) {
  for (;;) {
    uint32_t state = base::load(&c.state);
    if (state == kOver) return true;
    const uint64_t now = now_ns();
    if (state == kFailed || now > limit) {
      if (base::exchange(&c.state, uint32_t{kAbandoned}) == kOver) {
        base::store(&c.state, uint32_t{kOver});
        return true;
      }
      return false;
    }
    node::sleep_on(&c.state, state, limit - now + 1);
  }
}

void finish(Call& c, uint32_t state) {
  uint32_t expected = kUnderWay;
  if (!base::compare_exchange(&c.state, &expected, state)) return;  // abandoned
  node::wake(&c.state);
}

bool start(Call& c) {
  const Mpi& mpi = transport.mpi;
  const Ask& ask = *c.ask;
  const auto back = static_cast<int>(sizeof(Answer) + (ask.op == Op::kGet ? ask.bytes : 0));
  const auto there = static_cast<int>(sizeof(Ask) + (ask.op == Op::kPut ? ask.bytes : 0));
  c.is_sent = c.is_received = false;
  const auto to = static_cast<int>(c.to);
  if (mpi.receive(c.answer, back, mpi.byte, to, static_cast<int>(ask.tag), transport.communicator,
                  &c.received) != 0)
    return false;
  return mpi.send(c.ask, there, mpi.byte, to, kAskTag, transport.communicator, &c.sent) == 0;
}

bool is_done(Call& c, bool& done, Handle* request) {
  if (done) return true;
  const Tested now = tested(transport.mpi, request);
  if (now == Tested::kFailed) finish(c, kFailed);
  return done = now == Tested::kDone;
}

// Whether something went on; *waiting: whether something is under way.
bool go_on(Call& c, bool* waiting) {
  uint32_t state = base::load(&c.state);
  if (state == kAsked) {
    if (!base::compare_exchange(&c.state, &state, uint32_t{kUnderWay})) return false;
    if (!start(c)) finish(c, kFailed);
    *waiting = true;
    return true;
  }
  if (state != kUnderWay) return false;
  *waiting = true;
  const bool before = c.is_sent;
  if (!is_done(c, c.is_sent, &c.sent) || !is_done(c, c.is_received, &c.received))
    return c.is_sent != before;
  finish(c, kOver);
  return true;
}

uint64_t nap_ns(bool waiting, uint64_t quiet_ns) {
  if (waiting) return kMillisecond / 50;
  if (!transport.leads) return 1000 * kMillisecond;
  if (quiet_ns < 100 * kMillisecond) return kMillisecond / 20;
  return quiet_ns < 2000 * kMillisecond ? kMillisecond / 5 : 2 * kMillisecond;
}

void* run(void*) {
  base::begin_thread("weir-mpi");
  Transport& c = transport;
  base::system_call(SYS_prctl, PR_SET_TIMERSLACK, 1000);
  if (c.in_thread != nullptr) c.in_thread();
  uint64_t last = now_ns();
  for (int idle = 0; base::load(&c.stopping) == 0;) {
    const uint32_t bell = base::load(&c.bell);
    bool moved = false, waiting = false;
    for (Call& call : c.calls) moved |= go_on(call, &waiting);
    if (c.leads) moved |= serve();
    if (moved) {
      idle = 0;
      last = now_ns();
    } else if (++idle < kYields) {
      base::yield();
    } else {
      node::sleep_on(&c.bell, bell, nap_ns(waiting, now_ns() - last));
    }
  }
  if (c.leads) end_serving();
  for (Call& call : c.calls) {
    if (base::load(&call.state) == kAsked || base::load(&call.state) == kUnderWay) {
      base::store(&call.state, uint32_t{kFailed});
      node::wake(&call.state);
    }
  }
  base::store(&c.running, 0u);
  node::wake(&c.running);
  return nullptr;
}

}  // namespace

constinit Transport transport{};


bool start_thread() {
  base::store(&transport.running, 1u);
  const bool fine = base::start_thread(run, kStackBytes);
  if (!fine) base::store(&transport.running, 0u);
  return fine;
}

bool stop_thread(uint64_t at_most_ns) {
  base::store(&transport.stopping, 1u);
  ring();
  const uint64_t limit = now_ns() + at_most_ns;
  while (base::load(&transport.running) != 0 && now_ns() < limit)
    node::sleep_on(&transport.running, 1, kMillisecond);
  return base::load(&transport.running) == 0;
}

bool up() {
  const Transport& c = transport;
  return c.nodes > 1 && base::load_relaxed(&c.off) == 0 && base::load_relaxed(&c.running) != 0 &&
         base::load_relaxed(&c.stopping) == 0 && c.owner == node::self();
}
uint32_t homes() { return transport.nodes; }
uint32_t most_ranks() { return transport.most_ranks; }

bool carry(uint32_t home, Ask ask, const Pieces& out, const Pieces& in, uint64_t* found) {
  if (!up() || home >= transport.nodes || ask.bytes > kMostBytes) return false;
  const uint64_t limit = now_ns() + kLimitNs;
  Call* c = take_call(limit);
  if (c == nullptr) return turn_off(), false;
  ask.from = static_cast<uint32_t>(transport.mpi.rank);
  ask.tag = static_cast<uint32_t>(kAnswerTag + (c - transport.calls));
  *c->ask = ask;
  if (ask.op == Op::kPut) copy_out(reinterpret_cast<char*>(c->ask + 1), out, ask.bytes);
  c->to = transport.leaders[home];
  base::store(&c->state, uint32_t{kAsked});
  ring();
  if (!wait_for(*c, limit)) return turn_off(), false;
  const bool fine = c->answer->fine != 0;
  if (fine && ask.op == Op::kGet)
    copy_in(reinterpret_cast<const char*>(c->answer + 1), in, ask.bytes);
  if (fine && found != nullptr) *found = c->answer->found;
  base::store(&c->state, uint32_t{kIdle});
  if (!fine) turn_off();
  return fine;
}

bool get(uint32_t home, uint64_t store, uint64_t at, const Pieces& to, uint64_t bytes) {
  return carry(home, {Op::kGet, 0, 0, static_cast<uint32_t>(bytes), store, at, 0, 0}, {}, to,
               nullptr);
}
bool put(uint32_t home, uint64_t store, uint64_t at, const Pieces& from, uint64_t bytes) {
  return carry(home, {Op::kPut, 0, 0, static_cast<uint32_t>(bytes), store, at, 0, 0}, from, {},
               nullptr);
}
bool swap(uint32_t home, uint64_t store, uint64_t at, uint64_t expected, uint64_t wanted,
          uint64_t* found) {
  return carry(home, {Op::kSwap, 0, 0, 0, store, at, expected, wanted}, {}, {}, found);
}

}  // namespace weir::remote
