// SPDX-License-Identifier: Apache-2.0
// Opens the job's directory in shared memory and the files in it, for all who share them. What is
// opened is the user's alone, or it is refused: type, owner, permissions, device and number of
// links are read from the descriptor, of each directory on the way as well, at every opening. The
// directory may have been removed (systemd's RemoveIPC) and made again by another user
// (docs/decisions/0024). Every function: any thread; the caller has base::HoldsDescriptor;
// descriptors are close-on-exec; -errno, -EPERM for what is refused.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/syscall.h"

namespace weir::node {

inline constexpr char kOurs[] = "/dev/shm/weir.";

// Makes the node's directory and the job's above it where they are not there. False: it cannot be,
// or is not the user's.
bool make_private(const char* node_directory);
// The node's directory, as place.h names it, and the job's above it.
long open_own_directory();
long open_job();
// A file in it, and one in the job's directory. flags as of open(2); what is made is for the owner
// alone.
long open_inside(const char* name, int flags);
long open_in_job(const char* name, int flags);
// The same file as was opened before: -ESTALE when the name is another's by now.
long open_again(const char* name, const base::Identity& was);
long open_in_job_again(const char* name, const base::Identity& was);
// Removes the name if it is still that file's.
long unlink_inside(const char* name, const base::Identity& was);
// Whether there is a socket of the user of that name in the open directory.
bool is_own_socket(int directory, const char* name);
// Whether the open file is the user's alone, a regular one, and has one name.
bool is_private_file(int fd);

// 128 random bits of the node's directory, in its file `key`: made by the first who needs them.
// Arenas carry them; the daemon writes out none that does not.
struct Secret {
  uint64_t words[2];
  bool operator==(const Secret&) const = default;
};
bool read_secret(Secret* to);

}  // namespace weir::node
