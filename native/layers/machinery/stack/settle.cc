// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/settle.h"

#include <fcntl.h>

#include "base/scratch.h"
#include "base/syscall.h"
#include "layers/machinery/stack/inside.h"
#include "layers/machinery/stack/sharing.h"
#include "layers/machinery/stack/table.h"

namespace weir::stack {
namespace {

bool find_held(int directory, const char* path, bool follow, struct stat* to) {
  if (!active() || path == nullptr || !may_change() || !anybody_holds()) return false;
  const int flags = follow ? 0 : AT_SYMLINK_NOFOLLOW;
  return base::system_call(SYS_newfstatat, directory, reinterpret_cast<long>(path),
                           reinterpret_cast<long>(to), flags) == 0 &&
         S_ISREG(to->st_mode);
}

// The kernel alone knows where the file ends for O_APPEND, and no layer has an opening with
// O_DIRECT.
bool may_share(int flags) {
  return (flags & O_ACCMODE) != O_RDONLY && (flags & (O_APPEND | O_DIRECT)) == 0;
}

bool joins_sharers(const struct stat& about, int directory, const char* path, int flags) {
  if (!may_share(flags) || !any_sharers(about.st_dev, about.st_ino)) return false;
  const base::Scratch whole;
  if (whole.data() == nullptr || !make_path_absolute(directory, path, whole.data())) return false;
  const rules::Rule* const rule = rule_for(whole.data(), flags);
  return rule != nullptr && all_share(about.st_dev, about.st_ino, rule->index);
}

}  // namespace

void settle(int directory, const char* path, bool follow) {
  struct stat about;
  if (find_held(directory, path, follow, &about)) recall(about.st_dev, about.st_ino);
}

void settle_emptied(int directory, const char* path, int flags) {
  struct stat about;
  if (!find_held(directory, path, true, &about)) return;
  if (!joins_sharers(about, directory, path, flags)) recall(about.st_dev, about.st_ino);
}

}  // namespace weir::stack
