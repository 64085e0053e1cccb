// SPDX-License-Identifier: Apache-2.0
// The entries are code that was there from the start, one for each place of a table: nothing is
// made executable at run time. x86-64, and aarch64, which has never been run.
#include "hook/binding.h"

#include "base/atomic.h"
#include "hook/names.h"

extern "C" {

WEIR_THREAD weir::hook::Binding* weir_called_binding = nullptr;
constinit WEIR_OWN weir::hook::Binding weir_bindings[weir::hook::kBindings] = {};
extern WEIR_OWN const char weir_binding_entries[];
extern WEIR_OWN const int32_t weir_hook_offsets[];
}

static_assert(weir::hook::kBindings == 8192, "as many as .rept makes");

#if defined(__x86_64__)

__asm__(R"(
  .text
  .balign 16
  .globl weir_binding_entries
  .hidden weir_binding_entries
  .hidden weir_bindings
  .hidden weir_called_binding
  .cfi_startproc
weir_binding_entries:
  .set weir_entry, 0
  .rept 8192
  endbr64
  leaq weir_bindings+weir_entry(%rip), %r11
  jmp weir_call_binding
  .balign 16
  .set weir_entry, weir_entry+32
  .endr
weir_call_binding:
  movq weir_called_binding@gottpoff(%rip), %rax
  movq %r11, %fs:(%rax)
  jmp *(%r11)
  .cfi_endproc
)");

#elif defined(__aarch64__)

__asm__(R"(
  .text
  .balign 16
  .globl weir_binding_entries
  .hidden weir_binding_entries
  .hidden weir_bindings
  .hidden weir_called_binding
  .cfi_startproc
weir_binding_entries:
  .set weir_entry, 0
  .rept 8192
  hint #34                      // bti c
  adrp x16, weir_bindings+weir_entry
  add x16, x16, :lo12:weir_bindings+weir_entry
  b weir_call_binding
  .set weir_entry, weir_entry+32
  .endr
weir_call_binding:
  adrp x17, :gottprel:weir_called_binding
  ldr x17, [x17, :gottprel_lo12:weir_called_binding]
  mrs x9, tpidr_el0
  str x16, [x9, x17]
  ldr x17, [x16]
  br x17
  .cfi_endproc
)");

#else
#error "no entries for bindings on this architecture"
#endif

// Where each hook lies, counted from the table itself; libc's are not in it. So the dynamic linker
// has no work with it.
__asm__(R"(
  .macro weir_offset library, symbol
  .ifc \library, c
  .long 0
  .else
  .long weir_hook_\symbol - weir_hook_offsets
  .endif
  .endm
  .section .rodata
  .balign 4
  .globl weir_hook_offsets
  .hidden weir_hook_offsets
weir_hook_offsets:
)"
#define WEIR_HOOKED(symbol, library, result) "  weir_offset " #library ", " #symbol "\n"
#include "hook/table.def"
#undef WEIR_HOOKED
        "  .text\n");

namespace weir::hook {
namespace {

constexpr size_t kEntryBytes = 16;

// Index and 1 of a slot's first binding.
constinit uint32_t first_bindings[kSlots] = {};
constinit uint32_t binding_count = 0;

void* entry_of(const Binding& binding) {
  return const_cast<char*>(weir_binding_entries) +
         static_cast<size_t>(&binding - weir_bindings) * kEntryBytes;
}

const void* hook_of(Slot slot) {
  return reinterpret_cast<const char*>(weir_hook_offsets) + weir_hook_offsets[slot];
}

Binding* find_binding(Slot slot, const void* target) {
  for (uint32_t i = base::load(&first_bindings[slot]); i != 0; i = weir_bindings[i - 1].next) {
    if (weir_bindings[i - 1].target == target) return &weir_bindings[i - 1];
  }
  return nullptr;
}

}  // namespace

void* entry_for(Slot slot, void* target) {
  Binding* made = nullptr;
  for (;;) {
    uint32_t first = base::load(&first_bindings[slot]);
    if (const Binding* known = find_binding(slot, target)) return entry_of(*known);
    if (made == nullptr) {
      if (base::load(&binding_count) >= kBindings) return nullptr;
      const uint32_t at = base::fetch_add(&binding_count, 1u);
      if (at >= kBindings) return nullptr;
      made = &weir_bindings[at];
      *made = {hook_of(slot), target, nullptr, 0, slot};
    }
    made->next = first;
    const auto number = static_cast<uint32_t>(made - weir_bindings) + 1;
    if (base::compare_exchange(&first_bindings[slot], &first, number)) return entry_of(*made);
  }
}

bool is_entry(const void* address) {
  return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(weir_binding_entries) <
         kBindings * kEntryBytes;
}

void* first_target(Slot slot) {
  uint32_t i = base::load(&first_bindings[slot]);
  if (i == 0) return nullptr;
  while (weir_bindings[i - 1].next != 0) i = weir_bindings[i - 1].next;
  return weir_bindings[i - 1].target;
}

Binding* interrupted_binding(Slot slot) {
  static constinit Binding none{};
  const uint32_t first = base::load(&first_bindings[slot]);
  return first != 0 ? &weir_bindings[first - 1] : &none;
}

}  // namespace weir::hook
