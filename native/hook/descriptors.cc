// SPDX-License-Identifier: Apache-2.0
#include "hook/descriptors.h"

#include <fcntl.h>

#include "base/scratch.h"
#include "trace/log.h"
#include "trace/process.h"

namespace weir::hook {
namespace {

constinit int highest = 0;  // no descriptor above it was ever known

void forget(Descriptor& d) {
  base::store_relaxed(&d.file, 0u);
  d.flags = 0;
  d.position = wire::kUnknownOffset;
}

bool may_change() { return !trace::thread_log.in_vfork_child; }

void know(int fd) {
  int before = base::load_relaxed(&highest);
  while (fd > before && !base::compare_exchange(&highest, &before, fd)) {
  }
}

}  // namespace

constinit Descriptor descriptors[kDescriptors] = {};
WEIR_THREAD uint32_t opened_below;

uint32_t find_file(int fd) {
  char link[32];
  base::Writer(link, sizeof link).add("/proc/self/fd/").add_number(static_cast<uint64_t>(fd));
  const base::Scratch room;
  char* const target = room.data();
  const long size = target != nullptr ? base::read_link(link, target, base::Scratch::kBytes) : 0;
  if (base::failed(size) || size == 0) return 0;
  const uint32_t file = trace::process().names().id({target, static_cast<size_t>(size)},
                                                    wire::NameSource::kDescriptor);
  Descriptor* d = descriptor(fd);
  if (may_change() && d != nullptr) {
    d->position = wire::kUnknownOffset;
    d->flags = kShared;
    base::store_relaxed(&d->file, file);
    know(fd);
  }
  return file;
}

void opened(int fd, uint32_t file, int open_flags) {
  const bool below = (trace::thread_log.flags_below & wire::kBelow) != 0;
  if (below) opened_below = file;
  Descriptor* d = descriptor(fd);
  if (d == nullptr || !may_change()) return;
  d->flags = ((open_flags & O_APPEND) != 0 ? kAppend : 0u) | (below ? kOfFortran : 0u);
  d->position = 0;
  base::store_relaxed(&d->file, file);
  know(fd);
}

void appends(int fd, bool on) {
  Descriptor* d = descriptor(fd);
  if (d != nullptr && may_change())
    d->flags = on ? d->flags | kAppend : d->flags & ~uint32_t{kAppend};
}

void closed(int fd) {
  Descriptor* d = descriptor(fd);
  if (d != nullptr && may_change() && fd <= base::load_relaxed(&highest)) forget(*d);
}

void closed_range(unsigned first, unsigned last) {
  const unsigned end = static_cast<unsigned>(base::load_relaxed(&highest));
  for (unsigned fd = first; fd <= last && fd <= end; ++fd) closed(static_cast<int>(fd));
}

void copied(int from, int to) {
  Descriptor* d = descriptor(from);
  Descriptor* e = descriptor(to);
  if (d == nullptr || e == nullptr || !may_change() || from == to) return;
  const uint32_t file = file_of(from);
  d->flags |= kShared;
  d->position = wire::kUnknownOffset;
  e->flags = d->flags;
  e->position = wire::kUnknownOffset;
  base::store_relaxed(&e->file, file);
  know(to);
}

void share(int fd) {
  Descriptor* d = descriptor(fd);
  if (d == nullptr || !may_change() || base::load_relaxed(&d->file) == 0) return;
  d->flags |= kShared;
  d->position = wire::kUnknownOffset;
}

void share_all() {
  const int end = base::load_relaxed(&highest);
  for (int fd = 0; fd <= end; ++fd) {
    if (descriptors[fd].file == 0) continue;
    descriptors[fd].flags |= kShared;
    descriptors[fd].position = wire::kUnknownOffset;
  }
}

}  // namespace weir::hook
