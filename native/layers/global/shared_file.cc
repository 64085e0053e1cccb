// SPDX-License-Identifier: Apache-2.0
#include "layers/global/shared_file.h"

#include <errno.h>
#include <fcntl.h>

#include "base/text.h"
#include "layers/cache/between.h"
#include "layers/gather/declared.h"
#include "layers/global/declared.h"
#include "layers/cache/job.h"
#include "layers/registration/register_file.h"
#include "layers/machinery/node/registry.h"
#include "base/syscall.h"
#include "layers/machinery/rules/rules.h"
#include "layers/machinery/stack/file.h"

namespace weir::layers::shared_file {
namespace {

using stack::File;
using stack::Layer;
using stack::Reason;
using stack::Result;
using stack::Transfer;

// Blocks that the kernel had before the layer believes that it has all.
constexpr uint8_t kCachedInARow = 8;
constexpr uint64_t kLargestBlock = 64u << 20;
static_assert(global_declared::kLargestBytes == kLargestBlock &&
              gather_declared::kLargestBytes == kLargestBlock);
static_assert(global_declared::kLargestBuffers == cache::kMostSlots &&
              gather_declared::kLargestBuffers == cache::kMostSlots);
constexpr int kNoWait = 8;             // RWF_NOWAIT

// File systems of the node itself: the kernel keeps their pages once for all ranks.
bool is_local(uint32_t type) {
  switch (type) {
    case 0x01021994:
    case 0x858458f6:
    case 0xef53:
    case 0x58465342:
    case 0x9123683e:
    case 0x794c7630:
    case 0xf2f52010:
    case 0x2fc12fc1: return true;  // tmpfs, ramfs, ext2/3/4, xfs, btrfs, overlay, f2fs, zfs
  }
  return false;
}

bool in_kernel(int fd, uint64_t offset) {
  char byte;
  const iovec piece{&byte, 1};
  return base::system_call(SYS_preadv2, fd, reinterpret_cast<long>(&piece), 1,
                           static_cast<long>(offset), 0, kNoWait) == 1;
}

// A block about to be read: when the kernel has had so many of them, the layer is of no use.
void look_for_pages(Layer& l, uint64_t offset) {
  State& s = state_of(l);
  if (s.always || s.found_cached >= kCachedInARow || s.opening.below.writes ||
      s.opening.policy.several_nodes)
    return;
  s.found_cached =
      in_kernel(l.file->descriptor, offset) ? static_cast<uint8_t>(s.found_cached + 1) : 0;
  if (s.found_cached == kCachedInARow) stack::ask_to_leave(l, Reason::kCached);
}

int64_t read_file(void* context, const iovec* pieces, int count, uint64_t bytes, uint64_t offset) {
  auto& l = *static_cast<Layer*>(context);
  look_for_pages(l, offset);
  return stack::read_below(l, Transfer{pieces, count, bytes, offset});
}
int64_t write_file(void* context, const iovec* pieces, int count, uint64_t bytes, uint64_t offset) {
  return stack::write_below(*static_cast<Layer*>(context), Transfer{pieces, count, bytes, offset});
}
bool about_file(void* context, cache::Stamp* to) {
  auto& l = *static_cast<Layer*>(context);
  struct stat s;
  s.st_nlink = UINT64_MAX;  // a layer below may answer by itself
  stack::stat_for_layer = &s;
  const Result size = stack::size_below(l);
  stack::stat_for_layer = nullptr;
  if (size < 0) return false;
  if (s.st_nlink == UINT64_MAX &&
      base::system_call(SYS_fstat, l.file->descriptor, reinterpret_cast<long>(&s)) != 0)
    return false;
  *to = {static_cast<uint64_t>(s.st_size), s.st_mtim.tv_sec, s.st_ctim.tv_sec,
         static_cast<uint32_t>(s.st_mtim.tv_nsec), static_cast<uint32_t>(s.st_ctim.tv_nsec)};
  return true;
}
void lost(void* context, int error, uint64_t bytes) {
  stack::defer_error(*static_cast<Layer*>(context), error, bytes);
}

// The same file in the same state has the same key on all nodes, wherever it is mounted.
uint64_t key_of(const File& f, const cache::FileEntry& e) {
  struct {
    uint64_t inode;
    cache::Stamp stamp;
  } const what{f.inode, e.stamp};
  const char* name = f.path;
  for (const char* p = f.path; *p != 0; ++p) {
    if (*p == '/') name = p + 1;
  }
  const uint64_t parts[] = {what.inode,
                            what.stamp.size,
                            static_cast<uint64_t>(what.stamp.mtime_s) << 32 ^ what.stamp.mtime_ns,
                            static_cast<uint64_t>(what.stamp.ctime_s) << 32 ^ what.stamp.ctime_ns};
  const uint64_t key = base::hash({reinterpret_cast<const char*>(parts), sizeof parts},
                                  base::hash(base::text(name), e.fresh));
  return key != 0 ? key : 1;
}

void join_nodes(Layer& l) {
  State& s = state_of(l);
  cache::Opening& o = s.opening;
  if (!s.keeps_reads || s.forwarders != 0 || !o.policy.several_nodes || o.below.writes) return;
  const cache::FileEntry& e = o.cache->directory->files[o.file];
  if (e.fresh != 0) return;  // it may change without a sign
  o.between = cache::between_nodes(s.slots, o.cache->block_bytes);
  if (o.between == nullptr) stack::note_bypass(l, Reason::kNoMessages);
  o.share_key = key_of(*l.file, e);
}

// Once for a file: something of it was bypassed, because a rank has it that lives and does not go
// on.
void note_held_up(Layer& l) {
  State& s = state_of(l);
  if (WEIR_LIKELY(!s.opening.held_up) || s.noted_held_up) return;
  s.noted_held_up = true;
  stack::note_bypass(l, Reason::kHeldUp);
}

void note_no_forwarder(Layer& l) {
  State& s = state_of(l);
  if (WEIR_LIKELY(!s.opening.no_forwarder) || s.noted_no_forwarder) return;
  s.noted_no_forwarder = true;
  stack::note_bypass(l, Reason::kNoForwarder);
}

// A large request of a file that nobody else has open: the layer would only copy it.
bool passes(Layer& l, const Transfer& t) {
  State& s = state_of(l);
  if (s.always || t.bytes < s.block_bytes / 2 || s.opening.policy.several_nodes ||
      !cache::alone(s.opening))
    return false;
  if (!s.noted_large) stack::note_bypass(l, Reason::kLargeRequests);
  s.noted_large = true;
  return true;
}

// What the cache cannot win at bypasses it: noted once for reads and once for writes.
void note_bypass(Layer& l) {
  State& s = state_of(l);
  const uint32_t now = cache::bypassed(s.opening);
  if (WEIR_LIKELY(now == s.noted_bypass)) return;
  s.noted_bypass = now;
  if (now != 0) stack::note_bypass(l, Reason::kRandom);
}

// Calls move(pieces, count, bytes, offset) for the pieces of a request that are not empty, as many
// of them as follow one another: bytes moved, or the first one's error.
template <typename Move>
int64_t in_calls(const Transfer& t, Move move) {
  uint64_t done = 0;
  for (int i = 0; i < t.count;) {
    int n = 0;
    uint64_t bytes = 0;
    for (; i + n < t.count && t.pieces[i + n].iov_len != 0; ++n) bytes += t.pieces[i + n].iov_len;
    const int64_t moved = n > 0 ? move(t.pieces + i, n, bytes, t.offset + done) : 0;
    if (moved < 0) return done > 0 ? static_cast<int64_t>(done) : moved;
    done += static_cast<uint64_t>(moved);
    if (static_cast<uint64_t>(moved) < bytes) break;
    i += n > 0 ? n : 1;
  }
  return static_cast<int64_t>(done);
}

void renew(Layer& l) {
  State& s = state_of(l);
  cache::Opening& o = s.opening;
  const uint32_t barriers = base::load_relaxed(&cache::barriers);
  if (WEIR_LIKELY(o.barriers == barriers)) return;
  o.barriers = barriers;
  if (!o.policy.several_nodes) return;
  cache::look_again(o);
  if (o.between == nullptr) return;
  const cache::FileEntry& e = o.cache->directory->files[o.file];
  o.share_key = e.fresh == 0 ? key_of(*l.file, e) : 0;  // it is being changed: each node for itself
}

// The kernel has emptied the file when it opened it, and others share it: what the cache has of it
// is from before (attach() compares). What they have accepted since then is cut off as by
// ftruncate(2), so that no part of it is left.
void forget_emptied(Layer& l) {
  if ((l.file->flags & O_TRUNC) == 0 ||
      !node::has_others(static_cast<const node::Lease*>(l.file->lease)))
    return;
  if (attach(l) && cache::has_accepted(state_of(l).opening)) truncate(l, 0);
}

}  // namespace

bool attach(Layer& l) {
  State& s = state_of(l);
  if (WEIR_LIKELY(s.tried)) return s.attached;
  s.tried = true;
  cache::Opening& o = s.opening;
  File& f = *l.file;
  const int mode = f.flags & O_ACCMODE;
  o.below = {&l,     read_file,        write_file,       about_file,        lost, &f.descriptor,
             f.path, mode != O_WRONLY, mode != O_RDONLY, stack::level_of(l)};
  o.policy = {s.keeps_reads, cache::job().nodes > 1, s.wait_ns, s.wasted_blocks};
  o.counts = l.statistics;
  o.cache = cache::attach({s.block_bytes, s.slots, s.forwarders});
  o.forwards = s.forwarders != 0;
  o.barriers = base::load_relaxed(&cache::barriers);
  const int64_t opened = o.cache != nullptr ? cache::open(o, f.device, f.inode) : -ENOMEM;
  s.attached = opened == 0;
  if (!s.attached) {
    stack::ask_to_leave(l, opened == -EBUSY ? Reason::kHeldUp : Reason::kNoMemory);
    return false;
  }
  if (o.policy.several_nodes) base::fetch_add(&cache::shared_between_nodes, 1u);
  join_nodes(l);
  return true;
}

void begin(Layer& l, uint64_t block_bytes, uint64_t slots, bool keeps_reads) {
  State& s = state_of(l);
  s.block_bytes = static_cast<uint32_t>(block_bytes < 4096            ? 4096
                                        : block_bytes < kLargestBlock ? block_bytes
                                                                      : kLargestBlock);
  s.slots = static_cast<uint32_t>(slots < cache::kMostSlots ? slots : cache::kMostSlots);
  s.keeps_reads = keeps_reads;
  const uint64_t wait_ms =
      rules::option_number(*l.spec, "wait_ms", cache::kDefaultWaitMs);
  s.wait_ns = wait_ms * 1'000'000;
  s.always = rules::option_number(*l.spec, "always", 0) != 0;
}

Result ready(Layer& l) {
  State& s = state_of(l);
  File& f = *l.file;
  if (!stands_on_plain_bytes(
          l)) {  // the node knows a file by what the kernel says of it, which is the stored form's
    s.tried = true;
    stack::note_bypass(l, Reason::kUnsupported);
    return 0;
  }
  const bool one_node = cache::job().nodes <= 1;
  // Where every rank that may have the file sees the same blocks, a lock needs no trip to the file.
  f.coherent = one_node;
  Reason reason = Reason::kNone;
  if ((f.flags & O_APPEND) != 0)
    reason = Reason::kUnsupported;  // the kernel alone knows where the end is for all
  else if (!s.always && is_local(f.fs_type) && (one_node || cache::job().one_host))
    reason = Reason::kShared;
  if (reason == Reason::kNone) {
    forget_emptied(l);
    return 0;
  }
  stack::note_bypass(l, reason);
  return -EINVAL;
}

Result read(Layer& l, const Transfer& t) {
  State& s = state_of(l);
  if (!attach(l)) return stack::read_below(l, t);
  renew(l);
  note_held_up(l);
  if (passes(l, t)) return stack::read_below(l, t);
  const int64_t done = in_calls(t, [&](const iovec* pieces, int n, uint64_t bytes, uint64_t at) {
    return cache::read(s.opening, pieces, n, bytes, at);
  });
  note_bypass(l);
  return static_cast<Result>(done);
}

Result write(Layer& l, const Transfer& t) {
  State& s = state_of(l);
  if (!attach(l)) return stack::write_below(l, t);
  note_held_up(l);
  cache::Opening& o = s.opening;
  if (const int64_t error = cache::take_error(o); WEIR_UNLIKELY(error != 0)) return error;
  if (WEIR_UNLIKELY((l.file->flags & O_APPEND) !=
                    0)) {  // the kernel alone knows where the end is for all
    const int64_t flushed = cache::flush(o, false);
    stack::ask_to_leave(l, Reason::kUnsupported);
    return flushed < 0 ? flushed : stack::write_below(l, t);
  }
  const int64_t done = in_calls(t, [&](const iovec* pieces, int n, uint64_t bytes, uint64_t at) {
    return cache::write(o, pieces, n, bytes, at);
  });
  note_bypass(l);
  return static_cast<Result>(done);
}

Result size(Layer& l) {
  State& s = state_of(l);
  return attach(l) ? cache::size(s.opening) : stack::size_below(l);
}

Result truncate(Layer& l, uint64_t bytes) {
  State& s = state_of(l);
  if (!attach(l)) return stack::truncate_below(l, bytes);
  cache::truncated(s.opening, bytes);
  const Result result = stack::truncate_below(l, bytes);
  cache::truncated(s.opening, bytes);
  return result;
}

Result flush(Layer& l) {
  State& s = state_of(l);
  uint64_t bytes = 0;  // that somebody else on the node has accepted: the file's must have them all
  if (!s.attached &&
      (!node::any_sizes() || !node::size_of(l.file->device, l.file->inode, &bytes) || !attach(l)))
    return 0;
  // At close other ranks may be about to complete the last blocks; whoever needs the file now gets
  // it now.
  const int64_t error = cache::flush(s.opening, l.file->references <= 1 && !l.file->hurries);
  note_held_up(l);
  note_no_forwarder(l);
  return error != 0 ? error : cache::take_error(s.opening);
}

Result sync(Layer& l, bool data_only) {
  State& s = state_of(l);
  int64_t error = 0;
  if (s.attached) {
    error = cache::flush(s.opening, false);
    if (error == 0) error = cache::take_error(s.opening);
  }
  const Result synced = stack::sync_below(l, data_only);
  return error != 0 ? error : synced;
}

void invalidate(Layer& l) {
  State& s = state_of(l);
  // Through an opening that has moved no byte yet the file may have changed as well, and others
  // keep blocks of it.
  const bool may_have_changed =
      (l.file->flags & O_ACCMODE) != O_RDONLY && !l.file->left && l.file->references != 0;
  if (s.attached || (may_have_changed && attach(l))) {
    cache::invalidate(s.opening);
    cache::look_later(s.opening);  // its size may be another one
  }
  stack::invalidate_below(l);
}

void close(Layer& l) {
  State& s = state_of(l);
  if (!s.attached) return;
  if (s.opening.policy.several_nodes) base::fetch_add(&cache::shared_between_nodes, ~0u);
  cache::close(s.opening);
  s.attached = false;
}

}  // namespace weir::layers::shared_file
