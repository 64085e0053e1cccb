// SPDX-License-Identifier: Apache-2.0
// What a hook of an optional library was called instead of. Such a hook is reached through an entry
// of its own for each real function that it stands in front of: two copies of a library, or a
// wrapper library of another tool and the library itself, are distinguished by the place that was
// called, not by who called. The entry leaves its number with the thread, and the hook picks it up
// first of all.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "hook/real.h"

namespace weir::hook {

struct Binding {
  const void* hook;   // the entry goes on there
  void* target;  // what the caller was bound to: of the library, or of another tool in front of it
  void* copy;         // what is known of the library's copy; kept by the hooks that need one
  uint32_t next;      // of the same slot, by index and 1; 0: none
  Slot slot;
};
static_assert(sizeof(Binding) == 32);

inline constexpr uint32_t kBindings = 8192;

// The entry in front of a target; made when there is none yet. Null when there are too many. Takes
// no lock.
void* entry_for(Slot slot, void* target);
bool is_entry(const void* address);
// What the first binding of a slot was made for; null: there is none.
void* first_target(Slot slot);

}  // namespace weir::hook

extern "C" {
extern WEIR_OWN WEIR_THREAD weir::hook::Binding* weir_called_binding;
}

namespace weir::hook {

// A signal handler came between an entry and its hook, and called another.
WEIR_COLD Binding* interrupted_binding(Slot slot);

// In a hook of an optional library, before anything else.
class Bound {
 public:
  explicit Bound(Slot slot) : binding_(weir_called_binding) {
    if (WEIR_UNLIKELY(binding_ == nullptr || binding_->slot != slot))
      binding_ = interrupted_binding(slot);
  }

  void* target() const { return binding_->target; }
  Binding& binding() const { return *binding_; }

 private:
  Binding* binding_;
};

// Calls a function of a library with `within` set: the library may make its system calls by libc's
// syscall(), whose hook asks.
template <typename Real>
int calling_library(bool& within, Real real) {
  within = true;
  const int result = real();
  within = false;
  return result;
}

}  // namespace weir::hook

// The hook of a function of an optional library, whose body begins with WEIR_BOUND(symbol).
// WEIR_BOUND_REAL is then the function that the caller was bound to.
#define WEIR_OPTIONAL_HOOK(R, symbol, ...)                                                 \
  extern "C" WEIR_OWN R hook_##symbol(__VA_ARGS__) __asm__("weir_hook_" #symbol);          \
  extern "C" R hook_##symbol(__VA_ARGS__)
#define WEIR_BOUND(symbol) const weir::hook::Bound bound(weir::hook::kSlot_##symbol)
#define WEIR_BOUND_REAL(symbol) reinterpret_cast<decltype(&hook_##symbol)>(bound.target())
