// SPDX-License-Identifier: Apache-2.0
// What Lustre's lustre_user.h (interface of llapi_file_create) says of striping a new file: made
// with O_LOV_DELAY_CREATE, it has no objects until an ioctl has set its layout, or the first write.
#pragma once

#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>

namespace weir::layers::lustre {

inline constexpr uint32_t kFileSystem = 0x0bd00bd0;  // f_type of statfs
inline constexpr int kDelayCreate = 0100000000 | O_NOCTTY | O_ASYNC;
inline constexpr unsigned long kSetStripe = _IOW('f', 154, long);
inline constexpr uint32_t kLayoutMagic = 0x0bd10bd0;  // LOV_USER_MAGIC_V1
inline constexpr uint32_t kRaid0 = 1;
inline constexpr uint16_t kAnyTarget = 0xffff;

struct [[gnu::packed]] Layout {  // struct lov_user_md_v1 without objects
  uint32_t magic, pattern;
  uint64_t object[2];
  uint32_t stripe_bytes;   // 0: the file system's default; a multiple of 64 KiB
  uint16_t stripe_count;   // 0: the default; 0xffff: all targets
  uint16_t first_target;
};
static_assert(sizeof(Layout) == 32);

}  // namespace weir::layers::lustre
