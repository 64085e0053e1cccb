// SPDX-License-Identifier: Apache-2.0
// What a process says to the daemon, and how it notices that there is none.
#include "layers/writeback/client.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "base/text.h"
#include "layers/writeback/inside.h"
#include "layers/machinery/node/place.h"
#include "layers/machinery/node/private.h"
#include "layers/machinery/node/pulse.h"
#include "layers/machinery/node/registry.h"
#include "base/syscall.h"

namespace weir::writeback {

constinit const Pulse* pulse = nullptr;
constinit uint32_t known_generation = 0;

namespace {

constexpr uint64_t kStartNs = 3'000'000'000;   // for a daemon to answer
constexpr uint64_t kAnswerNs = 3'000'000'000;  // for it to take over one arena or file
constexpr uint64_t kPauseNs = 1'000'000'000;   // between two attempts that fail
// For a daemon that was started without waiting, before another is.
constexpr uint64_t kEarlierNs = 300'000'000;
constinit uint64_t not_before = 0;
constinit bool on_its_way = false;             // such a one; under own_lock

// Waits until the word at `at` is `wanted`, while the daemon lives.
bool wait_for(uint32_t* at, uint32_t wanted) {
  const uint64_t end = now_ns() + kAnswerNs;
  for (;;) {
    const uint32_t is = base::load(at);
    if (is == wanted) return true;
    if (!daemon_lives() || now_ns() >= end) return false;
    node::sleep_on(at, is, 20'000'000);
  }
}

bool is_that_file(int descriptor, const FileSlot& slot) {
  base::Identity is;
  return descriptor >= 0 && base::identify(descriptor, &is) &&
         is == base::Identity{slot.device, slot.inode};
}

bool wait_for_slot(FileSlot& slot) {
  const uint64_t end = now_ns() + kAnswerNs;
  for (;;) {
    const uint32_t is = base::load(&slot.state);
    if (is == kSlotHeld) return true;
    if (is != kSlotAsked || !daemon_lives() || now_ns() >= end) return false;
    node::sleep_on(&slot.state, is, 20'000'000);
  }
}

// A place among this process's registrations of the slot; -1: there is none.
int place_of(const Arena* arena, int slot, const int* descriptor) {
  for (int i = 0; i < kOpenings; ++i) {
    if (base::load(&arena->descriptors[slot][i]) == descriptor) return i;
  }
  return -1;
}

// The descriptor of an opening that still has the file; null: there is none.
const int* any_descriptor(const Arena* arena, uint32_t slot) {
  const int* found = nullptr;
  for (const int* const& one : arena->descriptors[slot]) {
    const int* const descriptor = base::load(&one);
    if (descriptor == nullptr) continue;
    found = descriptor;
    if (is_that_file(*descriptor, arena->slots[slot])) break;
  }
  return found;
}

// A new daemon is notified of all that the last one knew.
bool tell_arena(Arena* arena, uint32_t generation) {
  if (!tell(kTellArena, arena, 0, -1) || !wait_for(&arena->header->generation, generation))
    return false;
  for (uint32_t i = 0; i < files_used(arena->header); ++i) {
    const int* const descriptor = any_descriptor(arena, i);
    if (descriptor == nullptr) continue;
    FileSlot& slot = arena->slots[i];
    if (base::load(&slot.state) == kSlotHeld && base::load(&slot.generation) == generation)
      continue;
    if (!is_that_file(*descriptor, slot)) return false;
    base::store(&slot.state, uint32_t{kSlotAsked});
    if (!tell(kTellFile, arena, static_cast<int>(i), *descriptor) || !wait_for_slot(slot))
      return false;
  }
  return true;
}

bool tell_everything(uint32_t generation) {
  for (Arena*& place : own_arenas) {
    Arena* arena = base::load(&place);
    if (arena != nullptr && !tell_arena(arena, generation)) return false;
  }
  base::store(&known_generation, generation);
  return true;
}

bool wait_until_it_lives(uint64_t at_most_ns) {
  PulsePage* page = pulse_page();
  const uint64_t end = now_ns() + at_most_ns;
  while (!daemon_lives()) {
    if (now_ns() >= end) return false;
    node::sleep_on(&page->generation, base::load(&page->generation), 2'000'000);
  }
  return true;
}

bool start_and_wait() {
  const bool earlier = on_its_way;
  on_its_way = false;
  return (earlier && wait_until_it_lives(kEarlierNs)) ||
         (start_daemon() && wait_until_it_lives(kStartNs));
}

}  // namespace

PulsePage* pulse_page() {
  const Pulse* known = base::load(&pulse);
  if (known != nullptr) return reinterpret_cast<PulsePage*>(const_cast<Pulse*>(known));
  if (base::sealed() || node::own_directory() == nullptr) return nullptr;
  const base::SignalsBlocked blocked;
  const base::HoldsDescriptor held;
  const long fd = node::open_inside("pulse", O_RDWR | O_CREAT);
  if (base::failed(fd)) return nullptr;
  long at = -1;
  if (base::allocate(static_cast<int>(fd), 0, kPageBytes) == 0)
    at = base::map(kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(fd));
  base::close_fd(static_cast<int>(fd));
  if (base::failed(at)) return nullptr;
  const Pulse* none = nullptr;
  if (!base::compare_exchange(&pulse, &none, reinterpret_cast<const Pulse*>(at)))
    base::unmap(reinterpret_cast<void*>(at), kPageBytes);
  return reinterpret_cast<PulsePage*>(const_cast<Pulse*>(base::load(&pulse)));
}

bool daemon_lives() {
  const Pulse* p = base::load(&pulse);
  if (p == nullptr) return false;
  return node::beats(base::load(&p->word));
}

uint32_t daemon_generation() { return base::load(&pulse->generation); }

namespace {

bool send_to(const msghdr& header) {
  const long fd = base::system_call(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC);
  if (base::failed(fd)) return false;
  timeval patience{3, 0};  // a full queue
  base::system_call(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, reinterpret_cast<long>(&patience),
                    sizeof patience);
  long sent;
  do sent = base::system_call(SYS_sendmsg, fd, reinterpret_cast<long>(&header), MSG_NOSIGNAL);
  while (sent == -EINTR);
  base::close_fd(static_cast<int>(fd));
  return sent == static_cast<long>(sizeof(Message));
}

}  // namespace

bool send_message(const char* socket_name, const Message& message, int descriptor) {
  sockaddr_un there{};
  there.sun_family = AF_UNIX;
  iovec piece{const_cast<Message*>(&message), sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_name = &there;
  header.msg_namelen = sizeof there;
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &descriptor, sizeof descriptor);
  }
  const base::SignalsBlocked blocked;
  const base::HoldsDescriptor held;
  // By the directory that was checked: what another user has put under its name would get the
  // program's descriptors.
  const long directory = node::open_own_directory();
  if (base::failed(directory)) return false;
  base::Writer(there.sun_path, sizeof there.sun_path)
      .add("/proc/self/fd/")
      .add_number(static_cast<uint64_t>(directory))
      .add("/")
      .add(socket_name);
  const bool sent =
      node::is_own_socket(static_cast<int>(directory), socket_name) && send_to(header);
  base::close_fd(static_cast<int>(directory));
  return sent;
}

bool tell(MessageKind kind, const Arena* arena, int slot, int descriptor) {
  if (base::sealed() || !daemon_lives()) return false;
  const node::Identity me = node::self();
  Message message{kMessageMagic,
                  kind,
                  me.pid,
                  me.start,
                  static_cast<uint32_t>(slot),
                  arena != nullptr ? arena->participant : 0,
                  {}};
  if (arena != nullptr) memcpy(message.arena, arena->name, sizeof message.arena);
  return send_message("drain", message, descriptor);
}

// It refuses the messages of a process whose number it cannot check: no answer would come.
static bool daemon_is_foreign() {
  const PulsePage* page = pulse_page();
  return page != nullptr && node::is_foreign({base::load(&page->pid), base::load(&page->start)});
}

bool ensure() {
  if (protected_now()) return true;
  if (base::sealed() || pulse_page() == nullptr) return false;
  const base::SignalsBlocked blocked;
  node::acquire(own_lock);
  bool done = protected_now();
  if (!done && now_ns() >= not_before) {
    // Twice: the daemon that was there may just have been going.
    for (int i = 0; i < 2 && !done; ++i) {
      if ((!daemon_lives() && !start_and_wait()) || daemon_is_foreign()) break;
      done = tell_everything(daemon_generation()) && protected_now();
    }
    if (!done) not_before = now_ns() + kPauseNs;
  }
  node::release(own_lock);
  return done;
}

void announce(const Arena* arena) {
  if (base::sealed() || pulse_page() == nullptr) return;
  const base::SignalsBlocked blocked;
  node::acquire(own_lock);
  if (daemon_lives()) {
    on_its_way = false;
    tell(kTellArena, arena, 0, -1);
  } else if (!on_its_way && now_ns() >= not_before) {
    on_its_way = start_daemon();
    if (!on_its_way) not_before = now_ns() + kPauseNs;
  }
  node::release(own_lock);
}

int register_file(Arena* arena, const Registration& file) {
  if (!ensure()) return -1;
  const base::SignalsBlocked blocked;
  if (node::take(arena->header->lock) == node::Taken::kNot) return -1;
  int found = -1;
  const uint64_t bit = uint64_t{1} << (arena->participant % 64);
  for (uint32_t i = 0; i < files_used(arena->header); ++i) {
    FileSlot& slot = arena->slots[i];
    if (slot.state == kSlotFree && found < 0) found = static_cast<int>(i);
    if (arena->header->shared != 0 && slot.state != kSlotFree && slot.device == file.device &&
        slot.inode == file.inode) {
      found = static_cast<int>(i);
      break;
    }
  }
  if (found < 0 && files_used(arena->header) < arena->header->files)
    found = static_cast<int>(files_used(arena->header));
  const int place = found >= 0 ? place_of(arena, found, nullptr) : -1;
  bool ready = place >= 0;
  if (ready) {
    FileSlot& slot = arena->slots[found];
    if (slot.state == kSlotFree || slot.state == kSlotRefused) {
      ready = back(arena, arena->header->files_at + static_cast<uint64_t>(found) * kPageBytes,
                   kPageBytes);
      if (ready) {
        if (slot.state == kSlotFree) memset(slot.users, 0, sizeof slot.users);
        slot.device = file.device;
        slot.inode = file.inode;
        slot.born_ns = 0;
        slot.append = file.append;
        slot.level = file.level;
        base::Writer(slot.path, sizeof slot.path).add(file.path);
        base::store(&slot.state, uint32_t{kSlotAsked});
        if (static_cast<uint32_t>(found) >= files_used(arena->header))
          base::store(&arena->header->files_used, static_cast<uint32_t>(found) + 1);
      }
    }
    if (ready) {
      __atomic_fetch_or(&slot.users[arena->participant / 64], bit, __ATOMIC_ACQ_REL);
      base::store(&arena->descriptors[found][place], file.descriptor);
    }
  }
  node::release(arena->header->lock);
  if (!ready) return -1;
  if (base::load(&arena->slots[found].state) == kSlotAsked)
    tell(kTellFile, arena, found, *file.descriptor);
  return found;
}

bool held(Arena* arena, int slot) {
  FileSlot& s = arena->slots[slot];
  if (WEIR_LIKELY(base::load(&s.state) == kSlotHeld && protected_now())) return true;
  if (!ensure()) return false;
  if (base::load(&s.state) == kSlotAsked && !wait_for_slot(s)) return false;
  return base::load(&s.state) == kSlotHeld && protected_now();
}

void unregister_file(Arena* arena, int slot, const int* descriptor) {
  FileSlot& s = arena->slots[slot];
  const base::SignalsBlocked blocked;
  const bool locked = node::take(arena->header->lock) != node::Taken::kNot;
  const int place = descriptor != nullptr ? place_of(arena, slot, descriptor) : 0;
  if (place >= 0) base::store(&arena->descriptors[slot][place], static_cast<const int*>(nullptr));
  bool last = any_descriptor(arena, static_cast<uint32_t>(slot)) == nullptr;
  if (last)
    __atomic_fetch_and(&s.users[arena->participant / 64],
                       ~(uint64_t{1} << (arena->participant % 64)), __ATOMIC_ACQ_REL);
  if (!locked) return;  // the slot stays as it is, for whoever registers the file again
  for (const uint64_t users : s.users) last = last && users == 0;
  if (last) {
    // Sent before the slot is free: messages arrive in this order.
    base::store(&s.closing, 1u);
    if (tell(kTellWithdraw, arena, slot, -1)) wait_for(&s.closing, 0);
    base::store(&s.state, uint32_t{kSlotFree});
  }
  node::release(arena->header->lock);
}

void remove_after_last() {
  if (!node::leave_last()) return;
  const bool outlives =
      base::parent_id() == 1 || base::system_call(SYS_getsid, 0) == base::process_id();
  if (!outlives || daemon_lives()) return;
  const base::SignalsBlocked blocked;
  start_daemon("--remove");
}

void hurry() {
  if (ensure()) tell(kTellHurry, nullptr, 0, -1);
}

void forked() {
  node::forked();
  own_lock = {};
  not_before = 0;
  on_its_way = false;
  base::store(&known_generation, 0u);
  for (Arena*& place : own_arenas) place = nullptr;
}

}  // namespace weir::writeback
