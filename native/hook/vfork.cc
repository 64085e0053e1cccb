// SPDX-License-Identifier: Apache-2.0
// vfork: the child borrows its parent's memory and stack until exec or _exit. It must not change what weir knows of the parent's
// descriptors, so it is told apart. The function returns twice into one stack frame; hence no frame of ours may be there
// when it does: the return address waits in the thread's storage (the parent's and the child's alike).
// Elsewhere than on x86-64 vfork is not hooked.
#include "hook/real.h"
#include "record/log.h"

#if defined(__x86_64__)

namespace {

WEIR_THREAD const void* return_address;

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int hook_vfork(void) __asm__("vfork");

// The real vfork, or null when this is itself a vfork child: then nothing is kept.
void* weir_before_vfork(const void* back) {
  void* real = reinterpret_cast<void*>(weir::hook::real<int (*)()>(weir::hook::kSlot_vfork));
  if (!weir::record::thread_log.in_vfork_child) return_address = back;
  return real;
}

int weir_in_vfork_child() { return weir::record::thread_log.in_vfork_child; }

const void* weir_after_vfork(int result) {
  weir::record::thread_log.in_vfork_child = result == 0;
  return return_address;
}
}

__asm__(R"(
  .text
  .globl vfork
  .type vfork, @function
vfork:
  endbr64
  subq $8, %rsp
  call weir_in_vfork_child
  testl %eax, %eax
  jnz 1f
  movq 8(%rsp), %rdi
  call weir_before_vfork
  addq $16, %rsp          # the caller's return address is kept elsewhere: leave no frame
  call *%rax
  pushq %rax              # here twice: in the child first, then in the parent
  subq $8, %rsp
  movl %eax, %edi
  call weir_after_vfork
  movq %rax, %rdx
  addq $8, %rsp
  popq %rax
  jmp *%rdx
1:
  movq 8(%rsp), %rdi
  call weir_before_vfork
  addq $8, %rsp
  jmp *%rax
  .size vfork, .-vfork
)");

#endif
