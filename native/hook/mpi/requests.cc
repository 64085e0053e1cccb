// SPDX-License-Identifier: Apache-2.0
#include "hook/mpi/requests.h"

#include "base/atomic.h"

namespace weir::hook {
namespace {

constexpr uint32_t kSlots = 32768, kReach = 64;  // as far as a handle may lie from where it belongs
constexpr Handle kFree = 0, kGone = 1, kBusy = 2;

// Handles by themselves, so that looking for one touches few lines of the cache.
constinit Handle handles[kSlots + kReach] = {};
constinit Request known[kSlots + kReach] = {};
constinit bool said_full = false;

uint32_t home_of(Handle handle) {
  return static_cast<uint32_t>(handle * 0x9e3779b97f4a7c15u >> 49);
}
static_assert(kSlots == 1u << (64 - 49));

// MPI may give requests that are done at once, sends and collectives of one rank, the same handle.
// A receive or a message has its own: what still stands under it was ended in a way that nobody
// saw.
bool is_unique(Awaited what) { return what == Awaited::receive || what == Awaited::message; }

// The place of the handle, held; -1: it is not known.
long hold(Handle handle) {
  const uint32_t home = home_of(handle);
  for (uint32_t i = home; i < home + kReach; ++i) {
    Handle found = base::load(&handles[i]);
    if (found == kFree) return -1;
    if (found == handle && base::compare_exchange(&handles[i], &found, kBusy)) return i;
  }
  return -1;
}

long hold_free(Handle handle) {
  const uint32_t home = home_of(handle);
  for (uint32_t i = home; i < home + kReach; ++i) {
    Handle found = base::load(&handles[i]);
    if (found <= kGone && base::compare_exchange(&handles[i], &found, kBusy)) return i;
  }
  return -1;
}

}  // namespace

void remember(const Request& request) {
  long at = is_unique(request.awaited) ? hold(request.handle) : -1;
  if (at < 0) at = hold_free(request.handle);
  if (at < 0)
    return say_that_it_is_full(said_full,
                               "weir: more requests under way than can be followed; waits for the "
                               "others are recorded without their peers\n");
  known[at] = request;
  base::store(&handles[at], request.handle);
}

Request take_request(Handle handle) {
  const long at = hold(handle);
  if (at < 0) return {};
  Request found = known[at];
  known[at].active = false;
  base::store(&handles[at], found.persistent ? handle : kGone);
  if (!found.active) found.awaited = Awaited::nothing;
  return found;
}

void start_request(Handle handle) {
  const long at = hold(handle);
  if (at < 0) return;
  known[at].active = true;
  base::store(&handles[at], handle);
}

void forget_request(Handle handle) {
  const long at = hold(handle);
  if (at >= 0) base::store(&handles[at], kGone);
}

}  // namespace weir::hook
