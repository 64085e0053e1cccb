// SPDX-License-Identifier: Apache-2.0
// The cache that the ranks of a node share (layers/cache), whose requests to the file system are
// made by forwarding processes (layers/forward/daemon) where these are to be had, and by the ranks
// themselves where they are not. Here is decided which opens of a name the ranks share.
#include "layers/forward/declared.h"

#include <fcntl.h>
#include <string.h>

#include "base/credentials.h"
#include "base/frames.h"
#include "base/text.h"
#include "layers/cache/job.h"
#include "layers/cache/opens.h"
#include "layers/global/shared_file.h"
#include "layers/machinery/rules/rules.h"
#include "layers/machinery/stack/file.h"
#include "layers/machinery/stack/sharing.h"

namespace weir::layers {
namespace {

using namespace forward_declared;
using stack::Layer;
using stack::Result;
static_assert(int{kForwarded} == cache::kForwarded);
constexpr uint32_t kWastedBlocks = 8;
// Of open's flags: what opens of one name may differ in, and what makes each one of its own.
constexpr int kAlike = O_CREAT | O_CLOEXEC | O_NOCTTY;
constexpr int kOwn = O_TRUNC | O_EXCL | O_APPEND | O_DIRECT | O_PATH | O_DIRECTORY | O_NONBLOCK |
                     (O_TMPFILE & ~O_DIRECTORY);

struct State {
  shared_file::State file;
  cache::SharedOpen open;
};
State& state_of(Layer& l) { return *static_cast<State*>(l.state()); }

Result create(Layer& l) {
  const uint64_t bytes = rules::argument(*l.spec, kArgumentBytes, kDefaultBytes);
  const uint64_t buffers = rules::argument(*l.spec, kArgumentBuffers, kDefaultBuffers);
  shared_file::begin(l, bytes != 0 ? bytes : kDefaultBytes, buffers != 0 ? buffers : 1, true);
  shared_file::State& s = state_of(l).file;
  s.wasted_blocks = s.always ? 0 : kWastedBlocks;
  const uint64_t ranks = rules::option_number(*l.spec, "ranks", 1);
  s.forwarders =
      static_cast<uint32_t>(ranks < cache::kMostForwarders ? ranks : cache::kMostForwarders);
  return 0;
}

// Ranks that were started together may open one name at the same time. A layer above this one might
// use the descriptor in its own way. A signal handler maps no memory.
bool may_share(const Layer& l, int flags) {
  if ((flags & kOwn) != 0 || !cache::job().launched || cache::job().ranks < 2) return false;
  for (const Layer* above = l.file->top; above != &l; above = above->below) {
    if (strcmp(above->kind->name, "event") != 0) return false;
  }
  return !base::may_be_in_handler();
}

// Who opens what in which way, as far as that decides what is opened.
uint64_t key_of(const Layer& l, int flags) {
  struct {
    base::Credentials who;
    base::Identity root;
    uint64_t flags;
  } how{base::credentials(), {}, static_cast<uint64_t>(flags & ~kAlike)};
  struct stat root;
  if (base::system_call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>("/"),
                        reinterpret_cast<long>(&root), 0) == 0)
    how.root = {static_cast<uint64_t>(root.st_dev), static_cast<uint64_t>(root.st_ino)};
  const uint64_t key = base::hash({reinterpret_cast<const char*>(&how), sizeof how},
                                  base::hash(base::text(l.file->path), 0));
  return key != 0 ? key : 1;
}

Result open(Layer& l, stack::Opening& o) {
  State& s = state_of(l);
  cache::Cache* const c =
      may_share(l, o.flags) ? cache::attach({s.file.block_bytes, s.file.slots, s.file.forwarders})
                            : nullptr;
  if (c != nullptr) {
    const int fd =
        cache::begin_open(s.open, c, key_of(l, o.flags), o.flags, stack::is_open_here);
    if (fd >= 0) {
      stack::set_common(l.file);
      return fd;
    }
  }
  const Result fd = stack::open_below(l, o);
  if (fd < 0 && c != nullptr) cache::give_up_open(s.open);
  return fd;
}

Result ready(Layer& l) {
  State& s = state_of(l);
  const Result result = shared_file::ready(l);
  if (s.open.row == 0) return result;
  auto ended = cache::Ended::kKept;
  const bool is_alone = !stack::is_open_here(l.file->device, l.file->inode);
  if (result == 0 && !s.file.tried) ended = cache::end_open(s.open, nullptr, l.file->descriptor);
  if (ended == cache::Ended::kWanted && is_alone && shared_file::attach(l))
    ended = cache::end_open(s.open, &s.file.opening, l.file->descriptor);
  if (ended == cache::Ended::kGivenAway) stack::set_common(l.file);
  if (s.open.row != 0) cache::give_up_open(s.open);
  return result;
}

void close(Layer& l) {
  State& s = state_of(l);
  if (s.open.row != 0) cache::give_up_open(s.open);
  shared_file::close(l);
}

constexpr stack::Kind kind() {
  stack::Kind k = shared_file::kind_of(kName, kStatistics, create);
  k.flags |= stack::kOrdered;
  k.state_bytes = sizeof(State);
  k.open = open;
  k.ready = ready;
  k.close = close;
  return k;
}

}  // namespace

constinit const stack::Kind kForward = kind();

}  // namespace weir::layers
