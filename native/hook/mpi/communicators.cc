// SPDX-License-Identifier: Apache-2.0
#include "hook/mpi/communicators.h"

#include "base/text.h"
#include "base/syscall.h"
#include "trace/process.h"

namespace weir::hook {
namespace {

using wire::MpiKind;

constexpr uint32_t kSlots = 4096, kReach = 64;  // as far as a handle may lie from where it belongs
constexpr Handle kFree = 0, kGone = 1, kBusy = 2;
constexpr Handle kMpichNoCommunicator = 0x04000000;
constexpr uint32_t kGroups = 256;

constinit Handle handles[kSlots + kReach] = {};
constinit Communicator communicators[kSlots + kReach] = {};
constinit Handle the_world = 0, no_communicator = 0;
constinit uint32_t strangers = 0;  // names of this process alone so far
constinit bool said_full = false;

// How often the same members made a communicator by themselves.
struct Group {
  uint64_t members;
  uint32_t times;
};
constinit Group groups[kGroups] = {};
constinit uint32_t group_count = 0;

constinit Profiled<int(Handle, int*)> comm_rank{"PMPI_Comm_rank"}, comm_size{"PMPI_Comm_size"},
    remote_size{"PMPI_Comm_remote_size"};
constinit Profiled<int(Handle, int*)> test_inter{"PMPI_Comm_test_inter"};
constinit Profiled<int(Handle, Handle*)> comm_group{"PMPI_Comm_group"},
    remote_group{"PMPI_Comm_remote_group"};
constinit Profiled<int(Handle, int, const int*, Handle, int*)> translate_ranks{
    "PMPI_Group_translate_ranks"};
constinit Profiled<int(Handle*)> group_free{"PMPI_Group_free"};

template <typename Signature, typename... Arguments>
bool asked(Profiled<Signature>& function, Arguments... arguments) {
  const auto ask = function.get();
  return ask != nullptr && ask(arguments...) == 0;
}

uint32_t home_of(Handle handle) {
  return static_cast<uint32_t>(handle * 0x9e3779b97f4a7c15u >> 52);
}
static_assert(kSlots == 1u << (64 - 52));

// A place for the handle, taken: the one it had, or a free one. Null: none in reach.
Communicator* take_place(Handle handle, Handle** at) {
  const uint32_t home = home_of(handle);
  for (uint32_t i = home; i < home + kReach; ++i) {
    if (base::load(&handles[i]) != handle) continue;
    base::store(&handles[i], kBusy);
    *at = &handles[i];
    return &communicators[i];
  }
  for (uint32_t i = home; i < home + kReach; ++i) {
    Handle before = base::load(&handles[i]);
    if (before > kGone || !base::compare_exchange(&handles[i], &before, kBusy)) continue;
    *at = &handles[i];
    return &communicators[i];
  }
  say_that_it_is_full(said_full,
                      "weir: more communicators than can be followed; waits on the others are "
                      "matched with nobody's\n");
  return nullptr;
}

void drop_world_ranks(Communicator& of) {
  if (of.world_ranks != nullptr)
    base::unmap(of.world_ranks, static_cast<size_t>(of.peers) * sizeof(int));
  of.world_ranks = nullptr;
}

// Ranks of the communicator's peers as MPI_COMM_WORLD has them. Asks this rank's own memory alone:
// no message.
bool translate(const Communicator& on, Handle handle, int count, const int* ranks, int* to) {
  Handle mine = 0, worlds = 0;
  if (!asked(on.between ? remote_group : comm_group, handle, &mine)) return false;
  const bool have = asked(comm_group, the_world, &worlds);
  const bool done = have && asked(translate_ranks, mine, count, ranks, worlds, to);
  if (have) asked(group_free, &worlds);
  asked(group_free, &mine);
  return done;
}

int* map_ranks(size_t bytes) {
  const long memory = base::map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  return base::failed(memory) ? nullptr : reinterpret_cast<int*>(memory);
}

int* find_world_ranks(const Communicator& on, Handle handle) {
  const size_t bytes = static_cast<size_t>(on.peers) * sizeof(int);
  int* const ranks = map_ranks(bytes);
  int* to = ranks != nullptr ? map_ranks(bytes) : nullptr;
  if (to != nullptr) {
    for (int i = 0; i < on.peers; ++i) ranks[i] = i;
    if (!translate(on, handle, on.peers, ranks, to)) {
      base::unmap(to, bytes);
      to = nullptr;
    }
  }
  if (ranks != nullptr) base::unmap(ranks, bytes);
  return to;
}

// Null when MPI does not say. Of two threads one brings them.
const int* world_ranks_of(Communicator& on, Handle handle) {
  int* known = base::load(&on.world_ranks);
  if (known != nullptr || on.peers <= 0) return known;
  int* const found = find_world_ranks(on, handle);
  if (found == nullptr || base::compare_exchange(&on.world_ranks, &known, found)) return found;
  base::unmap(found, static_cast<size_t>(on.peers) * sizeof(int));
  return known;
}

// All members count alike: whoever makes such a communicator makes it with all of them. 0: no room
// to count.
uint32_t times_of(uint64_t members) {
  for (uint32_t i = 0; i < group_count; ++i) {
    if (groups[i].members == members) return ++groups[i].times;
  }
  if (group_count == kGroups) return 0;
  groups[group_count] = {members, 1};
  return groups[group_count++].times;
}

void name_alone(base::Writer& to) {
  to.add("?")
      .add_number(static_cast<uint64_t>(base::process_id()))
      .add(".")
      .add_number(base::fetch_add(&strangers, 1u));
}

void name_by_members(base::Writer& to, Communicator& of, Handle handle, int tag) {
  const int* const ranks = world_ranks_of(of, handle);
  if (ranks == nullptr) return name_alone(to);
  const base::Text bytes{reinterpret_cast<const char*>(ranks),
                         static_cast<size_t>(of.peers) * sizeof(int)};
  const uint64_t members = base::hash(bytes, static_cast<uint32_t>(tag)) >> 16;
  const uint32_t times = times_of(members);
  if (times == 0) return name_alone(to);
  to.add("group.")
      .add_number(static_cast<uint64_t>(ranks[0]))
      .add(".")
      .add_number(members)
      .add(".")
      .add_number(times - 1);
}

void name_by_making(base::Writer& to, Communicator& of, Handle handle, const Making& making) {
  if (making.naming == Naming::members) return name_by_members(to, of, handle, making.color);
  to.add(making.parent->identity).add("/").add_number(making.sequence);
  if (making.naming == Naming::color) to.add(".").add_number(static_cast<uint64_t>(making.color));
  if (making.naming != Naming::first) return;
  const int first = 0;
  int rank = -1;
  if (translate(of, handle, 1, &first, &rank) && rank >= 0)
    to.add(".").add_number(static_cast<uint64_t>(rank));
}

void put_into_trace(Communicator& of) {
  char text[Communicator::kIdentityBytes + 32];
  base::Writer name(text, sizeof text);
  name.add("mpi:").add(of.identity).add(":").add_number(static_cast<uint64_t>(of.size));
  of.name = trace::process().names().id(name.view(), wire::NameSource::kGiven);
}

// Sizes as MPI has them; a window's are those of the communicator that it was made of.
void measure(Communicator& of, Handle handle, const Making* making, bool window) {
  if (window) {
    if (making == nullptr) return;
    of.rank = making->parent->rank;
    of.size = of.peers = making->parent->size;
    return;
  }
  int between = 0;
  if (!asked(comm_rank, handle, &of.rank) || !asked(comm_size, handle, &of.size) ||
      !asked(test_inter, handle, &between))
    return;
  of.between = between != 0;
  of.peers = of.size;
  if (of.between) asked(remote_size, handle, &of.peers);
  of.as_world = making != nullptr && making->naming == Naming::copy && making->parent->as_world;
}

Communicator* enter(Handle handle, const Making* making, bool window) {
  Handle* at = nullptr;
  Communicator* const of = take_place(handle, &at);
  if (of == nullptr) return nullptr;
  drop_world_ranks(*of);
  *of = {};
  measure(*of, handle, making, window);
  base::Writer identity(of->identity, sizeof of->identity);
  if (making != nullptr) name_by_making(identity, *of, handle, *making);
  if (making == nullptr || identity.cut()) {
    base::Writer instead(of->identity, sizeof of->identity);
    name_alone(instead);
  }
  put_into_trace(*of);
  base::store(at, handle);
  return of;
}

void enter_first(Handle handle, const char* identity, int rank, int size, bool as_world) {
  Handle* at = nullptr;
  Communicator* const of = take_place(handle, &at);
  if (of == nullptr) return;
  *of = {0, rank, size, size, false, as_world, 0, nullptr, {}};
  base::Writer(of->identity, sizeof of->identity).add(identity);
  put_into_trace(*of);
  base::store(at, handle);
}

}  // namespace

void say_that_it_is_full(bool& said, const char* what) {
  if (said) return;
  said = true;
  say_unless_quiet(what);
}

void begin_communicators(Handle world, int rank, int ranks) {
  const bool mpich = mpi_kind() == MpiKind::kMpich;
  the_world = world;
  no_communicator = mpich ? kMpichNoCommunicator : open_mpi_object("ompi_mpi_comm_null");
  const Handle self = mpich ? kMpichSelf : open_mpi_object("ompi_mpi_comm_self");
  enter_first(world, "world", rank, ranks, true);
  if (self != 0) enter_first(self, "self", 0, 1, ranks == 1);
}

Communicator* find_communicator(Handle handle) {
  const uint32_t home = home_of(handle);
  for (uint32_t i = home; i < home + kReach; ++i) {
    const Handle found = base::load(&handles[i]);
    if (found == handle) return &communicators[i];
    if (found == kFree) return nullptr;
  }
  return nullptr;
}

Communicator* meet_communicator(Handle handle, bool window) {
  Communicator* const known = find_communicator(handle);
  return known != nullptr ? known : enter(handle, nullptr, window);
}

Communicator* add_communicator(Handle handle, const Making& making) {
  if (handle == 0 || (!making.window && handle == no_communicator)) return nullptr;
  return enter(handle, &making, making.window);
}

void forget_communicator(Handle handle) {
  const uint32_t home = home_of(handle);
  for (uint32_t i = home; i < home + kReach; ++i) {
    if (base::load(&handles[i]) != handle) continue;
    drop_world_ranks(communicators[i]);
    communicators[i].name = 0;
    base::store(&handles[i], kGone);
    return;
  }
}

int world_rank(Communicator& on, Handle handle, int rank) {
  if (rank < 0 || rank >= on.peers) return -1;
  if (on.as_world) return rank;
  const int* const ranks = world_ranks_of(on, handle);
  return ranks != nullptr ? ranks[rank] : -1;
}

}  // namespace weir::hook
