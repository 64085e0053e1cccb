// SPDX-License-Identifier: Apache-2.0
#include "layers/forward/daemon/copies.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/syscall.h"

namespace weir::forward {
namespace {

// -1: there is none.
void send_descriptor(int socket, int descriptor) {
  char byte = 0;
  iovec piece{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
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
  sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

Copy::~Copy() {
  close(descriptor_);
  if (own_ >= 0) close(own_);
}

int Copy::for_writing() {
  if (own_ >= 0) return own_;
  if ((fcntl(descriptor_, F_GETFL) & (O_APPEND | O_DIRECT)) == 0) return descriptor_;
  const std::string name = "/proc/self/fd/" + std::to_string(descriptor_);
  own_ = open(name.c_str(), O_WRONLY | O_CLOEXEC);
  return own_;
}

Copies::Copies(cache::Cache& cache, uint32_t number)
    : cache_(cache), number_(number), pairs_(cache::kFiles), opens_(cache::kOpens) {}

void Copies::begin() {
  for (uint32_t file = 0; file < cache::kFiles; ++file) {
    if (is_mine(file)) drop(file);
  }
}

bool Copies::is_mine(uint32_t file) const {
  return cache::forwarder_of(cache_, file) == number_;
}

bool Copies::fits(uint32_t file, int descriptor, uint32_t* modes) const {
  const cache::FileEntry& e = cache_.directory->files[file];
  struct stat about;
  const int flags = descriptor >= 0 ? fcntl(descriptor, F_GETFL) : -1;
  if (flags < 0 || !is_mine(file) || fstat(descriptor, &about) != 0) return false;
  if (!S_ISREG(about.st_mode) || about.st_dev != e.device || about.st_ino != e.inode) return false;
  const int mode = flags & O_ACCMODE;
  *modes = (mode != O_WRONLY ? cache::kForReading : 0u) |
           (mode != O_RDONLY ? cache::kForWriting : 0u);
  return true;
}

void Copies::take(uint32_t file, int descriptor, node::Identity giver) {
  cache::FileService& f = cache_.forwarding->files[file];
  const auto copy = std::make_shared<Copy>(descriptor, giver);
  uint32_t modes = 0;
  {
    const std::lock_guard<std::mutex> guard(lock_);
    if (fits(file, descriptor, &modes)) {
      const uint32_t generation = base::load(&cache_.directory->files[file].generation);
      if (base::load(&f.generation) != generation) drop(file);
      Pair& pair = pairs_[file];
      if ((modes & cache::kForReading) != 0 && !pair.reading) pair.reading = copy;
      if ((modes & cache::kForWriting) != 0 && !pair.writing) pair.writing = copy;
      base::store(&f.generation, generation);
      base::store(&f.held, (pair.reading ? cache::kForReading : 0u) |
                               (pair.writing ? cache::kForWriting : 0u));
    }
  }
  base::fetch_add(&f.answers, 1u);
  node::wake(&f.answers);
}

Pair Copies::of(uint32_t file) {
  const std::lock_guard<std::mutex> guard(lock_);
  const cache::FileService& f = cache_.forwarding->files[file];
  if (base::load(&f.generation) != base::load(&cache_.directory->files[file].generation)) return {};
  return pairs_[file];
}

bool Copies::is_used(uint32_t file) const {
  for (const uint64_t& word : cache_.forwarding->files[file].users) {
    if (__atomic_load_n(&word, __ATOMIC_SEQ_CST) != 0) return true;
  }
  return false;
}

void Copies::drop(uint32_t file) {
  base::store(&cache_.forwarding->files[file].held, 0u);
  pairs_[file] = {};
  drop_opens(file);
}

// But those of which ranks wait for a copy: these have the file open, or will in a moment.
void Copies::drop_opens(uint32_t file) {
  for (uint32_t row = 0; row < cache::kOpens; ++row) {
    cache::OpenRow& r = cache_.forwarding->opens[row];
    const uint32_t state = base::load(&r.state);
    if (r.file != file || (state != cache::kOpenGiven && state != cache::kOpenGiving)) continue;
    if (base::load(&r.waiting) != 0 && cache::is_recent(r)) continue;
    opens_[row] = nullptr;
    base::store(&r.state, uint32_t{cache::kOpenFree});
    node::wake(&r.state);
  }
}

void Copies::take_open(uint32_t row, int descriptor, node::Identity giver) {
  const auto copy = std::make_shared<Copy>(descriptor, giver);
  const std::lock_guard<std::mutex> guard(lock_);
  cache::OpenRow& r = cache_.forwarding->opens[row];
  uint32_t modes = 0;
  const bool good = base::load(&r.state) == cache::kOpenGiving && r.opener == giver &&
                    r.file < cache::kFiles && fits(r.file, descriptor, &modes) && is_used(r.file);
  if (good) opens_[row] = copy;
  base::store(&r.state, uint32_t{good ? cache::kOpenGiven : cache::kOpenUseless});
  node::wake(&r.state);
}

void Copies::lend(uint32_t row, int socket) {
  std::shared_ptr<Copy> copy;
  {
    const std::lock_guard<std::mutex> guard(lock_);
    if (base::load(&cache_.forwarding->opens[row].state) == cache::kOpenGiven) copy = opens_[row];
  }
  send_descriptor(socket, copy ? copy->descriptor() : -1);
  close(socket);
}

// A rank enters itself among the users, and then looks what is held; here it is the other way
// round.
void Copies::close_unused(uint32_t file) {
  if (is_used(file)) return;
  const std::lock_guard<std::mutex> guard(lock_);
  cache::FileService& f = cache_.forwarding->files[file];
  const uint32_t held = base::load(&f.held);
  __atomic_store_n(&f.held, 0u, __ATOMIC_SEQ_CST);
  if (is_used(file)) base::store(&f.held, held);
  else drop(file);
}

void Copies::end_of(node::Identity dead) {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    for (const Pair& pair : pairs_) {
      for (const auto& copy : {pair.reading, pair.writing}) {
        if (copy && copy->giver() == dead) base::end_locks(copy->descriptor());
      }
    }
  }
  end_of_dead();
}

// Looked at after the bit: who sets it has its place among the participants.
void Copies::forget_dead_users(cache::FileService& f) {
  for (uint32_t word = 0; word < std::size(f.users); ++word) {
    for (uint64_t bits = base::load(&f.users[word]); bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<uint32_t>(__builtin_ctzll(bits));
      const node::Identity who = writeback::participant_at(cache_.arena, word * 64 + bit);
      if (who.pid != 0 && node::alive(who)) continue;
      __atomic_fetch_and(&f.users[word], ~(uint64_t{1} << bit), __ATOMIC_SEQ_CST);
    }
  }
}

void Copies::end_of_dead() {
  for (uint32_t file = 0; file < cache::kFiles; ++file) {
    cache::FileService& f = cache_.forwarding->files[file];
    if (!is_mine(file)) {  // the entry is another file's by now
      const std::lock_guard<std::mutex> guard(lock_);
      pairs_[file] = {};
      continue;
    }
    forget_dead_users(f);
    if (!is_used(file)) close_unused(file);
  }
}

}  // namespace weir::forward
