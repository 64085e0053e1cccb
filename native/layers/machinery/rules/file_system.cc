// SPDX-License-Identifier: Apache-2.0
// What lies under a path: bytes and kind of file system. The kind is the word that
// /proc/self/mountinfo has for the file's device, read once per device: statfs cannot tell one FUSE
// file system from another, nor ext3 from ext4. What has no line there (subvolumes) is known by
// statfs' number.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/atomic.h"
#include "base/scratch.h"
#include "base/syscall.h"
#include "layers/machinery/rules/rules.h"

namespace weir::rules {
namespace {

using base::Text;

constexpr int kDevices = 32;
constexpr size_t kNameBytes = 48;

// A device of which the kind is known. Claimed, filled and then never changed.
struct Device {
  uint32_t state;  // 0 free, 1 being filled, 2 filled
  uint32_t name_bytes;
  uint64_t device;
  char name[kNameBytes];
};
constinit Device devices[kDevices] = {};

struct Magic {
  int64_t number;
  const char* name;
};
constexpr Magic kMagics[] = {
    {0x0bd00bd0, "lustre"}, {0x6969, "nfs"},         {0x01021994, "tmpfs"}, {0x58465342, "xfs"},
    {0x9123683e, "btrfs"},  {0x47504653, "gpfs"},    {0x00c36400, "ceph"},  {0xef53, "ext4"},
    {0x65735546, "fuse"},   {0x794c7630, "overlay"}, {0x2fc12fc1, "zfs"},   {0x19830326, "beegfs"},
    {0x7461636f, "ocfs2"},  {0x01161970, "gfs2"},    {0xaad7aaea, "panfs"},
};

Text find_known(uint64_t device) {
  for (Device& known : devices) {
    if (base::load(&known.state) == 2 && known.device == device)
      return {known.name, known.name_bytes};
  }
  return {};
}

// Reads mountinfo as it comes, a character at a time, since options make lines of any length.
class MountReader {
 public:
  explicit MountReader(uint64_t device) : wanted_(number_, sizeof number_) {
    wanted_.add_number(gnu_dev_major(device)).add(":").add_number(gnu_dev_minor(device));
  }

  // True when the device's kind is complete.
  bool feed(char c) {
    if (c == '\n') {
      start_line();
    } else if (c == ' ') {
      return end_word();
    } else if (length_ < kNameBytes) {
      word_[length_++] = c;
    }
    return false;
  }
  Text kind() const { return {word_, length_}; }

 private:
  void start_line() {
    field_ = length_ = 0;
    ours_ = separated_ = false;
  }
  // Fields: id, parent, major:minor, root, mount point, options, [more options] - kind ...
  bool end_word() {
    if (separated_ && ours_) return true;
    const Text word{word_, length_};
    if (field_ == 2)
      ours_ = word.size == wanted_.view().size && memcmp(word.data, number_, word.size) == 0;
    else if (field_ >= 6 && is(word, "-")) separated_ = true;
    ++field_;
    length_ = 0;
    return false;
  }

  char number_[48];
  base::Writer wanted_;
  char word_[kNameBytes];
  size_t length_ = 0;
  uint32_t field_ = 0;
  bool ours_ = false, separated_ = false;
};

bool find_mount(char* buffer, MountReader* reader) {
  const base::HoldsDescriptor held;
  const long fd = base::open_at(AT_FDCWD, "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
  if (base::failed(fd)) return false;
  bool found = false;
  for (long got = 1; !found && got > 0;) {
    got = base::read_fd(static_cast<int>(fd), buffer, base::Scratch::kBytes);
    for (long i = 0; i < got && !found; ++i) found = reader->feed(buffer[i]);
  }
  base::close_fd(static_cast<int>(fd));
  return found;
}

Text by_magic(int64_t number) {
  for (const Magic& magic : kMagics) {
    if (magic.number == number) return base::text(magic.name);
  }
  return {};
}

Text keep(uint64_t device, Text name) {
  for (Device& place : devices) {
    uint32_t free = 0;
    if (!base::compare_exchange(&place.state, &free, 1u)) continue;
    place.device = device;
    place.name_bytes = static_cast<uint32_t>(name.size);
    memcpy(place.name, name.data, name.size);
    base::store(&place.state, 2u);
    return {place.name, place.name_bytes};
  }
  return {};
}

long stat_path(const char* path, struct stat* to) {
  return base::system_call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(path),
                           reinterpret_cast<long>(to), 0);
}

// The path itself, or the directory the file will be made in; which one, in `path`.
bool stat_or_directory(const char** path, char* buffer, struct stat* to) {
  if (stat_path(*path, to) == 0) return true;
  Text directory = base::text(*path);
  while (directory.size > 1 && directory.data[directory.size - 1] != '/') --directory.size;
  base::Writer writer(buffer, base::Scratch::kBytes);
  writer.add(directory);
  *path = buffer;
  return !writer.cut() && stat_path(buffer, to) == 0;
}

}  // namespace

uint64_t size_of(const Open& what) {
  if ((what.flags & O_TRUNC) != 0 || base::sealed()) return 0;
  struct stat about;
  const long result = what.fd >= 0
                          ? base::system_call(SYS_fstat, what.fd, reinterpret_cast<long>(&about))
                          : stat_path(what.path, &about);
  return result == 0 && about.st_size > 0 ? static_cast<uint64_t>(about.st_size) : 0;
}

Text file_system_of(const Open& what) {
  if (base::sealed()) return {};
  const base::Scratch room;
  if (room.data() == nullptr) return {};
  struct stat about;
  const char* path = what.path;
  if (what.fd >= 0 ? base::system_call(SYS_fstat, what.fd, reinterpret_cast<long>(&about)) != 0
                   : !stat_or_directory(&path, room.data(), &about)) {
    return {};
  }
  const auto device = static_cast<uint64_t>(about.st_dev);
  const Text known = find_known(device);
  if (known.size != 0) return known;
  struct statfs volume;
  const long number = what.fd >= 0 ? SYS_fstatfs : SYS_statfs;
  const long argument = what.fd >= 0 ? what.fd : reinterpret_cast<long>(path);
  const bool has_magic = base::system_call(number, argument, reinterpret_cast<long>(&volume)) == 0;
  MountReader reader(device);
  const Text kept = find_mount(room.data(), &reader) ? keep(device, reader.kind()) : Text{};
  if (kept.size != 0) return kept;
  return has_magic ? by_magic(static_cast<int64_t>(volume.f_type)) : Text{};
}

}  // namespace weir::rules
