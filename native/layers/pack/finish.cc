// SPDX-License-Identifier: Apache-2.0
// What the last process of the node does: the archive's directory, or real files.
#include <errno.h>
#include <string.h>

#include "base/credentials.h"
#include "layers/pack/container.h"
#include "layers/pack/transfer.h"

namespace weir::layers::pack {
namespace {

constexpr uint64_t kBuffer = 1u << 20;

// Records of the directory, written a buffer at a time.
class Out {
 public:
  Out(int fd, uint64_t at) : fd_(fd), at_(at) {
    const long room = base::map(kBuffer, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    if (base::failed(room)) error_ = ENOMEM;
    else data_ = reinterpret_cast<char*>(room);
  }
  ~Out() {
    if (data_ != nullptr) base::unmap(data_, kBuffer);
  }
  Out(const Out&) = delete;
  Out& operator=(const Out&) = delete;

  char* room(uint32_t bytes) {
    if (error_ == 0 && used_ + bytes > kBuffer) write();
    return error_ == 0 ? data_ + used_ : nullptr;
  }
  void add(uint32_t bytes) { used_ += bytes; }
  uint64_t at() const { return at_ + used_; }
  int end() {
    if (error_ == 0) write();
    return error_;
  }

 private:
  void write() {
    for (uint64_t done = 0; done < used_;) {
      const long put = write_at(fd_, data_ + done, used_ - done, at_ + done);
      if (put == -EINTR) continue;
      if (put <= 0) {
        error_ = put < 0 ? static_cast<int>(-put) : EIO;
        return;
      }
      ++counts.writes;
      done += static_cast<uint64_t>(put);
    }
    at_ += used_;
    used_ = 0;
  }

  int fd_;
  uint64_t at_, used_ = 0;
  char* data_ = nullptr;
  int error_ = 0;
};

bool has_any(const Container& c) {
  Cursor at;
  while (const Name* const n = next_name(c.segment, &at)) {
    const Version v = current(n);
    if (v.state == kPacked && v.container == 0) return true;
  }
  return false;
}

int write_directory(Container& c, uint64_t begin) {
  Shared* const s = c.segment.shared;
  Directory d{0, 0, begin};
  Out out(c.file, begin);
  Cursor at;
  while (const Name* const n = next_name(c.segment, &at)) {
    const Version v = current(n);
    if (v.state != kPacked || v.container != 0) continue;
    char* const to = out.room(kMostCentral);
    if (to == nullptr) break;
    out.add(encode_central(entry_of(n, v, kLive), to));
    ++d.count;
  }
  d.bytes = out.at() - d.at;
  if (char* const to = out.room(kTailBytes); to != nullptr) {
    encode_end(d, to);
    out.add(kTailBytes);
  }
  const uint64_t end = out.at();
  const int error = out.end();
  if (error != 0) return error;
  base::system_call(SYS_ftruncate, c.file, static_cast<long>(end));
  s->end = s->allocated = end;
  s->directory_at = d.at;
  s->changed = 0;
  return 0;
}

}  // namespace

int finish(Container& c, bool has_path) {
  Shared* const s = c.segment.shared;
  const bool any = has_any(c);
  if (base::load(&s->refused) != 0) return 0;  // not ours, or not read as a whole: left as it is
  if (base::load(&s->has_file) == 0 || (any && base::load(&s->changed) == 0)) return 0;
  if (const int error = open_file(c, true); error != 0) return error;
  if (any) {
    int error = write_directory(c, s->end);
    // No record was added, and so nothing reserved. The last record is followed by a directory
    // that no longer holds, or by what a killed process had reserved.
    if ((error == ENOSPC || error == EDQUOT) && s->records_end < s->end)
      error = write_directory(c, s->records_end);
    return error;
  }
  if (!has_path) return 0;
  base::unlink_path(c.path);  // nothing is left in it
  s->has_file = 0;
  return 0;
}

int make_real(Container& c, Name* n) {
  const HeldTurn turn(c.segment.shared, n);
  const Seen before = see(n);
  const Version v = current(n);
  if (v.state != kPacked) return 0;
  if (v.container != 0) return EROFS;
  if (!find_path_again(c)) return ENOENT;
  char path[sizeof c.path];
  if (!path_in(c, {n->text, n->bytes}, path, sizeof path)) return ENAMETOOLONG;
  const base::HoldsDescriptor held;
  const long fd =
      base::open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, v.mode | 0200);
  if (base::failed(fd)) return static_cast<int>(-fd);
  int error = fetch(c, v, n->bytes, static_cast<int>(fd));
  if (error == 0) {
    const timespec times[2] = {{static_cast<time_t>(v.seconds), v.nanoseconds},
                               {static_cast<time_t>(v.seconds), v.nanoseconds}};
    give_owner(static_cast<int>(fd), v);
    base::system_call(SYS_fchmod, fd, v.mode);
    base::system_call(SYS_utimensat, fd, 0, reinterpret_cast<long>(times), 0);
  }
  const long closed = base::close_fd(static_cast<int>(fd));
  if (error == 0 && base::failed(closed)) error = static_cast<int>(-closed);
  if (error == 0) error = mark_gone(c, n, kReal, &before);
  if (error == 0) {
    turned_real(true);
    return 0;
  }
  base::unlink_path(path);
  return error;
}

void give_owner(int fd, const Version& v) {
  const base::Acting as = base::acting(true);
  if (v.user != as.user || v.group != as.group) base::system_call(SYS_fchown, fd, v.user, v.group);
}

int extract_all(Container& c) {
  int first = 0;
  Cursor at;
  while (Name* const n = next_name(c.segment, &at)) {
    const int error = current(n).container == 0 ? make_real(c, n) : 0;
    if (first == 0) first = error;
  }
  return first;
}

}  // namespace weir::layers::pack
