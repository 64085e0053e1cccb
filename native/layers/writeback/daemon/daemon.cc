// SPDX-License-Identifier: Apache-2.0
#include "layers/writeback/daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <utility>

#include "base/atomic.h"
#include "layers/writeback/daemon/output.h"
#include "layers/writeback/watch/messages.h"
#include "layers/machinery/node/private.h"
#include "layers/machinery/node/pulse.h"
#include "layers/machinery/node/registry.h"
#include "base/syscall.h"

namespace weir::daemon {

volatile int end_requested = 0;

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kGrace = std::chrono::seconds(1);  // after SIGTERM, for those who got it too
// Between two searches for dead that nobody reported.
constexpr auto kLook = std::chrono::seconds(1);
constexpr unsigned kThreads = 8;

uint64_t key(node::Identity who) { return uint64_t{who.start} << 32 | who.pid; }

node::RobustList robust_head;

}  // namespace

Daemon::Daemon(const std::string& directory, const std::string& run)
    : arenas_(directory), errors_(directory, run), recovery_(errors_, kThreads) {}

Daemon::~Daemon() {
  if (socket_ >= 0) close(socket_);
  if (lock_file_ >= 0) close(lock_file_);
  if (page_ != nullptr) munmap(page_, writeback::kPageBytes);
}

// The kernel says that the last one is dead before it frees what that one had locked.
bool Daemon::take_lock() {
  for (int i = 0; i < 1000; ++i) {
    if (flock(lock_file_, LOCK_EX | LOCK_NB) == 0) return true;
    if (node::beats(base::load(&page_->word))) return false;
    usleep(2000);
  }
  return false;
}

bool Daemon::begin() {
  if (arenas_.directory_descriptor() < 0) return false;
  lock_file_ = static_cast<int>(node::open_inside("lock", O_RDWR | O_CREAT));
  const int fd = static_cast<int>(node::open_inside("pulse", O_RDWR | O_CREAT));
  if (lock_file_ < 0 || fd < 0 || posix_fallocate(fd, 0, writeback::kPageBytes) != 0) return false;
  void* at = mmap(nullptr, writeback::kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at == MAP_FAILED) return false;
  page_ = static_cast<writeback::PulsePage*>(at);
  if (!take_lock()) return false;

  sockaddr_un here{};
  here.sun_family = AF_UNIX;
  snprintf(here.sun_path, sizeof here.sun_path, "/proc/self/fd/%d/drain",
           arenas_.directory_descriptor());
  unlinkat(arenas_.directory_descriptor(), "drain", 0);
  socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int on = 1, room = 4 << 20;
  setsockopt(socket_, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  if (socket_ < 0 || bind(socket_, reinterpret_cast<sockaddr*>(&here), sizeof here) != 0)
    return false;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  live(true);  // whoever started it waits for that alone
  look_for_dead(true);
  return true;
}

// The kernel marks the word when this thread ends in any other way.
void Daemon::live(bool on) {
  const auto self = static_cast<uint32_t>(syscall(SYS_gettid));
  if (on) {
    page_->pid = static_cast<uint32_t>(getpid());
    page_->start = node::self().start;
    base::fetch_add(&page_->generation, 1u);
    base::store(&page_->word, self);
    node::announce_pulse(&robust_head, &page_->word, &page_->robust_next);
    node::wake(&page_->generation);
  } else {
    base::store(&page_->word, 0u);
    robust_head.next = &robust_head;
  }
}

void Daemon::take_file(const std::shared_ptr<Held>& held, const writeback::Message& message,
                       int descriptor) {
  writeback::FileSlot& slot = held->arena.slots[message.slot];
  struct stat about;
  bool good = descriptor >= 0 && fstat(descriptor, &about) == 0 && about.st_dev == slot.device &&
              about.st_ino == slot.inode;
  int old = descriptor;
  if (good) {
    const std::lock_guard<std::mutex> guard(held->lock);
    old = std::exchange(held->files[message.slot], descriptor);
    held->givers[message.slot] = {message.pid, message.start};
    slot.born_ns = born_ns(descriptor);
  }
  if (old >= 0) {
    ++held->ending;
    recovery_.run([held, old] {
      close(old);
      --held->ending;
    });
  }
  base::store(&slot.generation, page_->generation);
  base::store(&slot.state, uint32_t{good ? writeback::kSlotHeld : writeback::kSlotRefused});
  node::wake(&slot.state);
}

void Daemon::let_go(const std::shared_ptr<Held>& held, uint32_t slot) {
  int descriptor;
  {
    const std::lock_guard<std::mutex> guard(held->lock);
    descriptor = std::exchange(held->files[slot], -1);
  }
  recovery_.run([held, descriptor, slot] {
    if (descriptor >= 0) close(descriptor);
    while (held->ending != 0)
      usleep(50);  // a file may have been reported twice, when the daemon had just begun
    base::store(&held->arena.slots[slot].closing, 0u);
    node::wake(&held->arena.slots[slot].closing);
  });
}

void Daemon::handle(const writeback::Message& message, int descriptor) {
  const node::Identity sender{message.pid, message.start};
  if (message.kind == writeback::kTellHurry) return look_for_dead(false);
  if (message.kind == writeback::kTellGone) return arenas_.forget(message.arena);
  const std::shared_ptr<Held> held = arenas_.get(message.arena);
  const bool sound =
      held != nullptr && message.slot < held->arena.header->files && held->find(sender) >= 0;
  if (!sound || message.kind != writeback::kTellFile) {
    if (descriptor >= 0) recovery_.run([descriptor] { close(descriptor); });
    if (!sound) return;
  }
  if (message.kind == writeback::kTellWithdraw) return let_go(held, message.slot);
  if (message.kind == writeback::kTellFile) take_file(held, message, descriptor);
  base::store(&held->arena.header->generation, page_->generation);
  node::wake(&held->arena.header->generation);
  if (!watch_.add(sender)) ended(sender);
}

void Daemon::receive() {
  writeback::Message message{};
  int descriptor = -1;
  while (receive_message(socket_, &message, &descriptor)) {
    if (message.magic != 0) {
      handle(message, descriptor);
    } else if (descriptor >= 0) {
      close(descriptor);
    }
  }
}

// What a dead process held is free when its bytes are on disk, and not before.
bool Daemon::may_release(node::Identity who) {
  const std::lock_guard<std::mutex> guard(lock_);
  return !watch_.knows(who) && work_left_.count(key(who)) == 0;
}

void Daemon::one_less(node::Identity who) {
  const std::lock_guard<std::mutex> guard(lock_);
  const auto found = work_left_.find(key(who));
  if (found == work_left_.end() || --found->second > 0) return;
  work_left_.erase(found);
  node::release_dead(who.pid, who.start);
}

Work Daemon::all_of(const std::shared_ptr<Held>& held, node::Identity who) {
  Work work{held, who, {}};
  for (uint32_t slot = 0; slot < writeback::files_used(held->arena.header); ++slot)
    work.slots.push_back(static_cast<int>(slot));
  return work;
}

void Daemon::drained_private(const Work& work, uint64_t lost) {
  Held& held = *work.held;
  if (lost == 0) {
    // Before: who waits for the arena to go takes a file that is still locked for another node's.
    held.close_files();
    arenas_.remove_file(held);
  } else {
    base::store(&held.arena.header->failed, 1u);
  }
  arenas_.forget(held.name);
  const std::lock_guard<std::mutex> guard(lock_);
  draining_.erase(held.name);
}

// The file stays for others: locks of a dead process must not stay with it.
void Daemon::end_locks(Held& held, uint32_t slot, node::Identity dead) {
  const std::lock_guard<std::mutex> guard(held.lock);
  if (held.files[slot] < 0 || !(held.givers[slot] == dead)) return;
  base::end_locks(held.files[slot]);
}

// Bytes of the others in the same files are written as well: no harm.
Work Daemon::used_by(const std::shared_ptr<Held>& held, node::Identity who) {
  const int participant = held->find(who);
  Work work{held, who, {}};
  for (uint32_t slot = 0; slot < writeback::files_used(held->arena.header); ++slot) {
    if ((base::load(&held->arena.slots[slot].users[participant / 64]) >> (participant % 64) & 1) !=
        0)
      work.slots.push_back(static_cast<int>(slot));
  }
  for (uint32_t i = 0; i < writeback::blocks_used(held->arena.header); ++i)
    node::release_if_dead(held->arena.blocks[i].lock);
  node::release_if_dead(held->arena.header->lock);
  return work;
}

// The last one removes the arena.
void Daemon::leave_shared(const Work& work, uint64_t lost) {
  const std::shared_ptr<Held>& held = work.held;
  const int participant = held->find(work.dead);
  if (lost != 0) base::store(&held->arena.header->failed, 1u);
  const bool locked = node::take(held->arena.header->lock) != node::Taken::kNot;
  for (const int slot : work.slots) {
    writeback::FileSlot& file = held->arena.slots[slot];
    __atomic_fetch_and(&file.users[participant / 64], ~(uint64_t{1} << (participant % 64)),
                       __ATOMIC_ACQ_REL);
    bool last = locked;
    for (const uint64_t users : file.users) last = last && users == 0;
    if (!last) {
      end_locks(*held, static_cast<uint32_t>(slot), work.dead);
      continue;
    }
    let_go(held, static_cast<uint32_t>(slot));
    base::store(&file.state, uint32_t{writeback::kSlotFree});
  }
  if (locked) node::release(held->arena.header->lock);
  const bool may_remove = node::take(page_->making) != node::Taken::kNot;
  base::store(reinterpret_cast<uint64_t*>(&held->participants()[participant]), uint64_t{0});
  bool anybody = false;
  for (uint32_t i = 0; i < writeback::kParticipants; ++i)
    anybody = anybody || held->participants()[i].pid != 0;
  if (may_remove && !anybody && !held->any_dirty()) {
    arenas_.remove_file(*held);
    arenas_.forget(held->name);
  }
  if (may_remove) node::release(page_->making);
  note_orphaned(*held, errors_);
}

void Daemon::ended(node::Identity who) {
  std::vector<std::shared_ptr<Held>> its;
  for (const std::string& name : arenas_.list()) {
    const std::shared_ptr<Held> held = arenas_.get(name);
    if (held != nullptr && held->find(who) >= 0 && held->arena.header->failed == 0)
      its.push_back(held);
  }
  {
    const std::lock_guard<std::mutex> guard(lock_);
    if (work_left_.count(key(who)) != 0) return;
    for (size_t i = its.size(); i-- > 0;) {
      if (!its[i]->shared() && !draining_.insert(its[i]->name).second)
        its.erase(its.begin() + static_cast<long>(i));
    }
    if (!its.empty()) work_left_[key(who)] = static_cast<int>(its.size());
  }
  if (its.empty()) {
    node::release_dead(who.pid, who.start);
    return;
  }
  std::vector<Work> works;
  for (const auto& held : its)
    works.push_back(held->shared() ? used_by(held, who) : all_of(held, who));
  recovery_.write_out(std::move(works), [this](const Work& work, uint64_t lost) {
    lost_ += lost;
    if (work.held->shared()) leave_shared(work, lost);
    else drained_private(work, lost);
    one_less(work.dead);
  });
}

// Arenas without a living owner, and those whose living owners this daemon does not know yet.
// `again`: failed ones as well.
void Daemon::look_for_dead(bool again) {
  for (const std::string& name : arenas_.list()) {
    const std::shared_ptr<Held> held = arenas_.get(name);
    if (held == nullptr) continue;
    if (again) base::store(&held->arena.header->failed, 0u);
    note_orphaned(*held, errors_);
    for (uint32_t i = 0; i < held->most_participants(); ++i) {
      const node::Identity who = held->participants()[i];
      if (who.pid != 0 && !watch_.knows(who) && !watch_.add(who)) ended(who);
    }
  }
  node::release_dead_if([](node::Identity who,
                           void* server) { return static_cast<Daemon*>(server)->may_release(who); },
                        this);
}

uint64_t Daemon::recover() {
  while (!recovery_.idle()) usleep(2000);
  return lost_;
}

void Daemon::serve(std::chrono::milliseconds idle) {
  auto last_needed = Clock::now(), last_look = last_needed;
  Clock::time_point end{};
  for (;;) {
    bool readable = false;
    for (const node::Identity who : watch_.wait(socket_, 200, &readable)) ended(who);
    if (readable) receive();
    const auto now = Clock::now();
    if (now - last_look >= kLook) {
      last_look = now;
      look_for_dead(false);
    }
    const bool busy = !recovery_.idle();
    if (end_requested != 0 && end == Clock::time_point{}) end = now + kGrace;
    if (readable || busy || !watch_.empty()) last_needed = now;
    if (busy || (now - last_needed < idle && (end == Clock::time_point{} || now < end))) continue;
    live(false);
    // A message that came before the word changed counts still.
    char byte;
    if (end_requested == 0 && recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
      live(true);
      continue;
    }
    unlinkat(arenas_.directory_descriptor(), "drain", 0);
    return;
  }
}

}  // namespace weir::daemon
