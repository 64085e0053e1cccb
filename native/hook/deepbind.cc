// SPDX-License-Identifier: Apache-2.0
// Libraries loaded with RTLD_DEEPBIND look for libc's functions in their own scope first and so miss the hooks. After such a
// dlopen, at the program's next dlsym (without one it cannot call the library), their tables are pointed at the hooks. dlopen and
// dlsym are passed on by a jump: both look at who called them. x86-64 alone.
#include "hook/real.h"

#if defined(__x86_64__)

#include <dlfcn.h>
#include <initializer_list>
#include <link.h>
#include <string.h>

#include "os/syscall.h"

#define WEIR_HOOKED(symbol, library, result) extern "C" void address_of_##symbol(void) __asm__(#symbol);
#include "hook/table.def"
#undef WEIR_HOOKED

namespace weir::hook {
namespace {

struct Place {
  const char* name;
  void* hook;
  Library library;
};

// By way of the global offset table: filled when the library is loaded, no constructor needed.
Place place_of(uint16_t slot) {
  switch (slot) {
#define WEIR_HOOKED(symbol, library, result) \
  case kSlot_##symbol: return {#symbol, reinterpret_cast<void*>(address_of_##symbol), Library::library};
#include "hook/table.def"
#undef WEIR_HOOKED
  }
  return {};
}

const char* file_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

bool is_own_or_system(const dl_phdr_info* info) {
  const char* name = file_name(info->dlpi_name);
  return name[0] == 0 || strncmp(name, "libc.so", 7) == 0 || strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "libweir", 7) == 0;
}

struct Tables {
  const ElfW(Rela)* plt = nullptr;
  size_t plt_bytes = 0;
  const ElfW(Rela)* data = nullptr;
  size_t data_bytes = 0;
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
};

Tables read_dynamic(const ElfW(Dyn)* entry) {
  Tables t;
  for (; entry->d_tag != DT_NULL; ++entry) {
    const auto at = entry->d_un.d_ptr;  // ld.so has relocated these
    switch (entry->d_tag) {
      case DT_JMPREL: t.plt = reinterpret_cast<const ElfW(Rela)*>(at); break;
      case DT_PLTRELSZ: t.plt_bytes = entry->d_un.d_val; break;
      case DT_RELA: t.data = reinterpret_cast<const ElfW(Rela)*>(at); break;
      case DT_RELASZ: t.data_bytes = entry->d_un.d_val; break;
      case DT_SYMTAB: t.symbols = reinterpret_cast<const ElfW(Sym)*>(at); break;
      case DT_STRTAB: t.names = reinterpret_cast<const char*>(at); break;
    }
  }
  return t;
}

void point_at(void** where, void* hook) {
  auto* page = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(where) & ~uintptr_t{4095});
  // Read-only after relocation: opened for one store. Never closed again: other tables may share the page.
  os::system_call(SYS_mprotect, reinterpret_cast<long>(page), 4096, PROT_READ | PROT_WRITE);
  base::store(where, hook);
}

void redirect(const ElfW(Rela)* rows, size_t bytes, const Tables& t, ElfW(Addr) base) {
  for (size_t i = 0; rows != nullptr && i < bytes / sizeof *rows; ++i) {
    const auto type = ELF64_R_TYPE(rows[i].r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
    const ElfW(Sym)& symbol = t.symbols[ELF64_R_SYM(rows[i].r_info)];
    if (symbol.st_shndx != SHN_UNDEF) continue;  // the library's own
    const char* name = t.names + symbol.st_name;
    auto** where = reinterpret_cast<void**>(base + rows[i].r_offset);
    for (uint16_t slot = 0; slot < kSlots; ++slot) {
      const Place place = place_of(slot);
      if (place.name == nullptr || strcmp(name, place.name) != 0) continue;
      if (place.library != Library::c) {  // their hooks find the copy that the caller means
        point_at(where, place.hook);
        continue;
      }
      void* real = base::load_relaxed(&real_functions[slot]);
      if (real == nullptr) continue;
      // Bound past us, or not bound yet (then the slot leads back into the library).
      Dl_info bound;
      const bool unbound = dladdr(*where, &bound) != 0 && reinterpret_cast<ElfW(Addr)>(bound.dli_fbase) == base;
      if (*where == real || unbound) point_at(where, place.hook);
    }
  }
}

int look_at_library(dl_phdr_info* info, size_t, void*) {
  if (is_own_or_system(info)) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const Tables t = read_dynamic(reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr));
    if (t.symbols == nullptr || t.names == nullptr) continue;
    redirect(t.plt, t.plt_bytes, t, info->dlpi_addr);
    redirect(t.data, t.data_bytes, t, info->dlpi_addr);
  }
  return 0;
}

}  // namespace
}  // namespace weir::hook

extern "C" {

__attribute__((visibility("default"))) void* hook_dlopen(const char*, int) __asm__("dlopen");
__attribute__((visibility("default"))) void* hook_dlsym(void*, const char*) __asm__("dlsym");

constinit void* weir_real_dlopen = nullptr;
constinit void* weir_real_dlsym = nullptr;
constinit uint32_t weir_deepbind_pending = 0;

// dlsym cannot be asked for itself by its own name. Both symbol versions are the same function in glibc.
void weir_find_dl() {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5"}) {
    if (weir_real_dlopen == nullptr) weir_real_dlopen = dlvsym(RTLD_NEXT, "dlopen", version);
    if (weir_real_dlsym == nullptr) weir_real_dlsym = dlvsym(RTLD_NEXT, "dlsym", version);
  }
}

void weir_redirect_deepbound() {
  if (weir::base::exchange(&weir_deepbind_pending, 0u) != 0) dl_iterate_phdr(weir::hook::look_at_library, nullptr);
}
}

__asm__(R"(
  .text
  .globl dlopen
  .type dlopen, @function
dlopen:
  endbr64
  testl $8, %esi          # RTLD_DEEPBIND
  jz 1f
  movl $1, weir_deepbind_pending(%rip)
1:
  movq weir_real_dlopen(%rip), %rax
  testq %rax, %rax
  jz 2f
  jmp *%rax
2:
  pushq %rdi
  pushq %rsi
  subq $8, %rsp
  call weir_find_dl
  addq $8, %rsp
  popq %rsi
  popq %rdi
  jmp 1b
  .size dlopen, .-dlopen

  .globl dlsym
  .type dlsym, @function
dlsym:
  endbr64
  cmpl $0, weir_deepbind_pending(%rip)
  jne 3f
1:
  movq weir_real_dlsym(%rip), %rax
  testq %rax, %rax
  jz 2f
  jmp *%rax
2:
  pushq %rdi
  pushq %rsi
  subq $8, %rsp
  call weir_find_dl
  addq $8, %rsp
  popq %rsi
  popq %rdi
  jmp 1b
3:
  pushq %rdi
  pushq %rsi
  subq $8, %rsp
  call weir_redirect_deepbound
  addq $8, %rsp
  popq %rsi
  popq %rdi
  jmp 1b
  .size dlsym, .-dlsym
)");

#endif
