// SPDX-License-Identifier: Apache-2.0
// What a rank hands to the forwarding processes of its node, and how long it waits for them.
#include "layers/cache/forwarding.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "layers/cache/slots.h"
#include "layers/machinery/node/place.h"
#include "layers/writeback/client.h"
#include "layers/writeback/format.h"
#include "layers/writeback/inside.h"

namespace weir::cache {
namespace {

constexpr uint64_t kStartNs = 3000 * kMillisecond;    // for a forwarder to begin
constexpr uint64_t kCountedNs = 100 * kMillisecond;   // until who starts one has counted it
constexpr uint64_t kPauseNs = 1000 * kMillisecond;    // between two of them
constexpr uint64_t kStuckNs = 1000 * kMillisecond;    // without any request made: it is stopped
constexpr uint64_t kLookAfterNs = 20 * kMillisecond;  // whether it still lives

// Files of this process that a forwarder may have, and how many openings of it have them.
struct User {
  const Cache* cache;
  uint32_t file, openings;
};
constexpr uint32_t kUsers = 128;
constinit User users[kUsers] = {};
constinit node::Lock users_lock{};
constinit uint32_t cannot_start = 0;

Service& service_of(const Opening& o) {
  return o.cache->forwarding->services[forwarder_of(*o.cache, o.file)];
}
FileService& file_service(const Opening& o) { return o.cache->forwarding->files[o.file]; }
uint32_t needs_of(const Opening& o) {
  return (o.below.reads ? kForReading : 0u) | (o.below.writes ? kForWriting : 0u);
}

void name_forwarder(const Cache& c, uint32_t file, char* to) {
  base::Writer(to, kForwarderText)
      .add_number(c.block_bytes).add("-").add_number(c.slots).add("-")
      .add_number(c.forwarders).add("-").add_number(forwarder_of(c, file));
}

bool lives(const Service& v) {
  return is_ready(v) && base::load(&v.stuck) != base::load(&v.served) + 1;
}

// It has made no request while somebody waited; when it goes on, it takes this back.
void note_stuck(Service& v, uint32_t served) { base::store(&v.stuck, served + 1); }

void ring(Service& v) {
  base::fetch_add(&v.bell, 1u);
  if (base::load(&v.asleep) != 0) node::wake(&v.bell, 1);
}

// Starts one unless somebody just has, and waits for it.
bool start_forwarder(const Opening& o, Service& v) {
  if (base::sealed() || base::load_relaxed(&cannot_start) != 0) return false;
  if (is_ready(v)) return lives(v);
  const uint64_t now = now_ns();
  uint64_t started = base::load(&v.started_ns);
  const bool is_due = started == 0 || now - started >= kPauseNs;
  if (is_due && !node::beats(base::load(&v.pulse)) &&
      base::compare_exchange(&v.started_ns, &started, now)) {
    char name[kForwarderText];
    name_forwarder(*o.cache, o.file, name);
    started = now;
    base::fetch_add(&v.starts, 1u);
    if (!writeback::start_program(kForwarderProgram, node::own_directory(), name)) {
      base::store(&cannot_start, 1u);
      return false;
    }
  }
  while (!is_ready(v)) {
    const uint64_t waited = now_ns() - started;
    const bool has_died = base::load(&v.begun) == base::load(&v.starts) && waited > kCountedNs;
    if (has_died || waited >= kStartNs) return false;
    node::sleep_on(&v.ready, base::load(&v.ready), 2 * kMillisecond);
  }
  return true;
}

User* user_of(const Opening& o) {
  for (User& u : users) {
    if (u.openings != 0 && u.cache == o.cache && u.file == o.file) return &u;
  }
  return nullptr;
}

// This opening counts as one that has the file. False: no room.
bool enroll(Opening& o) {
  if (o.enrolled) return true;
  const base::SignalsBlocked blocked;
  node::acquire(users_lock);
  User* u = user_of(o);
  for (uint32_t i = 0; u == nullptr && i < kUsers; ++i) {
    if (users[i].openings == 0) u = &users[i];
  }
  if (u != nullptr) {
    *u = {o.cache, o.file, u->openings + 1};
    const uint32_t place = writeback::own_place(o.cache->arena);
    __atomic_fetch_or(&file_service(o).users[place / 64], uint64_t{1} << (place % 64),
                      __ATOMIC_SEQ_CST);
  }
  node::release(users_lock);
  return o.enrolled = u != nullptr;
}

bool has(const Opening& o, const FileService& f, uint32_t needs) {
  return base::load(&f.generation) == base::load(&entry(o).generation) &&
         (base::load(&f.held) & needs) == needs;
}

// Whether what is waited for still goes on.
class Watch {
 public:
  explicit Watch(Service& v) : service_(v), served_(base::load(&v.served)), begun_(now_ns()) {}
  bool goes_on() {
    if (!node::beats(base::load(&service_.pulse))) return false;
    const uint32_t served = base::load(&service_.served);
    if (served != served_) {
      served_ = served;
      begun_ = now_ns();
    }
    if (now_ns() - begun_ < kStuckNs) return true;
    note_stuck(service_, served);
    return false;
  }
  uint32_t served() const { return served_; }

 private:
  Service& service_;
  uint32_t served_;
  uint64_t begun_;
};

// Gives the forwarder a copy of the descriptor and waits until it has it.
bool give(Opening& o, Service& v, FileService& f, uint32_t needs) {
  // The forwarder has limits of its own, where a program has to get the error of its own.
  if (o.below.writes && base::largest_size() != ~uint64_t{0}) return false;
  if (base::sealed() || node::is_foreign(v.who)) return false;
  base::store(&f.keeps_reads, uint32_t{o.policy.keeps_reads});
  base::store(&f.several_nodes, uint32_t{o.policy.several_nodes});
  base::store(&f.wasted_blocks, o.policy.wasted_blocks);
  // The first answer may be for another rank's.
  for (int tries = 0; tries < 3; ++tries) {
    const uint32_t answers = base::load(&f.answers);
    if (!tell_forwarder(*o.cache, o.file, writeback::kTellFile, o.file, *o.below.descriptor))
      return false;
    Watch watch(v);
    while (!has(o, f, needs) && base::load(&f.answers) == answers) {
      if (!is_ready(v) || !watch.goes_on()) return false;
      node::sleep_on(&f.answers, answers, kLookAfterNs);
    }
    if (has(o, f, needs)) return true;
  }
  return false;
}

Request* claim_request(Service& v) {
  for (Request& r : v.requests) {
    uint32_t free = kRequestFree;
    if (base::load_relaxed(&r.state) == kRequestFree &&
        base::compare_exchange(&r.state, &free, uint32_t{kRequestFilled}))
      return &r;
  }
  return nullptr;
}

// It is waited for no longer.
void drop(Request& r) {
  for (uint32_t state = base::load(&r.state);;) {
    const uint32_t next = state == kRequestTaken ? kRequestDropped : kRequestFree;
    if (base::compare_exchange(&r.state, &state, next)) return;
  }
}

// Posts a request and waits until it has been answered. False: it was not.
bool ask(Opening& o, RequestKind kind, uint64_t block, uint32_t wanted) {
  Service& v = service_of(o);
  Request* const r = claim_request(v);
  if (r == nullptr) return false;
  r->kind = kind;
  r->file = o.file;
  r->wanted = wanted;
  r->failed = 0;
  r->block = block;
  r->by = node::self();
  r->since_ns = now_ns();
  base::store(&r->state, uint32_t{kRequestPosted});
  ring(v);
  Watch watch(v);
  for (;;) {
    const uint32_t state = base::load(&r->state);
    if (state != kRequestPosted && state != kRequestTaken) break;
    node::sleep_on(&r->state, state, kLookAfterNs);
    if (base::load(&r->state) == kRequestDone) break;
    if (watch.goes_on()) continue;
    o.held_up = node::beats(base::load(&v.pulse));
    drop(*r);
    return false;
  }
  const bool done = r->failed == 0;
  drop(*r);
  return done;
}

}  // namespace

bool tell_forwarder(const Cache& c, uint32_t file, uint32_t kind, uint32_t slot, int descriptor) {
  const node::Identity me = node::self();
  const writeback::Message message{writeback::kMessageMagic,
                                   kind,
                                   me.pid,
                                   me.start,
                                   slot,
                                   writeback::own_place(c.arena),
                                   {}};
  char name[kForwarderText], socket[kForwarderText + 16];
  name_forwarder(c, file, name);
  base::Writer(socket, sizeof socket).add("forward-").add(name);
  return writeback::send_message(socket, message, descriptor);
}

bool answers(const Cache& c, uint32_t file) {
  return lives(c.forwarding->services[forwarder_of(c, file)]);
}

void note_no_answer(const Cache& c, uint32_t file) {
  Service& v = c.forwarding->services[forwarder_of(c, file)];
  note_stuck(v, base::load(&v.served));
}

bool forwarded(Opening& o) {
  if (!o.forwards || o.cache->forwarding == nullptr) return false;
  Service& v = service_of(o);
  FileService& f = file_service(o);
  const uint32_t needs = needs_of(o);
  if (WEIR_LIKELY(o.enrolled && lives(v) && has(o, f, needs))) return true;
  if (!lives(v) && !start_forwarder(o, v)) {
    o.no_forwarder = true;
    return false;
  }
  if (enroll(o) && (has(o, f, needs) || give(o, v, f, needs))) return true;
  if (lives(v)) o.forwards = false;  // it does not take the file
  return false;
}

void hand_over(Opening& o, const Slot& s) {
  Service& v = service_of(o);
  const uint32_t number = o.cache->number(s);
  count(o, static_cast<Statistic>(kForwarded));
  __atomic_fetch_or(&v.slots[number / 64], uint64_t{1} << (number % 64), __ATOMIC_SEQ_CST);
  ring(v);
}

bool write_by_forwarder(Opening& o, Slot& s, uint64_t tag) {
  Service& v = service_of(o);
  hand_over(o, s);
  Watch watch(v);
  const auto is_dirty = [&] {
    return base::load(&s.tag) == tag &&
           (base::load(&s.touched) != 0 || base::load(&s.writing) != 0);
  };
  const uint32_t number = o.cache->number(s);
  while (is_dirty()) {
    const uint32_t served = base::load(&v.served);
    const bool waits = (base::load(&v.slots[number / 64]) >> (number % 64) & 1) != 0;
    if (!is_dirty()) break;
    // It was written, and has new bytes or could not be: who waits for it looks after that.
    if (!waits && base::load(&s.writing) == 0 && base::load(&s.writer.word) == 0) break;
    node::sleep_on(&v.served, served, kLookAfterNs);
    if (!watch.goes_on()) return false;
  }
  return !is_dirty();
}

bool flush_by_forwarder(Opening& o) {
  count(o, static_cast<Statistic>(kForwarded));
  return ask(o, kFlushFile, 0, 0);
}

bool load_by_forwarder(Opening& o, uint64_t block, uint32_t wanted) {
  count(o, static_cast<Statistic>(kForwarded));
  const uint64_t begun = now_ns();
  const bool done = ask(o, kLoadBlock, block, wanted);
  count(o, kWaits);
  count(o, kWaited, now_ns() - begun);
  return done;
}

void expect_reads(Opening& o, uint64_t block) {
  if (block == 0 || block == o.expected || block != o.next_block || !lives(service_of(o))) return;
  o.expected = block;
  FileService& f = file_service(o);
  for (uint64_t next = block + 1; next <= block + most_ahead(*o.cache); ++next) {
    if (next * o.cache->block_bytes >= base::load(&entry(o).stamp.size)) return;
    if (find(*o.cache, tag(o, next)) != nullptr) continue;
    Service& v = service_of(o);
    base::store(&f.ahead, next);
    __atomic_fetch_or(&v.ahead[o.file / 64], uint64_t{1} << (o.file % 64), __ATOMIC_SEQ_CST);
    ring(v);
    return;
  }
}

int64_t take_lost(Opening& o) {
  if (o.cache->forwarding == nullptr || !o.below.writes) return 0;
  FileService& f = file_service(o);
  if (WEIR_LIKELY(base::load(&f.lost) == 0)) return 0;
  const uint64_t lost = base::exchange(&f.lost, uint64_t{0});
  if (lost == 0) return 0;
  const uint32_t error = base::load(&f.error);
  o.errors_seen = base::load(&entry(o).errors);
  if (o.below.lost != nullptr) o.below.lost(o.below.context, static_cast<int>(error), lost);
  return -static_cast<int64_t>(error);
}

void leave_forwarder(Opening& o) {
  if (!o.enrolled) return;
  FileService& f = file_service(o);
  for (uint32_t i = 0; i < kStatistics; ++i) {
    if (base::load(&f.counts[i]) == 0) continue;
    count(o, static_cast<Statistic>(i), base::exchange(&f.counts[i], uint64_t{0}));
  }
  bool last = false;
  {
    const base::SignalsBlocked blocked;
    node::acquire(users_lock);
    User* const u = user_of(o);
    if (u != nullptr) u->openings -= 1;
    if (u != nullptr && u->openings == 0) {
      const uint32_t place = writeback::own_place(o.cache->arena);
      __atomic_fetch_and(&f.users[place / 64], ~(uint64_t{1} << (place % 64)), __ATOMIC_SEQ_CST);
      last = true;
    }
    node::release(users_lock);
  }
  o.enrolled = false;
  for (const uint64_t& word : f.users) last = last && base::load(&word) == 0;
  // One that is stopped has been waited for, and closes what nobody uses when it goes on.
  if (last && base::load(&f.held) != 0 && lives(service_of(o))) ask(o, kReleaseFile, 0, 0);
}

void forget_users() {
  memset(static_cast<void*>(users), 0, sizeof users);
  users_lock = {};
  cannot_start = 0;
}

}  // namespace weir::cache
