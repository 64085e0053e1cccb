// SPDX-License-Identifier: Apache-2.0
// Which container a path leads to. A process has one for each directory, under the directory's own
// path; symbolic links and mounts lead to it by other paths. Whether a path still leads where it
// did is looked at once a second, and when a process of the node has removed a directory or given
// one another name; where a link leads is looked at each time.
#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "layers/machinery/stack/names_of_layers.h"
#include "layers/machinery/stack/private.h"
#include "layers/pack/container.h"

namespace weir::layers::pack {

constinit uint32_t times_left = 1;

namespace {

constexpr int kContainers = 128, kOtherPaths = 16;
// The kernel takes no longer path of a file that is to become a real one.
constexpr size_t kLongestDirectory = 4096 - kLongestName - 2;

constinit Container* containers[kContainers] = {};
constinit uint64_t uses = 0;
// Of those whose directory stays real: what key_of() gives, else 0. Read without the lock.
constinit uint64_t left_alone[kContainers] = {};
constinit uint32_t any_left_alone = 0;  // some of these was ever set

// Another path than its own that has led to a container's directory.
struct OtherPath {
  char text[512];
  uint32_t bytes;  // 0: none
  Container* to;
};
constinit OtherPath other_paths[kOtherPaths] = {};
constinit uint32_t next_other = 0;

bool same(base::Text a, base::Text b) {
  return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

uint64_t key_of(const rules::LayerSpec& spec, base::Text directory) {
  return base::hash(directory, base::hash(option_name(spec), 0)) | 1;
}

base::Text path_of(const Container& c) { return {c.directory, c.directory_bytes}; }

void lose_path(Container& c) {
  c.directory_bytes = 0;
  c.directory[0] = 0;
}

bool is_of(const Container& c, const rules::LayerSpec& spec) {
  return c.directory_bytes != 0 && same(option_name(*c.spec), option_name(spec));
}

// Whether the path leads to the directory; no more than a walk of the path.
bool leads_to(const char* path, const base::Identity& directory) {
  struct statx about {};
  const long seen = base::system_call(SYS_statx, AT_FDCWD, reinterpret_cast<long>(path),
                                      AT_STATX_DONT_SYNC, STATX_INO,
                                      reinterpret_cast<long>(&about));
  if (seen == 0)
    return base::Identity{makedev(about.stx_dev_major, about.stx_dev_minor), about.stx_ino} ==
           directory;
  struct stat old;  // a kernel without statx
  return seen == -ENOSYS &&
         base::system_call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(path),
                           reinterpret_cast<long>(&old), 0) == 0 &&
         base::Identity{old.st_dev, old.st_ino} == directory;
}

// The directory's own path, as the kernel knows it by what is open in it: no request to the file
// system. Empty: it does not say.
base::Text path_by_descriptor(const Container& c, char* room, size_t size) {
  const int fd = c.at >= 0 ? c.at : c.file;
  char link[32];
  if (fd < 0) return {};
  base::Writer(link, sizeof link).add("/proc/self/fd/").add_number(static_cast<uint64_t>(fd));
  const long bytes = base::read_link(link, room, size - 1);
  if (bytes <= 0 || room[0] != '/') return {};
  room[bytes] = 0;
  constexpr char kGone[] = " (deleted)";
  constexpr long kGoneBytes = sizeof kGone - 1;
  if (bytes > kGoneBytes && strcmp(room + bytes - kGoneBytes, kGone) == 0) return {};
  char* const last = strrchr(room, '/');
  if (c.at < 0) last[last == room ? 1 : 0] = 0;  // the container lies in it
  return base::text(room);
}

bool has_its_path(const Container& c) {
  char room[sizeof c.path];
  const base::Text now = path_by_descriptor(c, room, sizeof room);
  return now.size != 0 ? same(now, path_of(c)) : leads_to(c.directory, c.identity);
}

// Asked of a container that has the path. What is not shared is looked at anew when it begins.
bool leads_there(Container& c) {
  if (c.segment.shared == nullptr) return true;
  const uint64_t moved = moved_directories(false), now = base::now_ns();
  if (c.moved_seen == moved && now < c.looked_until) return true;
  if (!has_its_path(c)) return false;
  c.moved_seen = moved;
  c.looked_until = now + kLookedAtNs;
  return true;
}

Container* container_at(const rules::LayerSpec& spec, base::Text directory) {
  for (Container* c : containers) {
    if (c == nullptr || !is_of(*c, spec) || !same(path_of(*c), directory)) continue;
    if (leads_there(*c)) return c;
    forget_path(*c);  // another directory has the path, or none
    return nullptr;
  }
  return nullptr;
}

Container* by_other_path(const rules::LayerSpec& spec, base::Text directory) {
  for (OtherPath& other : other_paths) {
    if (other.bytes == 0 || !same({other.text, other.bytes}, directory) ||
        !is_of(*other.to, spec))
      continue;
    if (leads_to(other.text, other.to->identity) && leads_there(*other.to)) return other.to;
    other.bytes = 0;
  }
  return nullptr;
}

void note_other_path(base::Text directory, Container& to) {
  OtherPath& other = other_paths[next_other++ % kOtherPaths];
  if (directory.size >= sizeof other.text) return;
  memcpy(other.text, directory.data, directory.size);
  other.text[directory.size] = 0;
  other.bytes = static_cast<uint32_t>(directory.size);
  other.to = &to;
}

// A place for one more: of those without open files the one used longest ago makes room.
Container* new_container() {
  int oldest = -1;
  for (int i = 0; i < kContainers; ++i) {
    if (containers[i] == nullptr) {
      const long at =
          base::map(sizeof(Container), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
      if (base::failed(at)) return nullptr;
      return containers[i] = reinterpret_cast<Container*>(at);
    }
    if (containers[i]->open_files != 0) continue;
    if (oldest < 0 || containers[i]->used < containers[oldest]->used) oldest = i;
  }
  if (oldest < 0) return nullptr;
  leave(*containers[oldest]);
  memset(static_cast<void*>(containers[oldest]), 0, sizeof(Container));
  return containers[oldest];
}

void set_directory(Container& c, base::Text directory) {
  memcpy(c.directory, directory.data, directory.size);
  c.directory[directory.size] = 0;
  c.directory_bytes = static_cast<uint32_t>(directory.size);
}

// This process has the directory's container already: for open files, under no path, or under
// another path of the same directory (a mount).
Container* same_directory(const Container& c) {
  for (Container* one : containers) {
    if (one == nullptr || one == &c || one->identity != c.identity ||
        !same(option_name(*one->spec), option_name(*c.spec)))
      continue;
    if (one->directory_bytes == 0 ? one->segment.shared != nullptr
                                  : leads_to(one->directory, one->identity))
      return one;
  }
  return nullptr;
}

void take_path(const Container& from, Container& to) {
  set_directory(to, path_of(from));
  path_in(to, base::text(to.segment.shared->own), to.path, sizeof to.path);
}

// The container of the directory that `c`, a new one, was opened for: `c`, under the directory's
// own path, or the one that the process has.
Container* settle_path(Container& c, const rules::LayerSpec& spec) {
  char given[sizeof c.directory], room[sizeof c.path];
  const uint32_t given_bytes = c.directory_bytes;
  memcpy(given, c.directory, given_bytes);
  const base::Text own = path_by_descriptor(c, room, sizeof room);
  const bool is_other =
      own.size != 0 && own.size <= kLongestDirectory && !same(own, {given, given_bytes});
  Container* to = nullptr;
  if (is_other) {
    lose_path(c);
    to = container_at(spec, own);
    set_directory(c, own);
  }
  if (to == nullptr) to = same_directory(c);
  if (to != nullptr && to->directory_bytes == 0) take_path(c, *to);
  if (to != nullptr) {
    close_directory(c);
    lose_path(c);
  }
  if (!same(path_of(to != nullptr ? *to : c), {given, given_bytes}))
    note_other_path({given, given_bytes}, to != nullptr ? *to : c);
  return to != nullptr ? to : &c;
}

}  // namespace

base::Text option_name(const rules::LayerSpec& spec) {
  base::Text name;
  return rules::option_text(spec, "name", &name) ? name : base::Text{};
}

Container* find_or_make(const rules::LayerSpec& spec, base::Text directory, int* error) {
  *error = 0;
  if (Container* const c = container_at(spec, directory); c != nullptr) {
    c->used = ++uses;
    return c;
  }
  if (Container* const c = by_other_path(spec, directory); c != nullptr) {
    c->used = ++uses;
    return c;
  }
  *error = ENOMEM;
  if (directory.size > kLongestDirectory) return nullptr;
  Container* const c = new_container();
  if (c == nullptr) return nullptr;
  set_directory(*c, directory);
  c->spec = &spec;
  c->file = c->at = c->slot = c->block = -1;
  c->next_chunk = kFirstChunk;
  *error = 0;
  if (!open_directory(*c)) {
    lose_path(*c);
    return nullptr;
  }
  Container* const found = settle_path(*c, spec);
  found->used = ++uses;
  return found;
}

namespace {

// on(container), for each one of the directory that this process has.
template <typename On>
void for_each_in(base::Text directory, On on) {
  for (const Container* c : containers) {
    if (c != nullptr && c->segment.shared != nullptr && same(path_of(*c), directory)) on(*c);
  }
}

}  // namespace

bool names_changed_in(base::Text directory, base::Identity* is, uint64_t* changed) {
  bool found = false;
  *changed = 0;
  for_each_in(directory, [&](const Container& c) {
    const uint64_t at = base::load(&c.segment.shared->names_changed_ns);
    if (found && at <= *changed) return;
    found = true;
    *changed = at;
    *is = c.identity;
  });
  return found;
}

void note_names_seen(base::Text directory, uint64_t until) {
  for_each_in(directory, [&](const Container& c) {
    uint64_t* const at = &c.segment.shared->names_changed_ns;
    uint64_t before = base::load(at);
    while (before < until && !base::compare_exchange(at, &before, until)) {}
  });
}

bool find_path_again(Container& c) { return has_its_path(c) || follow_directory(c); }

void set_left_alone(Container& c, bool is) {
  if (c.left_alone && !is) stack::passes_no_more();
  c.left_alone = is;
  if (is) base::store(&any_left_alone, 1u);
  for (int i = 0; i < kContainers; ++i) {
    if (containers[i] == &c) base::store(&left_alone[i], is ? key_of(*c.spec, path_of(c)) : 0);
  }
}

bool is_left_alone(const rules::LayerSpec& spec, base::Text directory) {
  if (base::load(&any_left_alone) == 0) return false;
  const uint64_t key = key_of(spec, directory);
  for (const uint64_t& one : left_alone) {
    if (base::load_relaxed(&one) == key) return true;
  }
  return false;
}

void leave_all() {
  ++times_left;
  for (Container* c : containers) {
    if (c == nullptr) continue;
    leave(*c);
    c->open_files = 0;  // closes do not count any more (times_left)
  }
}

void forget_path(Container& c) {
  if (c.open_files == 0) leave(c);
  else set_left_alone(c, false);
  lose_path(c);
}

void forget_directory(base::Text directory) {
  for (Container* c : containers) {
    if (c != nullptr && c->open_files == 0 && same(path_of(*c), directory)) forget_path(*c);
  }
}

void forget_paths() {
  for (Container* c : containers) {
    if (c != nullptr && (!follow_directory(*c) || c->open_files == 0)) forget_path(*c);
  }
}

void forget_permissions() {
  for (Container* c : containers) {
    if (c == nullptr) continue;
    c->allowed_until = 0;
    if (Shared* const s = c->segment.shared; s != nullptr)
      base::store(&s->allowed_until_ns, uint64_t{0});
  }
}

void forget_all() {
  ++times_left;
  stack::passes_no_more();
  memset(left_alone, 0, sizeof left_alone);
  memset(static_cast<void*>(other_paths), 0, sizeof other_paths);
  for (Container*& c : containers) {
    if (c == nullptr) continue;
    if (c->file >= 0) stack::close_private(&c->file);
    close_directory(*c);
    if (c->segment.shared != nullptr) base::unmap(c->segment.shared, kSharedBytes);
    base::unmap(c, sizeof *c);
    c = nullptr;
  }
  forget_blocks();
}

}  // namespace weir::layers::pack
