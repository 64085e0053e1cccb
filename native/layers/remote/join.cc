// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job find each other when MPI begins, and part before it ends.
#include <string.h>

#include "layers/remote/inside.h"
#include "base/syscall.h"

namespace weir::remote {
namespace {

constexpr uint64_t kMagic = 0x77656972'00000001;  // a version of this
constexpr uint64_t kPatienceNs = 20000 * kMillisecond;
constexpr uint64_t kThreadNs = 5000 * kMillisecond;

// What each rank tells the others.
struct Presence {
  uint64_t magic, node;
  uint32_t able, ranks;
};

// For MPI to write into; left as it is when MPI is late.
template <typename T>
T* room_for(uint64_t count) {
  const long got =
      base::map(count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  return base::failed(got) ? nullptr : reinterpret_cast<T*>(got);
}

// Sleeps between looks: the ranks may be more than the processors. patience 0: for ever.
bool wait_for(Handle& request, uint64_t patience_ns) {
  const uint64_t begun = now_ns();
  for (uint64_t looks = 0;; ++looks) {
    const Tested now = tested(transport.mpi, &request);
    if (now != Tested::kPending) return now == Tested::kDone;
    if (patience_ns != 0 && now_ns() - begun > patience_ns) return false;
    uint32_t nothing = 0;
    if (looks < 100) base::yield();
    else node::sleep_on(&nothing, 0, kMillisecond / 10);
  }
}

// Everybody's word, in the order of ranks; null: not everybody came.
template <typename T>
T* tell_all(Handle communicator, const T& mine) {
  const Mpi& mpi = transport.mpi;
  T* const room = room_for<T>(static_cast<uint64_t>(mpi.ranks) + 1);
  if (room == nullptr) return nullptr;
  static Handle request;
  room[mpi.ranks] = mine;
  const int bytes = sizeof(T);
  if (mpi.gather(room + mpi.ranks, bytes, mpi.byte, room, bytes, mpi.byte, communicator,
                 &request) != 0)
    return nullptr;
  return wait_for(request, kPatienceNs) ? room : nullptr;
}

// The nodes in the order of their first ranks. False: somebody may not take part, or there is one
// node alone.
bool meet(const Presence* all) {
  Transport& c = transport;
  const auto ranks = static_cast<uint32_t>(c.mpi.ranks), own = static_cast<uint32_t>(c.mpi.rank);
  auto* leaders = room_for<uint32_t>(ranks);
  if (leaders == nullptr) return false;
  uint32_t nodes = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (all[rank].magic != kMagic || all[rank].able == 0) return false;
    uint32_t n = nodes;
    while (n > 0 && all[leaders[n - 1]].node != all[rank].node) --n;
    if (n == 0) leaders[nodes++] = rank;
    if (all[rank].ranks > c.most_ranks) c.most_ranks = all[rank].ranks;
  }
  for (uint32_t n = 0; n < nodes; ++n) {
    if (all[leaders[n]].node == all[own].node) c.own_node = n;
  }
  c.leaders = leaders;
  c.leads = leaders[c.own_node] == own;
  c.nodes = nodes;
  return nodes > 1;
}

bool begin_thread() {
  Transport& c = transport;
  return (!c.leads || begin_serving()) && start_thread();
}

// Nothing that MPI could still write into is under way, so the communicator may go.
void part(bool ended) {
  Transport& c = transport;
  base::store(&c.off, 1u);
  bool quiet = ended;
  for (const Call& call : c.calls) quiet = quiet && base::load(&call.state) == kIdle;
  if (quiet) c.mpi.free(&c.communicator);
  c.communicator = 0;
}

}  // namespace

bool begin(const Mpi& mpi, bool able, uint64_t node, uint32_t ranks, const Memory& memory,
           void (*in_thread)()) {
  Transport& c = transport;
  if (c.communicator != 0 || base::load(&c.stopping) != 0) return false;
  c.mpi = mpi;
  c.memory = memory;
  c.in_thread = in_thread;
  c.owner = node::self();
  const Presence* all = tell_all(mpi.world, Presence{kMagic, node, able ? 1u : 0u, ranks});
  if (all == nullptr || !meet(all)) return false;
  if (mpi.duplicate(mpi.world, &c.communicator) != 0) return false;
  mpi.handle_errors(c.communicator, mpi.errors_return);
  bool fine = begin_thread();
  // Nobody is in MPI but by this: what is answered now is answered by the threads.
  const uint32_t next = (c.own_node + 1) % c.nodes;
  fine = fine && carry(next, {Op::kLook, 0, 0, 0, 0, 0, 0, 0}, {}, {}, nullptr);
  const uint64_t* words = tell_all(c.communicator, uint64_t{fine ? 1u : 0u});
  for (int rank = 0; words != nullptr && rank < mpi.ranks; ++rank) fine = fine && words[rank] != 0;
  if (fine && words != nullptr) return true;
  const bool ended = stop_thread(kThreadNs);
  if (words != nullptr) part(ended);
  base::store(&c.off, 1u);
  c.communicator = 0;
  return false;
}

void end() {
  Transport& c = transport;
  if (c.communicator == 0 || !(c.owner == node::self())) return;
  static Handle request;
  const bool all = c.mpi.barrier(c.communicator, &request) == 0 && wait_for(request, 0);
  const bool ended = stop_thread(kThreadNs);
  if (all) part(ended);
  base::store(&c.off, 1u);
  c.communicator = 0;
}

void stop() {
  if (base::load(&transport.running) != 0 && transport.owner == node::self())
    stop_thread(1000 * kMillisecond);
}

}  // namespace weir::remote
