// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/bypass.h"

#include <fcntl.h>

#include "base/text.h"
#include "layers/machinery/node/registry.h"
#include "layers/machinery/stack/sharing.h"
#include "layers/machinery/stack/table.h"

namespace weir::stack {

constinit uint32_t bypassed_names = 0;

namespace {

constexpr int kDevices = 8;
constexpr int32_t kEnough = 4;   // cheap opens more than dear ones
constexpr int32_t kLeast = -64;
constexpr uint32_t kSets = 1024, kWays = 8;

struct Device {
  uint64_t device;  // 0: free
  int32_t balance;
};
constinit Device devices[kDevices] = {};
alignas(64) constinit uint64_t names[kSets][kWays] =
    {};                                 // hashes; one that is displaced is learnt again
constinit uint32_t directories = 0;     // changes of the working directory

Device* row_of(uint64_t device) {
  for (Device& row : devices) {
    uint64_t found = base::load_relaxed(&row.device);
    if (found == 0 && base::compare_exchange(&row.device, &found, device)) return &row;
    if (found == device) return &row;
  }
  return nullptr;
}

// 0: a name that says nothing by itself.
uint64_t hash_of(int directory, const char* path, int flags) {
  if (path[0] == '/')
    return base::hash(base::text(path), static_cast<uint64_t>(static_cast<unsigned>(flags)) << 32) |
           1;
  if (directory != AT_FDCWD) return 0;
  return base::hash(base::text(path), static_cast<uint64_t>(static_cast<unsigned>(flags)) << 32 |
                                          (base::load_relaxed(&directories) + 1)) |
         1;
}

}  // namespace

bool learn_open(uint64_t device, bool cheap) {
  Device* row = row_of(device);
  if (row == nullptr) return false;
  const int32_t before = base::load_relaxed(&row->balance);
  if (before >= kEnough || (!cheap && before <= kLeast)) return false;
  base::store(&row->balance, before + (cheap ? 1 : -1));
  if (before + 1 != kEnough || !cheap) return false;
  node::agree_bypass(device);
  return true;
}

bool is_dear(uint64_t device) {
  const Device* row = row_of(device);
  return row != nullptr && base::load_relaxed(&row->balance) <= -kEnough;
}

bool is_bypassed_device(uint64_t device) {
  const Device* row = row_of(device);
  return (row != nullptr && base::load_relaxed(&row->balance) >= kEnough) ||
         node::agreed_bypass(device);
}

void bypass_name(int directory, const char* path, int flags) {
  const uint64_t hash = !fortran_opening.within ? hash_of(directory, path, flags) : 0;
  if (hash == 0) return;
  uint64_t* const set = names[hash / 2 % kSets];
  uint32_t way = 0;
  while (way < kWays && base::load_relaxed(&set[way]) != 0 && base::load_relaxed(&set[way]) != hash)
    ++way;
  base::store(&set[way < kWays ? way : (hash >> 32) % kWays], hash);
  base::store(&bypassed_names, 1u);
}

bool is_bypassed_name(int directory, const char* path, int flags) {
  const uint64_t hash =
      path != nullptr && !fortran_opening.within ? hash_of(directory, path, flags) : 0;
  if (hash == 0 || anybody_holds()) return false;
  for (const uint64_t& name : names[hash / 2 % kSets]) {
    if (base::load_relaxed(&name) == hash) return true;
  }
  return false;
}

void directory_changed() { base::fetch_add(&directories, 1u); }

}  // namespace weir::stack
