// SPDX-License-Identifier: Apache-2.0
#include "layers/cache/opens.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "layers/cache/slots.h"
#include "layers/machinery/node/registry.h"
#include "layers/writeback/format.h"
#include "layers/writeback/inside.h"

namespace weir::cache {
namespace {

constexpr uint64_t kOpenWaitNs = 2000 * kMillisecond;
constexpr uint64_t kAnswerNs = 500 * kMillisecond;  // for a copy to come
constexpr uint64_t kLookAfterNs = 20 * kMillisecond;
constexpr int kRounds = 4;
constexpr int kHighNumber = 200;  // descriptors that nobody shall see do not take the lowest

Forwarding& shared(const SharedOpen& s) { return *s.cache->forwarding; }
OpenRow& row_of(const SharedOpen& s) { return shared(s).opens[s.row - 1]; }

OpenRow* find_row(Forwarding& f, uint64_t key) {
  for (OpenRow& r : f.opens) {
    if (r.key == key && base::load(&r.state) != kOpenFree) return &r;
  }
  return nullptr;
}

bool is_under_way(const OpenRow& r) {
  const uint32_t state = base::load(&r.state);
  return (state == kOpenBegun || state == kOpenGiving) && node::alive(r.opener);
}

OpenRow* free_row(Forwarding& f) {
  OpenRow* oldest = nullptr;
  for (OpenRow& r : f.opens) {
    if (base::load(&r.state) == kOpenFree) return &r;
    if ((oldest == nullptr || r.begun_ns < oldest->begun_ns) && !is_under_way(r)) oldest = &r;
  }
  return oldest;
}

bool is_valid(const OpenRow& r) { return r.epoch == node::names_epoch() && is_recent(r); }

// Until the other rank's open is over. False: it is not for too long.
bool wait_for(OpenRow& r, uint64_t key) {
  const uint64_t begun = now_ns();
  while (base::load(&r.key) == key && is_under_way(r)) {
    if (now_ns() - begun >= kOpenWaitNs) return false;
    node::sleep_on(&r.state, base::load(&r.state), kLookAfterNs);
  }
  return true;
}

int raised(int fd) {
  const long high = base::system_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, kHighNumber);
  base::close_fd(fd);
  return base::failed(high) ? -1 : static_cast<int>(high);
}

// The copy that the forwarder sends; -1: it has none. Not *answered: it said nothing.
int receive_copy(int socket, int flags, bool* answered) {
  timeval patience{0, static_cast<suseconds_t>(kAnswerNs / 1000)};
  base::system_call(SYS_setsockopt, socket, SOL_SOCKET, SO_RCVTIMEO,
                    reinterpret_cast<long>(&patience), sizeof patience);
  char byte;
  iovec piece{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const long got =
      base::system_call(SYS_recvmsg, socket, reinterpret_cast<long>(&header), MSG_CMSG_CLOEXEC);
  *answered = got == 1;
  const cmsghdr* const c = got == 1 ? CMSG_FIRSTHDR(&header) : nullptr;
  if (c == nullptr || c->cmsg_type != SCM_RIGHTS) return -1;
  int fd = -1;
  memcpy(&fd, CMSG_DATA(c), sizeof fd);
  if ((flags & O_CLOEXEC) == 0) base::system_call(SYS_fcntl, fd, F_SETFD, 0);
  return fd;
}

// The row may have become another name's meanwhile.
bool is_right(const FileEntry& e, int fd, int flags) {
  base::Identity is;
  const long has = base::system_call(SYS_fcntl, fd, F_GETFL);
  return base::identify(fd, &is) && is == base::Identity{e.device, e.inode} &&
         !base::failed(has) && ((has ^ flags) & (O_ACCMODE | O_APPEND | O_DIRECT)) == 0;
}

// Asks the forwarder of the row's file for a copy.
int borrow(const SharedOpen& s, const OpenRow& r, int flags, IsOpenHere is_open_here) {
  const FileEntry e = s.cache->directory->files[r.file];
  if (is_open_here(e.device, e.inode)) return -1;
  int ends[2];
  const base::SignalsBlocked blocked;
  const base::HoldsDescriptor held;
  const long made = base::system_call(SYS_socketpair, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0,
                                      reinterpret_cast<long>(ends));
  if (base::failed(made)) return -1;
  const int mine = raised(ends[0]), other = raised(ends[1]);
  const bool asked = mine >= 0 && other >= 0 &&
                     tell_forwarder(*s.cache, r.file, kTellBorrow,
                                    static_cast<uint32_t>(&r - shared(s).opens), other);
  if (other >= 0) base::close_fd(other);
  bool answered = true;
  const int fd = asked ? receive_copy(mine, flags, &answered) : -1;
  if (!answered) note_no_answer(*s.cache, r.file);
  if (mine >= 0) base::close_fd(mine);
  if (fd < 0 || is_right(e, fd, flags)) return fd;
  base::close_fd(fd);
  return -1;
}

}  // namespace

namespace {

// The name's row is this rank's from now on. Under the lock.
void begin_row(SharedOpen& to, OpenRow* r, bool wanted) {
  if (r == nullptr) r = free_row(shared(to));
  if (r == nullptr) return;
  r->key = to.key;
  r->opener = node::self();
  r->epoch = node::names_epoch();
  r->begun_ns = now_ns();
  base::store(&r->wanted, uint32_t{wanted});
  base::store(&r->state, uint32_t{kOpenBegun});
  to.row = static_cast<uint32_t>(r - shared(to).opens) + 1;
}

// What a rank finds of a name before it opens it.
enum class Found { kOpenIt, kThere, kAwaited };
// Waits for nobody; signals are held back, for a handler may open a file, too.
Found look_for(SharedOpen& to, bool wanted, OpenRow** row) {
  Forwarding& f = shared(to);
  const base::SignalsBlocked blocked;
  if (node::take(f.opens_lock) == node::Taken::kNot) return Found::kOpenIt;
  OpenRow* const r = *row = find_row(f, to.key);
  const uint32_t state = r != nullptr ? base::load(&r->state) : kOpenFree;
  const bool valid = r != nullptr && is_valid(*r), under_way = r != nullptr && is_under_way(*r);
  const bool is_there = under_way || (valid && state == kOpenGiven);
  if (is_there) {
    base::store(&r->wanted, 1u);
    base::fetch_add(&r->waiting, 1u);  // its copies stay until then
  } else if (!valid || state != kOpenUseless) {
    begin_row(to, r, wanted || (valid && state == kOpenAlone));
  }
  node::release(f.opens_lock);
  return under_way ? Found::kAwaited : is_there ? Found::kThere : Found::kOpenIt;
}

}  // namespace

int begin_open(SharedOpen& to, Cache* cache, uint64_t key, int flags, IsOpenHere is_open_here) {
  to = {cache, 0, key, flags};
  for (int round = 0; round < kRounds; ++round) {
    OpenRow* r = nullptr;
    const Found found = look_for(to, round != 0, &r);
    if (found == Found::kOpenIt) return -1;
    const bool is_over = found == Found::kThere || wait_for(*r, key);
    const bool is_given = base::load(&r->key) == key &&
                          base::load(&r->state) == kOpenGiven && answers(*cache, r->file);
    const int fd = is_given ? borrow(to, *r, flags, is_open_here) : -1;
    base::fetch_add(&r->waiting, ~0u);
    if (fd >= 0) return fd;
    if (!is_over) return -1;  // not once more
  }
  return -1;
}

namespace {

// The row is still this open's. The lock is had then.
bool take_row(const SharedOpen& s) {
  if (s.row == 0 || node::take(shared(s).opens_lock) == node::Taken::kNot) return false;
  const OpenRow& r = row_of(s);
  if (r.key == s.key && r.opener == node::self() && base::load(&r.state) == kOpenBegun) return true;
  node::release(shared(s).opens_lock);
  return false;
}

void set_state(SharedOpen& s, OpenState state) {
  OpenRow& r = row_of(s);
  base::store(&r.state, uint32_t{state});
  node::release(shared(s).opens_lock);
  node::wake(&r.state);
  if (state != kOpenGiving) s.row = 0;
}

}  // namespace

Ended end_open(SharedOpen& s, Opening* o, int descriptor) {
  const base::SignalsBlocked blocked;
  const bool may = o != nullptr && forwarded(*o);
  if (!take_row(s)) {
    s.row = 0;
    return Ended::kKept;
  }
  OpenRow& r = row_of(s);
  if (!may) {
    const bool wanted = base::load(&r.wanted) != 0;
    if (wanted && o == nullptr) {
      node::release(shared(s).opens_lock);
      return Ended::kWanted;
    }
    set_state(s, wanted ? kOpenUseless : kOpenAlone);
    return Ended::kKept;
  }
  r.file = o->file;
  r.begun_ns = now_ns();
  set_state(s, kOpenGiving);
  const bool given = tell_forwarder(*s.cache, o->file, kTellOpened, s.row - 1, descriptor);
  if (!given) {
    base::store(&r.state, uint32_t{kOpenUseless});
    node::wake(&r.state);
  }
  s.row = 0;
  return given ? Ended::kGivenAway : Ended::kKept;
}

void give_up_open(SharedOpen& s) {
  const base::SignalsBlocked blocked;
  if (s.row != 0 && take_row(s)) set_state(s, kOpenUseless);
  s.row = 0;
}

}  // namespace weir::cache
