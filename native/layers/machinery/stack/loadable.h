// SPDX-License-Identifier: Apache-2.0
// Programs and shared libraries. The dynamic linker opens those that a program needs by system
// calls of its own, before weir is loaded, so a layer that has files elsewhere puts them at their
// place.
#pragma once

#include <elf.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "base/syscall.h"

namespace weir::stack {

// No linked file is smaller: to look at small files would cost each of them a system call.
inline constexpr uint64_t kSmallestLoadable = 4096;

inline bool is_loadable(int fd, uint64_t bytes) {
  if (bytes < kSmallestLoadable) return false;
  Elf64_Ehdr head;
  constexpr size_t kLooked = offsetof(Elf64_Ehdr, e_machine);
  const long n = base::read_at(fd, reinterpret_cast<char*>(&head), kLooked, 0);
  return n == static_cast<long>(kLooked) && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
         (head.e_type == ET_EXEC || head.e_type == ET_DYN);
}

}  // namespace weir::stack
