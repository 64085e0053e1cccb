// SPDX-License-Identifier: Apache-2.0
// dlopen, dlsym and dlvsym look at who called them: at the caller's search path, at what comes
// behind the caller. They are passed on by a jump, so that they see the program and not weir, but
// where that makes no difference.
#include "hook/loading.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "base/atomic.h"
#include "hook/names.h"
#include "hook/object.h"
#include "hook/real.h"
#include "hook/redirect.h"

extern "C" {

__attribute__((visibility("default"))) void* hook_dlopen(const char*, int) __asm__("dlopen");
__attribute__((visibility("default"))) void* hook_dlsym(void*, const char*) __asm__("dlsym");
__attribute__((visibility("default"))) void* hook_dlvsym(void*, const char*,
                                                         const char*) __asm__("dlvsym");

constinit WEIR_OWN void* weir_real_dlopen = nullptr;
constinit WEIR_OWN void* weir_real_dlsym = nullptr;
constinit WEIR_OWN void* weir_real_dlvsym = nullptr;
}

namespace weir::hook {
namespace {

// Libraries were loaded that nobody has looked at yet: 1, with RTLD_DEEPBIND 3.
constinit uint32_t unseen_loadings = 0;

void find_real() {
  if (base::load_relaxed(&weir_real_dlvsym) != nullptr) return;
  base::store_relaxed(&weir_real_dlopen, next_defined("dlopen"));
  base::store_relaxed(&weir_real_dlsym, next_defined("dlsym"));
  base::store(&weir_real_dlvsym, next_defined("dlvsym"));
}

void look_at_unseen() {
  if (WEIR_LIKELY(base::load_relaxed(&unseen_loadings) == 0) || !is_redirecting()) return;
  redirect_loaded((base::exchange(&unseen_loadings, 0u) & 2) != 0);
}

// A name without a directory is looked for along the paths of the caller and of those that loaded
// it.
bool is_found_by_caller(const char* file, const void* caller) {
  if (strchr(file, '$') != nullptr) return true;
  if (strchr(file, '/') != nullptr) return false;
  bool first = true;
  return for_each_object([&](const Object& one) {
    const bool is_program = first;  // its path is everybody's
    first = false;
    return (one.holds(caller) && (one.has_rpath || one.has_runpath)) ||
           (one.has_rpath && !is_program);
  });
}

// What the caller finds under RTLD_DEFAULT: what is there for everybody, then what its own library
// was loaded with.
void* look_up_for(const void* caller, const char* name, const char* version) {
  if (void* const found = look_up(RTLD_DEFAULT, name, version)) return found;
  Dl_info info;
  link_map* loaded = nullptr;
  if (dladdr1(caller, &info, reinterpret_cast<void**>(&loaded), RTLD_DL_LINKMAP) == 0 ||
      loaded == nullptr)
    return nullptr;
  if (loaded->l_name == nullptr || loaded->l_name[0] == 0) return nullptr;
  void* const handle = open_loaded(loaded->l_name);
  if (handle == nullptr) return nullptr;
  void* const found = look_up(handle, name, version);
  close_loaded(handle);
  return found;
}

bool is_of_base_namespace(void* handle) {
  Lmid_t space = LM_ID_BASE;
  return dlinfo(handle, RTLD_DI_LMID, &space) == 0 && space == LM_ID_BASE;
}

// Null: the program's call is passed on as it is.
void* answer(void* handle, const char* name, const char* version, const void* caller) {
  find_real();
  look_at_unseen();
  if (!is_redirecting() || name == nullptr || handle == RTLD_NEXT) return nullptr;
  const Slot slot = missable_slot_of(name);
  if (WEIR_LIKELY(slot == kSlots)) return nullptr;
  void* found = nullptr;
  if (handle == RTLD_DEFAULT) found = look_up_for(caller, name, version);
  else if (is_of_base_namespace(handle)) found = look_up(handle, name, version);
  return found != nullptr ? redirected(slot, found) : nullptr;
}

}  // namespace

void* look_up(void* handle, const char* name, const char* version) {
  find_real();
  if (version == nullptr) return reinterpret_cast<decltype(&dlsym)>(weir_real_dlsym)(handle, name);
  return reinterpret_cast<decltype(&dlvsym)>(weir_real_dlvsym)(handle, name, version);
}

void* look_up(void* handle, const char* name) { return look_up(handle, name, nullptr); }

void* open_loaded(const char* path) {
  find_real();
  return reinterpret_cast<decltype(&dlopen)>(weir_real_dlopen)(path, RTLD_NOLOAD | RTLD_LAZY);
}

void close_loaded(void* handle) { dlclose(handle); }

}  // namespace weir::hook

extern "C" {

// True: weir_dlopen_here makes the call. False: it is passed on.
WEIR_OWN bool weir_before_dlopen(const char* file, int mode, const void* caller) {
  using namespace weir::hook;
  find_real();
  look_at_unseen();
  if (file == nullptr || (mode & RTLD_NOLOAD) != 0) return false;
  if (is_redirecting() && !is_found_by_caller(file, caller)) return true;
  weir::base::store(&unseen_loadings,
                    (mode & RTLD_DEEPBIND) != 0 ? 3u : weir::base::load(&unseen_loadings) | 1u);
  return false;
}

WEIR_OWN void* weir_dlopen_here(const char* file, int mode) {
  using namespace weir::hook;
  void* const handle = reinterpret_cast<decltype(&dlopen)>(weir_real_dlopen)(file, mode);
  if (handle != nullptr) redirect_loaded((mode & RTLD_DEEPBIND) != 0);
  return handle;
}

WEIR_OWN void* weir_answer_dlsym(void* handle, const char* name, const void* caller) {
  return weir::hook::answer(handle, name, nullptr, caller);
}

WEIR_OWN void* weir_answer_dlvsym(void* handle, const char* name, const char* version,
                                  const void* caller) {
  return weir::hook::answer(handle, name, version, caller);
}
}

// Each saves its arguments, passes them and the return address to `answer`, and goes on without a
// frame on the stack.
#if defined(__x86_64__)

__asm__(R"(
  .macro weir_asks name, answer, real, caller
  .globl \name
  .type \name, @function
\name:
  .cfi_startproc
  endbr64
  movq (%rsp), \caller
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  pushq %rdx
  .cfi_adjust_cfa_offset 8
  call \answer
  popq %rdx
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  .ifc \name, dlopen
  testb %al, %al
  jnz weir_dlopen_here
  .else
  testq %rax, %rax
  jnz 1f
  .endif
  jmp *\real(%rip)
1:
  ret
  .cfi_endproc
  .size \name, .-\name
  .endm
  .text
  weir_asks dlopen, weir_before_dlopen, weir_real_dlopen, %rdx
  weir_asks dlsym, weir_answer_dlsym, weir_real_dlsym, %rdx
  weir_asks dlvsym, weir_answer_dlvsym, weir_real_dlvsym, %rcx
)");

#elif defined(__aarch64__)

__asm__(R"(
  .macro weir_asks name, answer, real
  .globl \name
  .type \name, %function
\name:
  .cfi_startproc
  hint #34                      // bti c
  stp x29, x30, [sp, #-48]!
  .cfi_def_cfa_offset 48
  .cfi_offset 29, -48
  .cfi_offset 30, -40
  stp x0, x1, [sp, #16]
  str x2, [sp, #32]
  .ifc \name, dlvsym
  mov x3, x30
  .else
  mov x2, x30
  .endif
  bl \answer
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldr x2, [sp, #32]
  ldp x29, x30, [sp], #48
  .cfi_def_cfa_offset 0
  .cfi_restore 29
  .cfi_restore 30
  .ifc \name, dlopen
  tbnz w16, #0, weir_dlopen_here
  .else
  cbnz x16, 1f
  .endif
  adrp x17, \real
  ldr x16, [x17, :lo12:\real]
  br x16
1:
  mov x0, x16
  ret
  .cfi_endproc
  .size \name, .-\name
  .endm
  .text
  weir_asks dlopen, weir_before_dlopen, weir_real_dlopen
  weir_asks dlsym, weir_answer_dlsym, weir_real_dlsym
  weir_asks dlvsym, weir_answer_dlvsym, weir_real_dlvsym
)");

#endif
