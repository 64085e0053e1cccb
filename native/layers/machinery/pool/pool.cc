// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/pool/pool.h"

#include <errno.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/lock.h"
#include "base/syscall.h"
#include "base/thread.h"

namespace weir::pool {
namespace {

constexpr int kWipeOnFork = 18;  // MADV_WIPEONFORK (Linux 4.14)

// All of the pool, in a page which the kernel zeroes in a forked child: there the threads are gone
// and so is their work.
struct State {
  Job* inbox;         // what was submitted, newest first; anybody adds, without a lock
  uint32_t tokens;  // one for each submission, for a thread to take; idle threads sleep while there
                    // is none
  uint32_t sleepers;
  uint32_t threads;
  uint32_t lock;      // of what follows; threads of the pool alone take it
  Job* first;         // ready, oldest first
  Job* last;
  Job* later;         // by the time they are due
  uint64_t watched;  // when the thread wakes that sleeps only until the first of `later` is due; 0:
                     // none does
};
State* state_page = nullptr;

// What the process may run on since its start. A thread that has bound itself to one core must not
// drag the pool there, but cores that the launcher gave to others stay theirs.
unsigned long cores[128];
long cores_bytes = 0;

State* state() {
  State* found = base::load(&state_page);
  if (WEIR_LIKELY(found != nullptr)) return found;
  const long got = base::map(4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (base::failed(got)) return nullptr;
  base::advise(reinterpret_cast<void*>(got), 4096, kWipeOnFork);
  auto* made = reinterpret_cast<State*>(got);
  if (base::compare_exchange(&state_page, &found, made)) return made;
  base::unmap(made, 4096);
  return found;
}

void push(State& pool, Job& job) {
  Job* head = base::load(&pool.inbox);
  do job.next = head;
  while (!base::compare_exchange(&pool.inbox, &head, &job));
}

void give_token(State& pool) {
  __atomic_fetch_add(&pool.tokens, 1u, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&pool.sleepers, __ATOMIC_SEQ_CST) != 0) base::futex_wake(&pool.tokens, 1);
}

bool take_token(State& pool) {
  uint32_t now = base::load(&pool.tokens);
  while (now != 0) {
    if (base::compare_exchange(&pool.tokens, &now, now - 1)) return true;
  }
  return false;
}

// What came in goes to its list; the lock is held.
void sort_inbox(State& pool) {
  Job* newest = base::exchange(&pool.inbox, static_cast<Job*>(nullptr));
  Job* oldest = nullptr;
  while (newest != nullptr) {
    Job* next = newest->next;
    newest->next = oldest;
    oldest = newest;
    newest = next;
  }
  while (oldest != nullptr) {
    Job* next = oldest->next;
    oldest->next = nullptr;
    if (oldest->due_ns == 0) {
      (pool.first == nullptr ? pool.first : pool.last->next) = oldest;
      pool.last = oldest;
    } else {
      Job** at = &pool.later;
      while (*at != nullptr && (*at)->due_ns <= oldest->due_ns) at = &(*at)->next;
      oldest->next = *at;
      *at = oldest;
    }
    oldest = next;
  }
}

// What is due or hurried joins those that are ready, with a token each; the lock is held.
void take_due(State& pool, uint64_t now) {
  for (Job** at = &pool.later; *at != nullptr;) {
    Job* job = *at;
    const uint64_t due = base::load(&job->due_ns);
    if (due > now) {
      at = &job->next;
      continue;
    }
    *at = job->next;
    job->next = nullptr;
    (pool.first == nullptr ? pool.first : pool.last->next) = job;
    pool.last = job;
    give_token(pool);
  }
}

// The oldest job that is ready; null: none.
Job* take(State& pool) {
  const base::Locked lock(&pool.lock);
  sort_inbox(pool);
  if (pool.later != nullptr) take_due(pool, base::now_ns());
  Job* job = pool.first;
  if (job == nullptr) return nullptr;
  pool.first = job->next;
  job->next = nullptr;
  return job;
}

// How long to sleep, and until when that is if it is for something due. A thread watches when no
// other one wakes in time.
uint64_t sleep_ns(State& pool, uint64_t* watches) {
  *watches = 0;
  if (base::load(&pool.later) == nullptr) return kIdleNs;
  const base::Locked lock(&pool.lock);
  uint64_t due = ~uint64_t{0};
  for (Job* job = pool.later; job != nullptr; job = job->next) {
    if (const uint64_t its = base::load(&job->due_ns); its < due) due = its;
  }
  if (pool.later == nullptr || (pool.watched != 0 && pool.watched <= due)) return kIdleNs;
  const uint64_t now = base::now_ns();
  *watches = pool.watched = due;
  return due > now ? due - now : 1;
}

// The thread that watched is awake.
void stop_watching(State& pool, uint64_t until) {
  const base::Locked lock(&pool.lock);
  if (pool.watched == until) pool.watched = 0;
  take_due(pool, base::now_ns());
}

void run(Job& job) {
  uint32_t now = base::load(&job.state);
  while (!base::compare_exchange(&job.state, &now, (now & kWaited) | kRunning)) {}
  job.run(&job);
  // Once its state is 0 the job may be gone; waking an address that is none does no harm.
  now = base::load(&job.state);
  for (;;) {
    const bool again = (now & kAgain) != 0;
    if (!base::compare_exchange(&job.state, &now, again ? (now & kWaited) | kQueued : 0u)) continue;
    if (again) {
      State& pool = *state();
      push(pool, job);
      give_token(pool);
    } else if ((now & kWaited) != 0) {
      base::futex_wake(&job.state, INT32_MAX);
    }
    return;
  }
}

bool start_thread(State& pool);

void* work(void*) {
  base::begin_thread("weir-io");
  State& pool = *state();
  if (cores_bytes > 0)
    base::system_call(SYS_sched_setaffinity, 0, cores_bytes, reinterpret_cast<long>(cores));
  for (;;) {
    if (take_token(pool)) {
      Job* job = take(pool);
      if (job == nullptr) continue;
      // Somebody must be there for the next one, and for what is due later.
      if (base::load(&pool.sleepers) == 0) {
        start_thread(pool);
      } else if (base::load(&pool.later) != nullptr && base::load(&pool.watched) == 0) {
        // It gets nothing, and watches.
        give_token(pool);
      }
      run(*job);
      continue;
    }
    uint64_t watches;
    const uint64_t limit = sleep_ns(pool, &watches);
    __atomic_fetch_add(&pool.sleepers, 1u, __ATOMIC_SEQ_CST);
    const long why = base::futex_wait(&pool.tokens, 0, limit);
    __atomic_fetch_sub(&pool.sleepers, 1u, __ATOMIC_SEQ_CST);
    if (watches != 0) {
      stop_watching(pool, watches);
      continue;
    }
    if (why != -ETIMEDOUT) continue;
    // Nothing to do for long. The last thread stays: a signal handler may submit, and none can
    // begin there.
    uint32_t now = base::load(&pool.threads);
    while (now > 1) {
      if (base::compare_exchange(&pool.threads, &now, now - 1)) return nullptr;
    }
  }
}

bool start_thread(State& pool) {
  const uint32_t now = __atomic_fetch_add(&pool.threads, 1u, __ATOMIC_SEQ_CST);
  if (now < kThreads + 1 && base::start_thread(work, kStackBytes)) return true;
  __atomic_fetch_sub(&pool.threads, 1u, __ATOMIC_SEQ_CST);
  return false;
}

bool has_thread(State& pool) {
  if (WEIR_LIKELY(base::load(&pool.threads) != 0)) return true;
  const base::SignalsBlocked blocked;
  if (cores_bytes == 0) begin();
  return start_thread(pool);
}

bool enqueue(Job& job, uint64_t due_ns) {
  State* pool = state();
  if (pool == nullptr || base::sealed() || !has_thread(*pool)) return false;
  uint32_t now = base::load(&job.state);
  if ((now & kQueued) != 0) return true;
  job.due_ns = due_ns;
  for (;;) {
    if (WEIR_UNLIKELY((now & kQueued) != 0))
      return true;  // by another thread meanwhile: twice in the lists it would be their end
    // Its own job: queued when it has run.
    const bool running = (now & kRunning) != 0;
    if (base::compare_exchange(&job.state, &now,
                               running ? now | kAgain : (now & kWaited) | kQueued)) {
      if (running) return true;
      break;
    }
  }
  push(*pool, job);
  give_token(*pool);
  return true;
}

}  // namespace

void begin() {
  const long got = base::system_call(SYS_sched_getaffinity, base::process_id(), sizeof cores,
                                     reinterpret_cast<long>(cores));
  cores_bytes = got > 0 ? got : -1;
}

bool submit(Job& job) { return enqueue(job, 0); }
bool submit_after(Job& job, uint64_t delay_ns) { return enqueue(job, base::now_ns() + delay_ns); }

bool ready() {
  State* pool = state();
  return pool != nullptr && !base::sealed() && has_thread(*pool);
}

void wait(Job& job) {
  uint32_t now = base::load(&job.state);
  while (now != 0) {
    if ((now & kWaited) == 0 && !base::compare_exchange(&job.state, &now, now | kWaited)) continue;
    base::futex_wait(&job.state, now | kWaited);
    now = base::load(&job.state);
  }
}

void hurry(Job& job) {
  State* pool = state();
  if (pool == nullptr || idle(job)) return;
  // Not 0: before it is sorted that would make it an ordinary one, which is as good.
  base::store(&job.due_ns, uint64_t{1});
  give_token(*pool);
}

uint32_t threads() {
  State* pool = state();
  return pool == nullptr ? 0 : base::load(&pool->threads);
}

}  // namespace weir::pool
