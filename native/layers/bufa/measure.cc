// SPDX-License-Identifier: Apache-2.0
// Whether the layer helps at all: derived from what requests below it cost.
#include <time.h>

#include "layers/bufa/state.h"
#include "base/clock.h"
#include "base/futex.h"
#include "layers/machinery/stack/lock.h"

namespace weir::layers::bufa {

// The kernel's memory gives a request back in a few microseconds at more than 2 bytes a ns; no file
// system does.
void learn(State& s, uint64_t bytes, uint64_t ns) {
  const bool fast = ns < 15'000 + bytes / 2;
  if (fast) {
    if (s.quick < 8) ++s.quick;
  } else {
    if (s.quick > 0) s.quick = s.quick > 3 ? s.quick - 4 : -1;
    else if (s.quick > -8) --s.quick;
  }
  s.write_limit = quick(s) && !s.always ? kQuickRequest : s.block_bytes / 2 - 1;
  if (s.write_limit >= s.block_bytes / 2) s.write_limit = s.block_bytes / 2 - 1;
}

void wait_for(Layer& l, pool::Job& job) {
  if (pool::idle(job)) return;
  const uint64_t began = now_ns();
  pool::wait(job);
  const uint64_t waited = now_ns() - began;
  count(l, kWaits);
  count(l, kWaited, waited);
  if (waited > l.statistics[kLongestWait]) l.statistics[kLongestWait] = waited;
}

namespace {

// A layer above that holds bytes is in the midst of something, perhaps in a thread of the pool
// while the file's lock is another thread's.
bool is_below_holder(const Layer& l) {
  for (int i = 0; i < l.file->layer_count && &l.file->top[i] != &l; ++i) {
    if ((l.file->top[i].kind->flags & stack::kHolds) != 0) return true;
  }
  return false;
}

// This thread's requests that are passed on without the lock: more than one where a signal handler
// makes them. One whose frame is no longer there was left by a jump out of the handler.
struct PassedOn {
  State* state;
  uintptr_t frame;
};
constexpr uint32_t kPassedAtOnce = 4;
WEIR_THREAD PassedOn passed_on[kPassedAtOnce];
WEIR_THREAD uint32_t passed_on_count;

void one_less(State& s) {
  if (base::fetch_add(&s.passing, ~0u) == 1) base::futex_wake(&s.passing, INT32_MAX);
}

// here: the frame of a call that has just taken the lock of its file.
void forget_left(uintptr_t here) {
  while (WEIR_UNLIKELY(passed_on_count != 0) &&
         stack::is_left(passed_on[passed_on_count - 1].frame, here)) {
    State& left = *passed_on[passed_on_count - 1].state;
    base::store(&passed_on_count, passed_on_count - 1);
    one_less(left);
  }
}

// A request handed on as it is, timed. The lock is let go meanwhile when the layer has nothing to
// do with it: requests of several threads run side by side then, as without layers.
template <typename Below>
Result pass(Layer& l, const Transfer& t, bool alone, Below below) {
  State& s = state_of(l);
  count(l, kPassedOn);
  const uint64_t began = now_ns();
  Result result;
  forget_left(l.file->frame);
  if (alone && !is_below_holder(l) && passed_on_count < kPassedAtOnce) {
    base::fetch_add(&s.passing, 1u);
    const uint32_t mine = passed_on_count;
    passed_on[mine] = {&s, l.file->frame};
    passed_on_count = mine + 1;
    stack::unlock(l.file);
    result = below(l, t);
    const bool counted = passed_on_count > mine;
    base::store(&passed_on_count,
                mine);  // first: a jump out of the wake must not find it counted still
    if (counted) one_less(s);
    stack::lock(l.file);
  } else {
    result = below(l, t);
  }
  const uint64_t took = now_ns() - began;
  s.spent_ns += took;
  if (result > 0) learn(s, static_cast<uint64_t>(result), took);
  return result;
}

}  // namespace

void wait_for_passing(State& s) {
  forget_left(s.layer->file->frame);
  constexpr uint64_t kLookNs = 100'000'000;
  // A jump between two instructions of pass() leaves one counted for good.
  constexpr int kLooks = 100;
  uint32_t now;
  for (int i = 0; i < kLooks && (now = base::load(&s.passing)) != 0; ++i)
    base::futex_wait(&s.passing, now, kLookNs);
}

Result pass_read(Layer& l, const Transfer& t, bool alone) {
  count(l, kSystemReads);
  return pass(l, t, alone,
              [](Layer& from, const Transfer& what) { return stack::read_below(from, what); });
}

Result pass_write(Layer& l, const Transfer& t, bool alone) {
  count(l, kSystemWrites);
  return pass(l, t, alone,
              [](Layer& from, const Transfer& what) { return stack::write_below(from, what); });
}

void of_no_use(Layer& l, Reason reason) {
  State& s = state_of(l);
  if (s.always) return;
  if (++s.useless < kUseless) return;
  if (quick(s)) {
    stack::ask_to_leave(l, reason);
  } else if (!s.noted) {
    s.noted = true;
    stack::note_bypass(l, reason);
  }
}

}  // namespace weir::layers::bufa
