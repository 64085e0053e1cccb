// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/mapped.h"

#include <errno.h>

#include "layers/machinery/node/registry.h"
#include "base/syscall.h"

namespace weir::stack {

constinit uint32_t mappings = 0;

namespace {

enum State : uint32_t { kFree, kChanging, kKnown };

struct Mapping {
  uint32_t state;
  uint64_t device, inode;
  const void* at;
  size_t bytes;
  node::Lease* lease;
  int owner;  // the process that has the lease: a forked child has the mapping, and not that
};
constinit Mapping table[256] = {};

}  // namespace

void remember_mapping(uint64_t device, uint64_t inode, bool writes, const void* at, size_t bytes) {
  const int before = errno;
  forget_mapping(at, bytes);  // MAP_FIXED
  for (Mapping& m : table) {
    uint32_t state = kFree;
    if (!base::compare_exchange(&m.state, &state, uint32_t{kChanging})) continue;
    m.device = device;
    m.inode = inode;
    m.at = at;
    m.bytes = bytes;
    m.owner = static_cast<int>(base::process_id());
    m.lease = nullptr;
    node::open({device, inode, uint32_t{node::kReads} | (writes ? node::kWrites : 0u), 0, nullptr},
               &m.lease);
    base::fetch_add(&mappings, 1u);
    base::store(&m.state, uint32_t{kKnown});
    break;
  }
  errno = before;
}

void forget_mapping(const void* at, size_t bytes) {
  if (base::load(&mappings) == 0) return;
  for (Mapping& m : table) {
    uint32_t state = kKnown;
    if (base::load(&m.state) != kKnown || m.at != at || m.bytes > bytes) continue;
    if (!base::compare_exchange(&m.state, &state, uint32_t{kChanging})) continue;
    if (m.owner == base::process_id()) node::close(m.lease);
    base::store(&m.state, uint32_t{kFree});
    base::fetch_add(&mappings, ~0u);
  }
}

bool is_mapped(uint64_t device, uint64_t inode) {
  if (WEIR_LIKELY(base::load(&mappings) == 0)) return false;
  for (const Mapping& m : table) {
    if (base::load(&m.state) == kKnown && m.device == device && m.inode == inode) return true;
  }
  return false;
}

}  // namespace weir::stack
