// SPDX-License-Identifier: Apache-2.0
#include "layers/keep/declared.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "layers/registration/register_file.h"
#include "layers/keep/state.h"
#include "base/syscall.h"
#include "layers/machinery/rules/rules.h"
#include "layers/machinery/stack/park.h"

namespace weir::layers::keep {
namespace {

using stack::Reason;
using stack::Transfer;

constexpr uint64_t kLargest = kBlockBytes / 4;  // larger pieces go down as they are

Result create(Layer& l) {
  State& s = state(l);
  s.slot = s.block = -1;
  return 0;
}

// Files that are read, or appended to, may stay open when they are closed. Others that write might
// owe their bytes to a close.
Result ready(Layer& l) {
  State& s = state(l);
  stack::File* f = l.file;
  const bool reads_only = (f->flags & O_ACCMODE) == O_RDONLY;
  if (f->bypass || (stack::house_is_full() && rules::option_number(*l.spec, "always", 0) == 0)) {
    stack::note_bypass(l, Reason::kCached);
    return 0;
  }
  s.appends = !reads_only && (f->flags & O_APPEND) != 0;
  s.size = f->size_at_open;
  s.knows_size = s.appends;
  if (!reads_only && !s.appends) return 0;
  const uint64_t files = rules::option_number(*l.spec, "files", kDefaultFiles);
  const uint64_t valid_ms = rules::option_number(*l.spec, "valid_ms", kDefaultValidMs);
  stack::may_park(f, {static_cast<uint32_t>(files < kLargestFiles ? files : kLargestFiles),
                      valid_ms * 1'000'000, &l.statistics[kReopened], &l.statistics[kRevalidated]});
  return 0;
}

Result size(Layer& l) {
  State& s = state(l);
  if (s.knows_size) return static_cast<Result>(s.size);
  const Result below = size_below(l);
  if (below < 0 || !s.appends) return below;
  s.size = static_cast<uint64_t>(below) + (s.filled - s.written);
  s.knows_size = true;
  return static_cast<Result>(s.size);
}

// Room for so many bytes in a block whose owner's death loses nothing. False: write through.
bool have_room(Layer& l, uint64_t bytes) {
  State& s = state(l);
  writeback::Arena* a = arena(rules::option_number(*l.spec, "bytes", kDefaultBytes));
  if (a == nullptr) return false;
  if (!s.registered) {
    s.slot = register_file(a, l, true);
    s.registered = s.slot >= 0;
  }
  if (!s.registered || !writeback::held(a, s.slot)) return false;
  if (s.block >= 0 && s.filled + bytes > kBlockBytes && write_out(l) < 0) return false;
  if (s.block >= 0) return true;
  s.block = writeback::take_block(a);
  if (s.block < 0) return false;
  writeback::assign(a, s.block, s.slot, writeback::kAtEnd);
  s.filled = s.written = 0;
  return true;
}

Result pass(Layer& l, const Transfer& t) {
  State& s = state(l);
  if (const Result r = write_out(l); r < 0) return r;
  count(l, kPassedOn);
  const Result r = write_below(l, t);
  s.knows_size = false;
  return r;
}

Result write(Layer& l, const Transfer& t) {
  State& s = state(l);
  if (!s.appends || (l.file->flags & O_APPEND) == 0 || t.bytes > kLargest ||
      (!s.waiting.listed && !pool::ready()) || !have_room(l, t.bytes))
    return pass(l, t);
  auto* to = static_cast<char*>(writeback::data(shared()->arena, s.block)) + s.filled;
  for (int i = 0; i < t.count; ++i) {
    memcpy(to, t.pieces[i].iov_base, t.pieces[i].iov_len);
    to += t.pieces[i].iov_len;
  }
  const auto bytes = static_cast<uint32_t>(t.bytes);
  if (!writeback::mark_dirty(shared()->arena, s.block, s.filled, s.filled + bytes))
    return pass(l, t);
  s.filled += bytes;
  s.size = t.offset + t.bytes;
  count(l, kAppended);
  begin_waiting(l);
  return static_cast<Result>(t.bytes);
}

Result read(Layer& l, const Transfer& t) {
  if (const Result r = write_out(l); r < 0) return r;
  return read_below(l, t);
}

Result truncate(Layer& l, uint64_t bytes) {
  if (const Result r = write_out(l); r < 0) return r;
  state(l).knows_size = false;
  return truncate_below(l, bytes);
}

Result flush(Layer& l) {
  const Result r = write_out(l);
  const Result below = flush_below(l);
  return r < 0 ? r : below;
}

Result sync(Layer& l, bool data_only) {
  const Result r = write_out(l);
  const Result below = sync_below(l, data_only);
  return r < 0 ? r : below;
}

void invalidate(Layer& l) {
  state(l).knows_size = false;
  invalidate_below(l);
}

void close(Layer& l) {
  State& s = state(l);
  end_waiting(l);
  if (Shared* all = s.registered ? shared() : nullptr; all != nullptr && all->arena != nullptr) {
    if (s.block >= 0) writeback::give_block(all->arena, s.block);
    writeback::unregister_file(all->arena, s.slot);
  }
  s.block = -1;
  s.registered = false;
  sweep_soon();  // one that was called back while it was parked
}

}  // namespace

Result write_out(Layer& l) {
  State& s = state(l);
  if (s.block < 0) return 0;
  writeback::Arena* a = shared()->arena;
  Result result = 0;
  for (int failures = 0; s.written < s.filled;) {
    const Result end = size_below(l);
    if (end >= 0) writeback::begin_append(a, s.block, static_cast<uint64_t>(end));
    const auto* from = static_cast<const char*>(writeback::data(a, s.block)) + s.written;
    result = end < 0 ? end : write_below(l, from, s.filled - s.written, static_cast<uint64_t>(end));
    count(l, kSystemWrites);
    if (result > 0) {
      writeback::mark_clean(a, s.block, s.written, s.written + static_cast<uint32_t>(result));
      s.written += static_cast<uint32_t>(result);
      continue;
    }
    if (result == -EINTR) continue;
    if (++failures == 2) break;
  }
  if (s.written < s.filled) {
    stack::defer_error(l, result < 0 ? static_cast<int>(-result) : EIO, s.filled - s.written);
    writeback::mark_clean(a, s.block);
    s.knows_size = false;
  }
  writeback::give_block(a, s.block);
  s.block = -1;
  s.filled = s.written = 0;
  return 0;
}

}  // namespace weir::layers::keep

namespace weir::layers {

const stack::Kind kKeep{
    .name = keep::kName, .flags = stack::kHolds | stack::kOrdered,
    .state_bytes = sizeof(keep::State), .statistics_count = keep::kStatistics,
    .create = keep::create, .open = nullptr, .ready = keep::ready, .read = keep::read,
    .write = keep::write, .size = keep::size, .truncate = keep::truncate, .flush = keep::flush,
    .sync = keep::sync, .invalidate = keep::invalidate, .close = keep::close,
};

}  // namespace weir::layers
