// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/carried_locks.h"

#include <string.h>
#include <sys/file.h>

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

void set_for_process(int fd, struct flock range) {
  const auto set = [&](int by) {
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

CarriedLocks::CarriedLocks(int fd) {
  char path[40], about[4096];
  base::Writer(path, sizeof path)
      .add("/proc/self/fdinfo/").add_number(static_cast<uint64_t>(fd));
  if (base::read_file(path, about, sizeof about) <= 0) return;
  const char* line = about;
  while (count_ < kMost && (line = strstr(line, "lock:")) != nullptr) {
    line += sizeof "lock:" - 1;
    if (parse_lock(line, &locks_[count_].command, &locks_[count_].range)) ++count_;
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
