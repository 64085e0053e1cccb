// SPDX-License-Identifier: Apache-2.0
#include "hook/own_calls.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/text.h"
#include "hook/object.h"

namespace weir::hook {

#if defined(__x86_64__)

namespace {

constexpr size_t kNear = 64;
constexpr uint32_t kOpenat2 = 437, kFaccessat2 = 439;  // newer than some headers

// Not among them: calls on descriptors that layers know by themselves (close, flock, poll), and
// calls whose small numbers many an instruction has (open, stat).
bool is_on_files(uint32_t number) {
  switch (number) {
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_truncate:
    case SYS_ftruncate:
    case SYS_rename:
    case SYS_mkdir:
    case SYS_rmdir:
    case SYS_link:
    case SYS_unlink:
    case SYS_symlink:
    case SYS_openat:
    case SYS_mkdirat:
    case SYS_newfstatat:
    case SYS_unlinkat:
    case SYS_renameat:
    case SYS_linkat:
    case SYS_symlinkat:
    case SYS_utimensat:
    case SYS_fallocate:
    case SYS_preadv:
    case SYS_pwritev:
    case SYS_renameat2:
    case SYS_copy_file_range:
    case SYS_statx:
    case kOpenat2:
    case kFaccessat2:
      return true;
  }
  return false;
}

// before: the bytes before the instruction; there are `count` of them.
bool loads_number(const uint8_t* before, size_t count) {
  for (size_t back = 5; back <= kNear && back <= count; ++back) {
    const uint8_t* const at = before - back;
    uint32_t number;
    if (at[0] != 0xb8) continue;  // mov eax, NUMBER
    memcpy(&number, at + 1, sizeof number);
    if (is_on_files(number)) return true;
  }
  return false;
}

// Functions that make any call, as debug builds have them: mov rax, [rsp + OFFSET].
bool loads_argument(const uint8_t* before, size_t count) {
  constexpr uint8_t kShort[] = {0x48, 0x8b, 0x44, 0x24}, kLong[] = {0x48, 0x8b, 0x84, 0x24};
  return (count >= 5 && memcmp(before - 5, kShort, sizeof kShort) == 0) ||
         (count >= 8 && memcmp(before - 8, kLong, sizeof kLong) == 0);
}

// What the run-time library of Rust needs of the compiler's, and programs in C and Fortran do not.
bool is_rust(const Object& object) {
  constexpr const char* kOthers[] = {"libstdc++", "libgcc", "libobjc", "libgnat", "libgphobos"};
  for (const char* const other : kOthers) {
    if (strncmp(object.file(), other, strlen(other)) == 0) return false;
  }
  return any_undefined(
      object, [](const char* name) { return is_same(name, "_Unwind_GetTextRelBase"); });
}

// Instructions for a system call that changes or looks at files by name, or at their sizes and
// contents: its number is loaded at most kNear bytes before it, or is an argument.
bool has_calls_on_files(const uint8_t* code, size_t bytes) {
  constexpr uint8_t kSyscall[] = {0x0f, 0x05};
  const uint8_t* const end = code + bytes;
  for (const uint8_t* at = code;; at += sizeof kSyscall) {
    at = static_cast<const uint8_t*>(
        memmem(at, static_cast<size_t>(end - at), kSyscall, sizeof kSyscall));
    if (at == nullptr) return false;
    const auto count = static_cast<size_t>(at - code);
    if (loads_argument(at, count) || loads_number(at, count)) return true;
  }
}

}  // namespace

bool makes_calls_on_files(char* path, size_t bytes) {
  return for_each_object([&](const Object& object) {
    if (!is_rust(object)) return false;
    for (uint16_t i = 0; i < object.segment_count; ++i) {
      const ElfW(Phdr)& segment = object.segments[i];
      constexpr uint32_t kCode = PF_R | PF_X;
      if (segment.p_type != PT_LOAD || (segment.p_flags & kCode) != kCode) continue;
      if (!has_calls_on_files(reinterpret_cast<const uint8_t*>(object.base + segment.p_vaddr),
                              segment.p_filesz))
        continue;
      base::Writer(path, bytes).add(object.path);
      return true;
    }
    return false;
  });
}

#else

bool makes_calls_on_files(char*, size_t) { return false; }

#endif

}  // namespace weir::hook
