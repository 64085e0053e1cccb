// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/sharing.h"

#include <errno.h>

#include "layers/machinery/node/lock.h"
#include "layers/machinery/node/place.h"
#include "layers/machinery/node/registry.h"
#include "base/frames.h"
#include "base/syscall.h"
#include "layers/machinery/stack/busy.h"
#include "layers/machinery/stack/inside.h"
#include "layers/machinery/stack/lock.h"
#include "layers/machinery/stack/mapped.h"
#include "layers/machinery/stack/names.h"
#include "layers/machinery/stack/openings.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/replace.h"

namespace weir::stack {
namespace {

WEIR_BUSY(busy);
constinit uint32_t holders = 0;    // files of this process that hold bytes
constinit uint32_t some_common = 0;  // some opening was, once
constinit uint32_t unwritten = 0;  // of them, those whose size the kernel does not know yet

using Busy = BusyWith<&busy>;

// Whether the list's openings keep what `of` and they do coherent by themselves.
bool shares_with(const File* of, const File* first) {
  return of != nullptr && of->shares && first->alike >> kRuleShift == uint32_t{of->rule} + 1;
}

// One that holds bytes of the file and is in the way of an opening of this kind, which is in no
// list yet.
File* in_the_way(const File* of, uint64_t device, uint64_t inode, bool writes) {
  return find_list(device, inode, [=](const File* first) {
    return (first->alike & kActive) != 0 && (writes || (first->alike & kWriting) != 0) &&
           !shares_with(of, first);
  });
}

// Whether the file is open here in a way that forbids `of` to hold bytes.
bool others_forbid(const File* of, bool writes) {
  const Busy hold;
  const auto forbids = [=](const File* first) {
    return (writes || (first->alike & kWriting) != 0) && !shares_with(of, first);
  };
  return find_list(of->device, of->inode, forbids) != nullptr;
}

// A common opening of a file that has another one. Null: none.
File* common_beside_others(uint64_t device, uint64_t inode) {
  const Busy hold;
  const auto is_common = [](const File* first) { return (first->alike & kCommon) != 0; };
  File* const common = find_list(device, inode, is_common);
  if (common == nullptr || common->next_alike != nullptr) return common;
  const auto is_other = [=](const File* first) { return first != common; };
  return find_list(device, inode, is_other) != nullptr ? common : nullptr;
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
  const uint32_t access = (reads ? node::kReads : 0u) | (writes ? node::kWrites : 0u) |
                          (layered ? node::kLayered : 0u) |
                          (layered && f->shares ? node::kShares : 0u) |
                          (layered && f->empty ? node::kEmpty : 0u);
  node::Lease* lease = nullptr;
  const node::Verdict verdict =
      node::open({f->device, f->inode, access, uint32_t{f->rule} + 1, f}, &lease);
  f->lease = lease;
  if (lease == nullptr && writes) base::store(&names_unsure, 1u);
  return verdict;
}

}  // namespace

void link(File* f) {
  const Busy hold;
  add_opening(f);
  if (f->holds && !f->left) base::fetch_add(&holders, 1u);
}

void unlink(File* f) {
  const Busy hold;
  remove_opening(f);
}

bool is_open_here(uint64_t device, uint64_t inode) {
  const Busy hold;
  return find_list(device, inode, [](const File*) { return true; }) != nullptr;
}

void set_common(File* f) {
  f->common = true;
  base::store(&some_common, 1u);
}

void set_own(File* f) {
  const Busy hold;
  f->common = false;
  renew_opening(f);
}

void separate_openings(const File* f) {
  if (WEIR_LIKELY(base::load_relaxed(&some_common) == 0)) return;
  while (File* const common = common_beside_others(f->device, f->inode)) {
    if (!lock(common)) return;  // a signal handler within a call on it: its locks are carried
    own_description(common);
    const bool is_still = common->common;
    unlock(common);
    if (is_still) return;
  }
}

void set_left(File* f) {
  const Busy hold;
  if (f->holds && !f->left) base::fetch_add(&holders, ~0u);
  f->left = true;
  renew_opening(f);
}

void end_lease(File* f) {
  node::close(static_cast<node::Lease*>(f->lease));
  f->lease = nullptr;
}

void leave_lease(File* f) {
  if (f->lease != nullptr) node::leave(static_cast<node::Lease*>(f->lease));
}

bool begin_to_hold(Layer& layer) {
  File* const f = layer.file;
  if (WEIR_LIKELY(!f->empty)) return true;
  const int before = errno;
  auto* const lease = static_cast<node::Lease*>(f->lease);
  const bool begun = node::begin(lease);
  if (begun) f->empty = false;
  else if (node::taken_away(lease)) ask_to_leave(layer, Reason::kConflict);
  else if (!base::may_be_in_handler_on_any_stack())
    ask_to_leave(layer, Reason::kNoMemory);  // else the next call may have it
  errno = before;
  return begun;
}

void look_after_empty(File* f, bool appends) {
  if (appends) {
    if (!begin_to_hold(*f->top)) ask_to_leave(*f->top, Reason::kNoMemory);
    return;
  }
  if (node::taken_away(static_cast<const node::Lease*>(f->lease)))
    ask_to_leave(*f->top, Reason::kConflict);
}

bool may_hold(File* f, bool reads, bool writes) {
  send_away(f, f->device, f->inode, writes);
  if (is_mapped(f->device, f->inode) || others_forbid(f, writes)) {
    ask(f, reads, writes, false);
    return false;
  }
  // One that cannot leave is not to be called back.
  return ask(f, reads, writes, !f->transforms) == node::Verdict::kGranted;
}

void accept_plain(File* f, bool reads, bool writes) {
  send_away(f, f->device, f->inode, writes);
  ask(f, reads, writes, false);
}

bool anybody_holds() { return base::load_relaxed(&holders) != 0 || node::any(); }

void recall(uint64_t device, uint64_t inode) {
  send_away(nullptr, device, inode, true);
  node::recall(device, inode, nullptr);
}

bool any_sharers(uint64_t device, uint64_t inode) {
  return node::kind_of_sharers(device, inode) != 0;
}

bool all_share(uint64_t device, uint64_t inode, uint32_t rule) {
  {
    const Busy hold;
    const auto is_in_the_way = [=](const File* first) {
      return (first->alike & kActive) != 0 &&
             ((first->alike & kTells) != 0 || first->alike >> kRuleShift != rule + 1);
    };
    if (find_list(device, inode, is_in_the_way) != nullptr) return false;
  }
  uint64_t accepted = 0;
  return node::kind_of_sharers(device, inode) == rule + 1 &&
         !node::size_of(device, inode, &accepted);
}

namespace {

void set_published(File* f, uint64_t bytes) {
  if (WEIR_LIKELY(f->published != 0 && bytes != 0)) {
    f->published = bytes;
    return;
  }
  const Busy hold;
  if ((f->published != 0) != (bytes != 0)) base::fetch_add(&unwritten, bytes != 0 ? 1u : ~0u);
  f->published = bytes;
  renew_opening(f);
}

}  // namespace

void publish(File* f) {
  const Result size = f->enter.size->kind->size(*f->enter.size);
  if (size > 0) publish_end(f, static_cast<uint64_t>(size));
}

void publish_end(File* f, uint64_t end) {
  if (f->empty) return;  // the kernel knows it
  if (end <= f->published) return;
  if (f->published == 0) {
    // The kernel does not know of a transformed file what other openings have written meanwhile;
    // its layers do.
    const Result size = f->transforms ? f->enter.size->kind->size(*f->enter.size) : 0;
    if (size > 0 && static_cast<uint64_t>(size) > end) end = static_cast<uint64_t>(size);
  }
  set_published(f, end);
  if (f->lease != nullptr && !f->transforms)
    node::publish_size(static_cast<node::Lease*>(f->lease), f->published);
}

namespace {

// Another opening in this process goes on with the size that this one made: the longest of all is
// the file's.
void hand_size_on(const File* from) {
  const Busy hold;
  File* to = nullptr;
  find_list(from->device, from->inode, [&](File* first) {
    if ((first->alike & kTells) != 0) to = first != from ? first : first->next_alike;
    return to != nullptr;
  });
  if (to != nullptr && to->published < from->published) to->published = from->published;
}

}  // namespace

void unregister_file(File* f, bool ends) {
  if (f->published == 0 || (f->transforms && !ends)) return;
  if (f->transforms) hand_size_on(f);
  set_published(f, 0);
  if (f->lease != nullptr && !f->transforms)
    node::withdraw_size(static_cast<node::Lease*>(f->lease));
}

void cut_published(uint64_t device, uint64_t inode, uint64_t bytes) {
  const Busy hold;
  const auto is_cut = [](const File* first) {
    return (first->alike & (kTells | kChanging)) == (kTells | kChanging);
  };
  if (bytes != 0) {
    find_list(device, inode, [&](File* first) {
      for (File* f = is_cut(first) ? first : nullptr; f != nullptr; f = f->next_alike)
        f->published = bytes;
      return false;
    });
    return;
  }
  while (File* const f = find_list(device, inode, is_cut)) {
    base::fetch_add(&unwritten, ~0u);
    f->published = 0;
    renew_opening(f);
  }
}

bool size_of(uint64_t device, uint64_t inode, uint64_t* bytes, bool* exact) {
  bool found = false;
  *exact = false;
  if (base::load_relaxed(&unwritten) != 0) {
    const Busy hold;
    find_list(device, inode, [&](const File* first) {
      for (const File* f = (first->alike & kTells) != 0 ? first : nullptr; f != nullptr;
           f = f->next_alike) {
        if (f->published == 0 || (found && f->published < *bytes)) continue;
        *bytes = f->published;
        *exact |= f->transforms;
        found = true;
      }
      return false;
    });
  }
  uint64_t elsewhere = 0;
  if (!*exact && node::any_sizes() && node::size_of(device, inode, &elsewhere) &&
      (!found || elsewhere > *bytes)) {
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
  node::forked();
  node::forked_leases();
  mend_openings();
  for_each_opening([](File* f) { f->lease = nullptr; });
}

}  // namespace weir::stack
