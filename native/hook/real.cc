// SPDX-License-Identifier: Apache-2.0
#include "hook/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "hook/binding.h"
#include "hook/loading.h"
#include "hook/names.h"
#include "hook/object.h"

namespace weir::hook {
namespace {

long no_number() {
  errno = ENOSYS;
  return -1;
}

void* no_pointer() {
  errno = ENOSYS;
  return nullptr;
}

}  // namespace

constinit void* real_functions[kSlots] = {};

void* find_function(const char* name, Library library) {
  if (void* const found = look_up(RTLD_DEFAULT, name)) return found;
  const uint32_t hash = gnu_hash_of(name);
  const char* const file = file_of(library);
  uintptr_t found = 0;
  for_each_object([&](const Object& one) {
    if (strncmp(one.file(), file, strlen(file)) == 0) found = find_defined(one, name, hash);
    return found != 0;
  });
  return reinterpret_cast<void*>(found);
}

namespace {

// dlsym that finds nothing allocates memory for its message. An allocator that opens a file when it
// is first used (jemalloc in rustc) calls weir while it holds its lock: a function that this libc
// may lack is looked for without dlsym first.
void* find_in_libc(Slot slot) {
  const char* const name = name_of(slot);
  if (may_be_missing(slot) && next_defined(name) == nullptr) return nullptr;
  return look_up(RTLD_NEXT, name);
}

}  // namespace

void* resolve(Slot slot) {
  const int before = errno;
  void* found = nullptr;
  if (!is_optional(slot)) found = find_in_libc(slot);
  else if ((found = first_target(slot)) == nullptr)
    found = find_function(name_of(slot), library_of(slot));
  if (found == nullptr) found = function_by_number(slot);  // its hook is reached by syscall() alone
  if (found == nullptr) {
    found = result_of(slot) == Result::pointer ? reinterpret_cast<void*>(no_pointer)
                                               : reinterpret_cast<void*>(no_number);
    if (is_optional(slot)) {  // may be loaded later
      errno = before;
      return found;
    }
  }
  base::store_relaxed(&real_functions[slot], found);
  errno = before;
  return found;
}

void resolve_libc() {
  for (uint16_t slot = 0; slot < kSlots; ++slot) {
    if (!is_optional(static_cast<Slot>(slot))) resolve(static_cast<Slot>(slot));
  }
}

void (*find_test_for_cancel())() {
  return reinterpret_cast<void (*)()>(look_up(RTLD_DEFAULT, "pthread_testcancel"));
}

}  // namespace weir::hook
