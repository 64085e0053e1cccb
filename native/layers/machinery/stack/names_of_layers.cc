// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/names_of_layers.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>

#include <initializer_list>

#include "base/directory_path.h"
#include "base/scratch.h"
#include "base/section.h"
#include "base/syscall.h"
#include "layers/machinery/stack/build.h"
#include "layers/machinery/stack/in_memory.h"
#include "layers/machinery/stack/inside.h"
#include "layers/machinery/stack/notes.h"
#include "layers/machinery/stack/table.h"

namespace weir::stack {

constinit uint32_t passes_changed = 0;
constinit uint32_t layers_with_names = 0, layers_that_direct = 0;
constinit const char* names_mistake = nullptr;
constinit uint32_t creation_mask = 022;

namespace {

constexpr size_t kLongestPath = 4096;
constexpr uint32_t kLayers = 4;
constinit const NamesOfLayer* layers[kLayers] = {};

template <typename Each>
void for_each_layer(Each each) {
  for (uint32_t i = 0; i < base::load(&layers_with_names); ++i) each(*layers[i]);
}

const NamesOfLayer* names_of(const rules::LayerSpec& layer) {
  const Kind* const kind = find_kind(layer.name);
  return kind != nullptr ? kind->names : nullptr;
}

uint32_t mask_of_process() {
  char about[2048];
  const long n = base::read_file("/proc/self/status", about, sizeof about);
  const char* const line = n > 0 ? strstr(about, "\nUmask:\t") : nullptr;
  uint32_t mask = 0;
  for (const char* digit = line != nullptr ? line + 8 : "022"; *digit >= '0' && *digit <= '7';)
    mask = mask * 8 + static_cast<uint32_t>(*digit++ - '0');
  return mask;
}

void add_layer(const NamesOfLayer& names) {
  const uint32_t count = layers_with_names;
  for (uint32_t i = 0; i < count; ++i) {
    if (layers[i] == &names) return;
  }
  if (count == kLayers) return;
  if (count == 0) base::store(&creation_mask, mask_of_process());
  layers[count] = &names;
  if (names.find != nullptr) base::store(&layers_that_direct, layers_that_direct + 1);
  base::store(&layers_with_names, count + 1);
}

// The directory as the kernel finds it, whatever links and ".." it has.
bool make_path_of_real_directory(int directory, const char* path, char* to) {
  const base::Scratch given;
  if (given.data() == nullptr || !base::copy_text(given.data(), path, kLongestPath)) return false;
  char* const slash = strrchr(given.data(), '/');
  const char* const name = slash != nullptr ? slash + 1 : given.data();
  if (name[0] == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return false;
  if (slash != nullptr) *slash = 0;
  const char* const above = slash == nullptr ? "." : slash == given.data() ? "/" : given.data();
  base::Text begin;
  if (!find_directory({directory, above, true}, to, &begin)) return false;
  base::Writer text(to + begin.size, base::Scratch::kBytes - begin.size);
  text.add(begin.size == 1 ? "" : "/").add(name);
  return !text.cut();
}

// Asks the kernel where a path has ".." or the like.
bool make_real_path(int directory, const char* path, char* to) {
  const base::Scratch given;
  if (given.data() == nullptr || !base::copy_text(given.data(), path, kLongestPath)) return false;
  if (rules::is_exact(base::text(given.data())))
    return make_path_absolute(directory, given.data(), to);
  return strchr(given.data(), '/') != nullptr &&
         make_path_of_real_directory(directory, given.data(), to);
}

bool is_path(const char* path) { return path != nullptr && path[0] != 0; }

}  // namespace

bool has_names(const rules::Stack& stack) {
  for (uint32_t i = 0; i < stack.count; ++i) {
    if (names_of(stack.layers[i]) != nullptr) return true;
  }
  return false;
}

const char* begin_names(const rules::Stack& stack) {
  const char* mistake = nullptr;
  for (uint32_t i = 0; i < stack.count; ++i) {
    const NamesOfLayer* const names = names_of(stack.layers[i]);
    if (names == nullptr) continue;
    const char* const why = names->begin != nullptr ? names->begin(stack.layers[i]) : nullptr;
    if (why == nullptr) add_layer(*names);
    else mistake = why;
  }
  return mistake;
}

Result ask_layers(int directory, const char* path, bool follow, const Ask& ask, char* to) {
  if (!any_layer_has_names() || !active() || path == nullptr) return kPass;
  const bool all = may_change();
  const int before = errno;
  const base::Section section;
  const base::Scratch given;
  Result r = kPass;
  if (given.data() != nullptr && base::copy_text(given.data(), path, kLongestPath) &&
      is_path(given.data())) {
    if (WEIR_UNLIKELY(leads_to_files(given.data()))) settle_all_memory();
    const GivenPath name{directory, given.data(), follow};
    for_each_layer([&](const NamesOfLayer& layer) {
      if (r == kPass && (all || layer.apart)) r = ask(layer, name, to);
    });
  }
  errno = before;
  return r;
}

namespace {

constexpr int kMostLinks = 40;  // as many as the kernel follows

// `path` may be `to`.
bool follow_link(int directory, const char* path, char* to) {
  const int before = errno;
  const base::Section section;
  const base::Scratch given, target;
  char* const at = given.data();
  bool found = false;
  if (to != nullptr && at != nullptr && target.data() != nullptr && may_change() &&
      base::copy_text(at, path, kLongestPath)) {
    const long n = base::system_call(SYS_readlinkat, directory, reinterpret_cast<long>(at),
                                     reinterpret_cast<long>(target.data()), kLongestPath - 1);
    if (!base::failed(n)) {
      target.data()[n] = 0;
      char* const slash = strrchr(at, '/');
      char* const last = slash != nullptr ? slash + 1 : at;
      base::Writer text(last, base::Scratch::kBytes - static_cast<size_t>(last - at));
      text.add(target.data());
      found = target.data()[0] == '/' ? make_real_path(AT_FDCWD, target.data(), to)
                                      : !text.cut() && make_real_path(directory, at, to);
    }
  }
  errno = before;
  return found;
}

}  // namespace

bool find_target(int directory, const char* path, char* to) {
  if (!follow_link(directory, path, to)) return false;
  for (int links = 1; links < kMostLinks && follow_link(AT_FDCWD, to, to);) ++links;
  return true;
}

bool find_real_path(const char* path, char* to) {
  if (to == nullptr || !may_change()) return false;
  const bool leads = find_target(AT_FDCWD, path, to);
  const base::Section section;
  return make_path_of_real_directory(AT_FDCWD, leads ? to : path, to);
}

bool is_below_file(int directory, const char* path, bool by_slash) {
  const base::Section section;
  const base::Scratch above, tier;
  if (above.data() == nullptr || tier.data() == nullptr || path == nullptr ||
      !base::copy_text(above.data(), path, kLongestPath))
    return false;
  char* end = above.data() + strlen(above.data());
  const auto cut = [&](bool slashes) {
    while (end > above.data() && (end[-1] == '/') == slashes) *--end = 0;
  };
  const bool has_slash = end > above.data() + 1 && end[-1] == '/';
  if (by_slash && !has_slash) return false;
  if (!has_slash) cut(false);
  cut(true);
  struct stat about;
  const Result r = ask_layers(
      directory, above.data(), true,
      [&about](const NamesOfLayer& layer, const GivenPath& name, char* to) -> Result {
        if (layer.find != nullptr && layer.find(name, to)) return kDirected;
        return layer.stat != nullptr ? layer.stat(name, &about) : kPass;
      },
      tier.data());
  return r == 0 || r == kDirected;
}

Result ask_of_target(int directory, const char* path, const Ask& ask, char* to) {
  return path != nullptr && find_target(directory, path, to)
             ? ask_layers(AT_FDCWD, to, false, ask, to)
             : kPass;
}

namespace {

// The layer in the rule for the name; null: none.
const NamesOfLayer* owner_of(const GivenPath& name) {
  const base::Scratch room;
  if (room.data() == nullptr || !make_real_path(name.directory, name.path, room.data()))
    return nullptr;
  const NamesOfLayer* owner = nullptr;
  for_each_layer([&](const NamesOfLayer& layer) {
    if (owner == nullptr && layer_of_rule(room.data(), layer) != nullptr) owner = &layer;
  });
  return owner;
}

// A file of another layer than the one that the new name has is real before it gets that.
Result bring_to_other_layer(const GivenPath& from, const GivenPath& to) {
  const NamesOfLayer* const owner = layers_with_names > 1 ? owner_of(to) : nullptr;
  Result failed = 0;
  for_each_layer([&](const NamesOfLayer& layer) {
    if (owner == nullptr || owner == &layer || layer.bring == nullptr || failed < 0) return;
    const Result r = layer.bring(from);
    if (r != kPass && r < 0) failed = r;
  });
  return failed;
}

}  // namespace

Result ask_to_rename(int directory, const char* path, int to_directory, const char* to,
                     unsigned flags) {
  if (to == nullptr) return kPass;
  const base::Scratch other;
  if (other.data() == nullptr || !base::copy_text(other.data(), to, kLongestPath) ||
      !is_path(other.data()))
    return kPass;
  const GivenPath new_name{to_directory, other.data(), false};
  bool asked = false;
  return ask_layers(directory, path, false,
                    [&](const NamesOfLayer& layer, const GivenPath& from, char*) -> Result {
                      if (!asked) {
                        asked = true;
                        const Result brought = bring_to_other_layer(from, new_name);
                        if (brought < 0) return brought;
                      }
                      return layer.rename != nullptr ? layer.rename(from, new_name, flags) : kPass;
                    });
}

Result find_opened(int fd, const char* path, int flags) {
  const base::Scratch given, room;
  if (!active() || given.data() == nullptr || room.data() == nullptr) return 0;
  const base::Text at = base::directory_path(fd, room.data(), base::Scratch::kBytes - 1);
  if (at.size == 0 || at.data[0] != '/') return 0;
  room.data()[at.size] = 0;
  if (path != nullptr && base::copy_text(given.data(), path, kLongestPath) &&
      strcmp(given.data(), at.data) == 0)
    return 0;
  const Result r = ask_layers(AT_FDCWD, at.data, false,
                              [flags](const NamesOfLayer& layer, const GivenPath& name, char*) {
                                return layer.opened != nullptr ? layer.opened(name, flags) : kPass;
                              });
  return r == kPass ? 0 : r;
}

void name_made(int directory, const char* path) {
  ask_layers(directory, path, false, [](const NamesOfLayer& layer, const GivenPath& name, char*) {
    if (layer.made != nullptr) layer.made(name);
    return kPass;
  });
}

void name_removed(int directory, const char* path) {
  ask_layers(directory, path, false, [](const NamesOfLayer& layer, const GivenPath& name, char*) {
    if (layer.removed != nullptr) layer.removed(name);
    return kPass;
  });
}

namespace {

// What is there now under one of the two names of a rename. True: a directory.
bool renew_name(int directory, const char* path) {
  struct stat about;
  const long seen =
      base::system_call(SYS_newfstatat, directory, reinterpret_cast<long>(path),
                        reinterpret_cast<long>(&about), AT_SYMLINK_NOFOLLOW);
  if (seen == 0) name_made(directory, path);
  else name_removed(directory, path);
  return seen == 0 && S_ISDIR(about.st_mode);
}

}  // namespace

void names_renamed(int directory, const char* path, int to_directory, const char* to) {
  bool any = false;
  for_each_layer([&](const NamesOfLayer& layer) {
    any |= layer.made != nullptr || layer.removed != nullptr || layer.directories_moved != nullptr;
  });
  if (!any) return;
  const int before = errno;
  const base::Section section;
  const bool old_one = renew_name(directory, path), new_one = renew_name(to_directory, to);
  if (old_one || new_one) {
    for_each_layer([](const NamesOfLayer& layer) {
      if (layer.directories_moved != nullptr) layer.directories_moved();
    });
  }
  errno = before;
}

void list_names(int directory, bool (*each)(void* with, const char* name, uint64_t inode),
                void* with) {
  if (!active() || !may_change()) return;
  const int before = errno;
  const base::Section section;
  for_each_layer([&](const NamesOfLayer& layer) {
    if (layer.list != nullptr) layer.list(directory, each, with);
  });
  errno = before;
}

bool is_hidden(const char* name) {
  const base::Section section;
  bool hidden = false;
  for_each_layer([&](const NamesOfLayer& layer) {
    hidden = hidden || (layer.hides != nullptr && layer.hides(name));
  });
  return hidden;
}

bool has_layer_with_names(const File* f) {
  for (int i = 0; i < f->layer_count; ++i) {
    if (f->top[i].kind->names != nullptr) return true;
  }
  return false;
}

namespace {

// A standard stream of the C library on the file may write after this, by calls that nobody sees.
bool serves_stream(const File* f) {
  for (const FILE* const stream : {stdin, stdout, stderr}) {
    if (stream != nullptr && stream->_IO_buf_base != nullptr && stream->_fileno >= 0 &&
        known_at(stream->_fileno) == f)
      return true;
  }
  return false;
}

}  // namespace

void end_names(Ending how) {
  if (!any_layer_has_names() || !may_change()) return;
  const int before = errno;
  for (int fd = 0; fd <= highest_known(); ++fd) {
    File* const f = known_at(fd);
    if (f == nullptr || f->descriptor != fd || f->left) continue;
    if (f->in_memory && how == Ending::kExit && (f->flags & O_ACCMODE) != O_RDONLY &&
        serves_stream(f) && make_real(f, Reason::kStreams))
      continue;
    for (int i = 0; i < f->layer_count; ++i) {
      Layer& layer = f->top[i];
      if (layer.kind->names == nullptr || layer.kind->names->end_open == nullptr) continue;
      const base::SignalsBlocked blocked;
      const Result r = layer.kind->names->end_open(layer, how);
      if (r < 0) defer(f, &layer, static_cast<int>(-r), 0);
    }
  }
  const base::SignalsBlocked blocked;
  for_each_layer([](const NamesOfLayer& layer) {
    if (layer.end != nullptr) layer.end();
  });
  errno = before;
}

bool cleared_away(int directory, const char* path) {
  const int before = errno;
  bool any = false;
  ask_layers(directory, path, false, [&](const NamesOfLayer& layer, const GivenPath& name, char*) {
    any |= layer.remove_directory != nullptr;
    return layer.remove_directory != nullptr ? layer.remove_directory(name) : kPass;
  });
  errno = before;
  return any;
}

void patch_stat_inherited(int fd, struct stat* to) {
  const int before = errno;
  for_each_layer([&](const NamesOfLayer& layer) {
    if (layer.is_memory != nullptr && layer.is_memory(fd)) to->st_nlink = 1;
  });
  errno = before;
}

void names_forked() {
  for_each_layer([](const NamesOfLayer& layer) {
    if (layer.forked != nullptr) layer.forked();
  });
}

bool find_place(const GivenPath& name, const NamesOfLayer& names, char* room, Place* to) {
  if (room == nullptr || !may_change() || !make_real_path(name.directory, name.path, room))
    return false;
  to->spec = layer_of_rule(room, names);
  char* const slash = strrchr(room, '/');
  to->name = base::text(slash + 1);
  to->directory = {room, slash == room ? 1 : static_cast<size_t>(slash - room)};
  return to->name.size != 0;
}

bool find_directory(int fd, char* room, base::Text* to) {
  if (room == nullptr) return false;
  *to = base::directory_path(fd, room, base::Scratch::kBytes / 2);
  if (to->size != 0) room[to->size] = 0;
  return to->size != 0;
}

bool find_directory(const GivenPath& name, char* room, base::Text* to) {
  const base::HoldsDescriptor held;
  const long fd = base::open_at(name.directory, name.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (base::failed(fd)) return false;
  const bool found = find_directory(static_cast<int>(fd), room, to);
  base::close_fd(static_cast<int>(fd));
  return found;
}

const rules::LayerSpec* layer_of_rule(const char* absolute_path, const NamesOfLayer& names) {
  const rules::Rule* const rule = rule_for(absolute_path);
  for (uint32_t i = 0; rule != nullptr && i < rule->stack.count; ++i) {
    if (names_of(rule->stack.layers[i]) == &names) return &rule->stack.layers[i];
  }
  return nullptr;
}

bool next_layer_of_rules(const NamesOfLayer& names, const rules::LayerSpec** spec) {
  bool behind = *spec == nullptr;
  for (uint32_t i = 0; i < rules_now().rule_count; ++i) {
    const rules::Stack& stack = rules_now().rules[i].stack;
    for (uint32_t k = 0; k < stack.count; ++k) {
      if (names_of(stack.layers[k]) != &names) continue;
      if (behind) {
        *spec = &stack.layers[k];
        return true;
      }
      behind = *spec == &stack.layers[k];
    }
  }
  return false;
}

}  // namespace weir::stack
