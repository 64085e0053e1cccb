// SPDX-License-Identifier: Apache-2.0
#include "stack/sharing.h"

#include <errno.h>

#include "node/lock.h"
#include "node/place.h"
#include "node/registry.h"
#include "os/syscall.h"
#include "stack/busy.h"
#include "stack/inside.h"
#include "stack/mapped.h"
#include "stack/posix.h"

namespace weir::stack {
namespace {

constexpr uint32_t kBuckets = 256;
constinit File* buckets[kBuckets] = {};
constinit uint32_t busy = 0;
constinit uint32_t holders = 0;    // files of this process that hold bytes
constinit uint32_t unwritten = 0;  // of them, those whose size the kernel does not know yet

using Busy = BusyWith<&busy>;

uint32_t bucket_of(uint64_t device, uint64_t inode) { return static_cast<uint32_t>((inode * 0x9e3779b97f4a7c15u ^ device) >> 13) % kBuckets; }

bool same(const File* f, uint64_t device, uint64_t inode) { return f->inode == inode && f->device == device; }

bool is_open_for(const File* f, int how) { return (f->flags & O_ACCMODE) == how || (f->flags & O_ACCMODE) == O_RDWR; }

// One that holds bytes of the file and is in the way of an opening of this kind. wants: it would hold bytes itself.
File* in_the_way(const File* of, uint64_t device, uint64_t inode, bool writes) {
  for (File* f = buckets[bucket_of(device, inode)]; f != nullptr; f = f->next_of_inode) {
    if (f == of || f->left || !f->holds || !same(f, device, inode)) continue;
    if (of != nullptr && of->shares && f->shares && of->rule == f->rule) continue;
    if (writes || is_open_for(f, O_WRONLY)) return f;
  }
  return nullptr;
}

// Whether the file is open here in a way that forbids `of` to hold bytes.
bool others_forbid(const File* of, bool writes) {
  const Busy hold;
  for (File* f = buckets[bucket_of(of->device, of->inode)]; f != nullptr; f = f->next_of_inode) {
    if (f == of || !same(f, of->device, of->inode)) continue;
    if (!f->left && of->shares && f->shares && of->rule == f->rule) continue;
    if (writes || is_open_for(f, O_WRONLY)) return true;
  }
  return false;
}

void send_away(const File* of, uint64_t device, uint64_t inode, bool writes) {
  for (;;) {
    File* f = nullptr;
    {
      const Busy hold;
      f = in_the_way(of, device, inode, writes);
    }
    if (f == nullptr) return;
    leave(f, Reason::kConflict);
    if (!f->left) return;  // transformed: cannot leave; it has been flushed
  }
}

void recalled(void* owner, node::Lease*) { leave(static_cast<File*>(owner), Reason::kConflict); }

node::Verdict ask(File* f, bool reads, bool writes, bool layered) {
  const uint32_t access = (reads ? node::kReads : 0u) | (writes ? node::kWrites : 0u) | (layered ? node::kLayered : 0u) |
                          (layered && f->shares ? node::kShares : 0u) | (layered && f->empty ? node::kEmpty : 0u);
  node::Lease* lease = nullptr;
  const node::Verdict verdict = node::open({f->device, f->inode, access, uint32_t{f->rule} + 1, f}, &lease);
  f->lease = lease;
  return verdict;
}

}  // namespace

void link(File* f) {
  const Busy hold;
  File*& head = buckets[bucket_of(f->device, f->inode)];
  f->next_of_inode = head;
  head = f;
  if (f->holds && !f->left) base::fetch_add(&holders, 1u);
}

void unlink(File* f) {
  const Busy hold;
  for (File** at = &buckets[bucket_of(f->device, f->inode)]; *at != nullptr; at = &(*at)->next_of_inode) {
    if (*at != f) continue;
    *at = f->next_of_inode;
    f->next_of_inode = nullptr;
    return;
  }
}

void end_lease(File* f) {
  node::close(static_cast<node::Lease*>(f->lease));
  f->lease = nullptr;
}

void leave_lease(File* f) {
  if (f->lease != nullptr) node::leave(static_cast<node::Lease*>(f->lease));
}

void no_longer_holds() { base::fetch_add(&holders, ~0u); }

bool begin_to_hold(Layer& layer) {
  File* const f = layer.file;
  if (WEIR_LIKELY(!f->empty)) return true;
  const int before = errno;
  auto* const lease = static_cast<node::Lease*>(f->lease);
  const bool begun = node::begin(lease);
  if (begun) f->empty = false;
  else ask_to_leave(layer, node::taken_away(lease) ? Reason::kConflict : Reason::kNoMemory);
  errno = before;
  return begun;
}

void look_after_empty(File* f, bool appends) {
  if (appends) begin_to_hold(*f->top);
  else if (node::taken_away(static_cast<const node::Lease*>(f->lease))) ask_to_leave(*f->top, Reason::kConflict);
}

bool may_hold(File* f, bool reads, bool writes) {
  send_away(f, f->device, f->inode, writes);
  if (is_mapped(f->device, f->inode) || others_forbid(f, writes)) {
    ask(f, reads, writes, false);
    return false;
  }
  return ask(f, reads, writes, !f->transforms) == node::Verdict::kGranted;  // one that cannot leave is not to be called back
}

void admit_plain(File* f, bool reads, bool writes) {
  send_away(f, f->device, f->inode, writes);
  ask(f, reads, writes, false);
}

bool anybody_holds() { return base::load_relaxed(&holders) != 0 || node::any(); }

void recall(uint64_t device, uint64_t inode) {
  send_away(nullptr, device, inode, true);
  node::recall(device, inode, nullptr);
}

void publish(File* f) {
  const Result size = f->enter.size->kind->size(*f->enter.size);
  if (size > 0) publish_end(f, static_cast<uint64_t>(size));
}

void publish_end(File* f, uint64_t end) {
  if (f->empty) return;  // the kernel knows it
  if (end <= f->published) return;
  if (f->published == 0) {
    base::fetch_add(&unwritten, 1u);
    // The kernel does not know of a transformed file what other openings have written meanwhile; its layers do.
    const Result size = f->transforms ? f->enter.size->kind->size(*f->enter.size) : 0;
    if (size > 0 && static_cast<uint64_t>(size) > end) end = static_cast<uint64_t>(size);
  }
  f->published = end;
  if (f->lease != nullptr && !f->transforms) node::publish_size(static_cast<node::Lease*>(f->lease), f->published);
}

namespace {

// Other openings in this process go on with the size that this one made.
void hand_size_on(const File* from) {
  const Busy hold;
  for (File* f = buckets[bucket_of(from->device, from->inode)]; f != nullptr; f = f->next_of_inode) {
    if (same(f, from->device, from->inode) && f->published != 0 && f->published < from->published) f->published = from->published;
  }
}

}  // namespace

void withdraw(File* f, bool ends) {
  if (f->published == 0 || (f->transforms && !ends)) return;
  if (f->transforms) hand_size_on(f);
  f->published = 0;
  base::fetch_add(&unwritten, ~0u);
  if (f->lease != nullptr && !f->transforms) node::withdraw_size(static_cast<node::Lease*>(f->lease));
}

void cut_published(uint64_t device, uint64_t inode, uint64_t bytes) {
  const Busy hold;
  for (File* f = buckets[bucket_of(device, inode)]; f != nullptr; f = f->next_of_inode) {
    if (!same(f, device, inode) || !f->transforms || f->published == 0) continue;
    if (bytes == 0) base::fetch_add(&unwritten, ~0u);
    f->published = bytes;
  }
}

bool size_of(uint64_t device, uint64_t inode, uint64_t* bytes, bool* exact) {
  bool found = false;
  *exact = false;
  if (base::load_relaxed(&unwritten) != 0) {
    const Busy hold;
    for (const File* f = buckets[bucket_of(device, inode)]; f != nullptr; f = f->next_of_inode) {
      if (!same(f, device, inode) || f->published == 0 || (found && f->published < *bytes)) continue;
      *bytes = f->published;
      *exact |= f->transforms;
      found = true;
    }
  }
  uint64_t elsewhere = 0;
  if (!*exact && node::any_sizes() && node::size_of(device, inode, &elsewhere) && (!found || elsewhere > *bytes)) {
    *bytes = elsewhere;
    found = true;
  }
  return found;
}

bool any_unwritten() { return base::load_relaxed(&unwritten) != 0 || node::any_sizes(); }

void begin_sharing(int rank) {
  if (rank >= 0) node::set_rank(rank);
  node::on_recall(recalled);
  node::join();  // now: whoever asks later would not know that there is something to ask
}

void forget_shares() {
  base::store(&busy, 0u);
  node::forked();
  node::forked_leases();
  for (File* head : buckets) {
    for (File* f = head; f != nullptr; f = f->next_of_inode) f->lease = nullptr;
  }
}

}  // namespace weir::stack
