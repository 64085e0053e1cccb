// SPDX-License-Identifier: Apache-2.0
#include "preload/mounts.h"

#include <fcntl.h>

#include "base/scratch.h"
#include "base/syscall.h"
#include "trace/process.h"

namespace weir::preload {
namespace {

constexpr size_t kHalf = base::Scratch::kBytes / 2;
constexpr int kMounts = 512;  // a node has some dozens
constexpr char kHead[] = "mount\n";
constexpr size_t kHeadBytes = sizeof kHead - 1;

// The end of a long line, options of the file system, is left out.
class Lines {
 public:
  explicit Lines(char* room) : line_(room) { memcpy(line_, kHead, kHeadBytes); }

  void feed(char c) {
    if (c != '\n') {
      if (length_ < kHalf) line_[length_++] = c;
      return;
    }
    if (length_ > kHeadBytes && reported_++ < kMounts)
      trace::process().names().id({line_, length_}, wire::NameSource::kGiven);
    length_ = kHeadBytes;
  }

 private:
  char* line_;
  size_t length_ = kHeadBytes;
  int reported_ = 0;
};

}  // namespace

void note_mounts() {
  constexpr uint32_t kFirst = 1;  // its chunk is the first behind the header
  if (trace::process().number() != kFirst || trace::process().level() == wire::Level::kSummary)
    return;
  const base::Scratch room;
  if (room.data() == nullptr) return;
  const base::HoldsDescriptor held;
  const long fd = base::open_at(AT_FDCWD, "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
  if (base::failed(fd)) return;
  Lines lines(room.data() + kHalf);
  for (long got = 1; got > 0;) {
    got = base::read_fd(static_cast<int>(fd), room.data(), kHalf);
    if (got > 0) trace::process().count_own_read(static_cast<uint64_t>(got));
    for (long i = 0; i < got; ++i) lines.feed(room.data()[i]);
  }
  base::close_fd(static_cast<int>(fd));
}

}  // namespace weir::preload
