// SPDX-License-Identifier: Apache-2.0
// What programs without weir make in a directory after its names were read.
#include <errno.h>
#include <fcntl.h>

#include "base/clock.h"
#include "layers/machinery/stack/process.h"
#include "layers/pack/container.h"
#include "layers/pack/place.h"

namespace weir::layers::pack {

uint64_t state_of(const Container& c, const struct stat& about) {
  const uint64_t changed = static_cast<uint64_t>(about.st_ctim.tv_sec) * 1'000'000'000 +
                           static_cast<uint64_t>(about.st_ctim.tv_nsec);
  if (changed + kLookedAtNs > base::clock_ns(CLOCK_REALTIME)) return 0;
  base::Text name;
  rules::option_text(*c.spec, "name", &name);
  const uint64_t facts[] = {c.identity.device, c.identity.number, changed};
  return base::hash({reinterpret_cast<const char*>(facts), sizeof facts}, base::hash(name, 1)) | 1;
}

namespace {

// Programs without weir have made it, or it goes just now: the kernel says so when it is opened.
int note_listed(Container& c, base::Text name) {
  if (kind_of_name(*c.spec, name) != 0 || name.size > kLongestName) return 0;
  Name* const n = make_name(c.segment, name);
  if (n == nullptr) return ENOSPC;
  if (current(n).state != kAbsent) return 0;
  const LockedName locked(n);
  Version v{};
  v.state = kReal;
  if (current(n).state == kAbsent) publish(n, v);
  return 0;
}

bool is_due(Container& c) {
  Shared* const s = c.segment.shared;
  const uint64_t now = base::now_ns(), ended = stack::ended_children();
  if (c.children_ended == ended && now < base::load(&s->looked_until_ns)) return false;
  c.children_ended = ended;
  base::store(&s->looked_until_ns, now + kLookedAtNs);
  return true;
}

}  // namespace

void look_again(Container& c) {
  struct stat about;
  if (!is_due(c) ||
      base::system_call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(c.directory),
                        reinterpret_cast<long>(&about), 0) != 0 ||
      base::Identity{about.st_dev, about.st_ino} != c.identity)
    return;
  Shared* const s = c.segment.shared;
  const uint64_t state = state_of(c, about);
  if (state != 0 && base::load(&s->listed) == state) return;
  const base::HoldsDescriptor held;
  const uint64_t begun = base::now_ns();
  const long directory = open_in(c, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (base::failed(directory)) return;
  const int error = list_directory(c, static_cast<int>(directory), note_listed);
  base::close_fd(static_cast<int>(directory));
  if (error == 0) base::store(&s->listed, state);
  // A long list is read for a small part of the time.
  const uint64_t now = base::now_ns();
  base::store(&s->looked_until_ns, now + kLookedAtNs + 20 * (now - begun));
}

}  // namespace weir::layers::pack
