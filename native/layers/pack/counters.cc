// SPDX-License-Identifier: Apache-2.0
// What the processes of a node know of all containers together.
#include <errno.h>
#include <fcntl.h>

#include "layers/machinery/node/place.h"
#include "layers/machinery/node/private.h"
#include "layers/pack/container.h"

namespace weir::layers::pack {
namespace {

// A page of the node's: 0 containers made, 1 open files that became real, 2 directories moved, from
// kStates on states of directories without containers. Null: it cannot be had.
bool is_allocated(int fd) {
  struct stat about;
  return (base::system_call(SYS_fstat, fd, reinterpret_cast<long>(&about)) == 0 &&
          about.st_blocks >= 4096 / 512) ||
         base::allocate(fd, 0, 4096) == 0;
}

constexpr uint64_t kStates = 8, kMostStates = 4096 / sizeof(uint64_t) - kStates;
uint64_t* node_counters() {
  static constinit uint64_t* counters = nullptr;
  if (counters == nullptr) {
    char room[node::kPathBytes], path[node::kPathBytes + 8];
    if (!node::make_directory(room, sizeof room, base::text("pack"), node::number()))
      return nullptr;
    base::Writer(path, sizeof path).add(room).add("/made");
    const base::HoldsDescriptor held;
    constexpr int kHow = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    long fd = base::open_at(AT_FDCWD, path, kHow);
    if (fd == -ENOENT) fd = base::open_at(AT_FDCWD, path, kHow | O_CREAT, 0600);
    if (base::failed(fd)) return nullptr;
    long at = -1;
    if (node::is_private_file(static_cast<int>(fd)) && is_allocated(static_cast<int>(fd)))
      at = base::map(4096, PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(fd));
    base::close_fd(static_cast<int>(fd));
    if (base::failed(at)) return nullptr;
    counters = reinterpret_cast<uint64_t*>(at);
  }
  return counters;
}

uint64_t counted(int which, bool count) {
  uint64_t* const counters = node_counters();
  if (counters == nullptr) return 0;
  if (count) base::fetch_add(counters + which, uint64_t{1});
  return base::load(counters + which) + 1;
}

}  // namespace

bool has_no_container(uint64_t state, bool note) {
  uint64_t* const counters = node_counters();
  if (counters == nullptr) return false;
  uint64_t* const word = counters + kStates + state % kMostStates;
  if (note) base::store(word, state);
  return base::load(word) == state;
}

uint64_t made_containers(bool count) { return counted(0, count); }
uint64_t turned_real(bool count) { return counted(1, count); }
uint64_t moved_directories(bool count) { return counted(2, count); }

}  // namespace weir::layers::pack
