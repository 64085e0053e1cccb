// SPDX-License-Identifier: Apache-2.0
// The table of files in a cache, and what opening, closing and truncating mean to blocks.
#include <errno.h>
#include <string.h>

#include "layers/cache/forwarding.h"
#include "layers/cache/slots.h"
#include "layers/writeback/client.h"
#include "base/clock.h"
#include "base/syscall.h"

namespace weir::cache {
namespace {

constexpr uint64_t kFreshNs = 100 * kMillisecond;  // clocks of file systems tick every few ms

// Nothing of the file is in the cache any more; false when something is dirty, or has an owner that
// does not go on.
bool forget_file(Cache& c, uint32_t file) {
  for (uint32_t i = 0; i < c.slots; ++i) {
    Slot& s = c.slot(i);
    if (s.tag == 0 || file_of(s.tag) != file) continue;
    if (node::take(s.lock) == node::Taken::kNot) return false;
    const bool held = s.tag != 0 && file_of(s.tag) == file && !idle(s);
    if (!held && s.tag != 0 && file_of(s.tag) == file && s.state != kLoading) make_free(s);
    const bool there = s.tag != 0 && file_of(s.tag) == file;
    unlock(c, s);
    if (there) return false;
  }
  return true;
}

// The file's entry, or one for it: a free one, else the one that nobody has had open for longest.
// Under files_lock.
FileEntry* entry_for(Cache& c, uint64_t device, uint64_t inode) {
  Directory& d = *c.directory;
  FileEntry* free_entry = nullptr;
  for (FileEntry& e : d.files) {
    if (e.device == device && e.inode == inode && (e.generation & 1) != 0) return &e;
    if (free_entry == nullptr && (e.generation & 1) == 0) free_entry = &e;
  }
  for (int tries = 0; free_entry == nullptr && tries < 8; ++tries) {
    FileEntry* oldest = nullptr;
    for (FileEntry& e : d.files) {
      if (e.openings == 0 && (oldest == nullptr || e.used < oldest->used)) oldest = &e;
    }
    if (oldest == nullptr) return nullptr;
    oldest->used = base::load(&d.clock);
    if (!forget_file(c, static_cast<uint32_t>(oldest - d.files))) continue;
    base::fetch_add(&oldest->generation, 1u);
    free_entry = oldest;
  }
  if (free_entry == nullptr) return nullptr;
  const uint32_t generation = free_entry->generation;
  memset(static_cast<void*>(free_entry), 0, sizeof *free_entry);
  free_entry->device = device;
  free_entry->inode = inode;
  base::store(&free_entry->generation, generation + 1);  // odd: in use
  return free_entry;
}

bool changed_just_now(const Stamp& stamp) {
  const auto now = static_cast<int64_t>(base::clock_ns(CLOCK_REALTIME));
  const auto fresh = static_cast<int64_t>(kFreshNs);
  const int64_t m = now - (stamp.mtime_s * 1'000'000'000 + stamp.mtime_ns),
                i = now - (stamp.ctime_s * 1'000'000'000 + stamp.ctime_ns);
  return (m < fresh && m > -fresh) || (i < fresh && i > -fresh);
}

// Whether the file may have changed since it was last looked at.
bool compare(FileEntry& e, const Stamp& stamp) {
  const bool changed = e.fresh != 0 || !(e.stamp == stamp);
  e.stamp = stamp;
  base::store(&e.looked_ns, now_ns());
  e.fresh = changed_just_now(stamp) ? 1 : 0;
  return changed;
}

bool any_dirty(const Cache& c, uint32_t file) {
  for (uint32_t i = 0; i < c.slots; ++i) {
    const uint64_t tag = base::load(&c.slot(i).tag);
    if (tag != 0 && file_of(tag) == file && base::load(&c.slot(i).touched) != 0) return true;
  }
  return false;
}

// What is known of a file before its stamp is taken. Ranks may write the file between the stamp and
// its use: then the stamp is too old to say where the file ends.
class Before {
 public:
  explicit Before(const FileEntry& e)
      : written_(base::load(&e.written)),
        extent_(base::load(&e.extent)),
        end_(base::load(&e.end)) {}
  bool all_written(const FileEntry& e) const { return end_ == 0 && base::load(&e.end) == 0; }
  // The stamp has all that the node's ranks ever wrote: it alone says where the file ends from now
  // on.
  void forget_extent(FileEntry& e) const {
    uint64_t extent = extent_;
    if (base::load(&e.written) == written_) base::compare_exchange(&e.extent, &extent, uint64_t{0});
  }
  // The stamp takes the place of another, which may be younger. Under files_lock.
  bool replace(FileEntry& e, const Stamp& stamp) const {
    if (base::load(&e.written) != written_ && e.stamp.size > stamp.size)
      raise(&e.extent, e.stamp.size);
    return compare(e, stamp);
  }

 private:
  uint64_t written_, extent_, end_;
};

// The file is another one than the cache knew: what dead ranks had accepted has been written, and
// may have been cut off since.
void forget_ends(const Cache& c, FileEntry& e, uint32_t file, const Before& before) {
  const uint64_t progress = base::load(&e.progress);
  uint64_t end = base::load(&e.end);
  if (end != 0 && any_dirty(c, file)) return;
  if (base::load(&e.progress) != progress || !base::compare_exchange(&e.end, &end, uint64_t{0}))
    return;
  before.forget_extent(e);
}

// The file's entry, with this opening in it; null: *error says why.
FileEntry* join(Opening& o, uint64_t device, uint64_t inode, int64_t* error) {
  Directory& d = *o.cache->directory;
  const Inside in;
  *error = -EAGAIN;
  if (in.nested()) return nullptr;
  const base::SignalsBlocked blocked;
  *error = -EBUSY;
  if (node::take(d.files_lock) == node::Taken::kNot) return nullptr;
  *error = -ENOMEM;
  FileEntry* const e = entry_for(*o.cache, device, inode);
  if (e != nullptr) {
    o.file = static_cast<uint32_t>(e - d.files);
    if (e->openings == 0) {
      e->debt = 0;
      e->scattered = e->bypassed = 0;
    }
    e->openings += 1;
    e->used = base::fetch_add(&d.clock, uint64_t{1});
    o.errors_seen = e->errors;
  }
  node::release(d.files_lock);
  return e;
}

}  // namespace

int64_t open(Opening& o, uint64_t device, uint64_t inode) {
  Directory& d = *o.cache->directory;
  int64_t error = 0;
  FileEntry* const e = join(o, device, inode, &error);
  if (e == nullptr) return error;
  const Before before(*e);
  Stamp stamp;
  // A layer below may open its own cache for it.
  const bool known = o.below.about(o.below.context, &stamp);
  const Inside in;
  const base::SignalsBlocked blocked;
  if (node::take(d.files_lock) == node::Taken::kNot)
    return -EBUSY;  // as if this rank had been killed
  bool changed = false;
  if (known) {
    if (e->writers == 0 && before.all_written(*e)) {
      before.forget_extent(*e);
      e->waiting = 0;
    }
    changed = before.replace(*e, stamp);
    if (changed) forget_ends(*o.cache, *e, o.file, before);
    if (o.below.writes) e->writers += 1;
  } else {
    e->openings -= 1;
  }
  node::release(d.files_lock);
  if (!known) return -EIO;
  o.registered = -1;
  if (changed) invalidate(o);
  return 0;
}

void close(Opening& o) {
  leave_forwarder(o);
  if (o.spare != nullptr) base::unmap(o.spare, o.cache->block_bytes);
  o.spare = nullptr;
  if (o.registered >= 0)
    writeback::unregister_file(o.cache->arena, o.registered, o.below.descriptor);
  o.registered = -1;
  Directory& d = *o.cache->directory;
  const base::SignalsBlocked blocked;
  if (node::take(d.files_lock) == node::Taken::kNot) return;  // as if this rank had been killed
  FileEntry& e = entry(o);
  if (e.openings > 0) e.openings -= 1;
  if (o.below.writes && e.writers > 0) e.writers -= 1;
  node::release(d.files_lock);
}

int64_t size(Opening& o) {
  const FileEntry& e = entry(o);
  uint64_t bytes = base::load(&e.end);
  if (bytes != 0 && base::load(&e.looked_ns) != 0) {  // asked after each write: no request for that
    const uint64_t extent = base::load(&e.extent), before = base::load(&e.stamp.size);
    if (extent > bytes) bytes = extent;
    return static_cast<int64_t>(before > bytes ? before : bytes);
  }
  Stamp stamp;
  if (!o.below.about(o.below.context, &stamp)) return -EIO;
  return static_cast<int64_t>(stamp.size > bytes ? stamp.size : bytes);
}

void look_later(Opening& o) { base::store(&entry(o).looked_ns, uint64_t{0}); }

void look_again(Opening& o) {
  const Inside in;
  if (!in.nested()) look(o);
}

void look(Opening& o) {
  FileEntry& e = entry(o);
  const Before before(e);
  Stamp stamp;
  if (!o.below.about(o.below.context, &stamp)) return;
  Directory& d = *o.cache->directory;
  const node::Taken taken = node::take(d.files_lock);
  const bool changed = taken == node::Taken::kNot || before.replace(e, stamp);
  if (taken == node::Taken::kNot) o.held_up = true;
  else if (changed && before.all_written(e)) before.forget_extent(e);
  if (taken != node::Taken::kNot) node::release(d.files_lock);
  if (changed) invalidate(o);
}

uint32_t bypassed(const Opening& o) { return base::load_relaxed(&entry(o).bypassed); }

bool alone(const Opening& o) {
  return base::load_relaxed(&entry(o).openings) < 2 && base::load_relaxed(&entry(o).end) == 0;
}

bool has_accepted(const Opening& o) { return base::load(&entry(o).end) != 0; }

void invalidate(Opening& o) {
  Cache& c = *o.cache;
  for (uint32_t i = 0; i < c.slots; ++i) {
    Slot& s = c.slot(i);
    if (s.tag == 0 || file_of(s.tag) != o.file) continue;
    if (!lock(o, s)) continue;  // taken away
    if (s.tag != 0 && file_of(s.tag) == o.file) {
      if (s.state == kLoading) {
        base::store(&s.discard, 1u);
      } else if (idle(s)) {
        make_free(s);
      } else {
        make_partial(s);
      }
    }
    unlock(c, s);
  }
}

void truncated(Opening& o, uint64_t bytes) {
  Cache& c = *o.cache;
  FileEntry& e = entry(o);
  base::fetch_add(&e.written, uint64_t{1});
  for (uint32_t i = 0; i < c.slots; ++i) {
    Slot& s = c.slot(i);
    if (s.tag == 0 || file_of(s.tag) != o.file) continue;
    if (!take_writer(o, s))
      continue;  // taken away, and written; a request for what is cut off would make the file
                 // longer again
    if (!lock(o, s)) {
      node::release(s.writer);
      continue;
    }
    const uint64_t begin = block_of(s.tag) * c.block_bytes;
    if (s.tag != 0 && file_of(s.tag) == o.file && s.state != kLoading &&
        begin + c.block_bytes > bytes) {
      const uint32_t keep = bytes > begin ? static_cast<uint32_t>(bytes - begin) : 0;
      for (uint32_t piece = keep / c.piece_bytes; piece < c.pieces; ++piece) {
        if ((s.touched >> piece & 1) == 0) continue;
        const int block = c.arena_block(s, piece);
        const uint32_t lo = keep > piece * c.piece_bytes ? keep - piece * c.piece_bytes : 0;
        writeback::lock_block(c.arena, block);
        if (!writeback::mark_clean(c.arena, block, lo, UINT32_MAX))
          writeback::mark_clean(c.arena, block);
        writeback::unlock_block(c.arena, block);
      }
      count_pieces(c, s);
    }
    unlock(c, s);
    node::release(s.writer);
  }
  invalidate(o);
  base::store(&e.end, bytes < e.end ? bytes : e.end);
  base::store(&e.extent, bytes < e.extent ? bytes : e.extent);
  base::store(&e.stamp.size, bytes);
}

int64_t take_error(Opening& o) {
  FileEntry& e = entry(o);
  const uint64_t errors = base::load(&e.errors);
  if (errors == o.errors_seen || !o.below.writes) return 0;
  o.errors_seen = errors;
  return -static_cast<int64_t>(e.error);
}

}  // namespace weir::cache
