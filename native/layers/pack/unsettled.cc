// SPDX-License-Identifier: Apache-2.0
// Openings that have a memory of former files alone, as long as nothing but reads and writes comes
// to them (File::unsettled): the usual small file is opened, read or written by one call, and
// closed. The memory has another file's length, contents and position meanwhile, and what a read
// returns or a close stores is known without it. Whatever else comes first makes the memory what
// the kernel would show of the file (settle()): calls of this process by the table of descriptors,
// others by the file's name (live.cc).
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/section.h"
#include "layers/machinery/stack/in_memory.h"
#include "layers/machinery/stack/loadable.h"
#include "layers/machinery/stack/reach.h"
#include "layers/pack/pack.h"

namespace weir::layers::pack {

using stack::kPass;
using stack::Transfer;

namespace {

using namespace pack_declared;

bool reads_alone(const Layer& l) { return (l.file->flags & O_ACCMODE) == O_RDONLY; }

bool has_name(const State& s) { return s.container != nullptr && s.times_left == times_left; }

// Whether the memory is another file's still. The name is locked.
bool is_anothers(const State& s) {
  const Name* const n = s.name;
  return base::load(&n->live) == s.used.number ? n->unsettled != 0
                                               : base::load(&n->settled) != s.used.number;
}

void note_settled_name(const State& s) {
  if (base::load(&s.name->live) == s.used.number) s.name->unsettled = 0;
}

long cut(const Layer& l, Result bytes) {
  return base::system_call(SYS_ftruncate, l.file->descriptor, bytes > 0 ? bytes : 0);
}

void end_stage(Layer& l) {
  state(l).stage = kPlain;
  stack::note_settled(l.file);
}

int fill(Layer& l) {
  const State& s = state(l);
  Container* c = has_name(s) ? s.container : nullptr;
  if (c == nullptr) name_of(l, &c);
  return c != nullptr ? fill_memory(*c, s.used, s.contents, s.name_bytes) : EIO;
}

// The memory of an opening to which nothing has come. False: there are no contents to be had.
bool settle_fresh(Layer& l) {
  const State& s = state(l);
  const bool reads = reads_alone(l);
  const auto settle_memory = [&] { return reads ? fill(l) : static_cast<int>(-cut(l, 0)); };
  int error = 0;
  if (has_name(s)) {
    const LockedName locked(s.name);
    if (is_anothers(s)) error = settle_memory();
    if (error == 0) note_settled_name(s);
  } else {
    error = settle_memory();
  }
  if (error != 0 && reads) return false;
  base::system_call(SYS_lseek, l.file->descriptor, reads ? static_cast<long>(s.position) : 0,
                    SEEK_SET);
  return true;
}

}  // namespace

void settle(Layer& l) {
  if (WEIR_LIKELY(!l.file->unsettled)) return;
  const Busy hold;
  if (!l.file->unsettled) return;  // another thread was faster
  if (state(l).stage == kFresh && !settle_fresh(l)) return;
  end_stage(l);
}

namespace {

bool can_copy_to(const Transfer& t) {
  for (int i = 0; i < t.count; ++i) {
    if (!stack::within_reach(t.pieces[i].iov_base, t.pieces[i].iov_len, stack::Access::kWrites))
      return false;
  }
  return true;
}

void copy_to(const Transfer& t, const char* from, uint64_t bytes) {
  for (int i = 0; bytes != 0; ++i) {
    const uint64_t n = t.pieces[i].iov_len < bytes ? t.pieces[i].iov_len : bytes;
    memcpy(t.pieces[i].iov_base, from, n);
    from += n;
    bytes -= n;
  }
}

// From where hold() has put the contents. kPass: the kernel reads.
Result read_held(Layer& l, const Transfer& t) {
  State& s = state(l);
  const Busy hold;
  if (!l.file->unsettled || !has_name(s)) return kPass;
  if (base::load(&s.name->live) != s.used.number || base::load(&s.name->unsettled) != kUnfilled)
    return kPass;
  const uint64_t all = s.contents.bytes;
  const char* const contents = all != 0 ? held(s.used.number) : "";
  if (contents == nullptr || !can_copy_to(t)) return kPass;
  const bool moves = t.offset == stack::kKernelOffset;
  const uint64_t at = moves ? s.position : t.offset;
  const uint64_t n = at >= all ? 0 : t.bytes < all - at ? t.bytes : all - at;
  copy_to(t, contents + (at < all ? at : 0), n);
  if (moves) s.position += n;
  return static_cast<Result>(n);
}

}  // namespace

Result read_fresh(Layer& l, const Transfer& t) {
  if (reads_alone(l)) {
    if (const Result r = read_held(l, t); r != kPass) return r;
  }
  settle(l);
  return l.file->unsettled ? -EIO : kPass;
}

namespace {

// Other openings wait for the name meanwhile, and find the file as it is after the write. kPass:
// it is not the first.
Result write_once(Layer& l, const Transfer& t) {
  State& s = state(l);
  const LockedName locked(s.name);
  const bool is_first = s.stage == kFresh && l.file->unsettled;
  s.stage = kPlain;
  if (!is_first) return kPass;
  const bool replaces = is_anothers(s);
  const bool is_alone = replaces && base::load(&s.name->live) == s.used.number;
  if (replaces && (!is_alone || t.bytes < s.name->unsettled - 1))
    cut(l, static_cast<Result>(t.bytes));
  const uint64_t now = base::clock_ns(CLOCK_REALTIME_COARSE);  // as files have it from the kernel
  Transfer first = t;
  first.offset = 0;
  const Result r = l.file->bottom->kind->write(*l.file->bottom, first);
  const bool is_whole = r == static_cast<Result>(t.bytes);
  if (replaces && !is_whole) cut(l, r);
  note_settled_name(s);
  move_behind(s.used, l.file->descriptor, r > 0 ? static_cast<uint64_t>(r) : 0);
  s.modified = {static_cast<time_t>(now / 1'000'000'000), static_cast<long>(now % 1'000'000'000)};
  if (is_alone && is_whole && s.is_own) s.stage = kWhole;
  return r;
}

void draft_whole(Layer& l, const Transfer& t) {
  State& s = state(l);
  const Busy hold;
  if (s.stage == kWhole && has_name(s)) {
    s.contents.bytes = t.bytes;
    s.is_drafted = draft(*s.container, s.name, s.used.number, t.pieces, t.count, t.bytes);
  }
}

}  // namespace

Result write_first(Layer& l, const Transfer& t) {
  State& s = state(l);
  Layer& bottom = *l.file->bottom;
  const base::Section section;
  if (t.offset == stack::kKernelOffset && has_name(s)) {
    const Result r = write_once(l, t);
    if (s.stage == kWhole) draft_whole(l, t);
    else stack::note_settled(l.file);
    if (r != kPass) return r;
  } else {
    settle(l);
  }
  return bottom.kind->write(bottom, t);
}

namespace {

// Whether nothing else can have come to the memory, and what lies in the block is the file.
bool is_whole_still(Layer& l, const Container& c, const Name* n, const Version& v) {
  const State& s = state(l);
  const stack::File* const f = l.file;
  if (f->lent || f->locked || f->syncs || s.late || !s.owes || !s.is_drafted ||
      s.used.times_lent != base::load(&stack::times_lent))
    return false;
  if (n != s.name || (v.state != kOpened && v.state != kPacked) || v.birth != s.birth)
    return false;
  if (base::load(&n->live) != s.used.number || base::load(&n->live_shared) != 0) return false;
  constexpr uint16_t kOthers = 07111;  // a script, or bits that a write takes away
  const uint64_t bytes = s.contents.bytes;
  return (v.mode & kOthers) == 0 && !is_large(l, bytes) && !is_mostly_old(c) &&
         is_drafted(c, n, s.used.number, bytes) &&
         !(bytes >= stack::kSmallestLoadable && memcmp(drafted(c, n), ELFMAG, SELFMAG) == 0);
}

}  // namespace

Result store_whole(Layer& l) {
  State& s = state(l);
  if (s.stage != kWhole || !l.file->unsettled) return kPass;
  const Busy hold;
  Container* c = nullptr;
  Name* const n = has_name(s) ? name_of(l, &c) : nullptr;
  if (n == nullptr) return kPass;
  const Version v = current(n);
  if (!is_whole_still(l, *c, n, v)) return kPass;
  struct stat about {};
  about.st_size = static_cast<off_t>(s.contents.bytes);
  about.st_mode = S_IFREG | v.mode;
  about.st_uid = v.user;
  about.st_gid = v.group;
  about.st_mtim = s.modified;
  const int error = append(*c, n, kDrafted, about);
  if (error == EAGAIN || error == ESTALE) return kPass;
  if (error != 0) return -error;
  s.owes = false;
  s.left = {s.contents.bytes, v.user, v.group, v.mode, true};
  l.statistics[kStored] += 1;
  l.statistics[kStoredBytes] += s.contents.bytes;
  return 0;
}

}  // namespace weir::layers::pack
