// SPDX-License-Identifier: Apache-2.0
// Who takes part in a container: processes come by the shared file of their node, and the last one
// that leaves ends the archive.
#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#include "layers/machinery/node/place.h"
#include "layers/machinery/node/private.h"
#include "layers/machinery/stack/private.h"
#include "layers/pack/container.h"
#include "layers/pack/place.h"
#include "layers/writeback/client.h"

namespace weir::layers::pack {

namespace {

constexpr int kWaits = 400;  // for the daemon, each of kPauseNs
constexpr uint64_t kPauseNs = 5'000'000;

bool name_segment(Container& c, char* room) {
  if (!node::make_directory(room, node::kPathBytes, base::text("pack"), node::number()))
    return false;
  base::Writer path(c.segment.path, sizeof c.segment.path);
  path.add(room).add("/").add_number(c.identity.device).add("-").add_number(c.identity.number);
  path.add("-").add_number(base::hash(option_name(*c.spec), 0));
  return !path.cut();
}

// The shared file, locked; -errno. It is the one that has the name.
long open_segment(const Container& c, bool makes) {
  for (;;) {
    const long fd = base::open_at(AT_FDCWD, c.segment.path,
                                  O_RDWR | O_CLOEXEC | O_NOFOLLOW | (makes ? O_CREAT : 0), 0600);
    if (base::failed(fd)) return fd;
    long result;
    do result = base::system_call(SYS_flock, fd, LOCK_EX);
    while (result == -EINTR);
    struct stat about {};
    base::system_call(SYS_fstat, fd, reinterpret_cast<long>(&about));
    if (result == 0 && about.st_nlink != 0)
      return node::is_private_file(static_cast<int>(fd)) ? fd : -EPERM;
    base::close_fd(static_cast<int>(fd));
    if (result != 0) return result;
  }
}

bool lives(const Process& p) {
  const uint64_t who = base::load(&p.identity);
  return who != 0 && node::alive(unpacked_identity(who));
}

bool any_other_lives(const Shared* s, uint32_t but) {
  for (uint32_t i = 0; i < kProcesses; ++i) {
    if (i != but && lives(s->processes[i])) return true;
  }
  return false;
}

// What dead processes had closed is in the container, or the daemon will not come.
void wait_for_daemon(const Shared* s) {
  for (const Process& p : s->processes) {
    if (p.identity == 0 || p.arena[0] == 0 || lives(p)) continue;
    for (int i = 0; i < kWaits; ++i) {
      if (base::system_call(SYS_faccessat, AT_FDCWD, reinterpret_cast<long>(p.arena), 0) != 0)
        break;
      writeback::hurry();
      uint32_t nobody = 0;
      node::sleep_on(&nobody, 0, kPauseNs);
    }
  }
}

bool reset_segment(int fd, Shared* s) {
  if (base::resize(fd, 0) != 0 || base::resize(fd, kSharedBytes) != 0 ||
      base::allocate(fd, 0, kHeapAt + kHeapStep) != 0)
    return false;
  s->heap_used = kHeapAt;
  s->heap_backed = kHeapAt + kHeapStep;
  return true;
}

// Its place can be another's. A range that was reserved and not filled is worth keeping for who
// finds the disk full, but not where places are short.
bool is_free(const Process& p, bool are_short) {
  if (p.identity == 0 || p.identity == packed_identity(node::self())) return true;
  return !lives(p) && (p.chunk_offset == kNoChunk || (are_short && is_drained(p)));
}

bool take_place_of(Container& c, bool are_short) {
  Shared* const s = c.segment.shared;
  for (uint32_t i = 0; i < kProcesses; ++i) {
    Process& p = s->processes[i];
    if (!is_free(p, are_short)) continue;
    p.chunk_offset = kNoChunk;
    p.arena[0] = 0;
    p.file = c.file >= 0 ? c.file + 1 : 0;
    base::store(&p.identity, packed_identity(node::self()));
    c.process = i;
    return true;
  }
  return false;
}

bool take_place(Container& c) { return take_place_of(c, false) || take_place_of(c, true); }

void end_segment(Container& c) {
  if (c.segment.shared != nullptr) base::unmap(c.segment.shared, kSharedBytes);
  c.segment.shared = nullptr;
}

// From the directory and its containers. has_place: there is a container, or is to be one.
int fill_segment(Container& c, int fd, int directory, uint64_t end, bool makes, bool* has_place) {
  Shared* const s = c.segment.shared;
  if (!reset_segment(fd, s)) return ENOSPC;
  s->end = end;
  bool found = false;
  if (const int error = load(c, directory, makes, &found); error != 0) return error;
  if (!found && !makes) return 0;
  *has_place = true;
  const int error = take_place(c) ? 0 : EAGAIN;
  base::store(&s->magic, kSharedMagic);
  return error;
}

// Joins those that live, or begins anew from the container. 0 or an errno; without an error and
// without c.segment.shared there is no container.
int join(Container& c, int fd, bool makes) {
  struct stat about {};
  base::system_call(SYS_fstat, fd, reinterpret_cast<long>(&about));
  const bool whole = static_cast<uint64_t>(about.st_size) == kSharedBytes;
  if (!whole && base::resize(fd, kSharedBytes) != 0) return ENOSPC;
  const long at = base::map(kSharedBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
  if (base::failed(at)) return static_cast<int>(-at);
  auto* const s = c.segment.shared = reinterpret_cast<Shared*>(at);
  const bool sound = whole && base::load(&s->magic) == kSharedMagic;
  if (sound && any_other_lives(s, kProcesses)) return take_place(c) ? 0 : EAGAIN;
  if (sound) wait_for_daemon(s);
  const long directory = open_in(c, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int error = base::failed(directory) ? static_cast<int>(-directory) : 0;
  const bool is_real = error == 0 && stays_real(c, static_cast<int>(directory));
  bool has_place = false;
  if (error == 0 && !is_real)
    error = fill_segment(c, fd, static_cast<int>(directory), sound ? s->end : 0, makes, &has_place);
  if (!base::failed(directory)) base::close_fd(static_cast<int>(directory));
  set_left_alone(c, is_real);
  if (has_place) return error;
  base::unlink_path(c.segment.path);
  end_segment(c);
  return error;
}

// On tmpfs, where no process of the node has anything to do with the directory yet.
bool stays_real(Container& c) {
  c.lies_in_memory = c.at >= 0 && rules::option_number(*c.spec, "always", 0) == 0 &&
                     base::lies_in_memory(c.at);
  if (!c.lies_in_memory) return false;
  const long directory = open_in(c, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (base::failed(directory)) return false;
  const bool is_real = stays_real(c, static_cast<int>(directory));
  base::close_fd(static_cast<int>(directory));
  if (is_real) set_left_alone(c, true);
  return is_real;
}

int begin(Container& c, bool makes) {
  char room[node::kPathBytes];
  const base::HoldsDescriptor held;
  if (c.segment.path[0] == 0 && !name_segment(c, room)) return ENOMEM;
  const uint64_t made = made_containers(false);
  const bool looks = makes || made == 0 || c.absent != made;
  // Another directory may have the path since it was looked at.
  if (looks && c.at < 0) {
    c.segment.path[0] = 0;
    if (!open_directory(c)) return 0;
    if (!name_segment(c, room)) return ENOMEM;
  }
  long fd = open_segment(c, false);
  if (fd == -ENOENT && looks && stays_real(c)) return 0;
  if (fd == -ENOENT && looks) fd = open_segment(c, true);
  if (fd == -ENOENT && looks && name_segment(c, room)) fd = open_segment(c, true);
  if (fd == -ENOENT) return 0;
  if (base::failed(fd)) return static_cast<int>(-fd);
  const int error = join(c, static_cast<int>(fd), makes);
  if (error != 0) end_segment(c);
  c.absent = error == 0 && c.segment.shared == nullptr ? made : 0;
  base::system_call(SYS_flock, fd, LOCK_UN);  // the mapping keeps what a close would end
  base::close_fd(static_cast<int>(fd));
  return error;
}

}  // namespace

Container* container_of(const rules::LayerSpec& spec, base::Text directory, bool makes,
                        int* error) {
  Container* const c = find_or_make(spec, directory, error);
  if (c == nullptr || c->left_alone) return nullptr;
  if (c->segment.shared == nullptr) {
    *error = begin(*c, makes);
    if (c->segment.shared == nullptr) close_directory(*c);
  }
  if (*error == 0 && c->segment.shared != nullptr && c->segment.shared->refused != 0)
    *error = static_cast<int>(c->segment.shared->refused);
  return *error == 0 && c->segment.shared != nullptr ? c : nullptr;
}

void note_arena(Container& c) {
  const char* const directory = node::own_directory();
  Process& p = c.segment.shared->processes[c.process];
  base::Writer path(p.arena, sizeof p.arena);
  path.add(directory != nullptr ? directory : "").add("/").add(writeback::name_of(c.arena));
  if (path.cut()) p.arena[0] = 0;
}

void leave(Container& c) {
  set_left_alone(c, false);
  close_directory(c);
  if (c.segment.shared == nullptr) return;
  const base::HoldsDescriptor held;
  flush(c);
  const long fd = open_segment(c, false);
  Shared* const s = c.segment.shared;
  const bool last = !base::failed(fd) && !any_other_lives(s, c.process);
  if (last) {
    base::Text extract;
    wait_for_daemon(s);
    const bool has_path = find_path_again(c);
    if (has_path && rules::option_text(*c.spec, "extract", &extract) &&
        rules::is(extract, "onexit"))
      extract_all(c);
    flush(c);
    finish(c, has_path);
  }
  end_lock(c);  // before others can begin: they would take it for another node's
  if (last) base::unlink_path(c.segment.path);
  writeback::destroy_arena(c.arena);
  c.arena = nullptr;
  c.slot = c.block = -1;
  base::store(&s->processes[c.process].file, 0);
  base::store(&s->processes[c.process].identity, uint64_t{0});
  if (!base::failed(fd)) base::close_fd(static_cast<int>(fd));
  if (c.file >= 0) stack::close_private(&c.file);
  end_segment(c);
  c.absent = 0;
}

void add_node(base::Writer& to) {
  utsname about{};
  base::system_call(SYS_uname, reinterpret_cast<long>(&about));
  about.nodename[64] = 0;
  to.add(about.nodename);
  if (node::number() != 0) to.add(".").add_number(node::number());
}

}  // namespace weir::layers::pack
