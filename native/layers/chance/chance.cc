// SPDX-License-Identifier: Apache-2.0
#include "layers/chance/chance.h"

#include <unistd.h>

#include "base/atomic.h"
#include "base/syscall.h"
#include "layers/machinery/rules/rules.h"

namespace weir::layers {
namespace {

struct Name {
  const char* text;
  uint32_t operations;
};
constexpr Name kNames[] = {{"open", kOnOpen},  {"read", kOnRead},         {"write", kOnWrite},
                           {"fsync", kOnSync}, {"truncate", kOnTruncate}, {"close", kOnClose},
                           {"any", kOnAny}};

// splitmix64 (Steele, Lea, Flood 2014): a good mix of consecutive numbers.
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint64_t limit_of(double rate) {
  if (rate >= 1) return UINT64_MAX;
  return rate <= 0 ? 0 : static_cast<uint64_t>(rate * 0x1p64);
}

// Where a transfer begins that goes by the kernel's position.
uint64_t offset_of(const stack::Layer& layer, const stack::Transfer& t) {
  if (t.offset != stack::kKernelOffset) return t.offset;
  const int fd = t.descriptor >= 0 ? t.descriptor : layer.file->descriptor;
  const long at = base::system_call(SYS_lseek, fd, 0, SEEK_CUR);
  return at >= 0 ? static_cast<uint64_t>(at) : 0;
}

}  // namespace

bool Chance::read_options(const rules::LayerSpec& spec, uint32_t operations_otherwise) {
  operations = operations_otherwise;
  base::Text name;
  if (rules::option_text(spec, "op", &name)) {
    operations = 0;
    for (const Name& known : kNames) {
      if (rules::is(name, known.text)) operations = known.operations;
    }
  }
  first = rules::option_number(spec, "first", 0);
  last = rules::option_number(spec, "last", UINT64_MAX);
  after = rules::option_number(spec, "after", 0);
  times = rules::option_number(spec, "times", UINT64_MAX);
  limit = limit_of(rules::option_fraction(spec, "rate", 1));
  mixed_seed = mixed(rules::option_number(spec, "seed", 1));
  return operations != 0;
}

uint64_t Chance::pick_counted() {
  const uint64_t number = base::fetch_add(&seen, uint64_t{1});
  if (number < after) return 0;
  const uint64_t random = mixed(mixed_seed ^ number) | 1;
  if (random > limit) return 0;
  return base::fetch_add(&touched, uint64_t{1}) < times ? random : 0;
}

uint64_t Chance::pick(Operation operation) {
  return (operations & operation) != 0 ? pick_counted() : 0;
}

uint64_t Chance::pick_transfer(const stack::Layer& layer, const stack::Transfer& t) {
  if (first != 0 || last != UINT64_MAX) {
    const uint64_t at = offset_of(layer, t);
    if (at > last || at + t.bytes <= first) return 0;
  }
  return pick_counted();
}

}  // namespace weir::layers
