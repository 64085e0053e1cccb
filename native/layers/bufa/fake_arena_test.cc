// SPDX-License-Identifier: Apache-2.0
// Stands in for layers/writeback/arena.cc and layers/writeback/client.cc, and for the stack's
// notes, in tests of bufa. The dirty lists are the real ones.
#include <sys/mman.h>

#include "layers/writeback/client.h"
#include "layers/writeback/format.h"
#include "layers/bufa/fake_test.h"
#include "layers/machinery/stack/private.h"

namespace weir::writeback {

namespace {
Pulse alive{1, 1}, dead{0, 1};
}
const Pulse* pulse = &alive;
uint32_t known_generation = 1;

Arena* create_arena(uint32_t blocks, uint32_t block_bytes, uint32_t) {
  auto* a = static_cast<Arena*>(calloc(1, sizeof(Arena)));
  a->header = static_cast<Header*>(calloc(1, sizeof(Header)));
  a->header->blocks = blocks;
  a->block_bytes = block_bytes;
  a->blocks = static_cast<Block*>(aligned_alloc(64, blocks * sizeof(Block)));
  memset(static_cast<void*>(a->blocks), 0, blocks * sizeof(Block));
  a->data = static_cast<char*>(mmap(nullptr, uint64_t{blocks} * block_bytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  a->maps = static_cast<uint64_t*>(mmap(nullptr, uint64_t{blocks} * map_bytes(block_bytes),
                                        PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  return a;
}
int register_file(Arena*, const Registration&) { return layers::bufa::test::has_daemon ? 0 : -1; }
bool held(Arena*, int) { return layers::bufa::test::has_daemon; }
void unregister_file(Arena*, int, const int*) {}
bool ensure() {
  pulse = layers::bufa::test::has_daemon ? &alive : &dead;
  return layers::bufa::test::has_daemon;
}
bool back(const Arena*, uint64_t, uint64_t) { return true; }

}  // namespace weir::writeback

namespace weir::stack {

void ask_to_leave(Layer&, Reason reason) { layers::bufa::test::noted.left = reason; }
void note_bypass(Layer&, Reason reason) { layers::bufa::test::noted.bypass = reason; }
void defer_error(Layer&, int error, uint64_t lost) {
  auto& n = layers::bufa::test::noted;
  n.error = error;
  n.lost_bytes += lost;
  ++n.errors;
}
bool begin_to_hold(Layer& layer) {
  if (!layers::bufa::test::taken_away) return true;
  ask_to_leave(layer, Reason::kConflict);
  return false;
}
bool keep_private(int, int*) { return false; }
void close_private(int* place) { *place = -1; }

}  // namespace weir::stack
