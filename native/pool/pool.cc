// SPDX-License-Identifier: Apache-2.0
#include "pool/pool.h"

#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>

#include "os/clock.h"
#include "os/syscall.h"
#include "pool/futex.h"

namespace weir::pool {
namespace {

constexpr int kWipeOnFork = 18;  // MADV_WIPEONFORK (Linux 4.14)

// All of the pool, in a page which the kernel zeroes in a forked child: there the threads are gone and so is their work.
struct State {
  Job* inbox;         // what was submitted, newest first; anybody adds, without a lock
  uint32_t posted;    // changes with each submission: what idle threads sleep on
  uint32_t sleepers;
  uint32_t threads;
  uint32_t lock;      // of what follows; threads of the pool alone take it
  Job* first;         // ready, oldest first
  Job* last;
  Job* later;         // by the time they are due
  bool watched;       // one thread sleeps only until the first of `later` is due
};
State* state_page = nullptr;

// What the process may run on since its start. A thread that has bound itself to one core must not drag the pool there, but cores
// that the launcher gave to others stay theirs.
unsigned long cores[128];
long cores_bytes = 0;

State* state() {
  State* found = base::load(&state_page);
  if (WEIR_LIKELY(found != nullptr)) return found;
  const long got = os::map(4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (os::failed(got)) return nullptr;
  os::advise(reinterpret_cast<void*>(got), 4096, kWipeOnFork);
  auto* made = reinterpret_cast<State*>(got);
  if (base::compare_exchange(&state_page, &found, made)) return made;
  os::unmap(made, 4096);
  return found;
}

void push(State& pool, Job& job) {
  Job* head = base::load(&pool.inbox);
  do job.next = head;
  while (!base::compare_exchange(&pool.inbox, &head, &job));
}

void wake(State& pool, int how_many) {
  __atomic_fetch_add(&pool.posted, 1u, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&pool.sleepers, __ATOMIC_SEQ_CST) != 0) futex_wake(&pool.posted, how_many);
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

// What is due or hurried joins those that are ready; the lock is held.
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
  }
}

struct Taken {
  Job* job;
  bool more;         // others are ready
  uint64_t wait_ns;  // without a job: how long to sleep
  bool watches;      // and whether for the first that is due
};

Taken take(State& pool) {
  const Lock lock(&pool.lock);
  sort_inbox(pool);
  const uint64_t now = pool.later == nullptr ? 0 : os::clock_ns(CLOCK_MONOTONIC);
  take_due(pool, now);
  if (Job* job = pool.first; job != nullptr) {
    pool.first = job->next;
    job->next = nullptr;
    return {job, pool.first != nullptr, 0, false};
  }
  if (pool.later == nullptr || pool.watched) return {nullptr, false, kIdleNs, false};
  pool.watched = true;
  return {nullptr, false, pool.later->due_ns > now ? pool.later->due_ns - now : 1, true};
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
      wake(pool, 1);
    } else if ((now & kWaited) != 0) {
      futex_wake(&job.state, INT32_MAX);
    }
    return;
  }
}

bool start_thread(State& pool);

void* work(void*) {
  State& pool = *state();
  os::system_call(SYS_prctl, PR_SET_NAME, reinterpret_cast<long>("weir-io"));
  if (cores_bytes > 0) os::system_call(SYS_sched_setaffinity, 0, cores_bytes, reinterpret_cast<long>(cores));
  for (;;) {
    const uint32_t posted = __atomic_load_n(&pool.posted, __ATOMIC_SEQ_CST);
    const Taken taken = take(pool);
    if (taken.job != nullptr) {
      // Somebody must be there for the next one: a thread that sleeps, or one more.
      if (base::load(&pool.sleepers) == 0) {
        start_thread(pool);
      } else if (taken.more || base::load(&pool.later) != nullptr) {
        wake(pool, 1);
      }
      run(*taken.job);
      continue;
    }
    __atomic_fetch_add(&pool.sleepers, 1u, __ATOMIC_SEQ_CST);
    const long why = futex_wait(&pool.posted, posted, taken.wait_ns);
    __atomic_fetch_sub(&pool.sleepers, 1u, __ATOMIC_SEQ_CST);
    if (taken.watches) {
      const Lock lock(&pool.lock);
      pool.watched = false;
      continue;
    }
    if (why != -ETIMEDOUT) continue;
    // Nothing to do for long. Whoever submits after this sees one thread fewer, or is seen here.
    // The last one stays while something is due later.
    const bool last = __atomic_fetch_sub(&pool.threads, 1u, __ATOMIC_SEQ_CST) == 1;
    const bool needed = __atomic_load_n(&pool.inbox, __ATOMIC_SEQ_CST) != nullptr || (last && base::load(&pool.later) != nullptr);
    if (!needed) return nullptr;
    __atomic_fetch_add(&pool.threads, 1u, __ATOMIC_SEQ_CST);
  }
}

// With the thread's signals held back: the new one inherits that.
bool start_thread(State& pool) {
  const uint32_t now = __atomic_fetch_add(&pool.threads, 1u, __ATOMIC_SEQ_CST);
  if (now < kThreads + 1) {
    pthread_attr_t how;
    if (pthread_attr_init(&how) == 0) {
      pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
      // A program with much thread-local memory has it on each stack.
      pthread_t made;
      for (uint64_t bytes = kStackBytes; bytes <= kStackBytes << 6; bytes <<= 3) {
        if (pthread_attr_setstacksize(&how, bytes) != 0) continue;
        if (pthread_create(&made, &how, work, nullptr) == 0) {
          pthread_attr_destroy(&how);
          return true;
        }
      }
      pthread_attr_destroy(&how);
    }
  }
  __atomic_fetch_sub(&pool.threads, 1u, __ATOMIC_SEQ_CST);
  return false;
}

bool enqueue(Job& job, uint64_t due_ns) {
  State* pool = state();
  if (pool == nullptr || os::sealed()) return false;
  if (WEIR_UNLIKELY(__atomic_load_n(&pool->threads, __ATOMIC_SEQ_CST) == 0)) {
    const os::SignalsBlocked blocked;
    if (cores_bytes == 0) begin();
    if (!start_thread(*pool)) return false;
  }
  job.due_ns = due_ns;
  uint32_t now = base::load(&job.state);
  for (;;) {
    // Its own job: queued when it has run.
    const bool running = (now & kRunning) != 0;
    if (base::compare_exchange(&job.state, &now, running ? now | kAgain : (now & kWaited) | kQueued)) {
      if (running) return true;
      break;
    }
  }
  push(*pool, job);
  wake(*pool, 1);
  // The last thread may have ended in between.
  if (WEIR_UNLIKELY(__atomic_load_n(&pool->threads, __ATOMIC_SEQ_CST) == 0)) {
    const os::SignalsBlocked blocked;
    start_thread(*pool);
  }
  return true;
}

}  // namespace

void begin() {
  const long got = os::system_call(SYS_sched_getaffinity, os::process_id(), sizeof cores, reinterpret_cast<long>(cores));
  cores_bytes = got > 0 ? got : -1;
}

bool submit(Job& job) { return enqueue(job, 0); }
bool submit_after(Job& job, uint64_t delay_ns) { return enqueue(job, os::clock_ns(CLOCK_MONOTONIC) + delay_ns); }

void wait(Job& job) {
  uint32_t now = base::load(&job.state);
  while (now != 0) {
    if ((now & kWaited) == 0 && !base::compare_exchange(&job.state, &now, now | kWaited)) continue;
    futex_wait(&job.state, now | kWaited);
    now = base::load(&job.state);
  }
}

void hurry(Job& job) {
  State* pool = state();
  if (pool == nullptr || idle(job)) return;
  // Not 0: before it is sorted that would make it an ordinary one, which is as good.
  base::store(&job.due_ns, uint64_t{1});
  // A thread that watches for the first one due must look again, and it may be any of those that sleep.
  wake(*pool, INT32_MAX);
}

uint32_t threads() {
  State* pool = state();
  return pool == nullptr ? 0 : base::load(&pool->threads);
}

}  // namespace weir::pool
