// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/apart.h"
#include "base/atomic.h"
#include "base/syscall.h"
#include "base/text.h"

namespace weir::base {
namespace {

constexpr uint32_t kTickBits = 18, kTickMask = (1u << kTickBits) - 1;  // of ProcessIdentity::start
constexpr uint64_t kFirstNamespace = 0xeffffffc;                       // PROC_PID_INIT_INO of Linux

constinit uint64_t own = 0;  // ProcessIdentity of this process, or 0
constinit uint64_t name_space = 0;  // inode; kNone: unknown; 0: not looked yet
constexpr uint64_t kNone = ~uint64_t{0};
constinit uint32_t proc_is_own = 0;  // whether /proc has the numbers of this namespace: 1 no, 2 yes
constinit Foreign foreign{nullptr, nullptr};

// A number of /proc/<pid>/stat; `at` is the parenthesis that ends field 2.
uint64_t field(const char* at, int number) {
  for (int i = 2; i < number; ++i) {
    at = strchr(at + 1, ' ');
    if (at == nullptr) return 0;
  }
  uint64_t value = 0;
  for (++at; *at >= '0' && *at <= '9'; ++at) value = value * 10 + static_cast<uint64_t>(*at - '0');
  return value;
}

uint32_t mark_of(uint64_t inode) { return static_cast<uint32_t>(inode) << kTickBits; }
uint32_t ticks_of(uint32_t start) { return start & kTickMask; }

// In a namespace of its own whose /proc is still that of the one above, a number there is another
// process'.
bool has_own_proc() {
  uint32_t known = load_relaxed(&proc_is_own);
  if (WEIR_UNLIKELY(known == 0)) {
    char number[24], name[24];
    Writer(name, sizeof name).add_number(static_cast<uint64_t>(process_id()));
    const long n = read_link("/proc/self", number, sizeof number - 1);
    if (n > 0 && n < static_cast<long>(sizeof number)) number[n] = 0;
    known = n > 0 && strcmp(number, name) != 0 ? 1 : 2;
    store_relaxed(&proc_is_own, known);
  }
  return known == 2;
}

bool has_number(uint32_t pid) { return system_call(SYS_kill, pid, 0) != -ESRCH; }

// Whether a process of that number runs, and when it started; 0: unknown. Where /proc does not show
// it (another root directory, another user's with hidepid), its number is all there is. A program
// may end its first thread alone: that one is then a zombie among living threads.
bool read_start(uint32_t pid, uint32_t* start) {
  char state = 0;
  uint64_t threads = 0;
  *start = 0;
  if (!has_number(pid)) return false;
  if (!read_about(pid, start, &state, &threads)) return has_number(pid);
  return state != 'X' && (state != 'Z' || threads > 1);
}

// Processes that lived when their start was read, with the numbers of their directories in /proc,
// which no later process of the same number has. Of each thread, so that no lock is needed.
struct Met {
  ProcessIdentity who;
  uint64_t number;
};
constexpr uint32_t kMet = 16;
WEIR_THREAD Met met_before[kMet];

// 0: unknown.
uint64_t inode_of(const char* path) {
  struct stat about;
  return system_call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(path),
                     reinterpret_cast<long>(&about), 0) == 0
             ? about.st_ino
             : 0;
}

// 0: unknown.
uint64_t number_in_proc(uint32_t pid) {
  if (!has_own_proc()) return 0;
  char path[32];
  Writer(path, sizeof path).add("/proc/").add_number(pid);
  return inode_of(path);
}

// A zombie has none. Without a descriptor; false also where it cannot be known.
bool has_memory(uint32_t pid) {
  char path[32], program[8];
  Writer(path, sizeof path).add("/proc/").add_number(pid).add("/exe");
  return system_call(SYS_readlinkat, AT_FDCWD, reinterpret_cast<long>(path),
                     reinterpret_cast<long>(program), sizeof program) > 0;
}

}  // namespace

bool read_about(uint32_t id, uint32_t* start, char* state, uint64_t* threads) {
  if (!has_own_proc()) return false;
  char path[32], text[512];
  Writer(path, sizeof path).add("/proc/").add_number(id).add("/stat");
  const long n = read_file_apart(path, text, sizeof text);
  if (n <= 0) return false;
  const char* at = strrchr(text, ')');
  if (at == nullptr || at[1] == 0) return false;
  *state = at[2];
  *threads = field(at, 20);
  *start = static_cast<uint32_t>(field(at, 22));
  return true;
}

bool is_shared_with_foreign() {
  const auto ask = load_relaxed(&foreign.is_shared);
  return ask != nullptr && ask();
}

ProcessIdentity self() {
  uint64_t known = load(&own);
  if (WEIR_UNLIKELY(known == 0)) {
    const SignalsBlocked blocked;
    const auto pid = static_cast<uint32_t>(process_id());
    uint32_t start = 0;
    read_start(pid, &start);
    start = ticks_of(start) | mark_of(own_namespace());
    known = uint64_t{start} << 32 | pid;
    store(&own, known);
  }
  return {static_cast<uint32_t>(known), static_cast<uint32_t>(known >> 32)};
}

uint64_t own_namespace() {
  uint64_t known = load(&name_space);
  if (WEIR_UNLIKELY(known == 0)) {
    const uint64_t inode = inode_of("/proc/self/ns/pid");
    known = inode != 0 ? inode : kNone;
    store(&name_space, known);
  }
  return known == kNone ? 0 : known;
}

bool sees_all_processes() { return own_namespace() == kFirstNamespace; }

bool is_foreign(ProcessIdentity who) {
  const uint32_t its = who.start >> kTickBits, mine = self().start >> kTickBits;
  return its != mine && its != 0 && mine != 0;
}

void on_foreign(const Foreign& answers) {
  store(&foreign.life_of, answers.life_of);
  store(&foreign.is_shared, answers.is_shared);
}

void forget_process() {
  store(&own, uint64_t{0});
  store(&name_space, uint64_t{0});
  store(&proc_is_own, 0u);
}

uint32_t start_of(uint32_t pid) {
  uint32_t start = 0;
  char state = 0;
  uint64_t threads = 0;
  return pid != 0 && read_about(pid, &start, &state, &threads)
             ? ticks_of(start) | mark_of(own_namespace())
             : 0;
}

bool runs(uint32_t pid) {
  uint32_t start = 0;
  return read_start(pid, &start);
}

bool alive(ProcessIdentity who) {
  if (who.pid == 0) return false;
  if (is_foreign(who)) {
    const auto ask = load_relaxed(&foreign.life_of);
    return ask == nullptr || ask(who) != Life::kEnded;
  }
  if (!has_number(who.pid)) return false;
  const uint64_t number = number_in_proc(who.pid);
  Met& met = met_before[who.pid % kMet];
  if (number != 0 && met.number == number && met.who == who && has_memory(who.pid)) return true;
  uint32_t start = 0;
  if (!read_start(who.pid, &start)) return false;
  if (ticks_of(start) == 0 || ticks_of(who.start) == 0) return true;
  if (ticks_of(start) != ticks_of(who.start)) return false;
  met = {who, number};
  return true;
}

}  // namespace weir::base
