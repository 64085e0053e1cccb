// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/names.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "layers/machinery/node/registry.h"
#include "base/scratch.h"
#include "base/clock.h"
#include "base/syscall.h"
#include "layers/machinery/rules/rules.h"
#include "layers/machinery/stack/busy.h"
#include "layers/machinery/stack/inside.h"
#include "layers/machinery/stack/park.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/reach.h"
#include "layers/machinery/stack/table.h"

namespace weir::stack {

constinit uint32_t names_kept = 0;
constinit uint32_t names_rest = 0;
constinit uint32_t names_unsure = 0;
constinit uint32_t names_always = 0;

namespace {

constexpr uint32_t kNames = 512;
constexpr size_t kLongest = 256;  // of a name that is remembered, with its zero
constexpr uint64_t kUsualValidMs = 1000;
constexpr uint32_t kEnough = 4;  // quick answers in a row
constinit uint32_t quick = 0;

struct Name {
  uint64_t hash;  // 0: free
  uint64_t names_epoch, writes_epoch, valid_until;
  struct stat is;
  bool is_known;    // `is` holds what stat said
  bool no_link;     // lstat said the same
  uint8_t access;   // modes that access granted
  base::Credentials asker;  // who was notified so
  char path[kLongest];
};
constinit Name names[kNames] = {};
WEIR_BUSY(busy);

using Busy = BusyWith<&busy>;

// valid_ms of the rule that an open of this name for reading would have; 0: none with keep.
uint64_t validity(const char* whole) {
  const rules::Rule* rule = rule_for(whole);
  if (rule == nullptr) return 0;
  for (uint32_t i = 0; i < rule->stack.count; ++i) {
    const rules::LayerSpec& layer = rule->stack.layers[i];
    if (rules::is(layer.name, "keep"))
      return rules::option_number(layer, "valid_ms", kUsualValidMs) * 1'000'000;
  }
  return 0;
}

// The question with the name made absolute, in room of the caller's.
bool ask(NameQuestion* q, int directory, const char* path, char* whole) {
  *q = {};
  const base::Scratch given;
  if (path == nullptr || given.data() == nullptr || whole == nullptr) return false;
  if (!base::copy_text(given.data(), path, 4096) || !rules::is_exact(base::text(given.data())))
    return false;
  if (!make_path_absolute(directory, given.data(), whole)) return false;
  const size_t n = strlen(whole);
  if (n >= kLongest) return false;
  q->hash = base::hash({whole, n}, 1) | 1;
  q->names_epoch = node::names_epoch();
  q->writes_epoch = node::writes_epoch();
  q->asker = base::credentials();
  return true;
}

Name* find(const NameQuestion& q, const char* whole) {
  Name& n = names[q.hash / 2 % kNames];
  return n.hash == q.hash && strcmp(n.path, whole) == 0 ? &n : nullptr;
}

bool holds(const Name& n, const NameQuestion& q) {
  return n.names_epoch == q.names_epoch && n.writes_epoch == q.writes_epoch &&
         base::recent_ns() < n.valid_until && n.asker == q.asker;
}

// Copies the entry when it still holds. Whether the file may be written by somebody is the caller's
// to ask.
bool look_up(const NameQuestion& q, const char* whole, Name* copy) {
  const Busy hold;
  const Name* n = find(q, whole);
  if (n == nullptr || !holds(*n, q)) return false;
  *copy = *n;
  return true;
}

Name* place_for(const NameQuestion& q, const char* whole) {
  Name* n = find(q, whole);
  if (n == nullptr || !holds(*n, q)) {
    n = &names[q.hash / 2 % kNames];
    *n = {};
    n->hash = q.hash;
    n->names_epoch = q.names_epoch;
    n->writes_epoch = q.writes_epoch;
    n->asker = q.asker;
    n->valid_until = base::recent_ns() + q.valid_ns;
    memcpy(n->path, whole, strlen(whole) + 1);
  }
  return n;
}

bool make_whole(int directory, const char* path, char* whole) {
  const base::Scratch given;
  return given.data() != nullptr && whole != nullptr && base::copy_text(given.data(), path, 4096) &&
         make_path_absolute(directory, given.data(), whole);
}

}  // namespace

void time_question(uint64_t ns) {
  if (was_cheap(ns)) {
    if (base::load_relaxed(&names_rest) == 0 && base::fetch_add(&quick, 1u) + 1 >= kEnough)
      base::store(&names_rest, 1u);
  } else {
    base::store(&quick, 0u);
    base::store(&names_rest, 0u);
  }
}

bool known_stat(NameQuestion* q, int directory, const char* path, bool follow, struct stat* to) {
  const int before = errno;
  const base::SignalsBlocked blocked;
  const base::Scratch whole;
  if (!ask(q, directory, path, whole.data())) return false;
  static_assert(sizeof(Name) < 1024);
  Name n;
  if (within_reach(to, sizeof *to, Access::kWrites) && look_up(*q, whole.data(), &n) &&
      n.is_known && (follow || n.no_link) && !is_bypassed_device(n.is.st_dev)) {
    uint64_t bytes = 0;
    // Of a file that is kept for appending the layers know the size; of any other that is open for
    // writing only the kernel does.
    const uint32_t writers = node::writers(n.is.st_dev, n.is.st_ino);
    if (writers == 0 ||
        (writers == 1 && size_of_kept(whole.data(), n.is.st_dev, n.is.st_ino, &bytes))) {
      if (writers != 0) n.is.st_size = static_cast<off_t>(bytes);
      *to = n.is;
      errno = before;
      return true;
    }
  }
  q->valid_ns = validity(whole.data());
  q->asked = q->valid_ns != 0;
  errno = before;
  return false;
}

void learn_stat(const NameQuestion& q, int directory, const char* path, bool follow,
                const struct stat& is) {
  if (!q.asked || !S_ISREG(is.st_mode) || is_bypassed_device(is.st_dev)) return;
  const base::SignalsBlocked blocked;
  const base::Scratch whole;
  if (!make_whole(directory, path, whole.data())) return;
  const Busy hold;
  Name* n = place_for(q, whole.data());
  n->no_link = (n->is_known && n->no_link) || !follow;
  n->is = is;
  n->is_known = true;
}

bool known_access(NameQuestion* q, int directory, const char* path, int mode) {
  const int before = errno;
  const base::SignalsBlocked blocked;
  const base::Scratch whole;
  if (!ask(q, directory, path, whole.data())) return false;
  Name n;
  const bool known =
      look_up(*q, whole.data(), &n) &&
      ((mode == F_OK && n.is_known) || ((n.access & 8) != 0 && (mode & ~n.access) == 0));
  if (!known) {
    q->valid_ns = validity(whole.data());
    q->asked = q->valid_ns != 0;
  }
  errno = before;
  return known;
}

void learn_access(const NameQuestion& q, int directory, const char* path, int mode) {
  if (!q.asked || (mode & ~7) != 0) return;
  const base::SignalsBlocked blocked;
  const base::Scratch whole;
  if (!make_whole(directory, path, whole.data())) return;
  const Busy hold;
  Name* n = place_for(q, whole.data());
  n->access |= static_cast<uint8_t>(8 | mode);
}

}  // namespace weir::stack
