// SPDX-License-Identifier: Apache-2.0
// MPI begins and ends, called from C or in one of the spellings of Fortran. The outermost call
// counts: Fortran's wrappers end in those of C. Calls of MPI made here use its profiling names
// (PMPI_), so that no other tool counts it.
#include "hook/mpi/mpi.h"

#include "hook/mpi/between.h"
#include "hook/mpi/handles.h"
#include "hook/observe.h"
#include "base/syscall.h"

namespace weir::hook {

constinit int mpi_barriers = 0, mpi_wait_s = 0;

namespace {

using wire::MpiKind;

using Communicator = Handle;
constexpr uint64_t kSecondNs = 1'000'000'000;

struct World {
  MpiKind kind;
  Communicator communicator;
  int rank, ranks;
  int (*barrier)(Communicator);  // null: no barriers
  int (*enter)(Communicator, uintptr_t* request);
  int (*test)(uintptr_t* request, int* done, void* status);
  uint32_t barriers;  // left so far
};
constinit World world{MpiKind::kNone, 0, -1, 0, nullptr, nullptr, nullptr, 0};
WEIR_THREAD int depth = 0;  // of calls of MPI_Init and MPI_Finalize

void say_that_some_are_missing() {
  say_unless_quiet(
      "weir: some ranks of MPI_COMM_WORLD run without weir; clocks of nodes will not be aligned\n");
}

// True when all ranks have come. A barrier that somebody never comes to would hold the program for
// ever: a static program among those of the job, a wrapper that traces one rank only. So it has a
// limit of time, 0 for none, and waits without holding the CPU.
bool passed_barrier(uint64_t patience_ns) {
  if (world.enter == nullptr || world.test == nullptr)
    return world.barrier(world.communicator) == 0;  // MPI 2
  static uintptr_t request;  // MPI may go on with it after the limit
  if (world.enter(world.communicator, &request) != 0) return false;
  const uint64_t limit = base::now_ns() + patience_ns;
  for (int done = 0;;) {
    alignas(16) char status[kStatusBytes];
    if (world.test(&request, &done, status) != 0) return false;
    if (done != 0) return true;
    if (patience_ns != 0 && base::now_ns() > limit) break;
    base::yield();
  }
  say_that_some_are_missing();
  return false;
}

// Who this rank is. Nothing of an implementation that weir does not know: its handles mean
// something else.
void meet_world() {
  world.kind = mpi_kind();
  if (world.kind == MpiKind::kOther) return;
  world.communicator =
      world.kind == MpiKind::kMpich ? kMpichWorld : open_mpi_object("ompi_mpi_comm_world");
  const auto rank = profiled<int (*)(Communicator, int*)>("PMPI_Comm_rank");
  const auto size = profiled<int (*)(Communicator, int*)>("PMPI_Comm_size");
  if (rank == nullptr || size == nullptr || rank(world.communicator, &world.rank) != 0 ||
      size(world.communicator, &world.ranks) != 0) {
    world.kind = MpiKind::kOther;
    return;
  }
  if (recording()) {
    trace::process().set_rank(world.rank, world.ranks, wire::RankSource::kMpi, world.kind);
    begin_mpi_events(world.communicator, world.rank, world.ranks);
  }
  world.barrier = profiled<int (*)(Communicator)>("PMPI_Barrier");
  world.enter = profiled<int (*)(Communicator, uintptr_t*)>("PMPI_Ibarrier");
  world.test = profiled<int (*)(uintptr_t*, int*, void*)>("PMPI_Test");
}

// All ranks make the same barriers, also one that cannot record: the others wait for it. Whoever
// misses one makes no more. True when all have met.
bool synchronise(uint64_t patience_ns) {
  if (world.barrier == nullptr || world.ranks < 2) return false;
  for (int i = 0; i < mpi_barriers; ++i) {
    if (!passed_barrier(patience_ns)) {
      world.barrier = nullptr;
      return false;
    }
    const uint64_t left = base::ticks();
    ++world.barriers;
    if (recording()) {
      record_call({Op::kSync, Layer::marker, 0, 0, world.barriers, left, left, kUnknownOffset,
                   static_cast<uint64_t>(world.ranks)});
    }
  }
  return mpi_barriers > 0;
}

void record_mpi_call(Op op, Span span, bool failed) {
  if (recording())
    record_call({op, Layer::mpi, failed ? uint8_t{wire::kError} : uint8_t{0}, 0, 0, span.start,
                 span.end, kUnknownOffset, 0});
}

// real returns whether MPI was started.
template <typename Real>
void starting(Real real) {
  if (mpi_barriers == 0 && !recording() && !between_wanted) {
    real();
    return;
  }
  const int before = depth++;
  const uint64_t start = base::ticks();
  const bool begun = real();
  const uint64_t end = base::ticks();
  depth = before;
  if (before != 0) return;
  record_mpi_call(Op::kMpiInit, {start, end}, !begun);
  if (!begun || world.kind != MpiKind::kNone) return;
  meet_world();
  if (between_wanted && world.kind != MpiKind::kOther)
    begin_between(world.communicator, world.rank, world.ranks, world.kind == MpiKind::kOpenMpi);
  synchronise(static_cast<uint64_t>(mpi_wait_s) * kSecondNs);
}

template <typename Real>
void finishing(Real real) {
  const int before = depth++;
  const uint64_t came = base::ticks();
  bool observed_waits = false, have_met = false;
  if (before == 0) {
    have_met = synchronise(0);  // ranks come as they finish, hours apart
    world.barrier = nullptr;
    end_between();
    observed_waits = end_mpi_events();
  }
  const uint64_t start = base::ticks();
  const bool done = real();
  const uint64_t end = base::ticks();
  depth = before;
  if (before != 0) return;
  if (observed_waits && done) record_finalize(world.communicator, came, have_met ? start : end);
  record_mpi_call(Op::kMpiFinalize, {start, end}, !done);
}

void aborting() {
  if (recording()) trace::process().end(wire::End::kSignal);
}

// Fortran's way to say how it went. Absent (mpi_f08) means that MPI would have ended the program.
bool went_well(const int* error) { return error == nullptr || *error == 0; }

}  // namespace
}  // namespace weir::hook

using namespace weir::hook;

WEIR_OPTIONAL_HOOK(int, MPI_Init_thread, int* argc, char*** argv, int required, int* provided) {
  WEIR_BOUND(MPI_Init_thread);
  int result = 0;
  starting([&] {
    const Level level("MPI_Init_thread", required);
    result = WEIR_BOUND_REAL(MPI_Init_thread)(argc, argv, level.asked(), provided);
    level.granted(provided);
    return result == 0;
  });
  return result;
}
WEIR_OPTIONAL_HOOK(int, MPI_Init, int* argc, char*** argv) {
  WEIR_BOUND(MPI_Init);
  int result = 0;
  starting([&] {
    const Level level("MPI_Init_thread", 0);
    int provided = 0;
    result = level.raised() ? WEIR_REAL(MPI_Init_thread)(argc, argv, level.asked(), &provided)
                            : WEIR_BOUND_REAL(MPI_Init)(argc, argv);
    level.granted(&provided);
    return result == 0;
  });
  return result;
}
WEIR_OPTIONAL_HOOK(int, MPI_Finalize) {
  WEIR_BOUND(MPI_Finalize);
  int result = 0;
  finishing([&] { return (result = WEIR_BOUND_REAL(MPI_Finalize)()) == 0; });
  return result;
}
WEIR_OPTIONAL_HOOK(int, MPI_Abort, Communicator communicator, int code) {
  WEIR_BOUND(MPI_Abort);
  aborting();
  return WEIR_BOUND_REAL(MPI_Abort)(communicator, code);
}

#define WEIR_FORTRAN_MPI(init, init_thread, finalize, abort_)                       \
  WEIR_OPTIONAL_HOOK(void, init_thread, int* required, int* provided, int* error) { \
    WEIR_BOUND(init_thread);                                                        \
    starting([&] {                                                                  \
      const Level level(#init_thread, *required);                                   \
      int asked = level.asked();                                                    \
      WEIR_BOUND_REAL(init_thread)(&asked, provided, error);                        \
      level.granted(provided);                                                      \
      return went_well(error);                                                      \
    });                                                                             \
  }                                                                                 \
  WEIR_OPTIONAL_HOOK(void, init, int* error) {                                      \
    WEIR_BOUND(init);                                                               \
    starting([&] {                                                                  \
      const Level level(#init_thread, 0);                                           \
      int asked = level.asked(), provided = 0;                                      \
      if (level.raised()) WEIR_REAL(init_thread)(&asked, &provided, error);         \
      else WEIR_BOUND_REAL(init)(error);                                            \
      level.granted(&provided);                                                     \
      return went_well(error);                                                      \
    });                                                                             \
  }                                                                                 \
  WEIR_OPTIONAL_HOOK(void, finalize, int* error) {                                  \
    WEIR_BOUND(finalize);                                                           \
    finishing([&] { return WEIR_BOUND_REAL(finalize)(error), went_well(error); });  \
  }                                                                                 \
  WEIR_OPTIONAL_HOOK(void, abort_, void* communicator, int* code, int* error) {     \
    WEIR_BOUND(abort_);                                                             \
    aborting();                                                                     \
    WEIR_BOUND_REAL(abort_)(communicator, code, error);                             \
  }
WEIR_FORTRAN_MPI(mpi_init_, mpi_init_thread_, mpi_finalize_, mpi_abort_)
WEIR_FORTRAN_MPI(mpi_init__, mpi_init_thread__, mpi_finalize__, mpi_abort__)
WEIR_FORTRAN_MPI(mpi_init, mpi_init_thread, mpi_finalize, mpi_abort)
WEIR_FORTRAN_MPI(MPI_INIT, MPI_INIT_THREAD, MPI_FINALIZE, MPI_ABORT)
WEIR_FORTRAN_MPI(mpi_init_f08_, mpi_init_thread_f08_, mpi_finalize_f08_, mpi_abort_f08_)
