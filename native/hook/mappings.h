// SPDX-License-Identifier: Apache-2.0
// Which file lies behind a mapped address, for munmap and msync. Only the address that mmap
// returned is known, not the middle of a mapping; a full table forgets the newest.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

namespace weir::hook {

void mapped(const void* at, uint32_t file);
// 0: no file is known to be mapped there. forget: it is being unmapped.
uint32_t mapped_file(const void* at, bool forget);

// mmap and munmap as the hooks make them, without a function of that name: a library that leads its
// calls to functions of its own (UCX, under MPICH) makes these calls by number there.
void* map_by_number(void* wish, size_t n, int protection, int flags, int fd, off_t at);
int unmap_by_number(void* at, size_t n);

}  // namespace weir::hook
