// SPDX-License-Identifier: Apache-2.0
#include "layers/stage/daemon/drain.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/atomic.h"

namespace weir::stage {
namespace {

using std::chrono::milliseconds;

constexpr unsigned kThreads = 4;
constexpr int kMostFailures = 5;  // then it is left to `weir stage recover`
// At files that are being written, the second time after twice as long and so on. When the process
// that opened one last closes it, its mark is written; for the closes of others there is no event.
constexpr milliseconds kLook{50};
constexpr unsigned kMostDoublings = 4;
constexpr milliseconds kCount{5000};
constexpr int kMostRecounts = 20;  // then programs close files all the time: later
// While programs close files one after the other, what is done in their directories would keep them
// waiting: the kernel lets one at a time change a directory.
constexpr milliseconds kQuiet{100}, kPatience{5000};

void add_number(void* with, const char* name) {
  char* end = nullptr;
  const uint64_t inode = strtoull(name, &end, 10);
  if (*end == 0) static_cast<std::vector<uint64_t>*>(with)->push_back(inode);
}

bool see_mark(void* with, const char* name) {
  add_number(with, name);
  return true;
}

std::vector<uint64_t> marks_of(const Tier& tier) {
  std::vector<uint64_t> inodes;
  const std::string directory = std::string(tier.path, tier.length) + "/marks";
  for_each_name(directory.c_str(), see_mark, &inodes);
  return inodes;
}

bool has(const Tier& tier, const char* key, uint64_t inode, Found* found) {
  find(tier, key, found);
  return found->there && found->inode == inode;
}

bool is_due(const Staged& file) { return file.state != State::kCopy && file.mode == Mode::kAsync; }

void paced(void* pace, uint64_t bytes) { static_cast<Pace*>(pace)->take(bytes); }

}  // namespace

bool look_at(const Tier& tier, uint64_t inode, Staged* to) {
  const auto mark = std::make_unique<Mark>();
  const auto found = std::make_unique<Found>();
  if (read_mark(tier, inode, mark.get()) != 0) return false;
  if (!has(tier, mark->key, inode, found.get()) &&
      (mark->other[0] == 0 || !has(tier, mark->other, inode, found.get())))
    return false;
  const char* const key = found->tree + tier.length + strlen("/tree");
  struct stat about;
  if (stat_path(found->tree, &about) != 0) return false;
  const timespec used = std::max(about.st_atim, about.st_mtim, [](timespec a, timespec b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
  });
  *to = {inode, found->bytes, found->mark.state, found->mark.mode, found->mark.closed, key,
         used.tv_sec * 1'000'000'000 + used.tv_nsec, found->mark.generation,
         found->mark.run};
  return true;
}

std::vector<Staged> files_on(const Tier& tier) {
  std::vector<Staged> files;
  for (const uint64_t inode : marks_of(tier)) {
    Staged file;
    if (look_at(tier, inode, &file)) files.push_back(std::move(file));
  }
  return files;
}

Result why_newer(const Tier& tier, const Staged& file) {
  if (file.state == State::kCopy) return 0;
  if (file.mode == Mode::kNever) return -ECANCELED;
  if (!file.closed) {
    const Lock lock(tier, file.key.c_str());  // a program may be opening it
    const auto found = std::make_unique<Found>();
    if (!lock.held() || !has(tier, file.key.c_str(), file.inode, found.get())) return -EBUSY;
    const Descriptor open(base::open_at(AT_FDCWD, found->tree, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (open.error() != 0 || !is_idle(open.get())) return -EBUSY;
    if (!found->mark.closed) return -EOWNERDEAD;
  }
  const Result failure = failure_of(tier, file.inode, file.generation);
  return failure != 0 ? failure : -EINPROGRESS;
}

void settle_all(const Tier& tier, milliseconds most) {
  constexpr milliseconds kLeast{20};
  const Clock::time_point end = Clock::now() + most;
  for (bool waits = true; waits;) {
    const Clock::time_point begun = Clock::now();
    waits = false;
    for (const Staged& file : files_on(tier)) {
      waits = is_due(file) && file.closed && why_newer(tier, file) == -EINPROGRESS;
      if (waits) break;
    }
    if (!waits || Clock::now() >= end) return;
    const Clock::duration looked = Clock::now() - begun;  // half of the time at most
    std::this_thread::sleep_until(std::min(end, Clock::now() + std::max<Clock::duration>(
        kLeast, looked)));
  }
}

void Pace::take(uint64_t bytes) {
  const uint64_t rate = base::load(&tier_.control->bytes_per_s);
  if (rate == 0) return;
  Clock::time_point until;
  {
    const std::lock_guard<std::mutex> guard(lock_);
    free_at_ = std::max(free_at_, Clock::now()) +
               std::chrono::nanoseconds(static_cast<int64_t>(
                   static_cast<double>(bytes) / static_cast<double>(rate) * 1e9));
    until = free_at_;
  }
  std::this_thread::sleep_until(until);
}

Drain::Drain(const Tier& tier) : tier_(tier), pace_(tier), next_count_(Clock::now()) {
  events_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  const std::string directory = std::string(tier.path, tier.length) + "/marks";
  if (events_ >= 0 && inotify_add_watch(events_, directory.c_str(), IN_MOVED_TO) < 0) {
    close(events_);
    events_ = -1;
  }
  for (unsigned i = 0; i < kThreads; ++i) threads_.emplace_back([this] { work(); });
}

Drain::~Drain() {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    ends_ = true;
  }
  ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  if (events_ >= 0) close(events_);
}

void Drain::add(uint64_t inode) {
  Staged file;
  if (!look_at(tier_, inode, &file) || !is_due(file)) return;
  const std::lock_guard<std::mutex> guard(lock_);
  const Clock::time_point now = Clock::now();
  const auto at = waiting_.try_emplace(inode, Waiting{file.key, now, now, 0, 0, false}).first;
  at->second.key = file.key;
  at->second.looks = 0;
  if (at->second.failures == 0) at->second.next = now;
}

void Drain::look_at_all() {
  for (const uint64_t inode : marks_of(tier_)) add(inode);
}

// Marks that were written since. When too many came at once, or there are no events, all are.
void Drain::read_events() {
  if (events_ < 0) return look_at_all();
  alignas(inotify_event) char room[1 << 16];
  bool all = false;
  for (ssize_t n; (n = read(events_, room, sizeof room)) > 0;) {
    for (ssize_t at = 0; at < n;) {
      const auto* const event = reinterpret_cast<const inotify_event*>(room + at);
      at += static_cast<ssize_t>(sizeof *event + event->len);
      std::vector<uint64_t> inodes;
      if ((event->mask & IN_Q_OVERFLOW) != 0) all = true;
      else if (event->len != 0) add_number(&inodes, event->name);
      for (const uint64_t inode : inodes) add(inode);
    }
  }
  if (all) look_at_all();
}

// Whether anything is due still. now: also what was looked at a moment ago. quiet: no program is
// closing files.
bool Drain::start_due(bool now, bool quiet) {
  const std::lock_guard<std::mutex> guard(lock_);
  const Clock::time_point time = Clock::now();
  for (auto& [inode, file] : waiting_) {
    if (!quiet && time - file.since < kPatience) continue;
    if (file.running || (file.next > time && !(now && file.failures == 0 && file.looks == 0)))
      continue;
    file.running = true;
    queue_.push_back(inode);
    ready_.notify_one();
  }
  return !waiting_.empty();
}

void Drain::work() {
  for (;;) {
    uint64_t inode;
    std::string key;
    {
      std::unique_lock<std::mutex> guard(lock_);
      ready_.wait(guard, [this] { return ends_ || !queue_.empty(); });
      if (queue_.empty()) return;
      inode = queue_.front();
      queue_.pop_front();
      key = waiting_[inode].key;
    }
    const bool compares = base::load(&tier_.control->compares) != 0;
    finished(inode, publish(tier_, key.c_str(), {true, true, false, compares, paced, &pace_}));
  }
}

void Drain::finished(uint64_t inode, Result result) {
  Staged file;
  const bool due = result != 0 && look_at(tier_, inode, &file) && is_due(file);
  const std::lock_guard<std::mutex> guard(lock_);
  const auto at = waiting_.find(inode);
  if (at == waiting_.end()) return;
  at->second.running = false;
  const bool failed = result != -EBUSY && result != -EAGAIN;
  if (!due || result == -EOWNERDEAD || (failed && ++at->second.failures >= kMostFailures)) {
    waiting_.erase(at);
    return;
  }
  at->second.key = file.key;
  const unsigned doublings =
      failed ? 2 * at->second.failures : std::min(at->second.looks++, kMostDoublings);
  at->second.next = Clock::now() + kLook * (1 << doublings);
}

// What counts of a file: one that is open to be written does when it is closed. One whose writer
// was killed counts, too.
uint64_t Drain::counted_bytes(const Staged& file) const {
  if (file.closed || file.state == State::kCopy) return file.bytes;
  const auto found = std::make_unique<Found>();
  if (!has(tier_, file.key.c_str(), file.inode, found.get())) return 0;
  const Descriptor open(base::open_at(AT_FDCWD, found->tree, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  return open.error() == 0 && is_idle(open.get()) ? found->bytes : 0;
}

// False: a file was opened or closed meanwhile, and they have to be counted once more. A program
// that was killed in it never ends: then the count is taken as it is.
bool Drain::count(std::vector<Staged>* files) {
  Control& control = *tier_.control;
  const uint64_t begun = base::load(&control.changes_begun);
  const bool rested = base::load(&control.changes_ended) == begun;
  uint64_t before = base::load(&control.used_bytes), used = 0;
  *files = files_on(tier_);
  for (const Staged& file : *files) used += counted_bytes(file);
  const bool is_sure = rested && base::load(&control.changes_begun) == begun &&
                       base::compare_exchange(&control.used_bytes, &before, used);
  if (!is_sure && ++recounts_ < kMostRecounts) return false;
  // Programs close files all the time, or one was killed in it: it does not hold up the next count.
  if (!is_sure) base::store(&control.changes_ended, base::load(&control.changes_begun));
  recounts_ = 0;
  return true;
}

// Those that were not used for longest go first, until a fifth is free. When it is due again.
Clock::time_point Drain::make_room() {
  std::vector<Staged> files;
  const Clock::time_point due = Clock::now() + (count(&files) ? kCount : kLook);
  const uint64_t used = base::load(&tier_.control->used_bytes);
  const uint64_t capacity = base::load(&tier_.control->capacity_bytes);
  if (used < capacity / 10 * 9) return due;
  std::sort(files.begin(), files.end(),
            [](const Staged& a, const Staged& b) { return a.used_ns < b.used_ns; });
  const auto found = std::make_unique<Found>();
  for (const Staged& file : files) {
    if (base::load(&tier_.control->used_bytes) <= capacity / 10 * 8) break;
    if (file.state != State::kCopy) continue;
    const Lock lock(tier_, file.key.c_str());
    if (lock.held() && has(tier_, file.key.c_str(), file.inode, found.get()) && !is_newer(*found))
      drop(tier_, *found);
  }
  return due;
}

void Drain::serve(milliseconds idle) {
  Clock::time_point last_due = Clock::now();
  look_at_all();
  while (Clock::now() - last_due < idle) {
    pollfd polled{events_, POLLIN, 0};
    poll(&polled, 1, static_cast<int>(kLook.count()));
    read_events();
    const uint32_t changes = base::load(&tier_.control->changes);
    const bool now = changes != changes_;
    if (now) changed_ = Clock::now();
    changes_ = changes;
    const uint64_t used = base::load(&tier_.control->used_bytes);
    const uint64_t capacity = base::load(&tier_.control->capacity_bytes);
    const bool quiet = Clock::now() - changed_ >= kQuiet || used >= capacity / 2;
    if (start_due(now || (quiet && !quiet_), quiet)) last_due = Clock::now();
    quiet_ = quiet;
    const bool full = used >= capacity / 10 * 9;
    if (Clock::now() < next_count_ && !full) continue;
    next_count_ = make_room();
  }
}

int publish_all(const Tier& tier, bool unfinished, const Report& report) {
  int left = 0;
  for (const Staged& file : files_on(tier)) {
    if (file.state == State::kCopy) continue;
    Result result = -ECANCELED;  // stays, by its rule
    for (int tries = 0; file.mode != Mode::kNever && tries < 3; ++tries) {
      result = publish(tier, file.key.c_str(), {true, true, unfinished, true, nullptr, nullptr});
      if (result != -EAGAIN) break;
    }
    if (result == -ENOENT) {
      Staged now;
      if (!look_at(tier, file.inode, &now) || now.state == State::kCopy) result = 0;
    }
    left += result != 0 && result != -ECANCELED;
    report(file, result);
  }
  return left;
}

}  // namespace weir::stage
