// SPDX-License-Identifier: Apache-2.0
#include "layers/writeback/watch/watch.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace weir::daemon {
namespace {

constexpr int kLookMs = 20;  // at processes without a pidfd

node::Identity identity(uint64_t key) {
  return {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
}

}  // namespace

Watch::~Watch() {
  for (const auto& [who, fd] : watched_) {
    if (fd >= 0) close(fd);
  }
}

bool Watch::add(node::Identity who) {
  if (knows(who)) return true;
  if (node::is_foreign(who))
    return node::alive(
        who);  // no descriptor of its number is its own; looked at again by the caller
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, who.pid, 0));
  // Asked after the pidfd is there: else the number might have become somebody else's in between.
  if (!node::alive(who)) {
    if (fd >= 0) close(fd);
    return false;
  }
  watched_[key(who)] = fd;
  return true;
}

std::vector<node::Identity> Watch::wait(int socket, int at_most_ms, bool* readable) {
  std::vector<pollfd> polled{{socket, POLLIN, 0}};
  std::vector<uint64_t> keys{0};
  bool blind = false;
  for (const auto& [who, fd] : watched_) {
    blind = blind || fd < 0;
    if (fd < 0) continue;
    polled.push_back({fd, POLLIN, 0});
    keys.push_back(who);
  }
  const int ready =
      poll(polled.data(), polled.size(), blind ? std::min(at_most_ms, kLookMs) : at_most_ms);
  *readable = ready > 0 && (polled[0].revents & POLLIN) != 0;
  std::vector<node::Identity> ended;
  for (size_t i = 1; ready > 0 && i < polled.size(); ++i) {
    if (polled[i].revents != 0) ended.push_back(identity(keys[i]));
  }
  for (const auto& [who, fd] : watched_) {
    if (fd < 0 && !node::alive(identity(who))) ended.push_back(identity(who));
  }
  for (const node::Identity who : ended) {
    const auto found = watched_.find(key(who));
    if (found->second >= 0) close(found->second);
    watched_.erase(found);
  }
  return ended;
}

}  // namespace weir::daemon
