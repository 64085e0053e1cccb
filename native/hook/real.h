// SPDX-License-Identifier: Apache-2.0
// The functions behind the hooks, as table.def names them.
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

namespace weir::hook {

enum class Library : uint8_t {
  c,
#define WEIR_LIBRARY(name, file, own) name,
#include "hook/library/libraries.def"
#undef WEIR_LIBRARY
};
enum class Result : uint8_t { number, pointer };

enum Slot : uint16_t {
#define WEIR_HOOKED(symbol, library, result) kSlot_##symbol,
#include "hook/table.def"
#undef WEIR_HOOKED
  kSlots
};

extern WEIR_OWN void* real_functions[kSlots];

// Finds the real function: of libc the next one in the order of loading; of an optional library the
// one that the program was bound to (binding.h), or would be. Where there is none, a function that
// fails with ENOSYS (null for pointers).
WEIR_COLD void* resolve(Slot slot);
// A function that makes the system call of the same name, for C libraries that lack it
// (table_numbers.def); null: there is no such row.
void* function_by_number(Slot slot);
// Finds those of libc ahead of time, so that hooks in signal handlers need no dynamic linker.
void resolve_libc();
// A function of an optional library, e.g. PMPI_Comm_rank, also of one that was loaded privately
// (mpi4py, f2py). Null when it is nowhere.
void* find_function(const char* name, Library library);

// libc's pthread_testcancel: where threads are a library of their own (glibc before 2.34), of that
// one. Null when there is none.
WEIR_COLD void (*find_test_for_cancel())();

template <typename Function>
inline Function real(Slot slot) {
  void* p = base::load_relaxed(&real_functions[slot]);
  if (WEIR_UNLIKELY(p == nullptr)) p = resolve(slot);
  return reinterpret_cast<Function>(p);
}

}  // namespace weir::hook

// Defines the exported function `symbol`, of libc (those of optional libraries are in binding.h).
// Its name in C++ is hook_symbol, so that libc's own declarations (and their noexcept, attributes
// and macros) cannot disagree with it.
#if !defined(WEIR_LINKED)

#define WEIR_DECLARE(R, symbol, ...) \
  extern "C" __attribute__((visibility("default"))) R hook_##symbol(__VA_ARGS__) __asm__(#symbol)

#define WEIR_REAL(symbol) weir::hook::real<decltype(&hook_##symbol)>(weir::hook::kSlot_##symbol)
// Null when nobody has looked for it yet.
#define WEIR_IS_FOUND(symbol) (WEIR_FOUND(symbol) != nullptr)
#define WEIR_FOUND(symbol)                    \
  reinterpret_cast<decltype(&hook_##symbol)>( \
      weir::base::load_relaxed(&weir::hook::real_functions[weir::hook::kSlot_##symbol]))

#else  // in the wrap archive the linker (ld --wrap) leads calls of the program to the hook, and the
       // hook's to the function. WEIR_LINKED_* are
   // made from table.def (native/preload/wrap/symbols.cmake).

#define WEIR_DECLARE(R, symbol, ...)                                           \
  extern "C" R real_of_##symbol(__VA_ARGS__) __asm__("__real_" #symbol);      \
  extern "C" R hook_##symbol(__VA_ARGS__) __asm__("__wrap_" #symbol)

#define WEIR_REAL(symbol) WEIR_LINKED_##symbol(hook_##symbol)
#define WEIR_IS_FOUND(symbol) true
#define WEIR_FOUND(symbol) WEIR_REAL(symbol)

namespace weir::hook {
long missing();  // ENOSYS
}

#endif

// WEIR_DECLARE alone: for WEIR_REAL in another file than the hook's.
#define WEIR_HOOK(R, symbol, ...)          \
  WEIR_DECLARE(R, symbol, __VA_ARGS__);    \
  extern "C" R hook_##symbol(__VA_ARGS__)

// A list of parameters as one argument of a macro.
#define WEIR_LIST(...) __VA_ARGS__
