// SPDX-License-Identifier: Apache-2.0
// direct=1: a second descriptor of the same file with O_DIRECT, for those requests of the layer
// that are aligned for it; beginnings and ends that are not go by the program's own. The kernel
// keeps both coherent.
#include "base/text.h"
#include "layers/bufa/state.h"
#include "base/syscall.h"
#include "layers/machinery/stack/private.h"

namespace weir::layers::bufa {
namespace {

#if defined(O_DIRECT)
constexpr int kDirect = O_DIRECT;
#elif defined(__aarch64__)
constexpr int kDirect = 0200000;
#else
constexpr int kDirect = 040000;
#endif

constexpr uint64_t kAlignment = 4096;  // what any device needs at most

}  // namespace

void open_twin(Layer& l) {
  State& s = state_of(l);
  s.twin = -1;
  if (!s.direct) return;
  char path[32];
  base::Writer(path, sizeof path)
      .add("/proc/self/fd/")
      .add_number(static_cast<uint64_t>(l.file->descriptor));
  const base::HoldsDescriptor held;
  const long fd = base::open_at(AT_FDCWD, path, (l.file->flags & O_ACCMODE) | kDirect | O_CLOEXEC);
  if (base::failed(fd) || !stack::keep_private(static_cast<int>(fd), &s.twin)) {
    s.twin = -1;
    stack::note_bypass(l, Reason::kUnsupported);
  }
}

void close_twin(Layer& l) {
  State& s = state_of(l);
  if (s.twin >= 0) stack::close_private(&s.twin);
}

int descriptor_for(const State& s, const void* memory, uint64_t bytes, uint64_t offset) {
  if (WEIR_LIKELY(s.twin < 0)) return -1;
  return ((reinterpret_cast<uintptr_t>(memory) | bytes | offset) & (kAlignment - 1)) == 0 ? s.twin
                                                                                          : -1;
}

}  // namespace weir::layers::bufa
