// SPDX-License-Identifier: Apache-2.0
// Waits for requests: one record of the wait, and one for each thing that it brought.
#include "hook/mpi/sync.h"
#include "trace/log.h"

namespace weir::hook {
namespace {

// Of more requests than this, those that a wait for some of them brings are not known.
constexpr int kMostHandles = 1024;

int count_of(const MpiCall& call) {
  return call.form.count >= 0 ? call.number(call.form.count) : 1;
}

// The communicator that MPI_Comm_idup brought.
void adopt(const MpiCall& call, const Request& of) {
  if (of.made == nullptr || !is_alive(of)) return;
  MpiCall maker = call;
  maker.fortran = of.of_fortran;
  add_communicator(maker.handle_at(of.made, comm_from_fortran),
                   {of.on, of.offset, 0, Naming::copy, false});
}

// status: null when there is none.
void record_awaited(const Request& of, const int* status, Span span) {
  if (of.awaited == Awaited::nothing || trace::process().level() != wire::Level::kTrace) return;
  uint64_t offset = of.offset, bytes = of.awaited == Awaited::receive ? of.bytes : 0;
  if (of.awaited == Awaited::receive && status != nullptr) {
    bytes = bytes_of(status);
    if (is_alive(of)) offset = peer_offset(world_rank(*of.on, of.group, source_of(status)));
  }
  record_mpi(Op::kMpiAwaited, wire::kNested, of.name, span, offset,
             static_cast<uint32_t>(of.awaited), bytes);
}

void end_one(const MpiCall& call, const Request& of, const int* status, Span span) {
  if (!call.done) return;
  adopt(call, of);
  record_awaited(of, status, span);
}

void record_wait(const MpiCall& call, Span span, int count) {
  record_mpi(Op::kMpiWait, call, 0, span, kUnknownOffset,
             count > 0 ? static_cast<uint64_t>(count) : 0);
}

void wait_for_one(MpiCall& call) {
  const Request of = take_request(call.request(0));
  Statuses status(call, 1);
  const Span span = call.run();
  record_wait(call, span, 1);
  end_one(call, of, status.at(0), span);
}

// All of them: known no more when it ends, so asked for before.
WEIR_COLD void wait_for_all(MpiCall& call, int count) {
  Request begun[Statuses::kMost];
  for (int i = 0; i < count; ++i) {
    const Request one = take_request(call.request(i));
    if (i < Statuses::kMost) begun[i] = one;
  }
  Statuses statuses(call, count);
  const Span span = call.run();
  record_wait(call, span, count);
  for (int i = 0; i < count && i < Statuses::kMost; ++i)
    end_one(call, begun[i], statuses.at(i), span);
}

int completed(const MpiCall& call) {
  return call.form.completed >= 0 ? *static_cast<const int*>(call.pointer(call.form.completed)) : 1;
}

// The handles before the call, which takes them from the program when they are done.
class Handles {
 public:
  Handles(const MpiCall& call, int count) : call_(call), count_(count <= kMostHandles ? count : 0) {
    for (int i = 0; i < count_; ++i) handles_[i] = call.request(i);
  }

  // After the call: what the index of the first request is. mpi_f08 of MPICH 4.0 counts from 0 as C
  // does: what is no longer there tells.
  int first() const { return call_.fortran && (all_taken(1) || !all_taken(0)) ? 1 : 0; }

  Request take(int i) const { return i >= 0 && i < count_ ? take_request(handles_[i]) : Request{}; }
  // The i-th of those that are done.
  Request take_done(int i, int first) const { return take(done(i) - first); }

 private:
  int done(int i) const { return static_cast<const int*>(call_.pointer(call_.form.index))[i]; }

  bool all_taken(int first) const {
    for (int i = 0; i < completed(call_); ++i) {
      const int at = done(i) - first;
      if (at < 0 || at >= count_ || call_.request(at) == handles_[at]) return false;
    }
    return true;
  }

  const MpiCall& call_;
  int count_;
  Handle handles_[kMostHandles];
};

WEIR_COLD void wait_for_any(MpiCall& call, int count) {
  const Handles handles(call, count);
  Statuses status(call, 1);
  const Span span = call.run();
  record_wait(call, span, count);
  if (call.done) end_one(call, handles.take_done(0, handles.first()), status.at(0), span);
}

WEIR_COLD void wait_for_some(MpiCall& call, int count) {
  const Handles handles(call, count);
  Statuses statuses(call, count);
  const Span span = call.run();
  record_wait(call, span, count);
  if (!call.done) return;
  const int first = handles.first();
  for (int i = 0; i < completed(call); ++i) {
    const Request one = handles.take_done(i, first);
    if (i < Statuses::kMost) end_one(call, one, statuses.at(i), span);
  }
}

// A loop of tests: since when this thread tests in vain (ticks, 0: it does not); the end of its
// last test, and where its next record was to go then; wall and CPU time at its last long pause.
struct Polling {
  uint64_t since, last_ns, next, pause_ns, pause_cpu_ns;
};
WEIR_THREAD Polling polling;

constexpr uint64_t kPauseNs = 2000000;

uint64_t cpu_ns() { return base::clock_ns(CLOCK_THREAD_CPUTIME_ID); }

// Whether the thread has done nothing since its last test: no call that is recorded, and in a long
// pause it was asleep, or had no processor.
bool polls_still() {
  if (base::load_relaxed(&trace::thread_log.next) != polling.next) return false;
  const uint64_t now = base::now_ns();
  if (now - polling.last_ns <= kPauseNs) return true;
  const uint64_t cpu = cpu_ns(), used = cpu - polling.pause_cpu_ns;
  const uint64_t before = polling.last_ns - polling.pause_ns;
  polling.pause_ns = now, polling.pause_cpu_ns = cpu;
  return used < before + kPauseNs;
}

void test_one(MpiCall& call) {
  const Handle handle = call.request(0);
  Statuses status(call, 1);
  const Span span = run_test(call);
  const bool brought = call.done && call.flag(), ends = ends_tests(span, brought);
  if (!brought) return;
  const Request of = take_request(handle);
  if (!ends) return adopt(call, of);
  record_wait(call, span, 1);
  end_one(call, of, status.at(0), span);
}

WEIR_COLD void test_many(MpiCall& call, int count) {
  const bool all = call.form.kind == Kind::test;
  const Handles handles(call, count);
  Statuses statuses(call, count);
  const Span span = run_test(call);
  const bool brought = call.done && (call.form.flag >= 0 ? call.flag() : completed(call) > 0),
             ends = ends_tests(span, brought);
  if (!brought) return;
  if (ends) record_wait(call, span, count);
  const int first = all ? 0 : handles.first();
  for (int i = 0, n = all ? count : completed(call); i < n; ++i) {
    const Request one = all ? handles.take(i) : handles.take_done(i, first);
    if (!ends) adopt(call, one);
    else if (i < Statuses::kMost) end_one(call, one, statuses.at(i), span);
  }
}

}  // namespace

void call_wait(MpiCall& call) {
  const int count = count_of(call);
  if (call.form.kind == Kind::wait_for_one) return wait_for_any(call, count);
  if (call.form.kind == Kind::wait_for_some) return wait_for_some(call, count);
  return call.form.count < 0 ? wait_for_one(call) : wait_for_all(call, count);
}

Span run_test(MpiCall& call) {
  if (polling.since != 0 && !polls_still()) polling.since = 0;
  Span span = call.run();
  if (polling.since != 0) span.start = polling.since;
  return span;
}

bool ends_tests(Span span, bool brought) {
  const bool began = polling.since != 0;
  polling.since = brought ? 0 : span.start;
  if (brought) return began;
  polling.last_ns = base::now_ns();
  polling.next = base::load_relaxed(&trace::thread_log.next);
  if (!began) polling.pause_ns = polling.last_ns, polling.pause_cpu_ns = cpu_ns();
  return false;
}

void call_test(MpiCall& call) {
  return call.form.count < 0 ? test_one(call) : test_many(call, count_of(call));
}

}  // namespace weir::hook
