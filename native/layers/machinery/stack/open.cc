// SPDX-License-Identifier: Apache-2.0
// Openings: which rule a file has, and what has to happen before it may have its layers.
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "layers/machinery/node/registry.h"
#include "base/clock.h"
#include "base/directory_path.h"
#include "base/scratch.h"
#include "base/section.h"
#include "base/syscall.h"
#include "trace/process.h"
#include "layers/machinery/stack/bypass.h"
#include "layers/machinery/stack/build.h"
#include "layers/machinery/stack/carried_locks.h"
#include "layers/machinery/stack/inside.h"
#include "layers/machinery/stack/in_memory.h"
#include "layers/machinery/stack/names.h"
#include "layers/machinery/stack/names_of_layers.h"
#include "layers/machinery/stack/notes.h"
#include "layers/machinery/stack/process.h"
#include "layers/machinery/stack/reach.h"
#include "layers/machinery/stack/replace.h"
#include "layers/machinery/stack/settle.h"
#include "layers/machinery/stack/sharing.h"
#include "layers/machinery/stack/table.h"

namespace weir::stack {
namespace {

const rules::Rules* rules_in_force = nullptr;
constinit int rank_of_rank = -1;
constinit bool some_are_ordered = false;  // a rule's layers take part in the open itself
constinit bool some_keep = false;
constinit bool own_calls = false;
constinit bool some_always = false;       // a rule has keep:always=1
// No rule has another layer that does anything, and names alone decide who has which.
constinit bool keeps_alone = true;
// The same name may be under layers or not, by how it is opened.
constinit bool mode_decides = false;

constexpr size_t kLongestPath = 4096;

// Layers whose files nobody else can read have to be found also where the process filters its
// system calls.
bool keeps_forms() { return base::load_relaxed(&forms_kept) != 0; }

bool make_absolute(int directory, const char* path, char* to) {
  if (path[0] == '/')
    return rules::make_absolute({"/", 1}, base::text(path), to, base::Scratch::kBytes);
  const base::Scratch room(keeps_forms());
  if (room.data() == nullptr) return false;
  const base::Text begin = base::directory_path(directory, room.data(), base::Scratch::kBytes);
  return begin.size != 0 &&
         rules::make_absolute(begin, base::text(path), to, base::Scratch::kBytes);
}

// Of a program with calls of its own: layers whose files only they can read, or find, are not.
bool is_left_out(const rules::Stack& stack) {
  return own_calls && !has_form(stack) && !has_names(stack);
}

const rules::Rule* match(const char* path, int flags, int fd) {
  rules::Open what{path};
  what.flags = flags;
  what.fd = fd;
  what.rank = rank_of_rank;
  what.fortran = fortran_opening.within;
  what.unit = fortran_opening.within ? fortran_opening.unit : -1;
  what.access = fortran_opening.access;
  what.form = fortran_opening.form;
  const rules::Rule* rule = rules::match(*rules_in_force, what);
  return rule == nullptr || rule->stack.plain() || is_left_out(rule->stack) ? nullptr : rule;
}

bool is_ordered(const rules::Stack& stack) {
  for (uint32_t i = 0; i < stack.count; ++i) {
    const Kind* kind = find_kind(stack.layers[i].name);
    if (kind != nullptr && (kind->flags & kOrdered) != 0) return true;
  }
  return false;
}

bool is_always(const rules::LayerSpec& layer) {
  return rules::option_number(layer, "always", 0) != 0;
}

bool keeps_always(const rules::Stack& stack) {
  for (uint32_t i = 0; i < stack.count; ++i) {
    if (rules::is(stack.layers[i].name, "keep") && is_always(stack.layers[i])) return true;
  }
  return false;
}

bool is_keep_alone(const rules::Stack& stack) {
  for (uint32_t i = 0; i < stack.count; ++i) {
    const base::Text name = stack.layers[i].name;
    if (!rules::is(name, "keep") && !rules::is(name, "event") && !rules::is(name, "system"))
      return false;
  }
  return true;
}

// Files of the kernel's own making are no files: they change without being written.
bool is_special(uint32_t fs_type) {
  switch (fs_type) {
    case 0x9fa0:
    case 0x62656572:
    case 0x27e0eb:
    case 0x63677270:
    case 0x64626720:
    case 0x74726163:
    case 0x73636673:
    case 0x6e736673:
      return true;  // proc, sysfs, cgroup, cgroup2, debugfs, tracefs, securityfs, nsfs
  }
  return false;
}

struct About {
  struct stat file;
  uint32_t fs_type;
};

// The kind of the file system on a device, asked for once: the answer of most is a request to a
// server. 0: not known yet.
struct TypeOfDevice {
  uint64_t device;
  uint64_t type;
};
constinit TypeOfDevice types[16] = {};

uint32_t type_of_device(int fd, uint64_t device) {
  TypeOfDevice& row = types[device % 16];
  if (const uint64_t type = base::load(&row.type);
      type != 0 && base::load(&row.device) == device && base::load(&row.type) == type) {
    return static_cast<uint32_t>(type);
  }
  struct statfs about;
  if (base::system_call(SYS_fstatfs, fd, reinterpret_cast<long>(&about)) != 0) return 0;
  base::store(&row.type, uint64_t{0});
  base::store(&row.device, device);
  base::store(&row.type, uint64_t{static_cast<uint32_t>(about.f_type)});
  return static_cast<uint32_t>(about.f_type);
}

bool look_at(int fd, About* to) {
  if (base::system_call(SYS_fstat, fd, reinterpret_cast<long>(&to->file)) != 0 ||
      !S_ISREG(to->file.st_mode))
    return false;
  to->fs_type = type_of_device(fd, to->file.st_dev);
  return to->fs_type != 0 && !is_special(to->fs_type);
}

void know_opened(File* f, int fd, int flags) {
  f->flags = flags;
  f->unit = fortran_opening.within ? fortran_opening.unit : -1;
  f->descriptor = fd;
  f->references = 1;
}

void know(File* f, int fd, int flags, const About& about) {
  know_opened(f, fd, flags);
  f->device = about.file.st_dev;
  f->inode = about.file.st_ino;
  f->size_at_open = static_cast<uint64_t>(about.file.st_size);
  f->block_bytes = static_cast<uint64_t>(about.file.st_blksize);
  f->fs_type = about.fs_type;
}

// A layer that saves opens has nothing to save where they are cheap.
void classify(File* f, uint64_t took) {
  const rules::LayerSpec* keep = nullptr;
  for (int i = 0; i < f->layer_count; ++i) {
    if (strcmp(f->top[i].kind->name, "keep") == 0) keep = f->top[i].spec;
  }
  if (keep == nullptr || is_always(*keep)) return;
  // Perhaps by this open: that takes longer.
  const bool made = (f->flags & O_CREAT) != 0 && f->size_at_open == 0;
  const bool measured = took != 0 && !made && (f->flags & O_TRUNC) == 0;
  const bool cheap = measured && was_cheap(took);
  if (measured && learn_open(f->device, cheap)) drop_parked();
  f->bypass = cheap || is_bypassed_device(f->device) ||
              (took != 0 && took < kDearNs && (made || !is_dear(f->device)));
}

bool reads(int flags) { return (flags & O_ACCMODE) != O_WRONLY; }
bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

// Becomes a file of which only the node's registry knows.
void make_plain(File* f) {
  own_description(f);
  close_layers(f);
  f->left = true;
  f->holds = false;
  f->layer_count = 0;
}

// The file has its descriptor and what is known of it: with its layers or without, it enters the
// table.
void accept(File* f, int fd, int flags) {
  if (f->in_memory) return enter_table(fd, f);  // nobody else can have these bytes
  const bool direct = (flags & O_DIRECT) != 0;
  if (f->holds && !f->transforms && (direct || own_calls || base::sealed())) {
    note_bypass(f, nullptr, direct ? Reason::kDirect : Reason::kUnsupported);
    make_plain(f);
  }
  const bool alone = f->bypass && f->layer_count == 2 &&
                     !trace::recording();  // with a trace the layer stays, to be seen
  if (alone) make_plain(f);
  if (!f->left && f->holds) {
    if (!may_hold(f, reads(flags), writes(flags)) && !f->transforms) {
      note_bypass(f, nullptr, f->lease != nullptr ? Reason::kConflict : Reason::kNoMemory);
      make_plain(f);
    }
  } else {
    accept_plain(f, reads(flags), writes(flags));
  }
  if (!f->left && !make_ready(f)) {
    make_plain(f);
    if (f->shares) {  // accepted as one of those that share their layers: as a plain one it may be
                      // in their way
      end_lease(f);
      accept_plain(f, reads(flags), writes(flags));
    } else if (f->lease != nullptr) {
      leave_lease(f);
    }
  }
  link(f);
  separate_openings(f);
  enter_table(fd, f);
  if (f->transforms && !f->left) {
    if ((flags & O_TRUNC) != 0) cut_published(f->device, f->inode, 0);
    publish(f);
  }
}

int name_file(File* f, int directory, const char* path) {
  if (trace::recording() && f->name == 0) f->name = name_of_path(directory, path);
  return 0;
}

// A file that nobody layers; those that others must know of become known.
void finish_plain(const Ticket& t, int fd) {
  if (!writes(t.flags) && !mode_decides && !anybody_holds()) return;
  About about;
  if (!look_at(fd, &about)) return;
  File* f = build_plain({});
  if (f == nullptr) return;
  know(f, fd, t.flags, about);
  accept(f, fd, t.flags);
}

File* build_for(const char* whole, int flags, int fd) {
  const rules::Rule* rule = match(whole, flags, fd);
  if (rule == nullptr) return nullptr;
  bool alone = false;
  return build(*rule, base::text(whole), &alone);
}

}  // namespace

const rules::Rules& rules_now() { return *rules_in_force; }

const rules::Rule* rule_for(const char* absolute_path, int flags) {
  return match(absolute_path, flags, -1);
}

bool make_path_absolute(int directory, const char* path, char* to) {
  return make_absolute(directory, path, to);
}

bool has_own_calls() { return own_calls; }

constinit uint32_t in_force = 0;
uint32_t (*name_of_path)(int, const char*) = nullptr;
WEIR_THREAD FortranOpening fortran_opening;

void set_rules(const rules::Rules& rules, int rank, bool makes_own_calls) {
  rules_in_force = &rules;
  own_calls = makes_own_calls;
  rank_of_rank = rank;
  for (uint32_t i = 0; i < rules.rule_count; ++i) {
    const rules::Conditions& when = rules.rules[i].when;
    if (is_left_out(rules.rules[i].stack)) continue;
    some_are_ordered |= is_ordered(rules.rules[i].stack);
    if (has_form(rules.rules[i].stack)) base::store(&forms_kept, 1u);
    if (const char* const why = begin_names(rules.rules[i].stack); why != nullptr)
      names_mistake = why;
    some_keep |= rules::has_layer(rules.rules[i].stack, "keep");
    some_always |= keeps_always(rules.rules[i].stack);
    keeps_alone &= is_keep_alone(rules.rules[i].stack);
    mode_decides |= when.modes != 0 || when.units.count != 0 || when.min_bytes != 0 ||
                    when.max_bytes != UINT64_MAX || when.access != rules::Access::kUnknown ||
                    when.form != rules::Form::kUnknown;
  }
  if (some_keep) {
    base::store(&names_kept, 1u);
    base::store(&names_always, some_always ? 1u : 0u);
  }
  keeps_alone &= !mode_decides;
  base::store(&in_force, rules.rule_count != 0 ? 1u : 0u);
}

namespace {

// The rule's only layer has nothing to do with the file, whoever opens it.
bool passes(const rules::Rule& rule, const char* absolute) {
  if (mode_decides || trace::recording() || rule.stack.count == 0) return false;
  const Kind* const kind = find_kind(rule.stack.layers[0].name);
  const bool is_alone =
      rule.stack.count == 1 ||
      (rule.stack.count == 2 && rules::is(rule.stack.layers[1].name, "system"));
  return is_alone && kind != nullptr && kind->names != nullptr &&
         kind->names->passes != nullptr && kind->names->passes(rule.stack.layers[0], absolute);
}

// The directory that passed last, for whatever rule: an open in it is then known by its path alone.
// `version` is odd while it is written, 0 at first.
struct Passed {
  uint32_t version, changes, bytes;
  char directory[512];
};
constinit Passed passed = {};

bool pass_all(const char* absolute) {
  for (uint32_t i = 0; i < rules_in_force->rule_count; ++i) {
    if (!passes(rules_in_force->rules[i], absolute)) return false;
  }
  return true;
}

// An open of that path has passed. changes: passes_changed before.
void note_passed(const char* absolute, uint32_t changes) {
  const auto bytes = static_cast<size_t>(strrchr(absolute, '/') - absolute);
  uint32_t version = base::load(&passed.version);
  if (bytes == 0 || bytes >= sizeof passed.directory || (version & 1) != 0 ||
      !pass_all(absolute) || !base::compare_exchange(&passed.version, &version, version | 1))
    return;
  passed.bytes = static_cast<uint32_t>(bytes);
  passed.changes = changes;
  memcpy(passed.directory, absolute, bytes);
  base::store(&passed.version, (version | 1) + 1);
}

// False also where that is not known. Whoever asks has no trace and nothing parked.
bool is_in_passed(const char* path) {
  const uint32_t version = base::load(&passed.version);
  if (version == 0 || (version & 1) != 0 || path == nullptr ||
      passed.changes != base::load(&passes_changed))
    return false;
  const uint64_t room = 4096 - reinterpret_cast<uintptr_t>(path) % 4096, bytes = passed.bytes;
  if (bytes + 2 >= room || !within_reach(path, room, Access::kReads) ||
      memcmp(path, passed.directory, bytes) != 0 || path[bytes] != '/')
    return false;
  const char* const name = path + bytes + 1;
  const uint64_t n = strnlen(name, room - bytes - 1);
  const bool is_name = n != 0 && bytes + 1 + n < room && memchr(name, '/', n) == nullptr &&
                       name[0] != '.';
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return is_name && base::load(&passed.version) == version;
}

// Whether the path is absolute, in the form that make_absolute() gives it, and can be read: it ends
// within the page that it begins in. No system call for a page that was read before.
bool is_plain_path(const char* path) {
  const uint64_t room = 4096 - reinterpret_cast<uintptr_t>(path) % 4096;
  if (path == nullptr || !within_reach(path, room, Access::kReads) || path[0] != '/') return false;
  uint64_t begin = 1;
  for (uint64_t i = 1; i < room; ++i) {
    if (path[i] != '/' && path[i] != 0) continue;
    const bool is_dots = path[begin] == '.' && (i - begin == 1 || (i - begin == 2 &&
                                                                   path[begin + 1] == '.'));
    if (i == begin || is_dots) return false;
    if (path[i] == 0) return true;
    begin = i + 1;
  }
  return false;
}

// Whether the path can be matched and built on as it stands, with no system call and no copy.
bool is_usable(const char* path) {
  return !any_parked() && !trace::recording() && is_plain_path(path) && !leads_to_files(path);
}

// That of a ticket, which goes on beyond the scope where `keep` says so.
class SectionOfTicket {
 public:
  explicit SectionOfTicket(Ticket& t) : ticket_(t) {}
  ~SectionOfTicket() {
    if (!keep) end(ticket_);
  }
  SectionOfTicket(const SectionOfTicket&) = delete;
  SectionOfTicket& operator=(const SectionOfTicket&) = delete;
  void begin() {
    if (!ticket_.is_section) ticket_.is_section = base::begin_section();
  }
  static void end(Ticket& t) {
    if (t.is_section) base::end_section();
    t.is_section = false;
  }
  bool keep = false;

 private:
  Ticket& ticket_;
};

// Its opens make memory, and leave the section for what they leave to the kernel.
bool opens_memory(const File* f) {
  const NamesOfLayer* const names = f->top->kind->names;
  return names != nullptr && names->make_real != nullptr;
}

// Layers that take part in the open itself, for a path as make_absolute() gives it. exact: it
// stands for one file alone.
bool build_ordered(Ticket& t, const char* whole, bool exact, SectionOfTicket& section) {
  const rules::Rule* const rule = match(whole, t.flags, -1);
  if (rule == nullptr || !is_ordered(rule->stack)) return false;
  const uint32_t changes = base::load(&passes_changed);
  if (exact && passes(*rule, whole)) {
    t.skip = true;
    note_passed(whole, changes);
    return false;
  }
  bool alone = false;
  section.begin();
  t.file = build(*rule, base::text(whole), &alone);
  if (t.file == nullptr) return false;
  t.file->exact = exact;
  section.keep = opens_memory(t.file);
  return true;
}

bool prepare_open(Ticket& t, int directory, const char* path, int flags) {
  t = {nullptr, directory, path, flags, !may_change() || (flags & (O_PATH | O_DIRECTORY)) != 0,
       false};
  if (t.skip) return false;
  if (!any_parked() && !trace::recording() && is_in_passed(path)) {
    t.skip = true;
    return false;
  }
  if ((flags & O_TRUNC) != 0 && !any_layer_has_names()) settle_emptied(directory, path, flags);
  if (!some_are_ordered || (any_bypassed() && keeps_alone && !any_parked() && !trace::recording()))
    return false;
  SectionOfTicket section(t);
  if (is_usable(path)) return build_ordered(t, path, true, section);
  section.begin();
  const base::Scratch given(keeps_forms()), whole(keeps_forms());
  if (given.data() == nullptr || whole.data() == nullptr || path == nullptr) return false;
  if (!base::copy_text(given.data(), path, kLongestPath) ||
      !make_absolute(directory, given.data(), whole.data()))
    return false;
  const bool exact = rules::is_exact(base::text(given.data()));
  if (exact && any_parked() && (t.file = unpark(whole.data(), flags)) != nullptr)
    return t.parked = true;
  if (any_layer_has_names() && leads_to_files(whole.data())) {
    base::fetch_add(&times_lent, 1u);
    settle_all_memory();
  }
  return build_ordered(t, whole.data(), exact, section);
}

}  // namespace

namespace {

// A layer settles where it leaves the file to the kernel: what it has itself costs no request.
bool settles_itself(const File* f) {
  for (int i = 0; f != nullptr && i < f->layer_count; ++i) {
    const NamesOfLayer* const names = f->top[i].kind->names;
    if (names != nullptr && (names->make_real != nullptr || names->settles)) return true;
  }
  return false;
}

}  // namespace

bool begin_open(Ticket& t, int directory, const char* path, int flags) {
  const bool ordered = prepare_open(t, directory, path, flags);
  if ((flags & O_TRUNC) != 0 && any_layer_has_names() && !t.skip && !settles_itself(t.file))
    settle_emptied(directory, path, flags);
  if (some_keep) t.started = base::now_ns();
  return ordered;
}

Ticket unordered(const char* path, int flags) {
  return {nullptr, AT_FDCWD, path, flags, !may_change(), false};
}

int open_ordered(Ticket& t, unsigned mode) {
  if (t.parked) return t.file->descriptor;
  t.file->flags = t.flags;
  name_file(t.file, t.directory, t.path);
  Opening o{t.directory, t.path, t.flags, mode, t.may_settle_later};
  Layer* first = t.file->enter.open;
  const Result fd = first->kind->open(*first, o);
  if (fd >= 0) return static_cast<int>(fd);
  errno = static_cast<int>(-fd);
  return -1;
}

int plain_opened(const Ticket& t, int fd, const char* path) {
  const Result r = fd >= 0 && !t.skip ? after_opening(fd, path, t.flags) : 0;
  if (r == 0) return fd;
  close_keeping_locks(fd);
  errno = static_cast<int>(-r);
  return -1;
}

namespace {

int finish(Ticket& t, int fd, const char* path) {
  if (WEIR_UNLIKELY((t.flags & O_TRUNC) != 0 && !writes(t.flags)) && !t.skip && fd >= 0)
    node::names_changed();  // as truncate(2); no writer is seen
  const uint64_t took = t.started != 0 ? base::now_ns() - t.started : 0;
  const bool usual = !t.skip && t.file == nullptr && fd >= 0 && fd < kFiles;
  if (any_bypassed() && usual && known_at(fd) == nullptr && !trace::recording() &&
      is_bypassed_name(t.directory, path, t.flags))
    return fd;
  if (t.skip || fd < 0 || fd >= kFiles) {
    if (t.file != nullptr) {
      close_layers(t.file);
      give_back(t.file);
    }
    return fd;
  }
  const int before = errno;
  if (known_at(fd) != nullptr) drop_unseen(fd);
  File* f = t.file;
  if (f == nullptr) {
    const base::Scratch whole(keeps_forms());
    if (whole.data() != nullptr && path != nullptr &&
        make_absolute(t.directory, path, whole.data())) {
      f = build_for(whole.data(), t.flags, fd);
      if (f != nullptr) f->exact = rules::is_exact(base::text(path));
    }
  }
  About about;
  if (f == nullptr) {
    finish_plain(t, fd);
  } else if (f->in_memory && f->inode != 0) {  // the layer has said what it is
    know_opened(f, fd, t.flags);
    name_file(f, t.directory, t.path);
    accept(f, fd, t.flags);
  } else if (look_at(fd, &about)) {
    know(f, fd, t.flags, about);
    name_file(f, t.directory, path);
    classify(f, took);
    accept(f, fd, t.flags);
    if (f->bypass && f->left && keeps_alone && is_bypassed_device(about.file.st_dev))
      bypass_name(t.directory, path, t.flags);
  } else {
    close_layers(f);
    give_back(f);
  }
  errno = before;
  return fd;
}

}  // namespace

int finish_open(Ticket& t, int fd, const char* path) {
  if (t.parked) return fd;
  const int finished = finish(t, fd, path);
  SectionOfTicket::end(t);
  return finished;
}

}  // namespace weir::stack
