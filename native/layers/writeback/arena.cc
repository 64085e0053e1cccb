// SPDX-License-Identifier: Apache-2.0
// Arenas come and go: their files, their mappings, who takes part.
#include "layers/writeback/arena.h"

#include <errno.h>
#include <string.h>

#include "base/round.h"
#include "base/text.h"
#include "layers/writeback/inside.h"
#include "layers/machinery/node/place.h"
#include "base/syscall.h"

namespace weir::writeback {

constinit Arena* own_arenas[kArenas] = {};
constinit node::Lock own_lock{};

namespace {

constinit uint32_t next_name = 0;

struct Shape {
  uint32_t blocks, block_bytes, files;
  uint64_t extra_bytes;
};

Header header_of(const Shape& s, bool shared) {
  Header h{};
  h.version = kVersion;
  h.shared = shared;
  h.blocks = s.blocks;
  h.block_bytes = s.block_bytes;
  h.files = s.files;
  h.files_at = kPageBytes + base::round_up(kParticipants * (sizeof(node::Identity) +
                                                            sizeof(uint64_t)), kPageBytes);
  h.blocks_at = h.files_at + uint64_t{s.files} * kPageBytes;
  h.extra_at = base::round_up(h.blocks_at + uint64_t{s.blocks} * sizeof(Block), kPageBytes);
  h.extra_bytes = s.extra_bytes;
  h.maps_at = base::round_up(h.extra_at + s.extra_bytes, kPageBytes);
  h.data_at = base::round_up(h.maps_at + uint64_t{s.blocks} * map_bytes(s.block_bytes), kPageBytes);
  h.total_bytes = h.data_at + uint64_t{s.blocks} * s.block_bytes;
  return h;
}

// At the end of each process, also of one that is forked to start the daemon, valgrind reads all
// memory in its search for leaks: that of blocks never used, too, which then takes storage.
uint32_t fewer_under_valgrind(uint32_t blocks, uint32_t block_bytes) {
  constexpr uint32_t kBytes = 32u << 20;
  if (!base::valgrind::is_running() || block_bytes == 0) return blocks;
  const uint32_t most = block_bytes < kBytes ? kBytes / block_bytes : 1;
  return blocks < most ? blocks : most;
}

// All but slots, blocks, maps and data: those are backed when they are needed.
bool back_tables(int fd, const Header& h) {
  return base::allocate(fd, 0, h.files_at) == 0 &&
         (h.maps_at == h.extra_at || base::allocate(fd, h.extra_at, h.maps_at - h.extra_at) == 0);
}

bool sensible(const Shape& s) {
  return s.blocks > 0 && s.blocks <= kMostBlocks && s.files > 0 && s.files <= kMostFiles &&
         s.block_bytes > 0 && s.block_bytes % kPageBytes == 0;
}

// A handle with its table of descriptors, from a mapping of its own.
Arena* make_handle(uint32_t files) {
  const uint64_t bytes = sizeof(Arena) + uint64_t{files} * sizeof(const int*[kOpenings]);
  const long at = base::map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (base::failed(at)) return nullptr;
  auto* arena = reinterpret_cast<Arena*>(at);
  arena->descriptors = reinterpret_cast<const int* (*)[kOpenings]>(arena + 1);
  arena->handle_bytes = bytes;
  return arena;
}

void drop_handle(Arena* arena) {
  if (arena->header != nullptr) base::unmap(arena->header, arena->mapped_bytes);
  base::unmap(arena, arena->handle_bytes);
}

bool register_arena(Arena* arena) {
  const base::SignalsBlocked blocked;
  node::acquire(own_lock);
  bool found = false;
  for (Arena*& place : own_arenas) {
    if (place != nullptr) continue;
    place = arena;
    found = true;
    break;
  }
  node::release(own_lock);
  return found;
}

void strike_off(Arena* arena) {
  const base::SignalsBlocked blocked;
  node::acquire(own_lock);
  for (Arena*& place : own_arenas) {
    if (place == arena) place = nullptr;
  }
  node::release(own_lock);
}

// Makes the file and fills its header. The magic last.
bool make_file(Arena* arena, const Shape& shape, bool shared) {
  Header h = header_of(shape, shared);
  const base::HoldsDescriptor held;
  if (!node::read_secret(&h.secret)) return false;
  const long fd = node::open_inside(arena->name, O_RDWR | O_CREAT | O_EXCL);
  if (base::failed(fd)) return false;
  const int file = static_cast<int>(fd);
  bool made = base::identify(file, &arena->file) && base::resize(file, h.total_bytes) == 0 &&
              back_tables(file, h);
  if (made) {
    const long at = base::map(h.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file);
    made = !base::failed(at);
    if (made) {
      auto* header = reinterpret_cast<Header*>(at);
      *header = h;
      if (!shared) {
        participants_of(header)[0] = node::self();
        runs_of(header)[0] = node::run_number();
      }
      base::store(&header->magic, kMagic);
      attach(arena, header, h.total_bytes);
    }
  }
  base::close_fd(file);
  if (!made) node::unlink_inside(arena->name, arena->file);
  return made;
}

// The existing file of a shared arena. False when it is not there or of another shape. Whoever
// makes one holds `making`, so one without a magic has a dead maker: it is removed.
bool open_file(Arena* arena, const Shape& shape) {
  const uint64_t bytes = header_of(shape, true).total_bytes;
  const base::HoldsDescriptor held;
  const long fd = node::open_inside(arena->name, O_RDWR);
  if (base::failed(fd)) return false;
  const int file = static_cast<int>(fd);
  uint64_t magic = 0;
  base::read_fd(file, &magic, sizeof magic);
  struct stat about;
  const bool same_size = base::system_call(SYS_fstat, file, reinterpret_cast<long>(&about)) == 0 &&
                         static_cast<uint64_t>(about.st_size) == bytes;
  long at = -1;
  base::identify(file, &arena->file);
  if (magic != kMagic) node::unlink_inside(arena->name, arena->file);
  else if (same_size) at = base::map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file);
  base::close_fd(file);
  if (base::failed(at)) return false;
  const auto* h = reinterpret_cast<const Header*>(at);
  node::Secret secret;
  if (node::read_secret(&secret) && h->secret == secret && h->blocks == shape.blocks &&
      h->block_bytes == shape.block_bytes && h->files == shape.files &&
      h->extra_bytes == shape.extra_bytes && attach(arena, reinterpret_cast<void*>(at), bytes)) {
    return true;
  }
  arena->header = nullptr;
  base::unmap(reinterpret_cast<void*>(at), bytes);
  return false;
}

// An entry of the dead is left to the daemon: their dirty bytes go first.
bool take_part(Arena* arena) {
  const node::Identity me = node::self();
  for (uint32_t i = 0; i < kParticipants; ++i) {
    auto* word = reinterpret_cast<uint64_t*>(&participants_of(arena->header)[i]);
    uint64_t nobody = 0;
    if (!base::compare_exchange(word, &nobody, uint64_t{me.start} << 32 | me.pid)) continue;
    base::store(&runs_of(arena->header)[i], node::run_number());
    arena->participant = i;
    return true;
  }
  return false;
}

// A program of another version of weir, or what one left, has its own of the same purpose.
bool name_shared(Arena* arena, const char* name) {
  base::Writer text(arena->name, sizeof arena->name);
  text.add("shared.").add_number(kVersion).add(".").add(name);
  return !text.cut();
}

bool anybody_left(const Arena* arena) {
  for (uint32_t i = 0; i < kParticipants; ++i) {
    if (participants_of(arena->header)[i].pid != 0) return true;
  }
  return false;
}

Arena* settled(Arena* arena) {
  if (register_arena(arena)) {
    announce(arena);
    return arena;
  }
  drop_handle(arena);
  return nullptr;
}

}  // namespace

bool attach(Arena* arena, void* mapping, uint64_t bytes) {
  auto* h = static_cast<Header*>(mapping);
  arena->header = h;
  arena->mapped_bytes = bytes;
  if (bytes < kPageBytes || base::load(&h->magic) != kMagic || h->version != kVersion ||
      h->total_bytes != bytes)
    return false;
  const Header want =
      header_of({h->blocks, h->block_bytes, h->files, h->extra_bytes}, h->shared != 0);
  if (!sensible({h->blocks, h->block_bytes, h->files, h->extra_bytes}) || want.total_bytes != bytes)
    return false;
  auto* at = static_cast<char*>(mapping);
  arena->slots = reinterpret_cast<FileSlot*>(at + want.files_at);
  arena->blocks = reinterpret_cast<Block*>(at + want.blocks_at);
  arena->extra_data = at + want.extra_at;
  arena->maps = reinterpret_cast<uint64_t*>(at + want.maps_at);
  arena->data = at + want.data_at;
  arena->block_bytes = h->block_bytes;
  return true;
}

bool back(const Arena* arena, uint64_t offset, uint64_t bytes) {
  if (base::sealed()) return false;
  const base::SignalsBlocked blocked;
  const base::HoldsDescriptor held;
  const long fd = node::open_again(arena->name, arena->file);
  if (base::failed(fd)) return false;
  long result;
  do result = base::allocate(static_cast<int>(fd), offset, bytes);
  while (result == -EINTR);
  base::close_fd(static_cast<int>(fd));
  return result == 0;
}

Arena* create_arena(uint32_t blocks, uint32_t block_bytes, uint32_t files) {
  const Shape shape{fewer_under_valgrind(blocks, block_bytes), block_bytes, files, 0};
  if (base::sealed() || !sensible(shape) || node::own_directory() == nullptr) return nullptr;
  Arena* arena = make_handle(files);
  if (arena == nullptr) return nullptr;
  const base::SignalsBlocked blocked;
  const node::Identity me = node::self();
  base::Writer(arena->name, sizeof arena->name)
      .add("arena.")
      .add_number(me.pid)
      .add(".")
      .add_number(me.start)
      .add(".")
      .add_number(base::fetch_add(&next_name, 1u));
  if (make_file(arena, shape, false)) return settled(arena);
  drop_handle(arena);
  return nullptr;
}

Arena* share_arena(const char* name, uint32_t blocks, uint32_t block_bytes, uint32_t files,
                   uint64_t extra_bytes) {
  const Shape shape{blocks, block_bytes, files, extra_bytes};
  PulsePage* page = base::sealed() ? nullptr : pulse_page();
  if (page == nullptr || !sensible(shape)) return nullptr;
  Arena* arena = make_handle(files);
  if (arena == nullptr) return nullptr;
  bool joined = false;
  if (name_shared(arena, name)) {
    const base::SignalsBlocked blocked;
    if (node::take(page->making) != node::Taken::kNot) {
      joined = open_file(arena, shape) || make_file(arena, shape, true);
      if (joined) joined = take_part(arena);
      node::release(page->making);
    }
  }
  if (joined) return settled(arena);
  drop_handle(arena);
  return nullptr;
}

Arena* look_at_arena(const char* name, uint32_t blocks, uint32_t block_bytes, uint32_t files,
                     uint64_t extra_bytes) {
  const Shape shape{blocks, block_bytes, files, extra_bytes};
  Arena* arena = sensible(shape) ? make_handle(files) : nullptr;
  if (arena == nullptr) return nullptr;
  PulsePage* const page = pulse_page();
  bool there = false;
  if (page != nullptr && name_shared(arena, name) &&
      node::take(page->making) != node::Taken::kNot) {
    there = open_file(arena, shape);
    node::release(page->making);
  }
  if (there) return arena;
  drop_handle(arena);
  return nullptr;
}

void leave_arena(Arena* arena) { drop_handle(arena); }

node::Identity participant_at(const Arena* arena, uint32_t place) {
  const auto* word = reinterpret_cast<const uint64_t*>(&participants_of(arena->header)[place]);
  const uint64_t who = base::load(word);
  return {static_cast<uint32_t>(who), static_cast<uint32_t>(who >> 32)};
}

uint32_t own_place(const Arena* arena) { return arena->participant; }

const char* name_of(const Arena* arena) { return arena->name; }

void destroy_arena(Arena* arena) {
  if (arena == nullptr) return;
  const bool reachable = !base::sealed();
  const base::SignalsBlocked blocked;
  const base::HoldsDescriptor held;
  strike_off(arena);
  if (arena->header->shared == 0) {
    if (reachable) node::unlink_inside(arena->name, arena->file);
    tell(kTellGone, arena, 0, -1);
  } else if (PulsePage* page = pulse_page()) {
    const bool locked = node::take(page->making) != node::Taken::kNot;
    node::Identity& mine = participants_of(arena->header)[arena->participant];
    base::store(reinterpret_cast<uint64_t*>(&mine), uint64_t{0});
    const bool last = locked && !anybody_left(arena);
    if (last && reachable) node::unlink_inside(arena->name, arena->file);
    if (locked) node::release(page->making);
    if (last) tell(kTellGone, arena, 0, -1);
  }
  drop_handle(arena);
}

}  // namespace weir::writeback
