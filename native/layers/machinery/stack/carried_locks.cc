// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/carried_locks.h"

#include <string.h>
#include <sys/file.h>

#include "base/apart.h"
#include "base/atomic.h"
#include "base/syscall.h"
#include "base/text.h"
#include "layers/machinery/stack/inside.h"
#include "layers/machinery/stack/table.h"

namespace weir::stack {
namespace {

// Takes the next word of a line; empty: there is none.
base::Text take_word(const char** at) {
  const char* begin = *at;
  while (*begin == ' ' || *begin == '\t') ++begin;
  const char* end = begin;
  while (*end != 0 && *end != ' ' && *end != '\t' && *end != '\n') ++end;
  *at = end;
  return {begin, static_cast<size_t>(end - begin)};
}

bool is(base::Text word, const char* what) {
  return word.size == strlen(what) && memcmp(word.data, what, word.size) == 0;
}

// "lock:\t1: POSIX  ADVISORY  WRITE 4711 fe:01:1310 0 EOF" behind the colon: number, kind, rule,
// access, process, file, first and last byte. False: another kind (LEASE).
bool parse_lock(const char* line, int* command, struct flock* range) {
  take_word(&line);
  const base::Text kind = take_word(&line);
  if (is(kind, "POSIX")) *command = F_SETLK;
  else if (is(kind, "OFDLCK")) *command = F_OFD_SETLK;
  else if (is(kind, "FLOCK")) *command = 0;
  else return false;
  take_word(&line);
  *range = {};
  range->l_whence = SEEK_SET;
  range->l_type = is(take_word(&line), "WRITE") ? F_WRLCK : F_RDLCK;
  take_word(&line);
  take_word(&line);
  int64_t first = 0, last = 0;
  if (!base::parse_number(take_word(&line), &first)) return false;
  range->l_start = first;
  const base::Text end = take_word(&line);
  if (is(end, "EOF")) return true;  // l_len is 0
  if (!base::parse_number(end, &last)) return false;
  range->l_len = last - first + 1;
  return true;
}

// The descriptors by which locks of the process were taken. Whoever closes one of them loses the
// locks: so they are all that may have any.
constexpr int kWordBits = 64;
constinit uint64_t lockers[kFiles / kWordBits] = {};
constinit uint32_t words_used = 0;

template <typename Each>
void for_each_locker(Each each) {
  const uint32_t words = base::load_relaxed(&words_used);
  for (uint32_t i = 0; i < words; ++i) {
    for (uint64_t rest = base::load_relaxed(&lockers[i]); rest != 0; rest &= rest - 1)
      each(static_cast<int>(i) * kWordBits + __builtin_ctzll(rest));
  }
}

void set_for_process(int fd, struct flock range) {
  const auto set = [&](int by) {
    note_process_lock(by);
    return base::system_call(SYS_fcntl, by, F_SETLK, reinterpret_cast<long>(&range)) == 0;
  };
  base::Identity file{};
  if (set(fd) || !base::identify(fd, &file)) return;
  for (int other = 0; other <= highest_known(); ++other) {
    const File* const f = known_at(other);
    if (f != nullptr && f->device == file.device && f->inode == file.number && set(other)) return;
  }
}

}  // namespace

void note_process_lock(int fd) {
  if (static_cast<unsigned>(fd) >= kFiles) return;
  const auto word = static_cast<uint32_t>(fd / kWordBits);
  uint64_t before = base::load(&lockers[word]);
  const uint64_t bit = uint64_t{1} << (fd % kWordBits);
  while (!base::compare_exchange(&lockers[word], &before, before | bit)) {}
  uint32_t used = base::load(&words_used);
  while (used <= word && !base::compare_exchange(&words_used, &used, word + 1)) {}
}

long close_keeping_locks(int fd) {
  if (base::load_relaxed(&words_used) == 0) return base::close_fd(fd);
  const CarriedLocks locks(fd);
  const long result = base::close_fd(fd);
  locks.set_again();
  return result;
}

CarriedLocks::CarriedLocks(int fd) {
  add_of(fd, false);
  base::Identity file{};
  if (base::load_relaxed(&words_used) == 0 || !base::identify(fd, &file)) return;
  for_each_locker([&](int other) {
    base::Identity is{};
    if (other != fd && base::identify(other, &is) && is == file) add_of(other, true);
  });
}

void CarriedLocks::add_of(int fd, bool of_process_alone) {
  char name[24], about[4096];
  base::Writer(name, sizeof name).add("fdinfo/").add_number(static_cast<uint64_t>(fd));
  if (base::read_of_process_apart(name, about, sizeof about) <= 0) return;
  const char* line = about;
  while (count_ < kMost && (line = strstr(line, "lock:")) != nullptr) {
    line += sizeof "lock:" - 1;
    Lock& found = locks_[count_];
    found.by = fd;
    if (parse_lock(line, &found.command, &found.range) &&
        (found.command == F_SETLK || !of_process_alone))
      ++count_;
  }
}

bool CarriedLocks::any_of_process() const {
  for (uint32_t i = 0; i < count_; ++i) {
    if (locks_[i].command == F_SETLK) return true;
  }
  return false;
}

void CarriedLocks::set_of_process(int fd) const {
  for (uint32_t i = 0; i < count_; ++i) {
    if (locks_[i].command == F_SETLK) set_for_process(fd, locks_[i].range);
  }
}

void CarriedLocks::set_again() const {
  for (uint32_t i = 0; i < count_; ++i) {
    if (locks_[i].command == F_SETLK) set_for_process(locks_[i].by, locks_[i].range);
  }
}

void CarriedLocks::set_of_open_file(int fd) const {
  for (uint32_t i = 0; i < count_; ++i) {
    struct flock range = locks_[i].range;
    if (locks_[i].command == F_OFD_SETLK)
      base::system_call(SYS_fcntl, fd, F_OFD_SETLK, reinterpret_cast<long>(&range));
    else if (locks_[i].command == 0)
      base::system_call(SYS_flock, fd, (range.l_type == F_WRLCK ? LOCK_EX : LOCK_SH) | LOCK_NB);
  }
}

}  // namespace weir::stack
