// SPDX-License-Identifier: Apache-2.0
#include "layers/forward/daemon/forwarder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "layers/cache/slots.h"
#include "layers/machinery/node/private.h"
#include "layers/writeback/watch/messages.h"

namespace weir::forward {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLook = std::chrono::milliseconds(250);  // whether anybody is there
constexpr auto kLookForDead = std::chrono::seconds(1);

// How the cache's functions reach one file from here. Lives as long as what is done to it.
class Reach {
 public:
  Reach(cache::Cache& cache, uint32_t file, Pair pair)
      : pair_(std::move(pair)), service_(cache.forwarding->files[file]) {
    opening_.cache = &cache;
    opening_.file = file;
    opening_.registered = -1;
    opening_.counts = service_.counts;
    opening_.policy = {service_.keeps_reads != 0, service_.several_nodes != 0, 0,
                       service_.wasted_blocks};
    opening_.below = {this, read, write, about, lost, nullptr, nullptr, pair_.reading != nullptr,
                      pair_.writing != nullptr};
  }
  Reach(const Reach&) = delete;
  Reach& operator=(const Reach&) = delete;
  cache::Opening& opening() { return opening_; }

 private:
  static int64_t result(ssize_t n) { return n >= 0 ? n : -errno; }
  static int64_t read(void* context, const iovec* pieces, int count, uint64_t, uint64_t offset) {
    const Pair& pair = static_cast<Reach*>(context)->pair_;
    return result(
        preadv(pair.reading->descriptor(), pieces, count, static_cast<off_t>(offset)));
  }
  static int64_t write(void* context, const iovec* pieces, int count, uint64_t, uint64_t offset) {
    const Pair& pair = static_cast<Reach*>(context)->pair_;
    const int descriptor = pair.writing->for_writing();
    return descriptor < 0 ? -EBADF
                          : result(pwritev(descriptor, pieces, count, static_cast<off_t>(offset)));
  }
  static bool about(void* context, cache::Stamp* to) {
    const Pair& pair = static_cast<Reach*>(context)->pair_;
    struct stat s;
    if (fstat((pair.reading ? pair.reading : pair.writing)->descriptor(), &s) != 0) return false;
    *to = {static_cast<uint64_t>(s.st_size), s.st_mtim.tv_sec, s.st_ctim.tv_sec,
           static_cast<uint32_t>(s.st_mtim.tv_nsec), static_cast<uint32_t>(s.st_ctim.tv_nsec)};
    return true;
  }
  // Some rank reports them (cache::take_lost()).
  static void lost(void* context, int error, uint64_t bytes) {
    cache::FileService& service = static_cast<Reach*>(context)->service_;
    base::store(&service.error, static_cast<uint32_t>(error));
    base::fetch_add(&service.lost, bytes);
  }

  const Pair pair_;
  cache::FileService& service_;
  cache::Opening opening_{};
};

void sort_by_place(std::vector<cache::Request*>& requests) {
  std::sort(requests.begin(), requests.end(), [](const auto* a, const auto* b) {
    return a->file != b->file ? a->file < b->file : a->block < b->block;
  });
}

// The next to be taken, where the rank has not gone away from it.
void finish(cache::Request& request) {
  uint32_t state = cache::kRequestTaken;
  if (!base::compare_exchange(&request.state, &state, uint32_t{cache::kRequestDone}))
    base::store(&request.state, uint32_t{cache::kRequestFree});
  node::wake(&request.state);
}

}  // namespace

Forwarder::Forwarder(cache::Cache& cache, const Name& name)
    : cache_(cache),
      service_(cache.forwarding->services[name.number]),
      name_("forward-" + name.text),
      copies_(cache, name.number) {}

Forwarder::~Forwarder() {
  ending_ = true;
  if (receiver_.joinable()) receiver_.join();
  if (socket_ >= 0) close(socket_);
}

bool Forwarder::open_socket() {
  const int directory = static_cast<int>(node::open_own_directory());
  if (directory < 0) return false;
  sockaddr_un here{};
  here.sun_family = AF_UNIX;
  snprintf(here.sun_path, sizeof here.sun_path, "/proc/self/fd/%d/%s", directory, name_.c_str());
  unlinkat(directory, name_.c_str(), 0);
  socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int on = 1, room = 4 << 20;
  setsockopt(socket_, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  const bool bound =
      socket_ >= 0 && bind(socket_, reinterpret_cast<sockaddr*>(&here), sizeof here) == 0;
  close(directory);
  return bound;
}

// Whoever changes the pulse from that of no living one is the forwarder.
bool Forwarder::begin() {
  const auto self = static_cast<uint32_t>(gettid());
  node::announce_pulse(&robust_, &service_.pulse, &service_.robust_next);
  uint32_t seen = base::load(&service_.pulse);
  if (node::beats(seen) || !base::compare_exchange(&service_.pulse, &seen, self)) return false;
  if (!open_socket()) return false;
  service_.who = node::self();
  copies_.begin();
  for (cache::Request& request : service_.requests) {  // of one that died
    uint32_t state = cache::kRequestTaken;
    base::compare_exchange(&request.state, &state, uint32_t{cache::kRequestPosted});
    state = cache::kRequestDropped;
    base::compare_exchange(&request.state, &state, uint32_t{cache::kRequestFree});
  }
  base::store(&service_.stuck, 0u);
  receiver_ = std::thread([this] { receive(); });
  base::store(&service_.begun, base::load(&service_.starts));
  base::store(&service_.ready, self);
  node::wake(&service_.ready);
  return true;
}

void Forwarder::receive() {
  daemon::Watch watch;
  auto last = Clock::now();
  while (!ending_) {
    bool readable = false;
    for (const node::Identity who : watch.wait(socket_, 100, &readable)) copies_.end_of(who);
    if (Clock::now() - last >= kLookForDead) {
      last = Clock::now();
      copies_.end_of_dead();
    }
    if (!readable) continue;
    writeback::Message message{};
    int descriptor = -1;
    while (daemon::receive_message(socket_, &message, &descriptor)) {
      if (message.magic != 0 && descriptor >= 0) {
        handle(message, descriptor, watch);
      } else if (descriptor >= 0) {
        close(descriptor);
      }
    }
  }
}

void Forwarder::handle(const writeback::Message& message, int descriptor, daemon::Watch& watch) {
  const node::Identity who{message.pid, message.start};
  if (message.kind == cache::kTellBorrow && message.slot < cache::kOpens)
    return copies_.lend(message.slot, descriptor);
  if (message.kind == cache::kTellOpened && message.slot < cache::kOpens) {
    copies_.take_open(message.slot, descriptor, who);
  } else if (message.kind == writeback::kTellFile && message.slot < cache::kFiles) {
    copies_.take(message.slot, descriptor, who);
  } else {
    close(descriptor);
    return;
  }
  if (!watch.add(who)) copies_.end_of(who);
}

void Forwarder::count_served() {
  base::fetch_add(&service_.served, 1u);
  node::wake(&service_.served);
}

std::vector<cache::Request*> Forwarder::take_posted() {
  std::vector<cache::Request*> loads;
  for (cache::Request& request : service_.requests) {
    uint32_t state = cache::kRequestPosted;
    if (base::load_relaxed(&request.state) != cache::kRequestPosted ||
        !base::compare_exchange(&request.state, &state, uint32_t{cache::kRequestTaken}))
      continue;
    (request.kind == cache::kLoadBlock ? loads : others_).push_back(&request);
  }
  return loads;
}

// Ranks wait for these: before every other request.
void Forwarder::answer_loads() {
  std::vector<cache::Request*> loads = take_posted();
  sort_by_place(loads);
  for (cache::Request* load : loads) answer(*load);
}

void Forwarder::answer(cache::Request& request) {
  Pair pair = copies_.of(request.file);
  request.failed = 1;
  if (request.kind == cache::kLoadBlock && pair.reading) {
    Reach reach(cache_, request.file, std::move(pair));
    cache::prepare(reach.opening(), request.block, request.wanted);
    request.failed = cache::find(cache_, cache::tag_of(request.file, request.block)) == nullptr;
  } else if (request.kind == cache::kFlushFile && pair.writing) {
    for (const Job& job : dirty_of(request.file)) {
      write(job, true);
      answer_loads();
    }
    request.failed = !dirty_of(request.file).empty();
  } else if (request.kind == cache::kReleaseFile) {
    pair = {};
    copies_.close_unused(request.file);
    request.failed = 0;
  }
  count_served();
  finish(request);
}

// By file and offset.
std::vector<Forwarder::Job> Forwarder::handed_over() {
  std::vector<Job> jobs;
  for (uint32_t word = 0; word < cache::kMostSlots / 64; ++word) {
    uint64_t bits = base::load(&service_.slots[word]);
    if (bits == 0) continue;
    for (bits = base::exchange(&service_.slots[word], uint64_t{0}); bits != 0; bits &= bits - 1) {
      cache::Slot& slot = cache_.slot(word * 64 + static_cast<uint32_t>(__builtin_ctzll(bits)));
      const uint64_t tag = base::load(&slot.tag);
      if (tag != 0) jobs.push_back({tag, &slot});
    }
  }
  std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.tag < b.tag; });
  return jobs;
}

std::vector<Forwarder::Job> Forwarder::dirty_of(uint32_t file) {
  std::vector<Job> jobs;
  for (uint32_t i = 0; i < cache_.slots; ++i) {
    cache::Slot& slot = cache_.slot(i);
    const uint64_t tag = base::load(&slot.tag);
    if (tag == 0 || cache::file_of(tag) != file) continue;
    const bool is_dirty = base::load(&slot.touched) != 0 || base::load(&slot.writing) != 0;
    if (is_dirty) jobs.push_back({tag, &slot});
  }
  std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.tag < b.tag; });
  return jobs;
}

void Forwarder::write(const Job& job, bool last) {
  const uint32_t file = cache::file_of(job.tag);
  Pair pair = copies_.of(file);
  if (pair.writing) {
    Reach reach(cache_, file, std::move(pair));
    cache::write_out(reach.opening(), *job.slot, job.tag,
                     last || base::load(&job.slot->failures) > 0);
  }
  count_served();
}

bool Forwarder::read_ahead() {
  for (uint32_t word = 0; word < cache::kFiles / 64; ++word) {
    uint64_t bits = base::load(&service_.ahead[word]);
    if (bits == 0) continue;
    for (bits = base::exchange(&service_.ahead[word], uint64_t{0}); bits != 0; bits &= bits - 1) {
      const uint32_t file = word * 64 + static_cast<uint32_t>(__builtin_ctzll(bits));
      const uint64_t first = base::exchange(&cache_.forwarding->files[file].ahead, uint64_t{0});
      Pair pair = copies_.of(file);
      if (first == 0 || !pair.reading) continue;
      Reach reach(cache_, file, std::move(pair));
      for (uint64_t block = first; block < first + cache::most_ahead(cache_); ++block) {
        answer_loads();
        cache::prepare(reach.opening(), block);
        count_served();
      }
    }
    return true;
  }
  return false;
}

bool Forwarder::work() {
  answer_loads();
  std::vector<cache::Request*> requests;
  requests.swap(others_);
  sort_by_place(requests);
  for (cache::Request* request : requests) answer(*request);
  const std::vector<Job> jobs = handed_over();
  for (const Job& job : jobs) {
    write(job, false);
    answer_loads();
  }
  return !requests.empty() || !jobs.empty() || !others_.empty() || read_ahead();
}

bool Forwarder::is_needed() const {
  for (uint32_t place = 0; place < writeback::kParticipants; ++place) {
    const node::Identity who = writeback::participant_at(cache_.arena, place);
    if (who.pid != 0 && node::alive(who)) return true;
  }
  return false;
}

void Forwarder::serve() {
  auto last_look = Clock::now();
  for (;;) {
    const uint32_t seen = base::load(&service_.bell);
    if (base::load_relaxed(&service_.stuck) != 0) base::store(&service_.stuck, 0u);
    if (work()) continue;
    __atomic_store_n(&service_.asleep, 1u, __ATOMIC_SEQ_CST);
    node::sleep_on(&service_.bell, seen, 100'000'000);
    base::store(&service_.asleep, 0u);
    if (Clock::now() - last_look < kLook) continue;
    last_look = Clock::now();
    for (cache::Request& request : service_.requests) {
      uint32_t state = base::load(&request.state);
      const bool abandoned = (state == cache::kRequestDone || state == cache::kRequestFilled) &&
                             !node::alive(request.by);
      if (abandoned) base::compare_exchange(&request.state, &state, uint32_t{cache::kRequestFree});
    }
    if (is_needed()) continue;
    base::store(&service_.started_ns, uint64_t{0});  // who comes now starts another at once
    base::store(&service_.pulse, 0u);
    return;
  }
}

}  // namespace weir::forward
