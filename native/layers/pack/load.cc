// SPDX-License-Identifier: Apache-2.0
// What a directory has when the first process of the node comes to it: its real names, the records
// of this node's container, and those of other nodes. By the archive's directory where that is the
// last thing in the file; else, after a crash, by the records themselves.
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "layers/machinery/stack/private.h"
#include "layers/pack/container.h"
#include "layers/pack/crc32.h"
#include "layers/pack/place.h"
#include "layers/pack/transfer.h"

namespace weir::layers::pack {
namespace {

constexpr uint64_t kWindow = 4u << 20;
constexpr int kNoContainer = EMEDIUMTYPE;
constexpr int32_t kListed = -1;  // live_maker of a name that the directory has, while it is read

// Memory of one load.
class Room {
 public:
  explicit Room(uint64_t bytes) : bytes_(bytes) {
    const long at = base::map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    if (!base::failed(at)) data_ = reinterpret_cast<char*>(at);
  }
  ~Room() {
    if (data_ != nullptr) base::unmap(data_, bytes_);
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
  uint64_t bytes_;
};

// Bytes read; fewer at the end of the file. -errno.
long read_some(int fd, char* to, uint64_t bytes, uint64_t at) {
  uint64_t done = 0;
  while (done < bytes) {
    const long got = read_at(fd, to + done, bytes - done, at + done);
    if (got == -EINTR) continue;
    if (got < 0) return got;
    if (got == 0) break;
    ++counts.reads;
    done += static_cast<uint64_t>(got);
  }
  return static_cast<long>(done);
}

bool is_newer(const Version& a, const Version& b) {
  if (a.container == b.container) return a.sequence >= b.sequence;
  return a.seconds != b.seconds ? a.seconds > b.seconds : a.nanoseconds >= b.nanoseconds;
}

int enter(Container& c, const Entry& e, uint8_t container) {
  Shared* const s = c.segment.shared;
  if (container == 0 && e.sequence >= s->sequence) s->sequence = e.sequence + 1;
  if (e.state == kOwner) return 0;
  Name* const n = make_name(c.segment, {e.name, e.name_bytes});
  if (n == nullptr) return ENOSPC;
  Version v{};
  v.offset = e.offset;
  v.bytes = e.bytes;
  v.sequence = e.sequence;
  // One of its own: other nodes count from 1, too.
  v.birth = container == 0 ? e.sequence : base::fetch_add(&s->sequence, uint64_t{1});
  v.seconds = e.modified.tv_sec;
  v.nanoseconds = static_cast<uint32_t>(e.modified.tv_nsec);
  v.crc = e.crc;
  v.user = e.user;
  v.group = e.group;
  v.mode = e.mode;
  v.process = kProcesses;
  v.state = e.state == kDead ? kAbsent : kPacked;
  v.container = container;
  const Version before = current(n);
  if (before.state == kAbsent && before.sequence == 0 ? true
      : before.state == kReal ? v.state == kPacked
                              : is_newer(v, before))
    publish(n, v);
  return 0;
}

int read_directory(Container& c, int fd, const Directory& d, uint8_t container) {
  if (d.bytes == 0) return 0;
  const Room room(d.bytes);
  if (room.data() == nullptr) return ENOMEM;
  const long got = read_some(fd, room.data(), d.bytes, d.at);
  if (got < 0) return static_cast<int>(-got);
  const auto bytes = static_cast<uint64_t>(got);
  for (uint64_t at = 0, i = 0; i < d.count; ++i) {
    Entry e;
    uint32_t used = 0;
    if (!parse_central(room.data() + at, bytes - at, &e, &used) || !e.ours) return EBADMSG;
    if (const int error = enter(c, e, container); error != 0) return error;
    at += used;
  }
  return 0;
}

// Whether the contents behind a header are those that were stored: a process may have been killed
// between the two.
bool is_whole(int fd, const Entry& e, char* room) {
  const uint64_t from = data_offset(e);
  uint32_t crc = 0;
  for (uint64_t done = 0; done < e.bytes;) {
    const uint64_t n = e.bytes - done < kWindow ? e.bytes - done : kWindow;
    if (read_some(fd, room, n, from + done) != static_cast<long>(n)) return false;
    crc = crc32(crc, room, n);
    done += n;
  }
  return crc == e.crc;
}

// Where the next record may begin behind `at`, in a window of n bytes.
uint64_t next_candidate(const char* window, uint64_t n, uint64_t at) {
  for (++at; at + 4 <= n; ++at) {
    const void* const found = memchr(window + at, 'P', n - at);
    if (found == nullptr) return n;
    at = static_cast<uint64_t>(static_cast<const char*>(found) - window);
    if (at + 4 <= n && window[at + 1] == 'K') return at;
  }
  return n >= 3 ? n - 3 : n;
}

// All records, from the beginning. What lies between them is passed over.
int scan(Container& c, int fd, uint64_t bytes, uint8_t container) {
  Shared* const s = c.segment.shared;
  const Room window(kWindow), contents(kWindow);
  if (window.data() == nullptr || contents.data() == nullptr) return ENOMEM;
  for (uint64_t begin = 0; begin < bytes;) {
    const long got = read_some(fd, window.data(), kWindow, begin);
    if (got < 0) return static_cast<int>(-got);
    const auto n = static_cast<uint64_t>(got);
    uint64_t at = 0;
    while (at < n) {
      Entry e{};
      e.offset = begin + at;
      uint64_t used = 0;
      const Found found = parse_record(window.data() + at, n - at, &e, &used);
      if (found == Found::kShort && begin + n < bytes && at != 0) break;
      if (found == Found::kNothing || found == Found::kShort) {
        at = next_candidate(window.data(), n, at);
        continue;
      }
      if (found == Found::kFile && is_whole(fd, e, contents.data())) {
        if (const int error = enter(c, e, container); error != 0) return error;
        used += e.bytes;
      }
      if (found == Found::kFile && container == 0) s->records_end = begin + at + used;
      at += used;
    }
    if (n == 0) break;
    begin += at != 0 ? at : n;
  }
  return 0;
}

// The first record says whose it is.
int check_owner(int fd, uint64_t bytes) {
  char head[kOwnerBytes];
  if (bytes == 0) return 0;
  if (read_some(fd, head, sizeof head, 0) != static_cast<long>(sizeof head)) return kNoContainer;
  Entry e{};
  uint64_t used = 0;
  return parse_record(head, sizeof head, &e, &used) == Found::kFile && e.state == kOwner
             ? 0
             : kNoContainer;
}

int load_file(Container& c, int fd, uint8_t container) {
  Shared* const s = c.segment.shared;
  struct stat about;
  if (base::system_call(SYS_fstat, fd, reinterpret_cast<long>(&about)) != 0) return EIO;
  const auto bytes = static_cast<uint64_t>(about.st_size);
  if (const int error = check_owner(fd, bytes); error != 0) return error;
  if (container == 0) {
    if (bytes > s->end) s->end = bytes;
    s->allocated = bytes;
    s->records_end = bytes < kOwnerBytes ? bytes : kOwnerBytes;
  }
  Directory d;
  char tail[kTailBytes];
  if (bytes >= kTailBytes &&
      read_some(fd, tail, kTailBytes, bytes - kTailBytes) == static_cast<long>(kTailBytes) &&
      parse_end(tail, bytes, &d) && read_directory(c, fd, d, container) == 0) {
    if (container == 0) s->directory_at = s->records_end = d.at;
    return 0;
  }
  if (container == 0) s->changed = 1;
  return scan(c, fd, bytes, container);
}

// A name of the directory.
int see(Container& c, base::Text name, bool* plain) {
  Shared* const s = c.segment.shared;
  const int kind = kind_of_name(*c.spec, name);
  if (kind == 1) *plain = true;
  if (kind == 2 && s->other_count < kOthers)
    memcpy(s->others[s->other_count++], name.data, name.size + 1);
  if (kind != 0 || name.size > kLongestName) return 0;
  Name* const n = make_name(c.segment, name);
  if (n == nullptr) return ENOSPC;
  Version v{};
  v.state = kReal;
  publish(n, v);
  n->live_maker = kListed;
  return 0;
}

// A record that a file was removed may be that of its packed form, which the real one has replaced.
void end_listing(const Container& c) {
  Cursor at;
  while (Name* const n = next_name(c.segment, &at)) {
    if (n->live_maker != kListed) continue;
    n->live_maker = 0;
    Version v{};
    v.state = kReal;
    if (current(n).state == kAbsent) publish(n, v);
  }
}

// each(name), until it gives an errno. 0 or that.
template <typename Each>
int for_each_name(int directory, Each each) {
  const Room room(64u << 10);
  if (room.data() == nullptr) return ENOMEM;
  for (;;) {
    const long got = base::system_call(SYS_getdents64, directory,
                                       reinterpret_cast<long>(room.data()), 64 << 10);
    if (got <= 0) return static_cast<int>(-got);
    for (long at = 0; at < got;) {
      const auto* const one = reinterpret_cast<const dirent64*>(room.data() + at);
      at += one->d_reclen;
      if (strcmp(one->d_name, ".") == 0 || strcmp(one->d_name, "..") == 0) continue;
      if (const int error = each(base::text(one->d_name)); error != 0) return error;
    }
  }
}

int see_all(Container& c, int directory, bool* plain) {
  return for_each_name(directory, [&](base::Text name) { return see(c, name, plain); });
}

bool is_there(int directory, const char* name) {
  return base::system_call(SYS_faccessat, directory, reinterpret_cast<long>(name), F_OK) == 0;
}

// This node's, by its name.
bool has_own_container(const Container& c, int directory) {
  const base::Text name = option_name(*c.spec);
  char own[kLongestName + 1];
  base::Writer(own, sizeof own).add(name);
  if (is_there(directory, own)) return true;
  base::Writer text(own, sizeof own);
  text.add({name.data, name.size - 4}).add("@");
  add_node(text);
  text.add(".zip");
  return !text.cut() && is_there(directory, own);
}

// A list of more names than this costs more than the files that are opened. tmpfs counts 20 bytes
// for each.
constexpr off_t kLongList = 1000 * 20;

// Of any node, or of this one where the list is long. The directory is read from its beginning
// again afterwards.
bool any_container(const Container& c, int directory) {
  struct stat about;
  const bool known = base::system_call(SYS_fstat, directory, reinterpret_cast<long>(&about)) == 0;
  const uint64_t state = known ? state_of(c, about) : 0;
  if (state != 0 && has_no_container(state, false)) return false;
  if (known && about.st_size > kLongList) return has_own_container(c, directory);
  const auto stop_at = [&](base::Text name) { return kind_of_name(*c.spec, name) != 0 ? 1 : 0; };
  const bool any = for_each_name(directory, stop_at) != 0;
  base::system_call(SYS_lseek, directory, 0, SEEK_SET);
  if (any) return true;
  if (state != 0) has_no_container(state, true);
  return false;
}

// The containers of other nodes. This node's own of an earlier step, with the node in its name, is
// among them: it becomes the one that is written when NAME.zip is another's.
int load_others(Container& c) {
  Shared* const s = c.segment.shared;
  for (uint32_t i = 0; i < s->other_count; ++i) {
    if (strcmp(s->others[i], s->own) == 0) continue;
    const long fd = open_in(c, s->others[i], O_RDONLY | O_CLOEXEC);
    if (base::failed(fd)) return static_cast<int>(-fd);
    const int error = load_file(c, static_cast<int>(fd), static_cast<uint8_t>(i + 1));
    base::close_fd(static_cast<int>(fd));
    if (error != 0) return error;
  }
  return 0;
}

int load_own(Container& c, bool plain) {
  Shared* const s = c.segment.shared;
  base::Text name;
  rules::option_text(*c.spec, "name", &name);
  memcpy(s->own, name.data, name.size);
  long fd = plain ? take_file(c, s->own, true, 0) : -ENOENT;
  if (fd == -EAGAIN) {
    memcpy(s->others[s->other_count < kOthers ? s->other_count++ : kOthers - 1], s->own,
           name.size + 1);
    base::Writer own(s->own, sizeof s->own);
    own.add({name.data, name.size - 4}).add("@");
    add_node(own);
    own.add(".zip");
    fd = take_file(c, s->own, true, 0);
  }
  if (fd == -ENOENT) return 0;
  if (base::failed(fd)) return static_cast<int>(-fd);
  // Empty: another node has just made it, and takes another name when it cannot lock it.
  struct stat about;
  if (c.writable && base::system_call(SYS_fstat, c.file, reinterpret_cast<long>(&about)) == 0 &&
      about.st_size == 0)
    return begin_file(c);
  identify_open(c.file, &s->file);
  s->has_file = 1;
  return load_file(c, c.file, 0);
}

// What the directory will take that this node writes.
uint64_t rows_of(const Container& c) {
  uint64_t bytes = 0;
  Cursor at;
  while (const Name* const n = next_name(c.segment, &at)) {
    const Version v = current(n);
    if (v.state == kPacked && v.container == 0) bytes += most_central(n->bytes);
  }
  return bytes;
}

}  // namespace

int list_directory(Container& c, int directory, int (*each)(Container&, base::Text name)) {
  return for_each_name(directory, [&](base::Text name) { return each(c, name); });
}

int kind_of_name(const rules::LayerSpec& spec, base::Text name) {
  base::Text own;
  if (!rules::option_text(spec, "name", &own) || own.size < 5) return 0;
  if (name.size == own.size && memcmp(name.data, own.data, own.size) == 0) return 1;
  const size_t stem = own.size - 4;
  return name.size > own.size && memcmp(name.data, own.data, stem) == 0 && name.data[stem] == '@' &&
                 memcmp(name.data + name.size - 4, ".zip", 4) == 0
             ? 2
             : 0;
}

bool stays_real(const Container& c, int directory) {
  return c.lies_in_memory && !any_container(c, directory);
}

int load(Container& c, int directory, bool makes, bool* found) {
  Shared* const s = c.segment.shared;
  s->sequence = 1;
  s->looked_until_ns = base::now_ns() + kLookedAtNs;
  bool plain = false;
  int error = see_all(c, directory, &plain);
  *found = plain || s->other_count != 0;
  if (error != 0 || (!*found && !makes)) return error;
  if (error == 0) error = load_own(c, plain);
  if (error == 0) error = load_others(c);
  end_listing(c);
  s->directory_bytes = rows_of(c);
  s->refused = static_cast<uint32_t>(error);
  return 0;
}

}  // namespace weir::layers::pack
