// SPDX-License-Identifier: Apache-2.0
#include "layers/hints/declared.h"

#include <errno.h>

#include "layers/hints/lustre.h"
#include "base/syscall.h"
#include "layers/machinery/rules/rules.h"
#include "layers/machinery/stack/file.h"

namespace weir::layers {
namespace {

using namespace stack;
using namespace hints_declared;


bool is_on_lustre(int fd) {
  struct statfs about;
  return base::system_call(SYS_fstatfs, fd, reinterpret_cast<long>(&about)) == 0 &&
         static_cast<uint32_t>(about.f_type) == lustre::kFileSystem;
}

// Lustre alone has layouts that an open can put off; elsewhere the flags would mean something else,
// or nothing.
bool would_be_on_lustre(const Opening& o, const char* absolute) {
  char directory[4096];
  base::Writer writer(directory, sizeof directory);
  base::Text path = base::text(absolute);
  while (path.size > 1 && path.data[path.size - 1] != '/') --path.size;
  if (o.path == nullptr || writer.add(path).cut()) return false;
  const base::HoldsDescriptor held;
  const long fd = base::open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (base::failed(fd)) return false;
  const bool is = is_on_lustre(static_cast<int>(fd));
  base::close_fd(static_cast<int>(fd));
  return is;
}

// A file that exists keeps its layout: then the open goes on as it was. O_EXCL is ours to ask, so
// that only a new file is striped.
Result open(Layer& layer, Opening& o) {
  if ((o.flags & O_CREAT) == 0 || !would_be_on_lustre(o, layer.file->path))
    return open_below(layer, o);
  Opening first = o;
  first.flags |= O_EXCL | lustre::kDelayCreate;
  const Result fd = open_below(layer, first);
  if (fd == -EEXIST && (o.flags & O_EXCL) == 0) return open_below(layer, o);
  if (fd < 0) return fd;
  lustre::Layout layout{lustre::kLayoutMagic, lustre::kRaid0, {}, 0, 0, lustre::kAnyTarget};
  layout.stripe_bytes =
      static_cast<uint32_t>(rules::option_number(*layer.spec, "striping_unit", 0));
  layout.stripe_count =
      static_cast<uint16_t>(rules::option_number(*layer.spec, "striping_factor", 0));
  const long result = base::system_call(SYS_ioctl, fd, static_cast<long>(lustre::kSetStripe),
                                        reinterpret_cast<long>(&layout));
  ++layer.statistics[result < 0 ? kRefused : kStriped];
  return fd;
}

}  // namespace

const Kind kHints = {
    .name = kName, .flags = kOrdered, .state_bytes = 0, .statistics_count = kStatistics,
    .create = nullptr, .open = open, .ready = nullptr, .read = nullptr, .write = nullptr,
    .size = nullptr, .truncate = nullptr, .flush = nullptr, .sync = nullptr, .invalidate = nullptr,
    .close = nullptr,
};

}  // namespace weir::layers
