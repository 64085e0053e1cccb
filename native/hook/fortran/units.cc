// SPDX-License-Identifier: Apache-2.0
#include "hook/fortran/units.h"

#include "hook/descriptors.h"

namespace weir::hook {
namespace {

constexpr uint32_t kProbes = 64;

uint64_t key_of(int32_t unit) { return uint64_t{static_cast<uint32_t>(unit) ^ 0x80000000u} << 32; }

// The unit's slot. Without one: null, or with make a new one, null only when the table is crowded
// there.
uint64_t* slot_of(FortranLibrary* library, int32_t unit, bool make) {
  const uint64_t key = key_of(unit);
  for (uint32_t i = 0; i < kProbes; ++i) {
    uint64_t* slot = &library->units[(static_cast<uint32_t>(unit) + i) % kFortranUnits];
    uint64_t word = base::load(slot);
    if (word == 0) {
      if (!make) return nullptr;
      if (base::compare_exchange(slot, &word, key)) return slot;
    }
    if ((word ^ key) >> 32 == 0) return slot;
  }
  return nullptr;
}

int preconnected(int32_t unit) {
  switch (unit) {
    case 5: return 0;
    case 6: return 1;
    case 0: return 2;
  }
  return -1;
}

}  // namespace

uint32_t file_of_unit(FortranLibrary* library, int32_t unit) {
  if (const uint64_t* slot = slot_of(library, unit, false))
    return static_cast<uint32_t>(base::load(slot));
  const int fd = preconnected(unit);
  if (fd < 0) return 0;
  const uint32_t file = file_of(fd);
  Descriptor* d = descriptor(fd);
  if (file != 0 && d != nullptr) d->flags |= kOfFortran;
  return file;
}

void connect_unit(FortranLibrary* library, int32_t unit, uint32_t file) {
  if (uint64_t* slot = slot_of(library, unit, true)) base::store(slot, key_of(unit) | file);
}

void disconnect_unit(FortranLibrary* library, int32_t unit) {
  if (uint64_t* slot = slot_of(library, unit, preconnected(unit) >= 0))
    base::store(slot, key_of(unit));
}

}  // namespace weir::hook
