// SPDX-License-Identifier: Apache-2.0
// vfork: the child borrows its parent's memory and stack until exec or _exit. It must not change
// what weir knows of the parent's descriptors, so it is distinguished. The call returns twice into
// one stack frame; so it is made here, as glibc makes it: what must outlive the child waits in
// registers, which each of the two has for itself. Elsewhere than on x86-64 vfork is not hooked.
#include <errno.h>

#include "hook/real.h"
#include "trace/log.h"
#include "layers/machinery/stack/process.h"

#if defined(__x86_64__)

extern "C" {

__attribute__((visibility("default"))) int hook_vfork(void) __asm__("vfork");

int weir_before_vfork() {
  weir::stack::before_spawn(false);
  return weir::trace::thread_log.in_vfork_child;
}

// In the child first, then in the parent; before: whether the parent is itself a vfork child.
int weir_after_vfork(long result, int before) {
  weir::trace::thread_log.in_vfork_child = result == 0 || before != 0;
  if (result >= 0) return static_cast<int>(result);
  errno = static_cast<int>(-result);
  return -1;
}
}

// %rdi and %rsi survive the system call; the return address is off the stack while the child runs,
// and is put back by each.
__asm__(R"(
  .text
  .globl vfork
  .type vfork, @function
vfork:
  endbr64
  subq $8, %rsp
  call weir_before_vfork
  addq $8, %rsp
  movl %eax, %esi
  popq %rdi
  movl $58, %eax
  syscall
  pushq %rdi
  movq %rax, %rdi
  jmp weir_after_vfork
  .size vfork, .-vfork
)");

#endif
