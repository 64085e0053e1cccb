// SPDX-License-Identifier: Apache-2.0
#include "os/syscall.h"

namespace weir::os {

constinit uint32_t descriptors_held = 0;

void wait_for_held() {
  constexpr int kPatience = 20000;  // a file system that hangs must not hang the program's close
  for (int i = 0; i < kPatience && any_held(); ++i) yield();
}

}  // namespace weir::os
