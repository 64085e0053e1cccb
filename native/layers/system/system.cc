// SPDX-License-Identifier: Apache-2.0
#include "layers/system/declared.h"

#include "base/syscall.h"
#include "trace/log.h"
#include "layers/machinery/stack/file.h"

namespace weir::layers {
namespace {

using namespace system_declared;
using stack::kKernelOffset;
using stack::Layer;
using stack::Opening;
using stack::Result;
using stack::Transfer;

// With a trace alone, which has them: the requests themselves are then counted for what they are,
// whichever layer made them.
WEIR_INLINE void count(Layer& l, Statistic what) {
  if (WEIR_UNLIKELY(trace::recording())) base::fetch_add(&l.statistics[what], uint64_t{1});
}

int descriptor(const Layer& l, const Transfer& t) {
  return t.descriptor >= 0 ? t.descriptor : l.file->descriptor;
}
long address(const void* p) { return reinterpret_cast<long>(p); }

Result open(Layer&, Opening& o) {
  return base::open_at(o.directory, o.path, o.flags, static_cast<int>(o.mode));
}

// One piece or many, at an offset or at the kernel's position: four calls each way.
Result move(Layer& l, const Transfer& t, long plain, long vector, long at, long vector_at) {
  const int fd = descriptor(l, t);
  if (t.offset == kKernelOffset) {
    if (t.count == 1)
      return base::system_call(plain, fd, address(t.pieces[0].iov_base),
                               static_cast<long>(t.pieces[0].iov_len));
    return base::system_call(vector, fd, address(t.pieces), t.count);
  }
  const long offset = static_cast<long>(t.offset);
  if (t.count == 1)
    return base::system_call(at, fd, address(t.pieces[0].iov_base),
                             static_cast<long>(t.pieces[0].iov_len), offset);
  return base::system_call(vector_at, fd, address(t.pieces), t.count, offset, 0);
}

Result read(Layer& l, const Transfer& t) {
  count(l, kReads);
  return move(l, t, SYS_read, SYS_readv, SYS_pread64, SYS_preadv);
}
Result write(Layer& l, const Transfer& t) {
  count(l, kWrites);
  return move(l, t, SYS_write, SYS_writev, SYS_pwrite64, SYS_pwritev);
}

Result size(Layer& l) {
  struct stat about;
  const struct stat* is = stack::stat_of_program;
  if (is == nullptr) {
    count(l, kSizeRequests);
    const long result = base::system_call(SYS_fstat, l.file->descriptor, address(&about));
    if (result < 0) return result;
    is = &about;
  }
  if (stack::stat_for_layer != nullptr) *stack::stat_for_layer = *is;
  return is->st_size;
}

Result truncate(Layer& l, uint64_t bytes) {
  count(l, kTruncates);
  return base::system_call(SYS_ftruncate, l.file->descriptor, static_cast<long>(bytes));
}
Result flush(Layer&) { return 0; }
Result sync(Layer& l, bool data_only) {
  count(l, kSyncs);
  return base::system_call(data_only ? SYS_fdatasync : SYS_fsync, l.file->descriptor);
}
void invalidate(Layer&) {}

}  // namespace

const stack::Kind kSystem{
    .name = kName, .flags = 0, .state_bytes = 0, .statistics_count = kStatistics, .create = nullptr,
    .open = open, .ready = nullptr, .read = read, .write = write, .size = size,
    .truncate = truncate, .flush = flush, .sync = sync, .invalidate = invalidate, .close = nullptr,
};

}  // namespace weir::layers
