// SPDX-License-Identifier: Apache-2.0
#include "trace/names.h"

#include <string.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/scratch.h"
#include "trace/process.h"
#include "wire/checksum.h"
#include "wire/paths.h"

namespace weir::trace {
namespace {

// The table is a row of tables, each twice as large as the one before it and filled by half before
// the next is begun: in one large table each name would make another page resident.
constexpr uint64_t kFirstSlots = 512;
constexpr uint32_t kTables = 11;
constexpr uint64_t slots_until(uint32_t table) {
  return kFirstSlots * ((uint64_t{1} << table) - 1);
}
constexpr uint64_t kSlots = slots_until(kTables);  // 8 MB of address space
constexpr uint64_t kChunkBytes = 64u << 10;
constexpr size_t kLongest = 8192;
constinit const wire::NameEntry kNone{};

const wire::NameEntry* entry_of(uint64_t slot) {
  return reinterpret_cast<const wire::NameEntry*>(slot & ((uint64_t{1} << 48) - 1));
}

// Bytes of a directory's name with the slash behind it; that of the root is the slash alone. None
// without a directory.
size_t joint_of(base::Text prefix) { return prefix.data != nullptr ? prefix.size + 1 : 0; }

WEIR_INLINE bool same(const wire::NameEntry* entry, base::Text prefix, base::Text name) {
  const size_t joint = joint_of(prefix);
  if (entry->length_bytes != joint + name.size) return false;
  if (joint != 0 &&
      (memcmp(entry->text, prefix.data, prefix.size) != 0 || entry->text[prefix.size] != '/'))
    return false;
  return memcmp(entry->text + joint, name.data, name.size) == 0;
}

// All of the head at once.
void store_head(wire::NameEntry* entry, const wire::NameEntry& head) {
  uint64_t word;
  memcpy(&word, &head, sizeof word);
  base::store(reinterpret_cast<uint64_t*>(entry), word);
}

// The text is there: the entry is whole from now on.
void store_sum(wire::NameEntry* entry, wire::NameEntry head) {
  const uint16_t sum = wire::name_sum(head.id, head.source, entry->text, head.length_bytes);
  head.source = static_cast<wire::NameSource>(static_cast<uint16_t>(head.source) | sum);
  store_head(entry, head);
}

bool names_a_file(base::Text prefix, base::Text name) {
  const size_t joint = joint_of(prefix);
  return wire::names_a_file(joint + name.size, [=](size_t i) {
    if (i >= joint) return name.data[i - joint];
    return i < prefix.size ? prefix.data[i] : '/';
  });
}

}  // namespace

bool Names::reserve_table() {
  const long memory = base::map(kSlots * sizeof *slots_, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
  if (base::failed(memory)) return false;
  slots_ = reinterpret_cast<uint64_t*>(memory);
  return true;
}

void Names::begin_after_fork(wire::ChunkHeader* first) { chunk_ = first; }

// Space for an entry in the current chunk, or in a new one when that is full.
wire::NameEntry* Names::reserve(uint64_t bytes) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    wire::ChunkHeader* chunk = base::load(&chunk_);
    const uint64_t room = chunk->size_bytes - sizeof *chunk;
    const uint64_t at = base::fetch_add(&chunk->used, bytes);
    if (at <= room && bytes <= room - at) {
      return reinterpret_cast<wire::NameEntry*>(reinterpret_cast<char*>(chunk + 1) + at);
    }
    base::SignalsBlocked blocked;
    Refusal refusal = Refusal::none;
    wire::ChunkHeader* next =
        process().take_chunk(wire::Kind::kNames, Use::files, kChunkBytes, 0, &refusal);
    if (next == nullptr) return nullptr;
    base::compare_exchange(&chunk_, &chunk, next);  // a loser's chunk stays empty
  }
  return nullptr;
}

const wire::NameEntry* Names::add(base::Text prefix, base::Text name, wire::NameSource source) {
  const size_t joint = joint_of(prefix);
  const size_t length = joint + name.size;
  if (length > kLongest) return &kNone;
  wire::NameEntry* entry = reserve((sizeof *entry + length + 7) & ~uint64_t{7});
  if (entry == nullptr) {
    process().count_failure();
    return &kNone;
  }
  uint32_t* const next = names_a_file(prefix, name) ? &next_id_ : &next_of_others_;
  const wire::NameEntry head{base::fetch_add(next, uint32_t{1}), static_cast<uint16_t>(length),
                             source};
  store_head(entry, head);
  if (joint != 0) {
    memcpy(entry->text, prefix.data, prefix.size);
    entry->text[prefix.size] = '/';
  }
  memcpy(entry->text + joint, name.data, name.size);
  store_sum(entry, head);
  return entry;
}

// Most names are known, and lie where their hash says: that path has no loop.
const wire::NameEntry* Names::find(base::Text prefix, base::Text name, wire::NameSource source) {
  const uint64_t h = base::hash(name, reinterpret_cast<uint64_t>(prefix.data));
  const uint64_t size = kFirstSlots << base::load(&newest_);
  const uint64_t slot = base::load(&slots_[size - kFirstSlots + (h & (size - 1))]);
  if (WEIR_LIKELY((slot >> 48) == (h >> 48) && slot != 0 && same(entry_of(slot), prefix, name)))
    return entry_of(slot);
  return search(prefix, name, source, h);
}

const wire::NameEntry* Names::search(base::Text prefix, base::Text name, wire::NameSource source,
                                     uint64_t h) {
  const uint64_t tag = h >> 48;
  uint64_t* place = nullptr;  // for a new name: in the newest table
  const uint32_t newest = base::load(&newest_);
  for (uint32_t table = newest + 1; table-- > 0;) {
    uint64_t* const slots = slots_ + slots_until(table);
    const uint64_t last = (kFirstSlots << table) - 1;
    for (uint64_t i = h & last, probes = 0; probes < 64; i = (i + 1) & last, ++probes) {
      const uint64_t slot = base::load(&slots[i]);
      if (slot != 0 && (slot >> 48) == tag && same(entry_of(slot), prefix, name))
        return entry_of(slot);
      if (slot != 0) continue;
      if (table == newest) place = &slots[i];
      break;
    }
  }
  const wire::NameEntry* const entry = add(prefix, name, source);
  if (entry->id != 0 && place != nullptr)
    remember(place, tag << 48 | reinterpret_cast<uint64_t>(entry), newest);
  return entry;
}

// Begins the next table when the newest one is full by half.
void Names::remember(uint64_t* place, uint64_t slot, uint32_t newest) {
  uint64_t expected = 0;
  if (!base::compare_exchange(place, &expected, slot)) return;
  const uint64_t filled = base::fetch_add(&filled_, uint64_t{1}) + 1;
  if (newest + 1 < kTables && filled >= slots_until(newest + 1) / 2)
    base::compare_exchange(&newest_, &newest, newest + 1);
}

uint32_t Names::path_id(const char* path) {
  if (WEIR_UNLIKELY(path == nullptr)) return 0;
  const base::Text name = base::text(path);
  const wire::NameEntry* directory = base::load(&directory_);
  if (name.size == 0 || name.data[0] == '/' || directory == nullptr)
    return id(name, wire::NameSource::kGiven);
  return path_id(base::Text{directory->text, directory->length_bytes}, name);
}

uint32_t Names::path_id(base::Text directory, base::Text path) {
  if (directory.size == 1 && directory.data[0] == '/') directory.size = 0;
  return find(directory, path, wire::NameSource::kGiven)->id;
}

void Names::note(base::Text text) {
  if (text.size > kLongest) return;
  wire::NameEntry* entry = reserve((sizeof *entry + text.size + 7) & ~uint64_t{7});
  if (entry == nullptr) return process().count_failure();
  const wire::NameEntry head{0, static_cast<uint16_t>(text.size), wire::NameSource::kNote};
  store_head(entry, head);
  memcpy(entry->text, text.data, text.size);
  store_sum(entry, head);
}

void Names::set_working_directory() {
  const base::Scratch room;
  char* const path = room.data();
  // The final zero is counted.
  const long size =
      path != nullptr ? base::working_directory(path, base::Scratch::kBytes) : 0;
  const wire::NameEntry* entry = nullptr;
  if (!base::failed(size) && size > 1)
    entry =
        find({}, base::Text{path, static_cast<size_t>(size) - 1}, wire::NameSource::kDescriptor);
  base::store(&directory_, entry != nullptr && entry->id != 0 ? entry : nullptr);
}

}  // namespace weir::trace
