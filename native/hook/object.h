// SPDX-License-Identifier: Apache-2.0
// The loaded programs and libraries, read from memory as the dynamic linker left them. It calls the
// dynamic linker for their list alone (dl_iterate_phdr), so it may be used where dlsym may not:
// within that list's lock.
#pragma once

#include <link.h>
#include <stddef.h>
#include <stdint.h>

namespace weir::hook {

struct Object {
  ElfW(Addr) base;
  const char* path;               // the dynamic linker's; "" for the program
  const ElfW(Dyn)* dynamic;       // tells objects apart
  uintptr_t begin, end;           // of all segments
  uintptr_t relro_begin, relro_end;  // whole pages that are read-only after relocation; empty: none
  const ElfW(Phdr)* segments;
  uint16_t segment_count;
  bool has_rpath, has_runpath;

  const ElfW(Sym)* symbols;
  const char* names;
  const uint16_t* versions;       // null: none
  const char* needed_versions;    // DT_VERNEED
  const uint32_t *hash, *gnu_hash;
  const ElfW(Rela)* plt;
  size_t plt_bytes;
  const ElfW(Rela)* data;
  size_t data_bytes;

  bool holds(uintptr_t address) const { return address >= begin && address < end; }
  bool holds(const void* address) const { return holds(reinterpret_cast<uintptr_t>(address)); }
  bool is_program() const { return path[0] == 0; }
  const char* file() const;       // the last component of its path
  bool is_writable(
      uintptr_t address) const;  // in a segment that is writable, before or after relocation
};

// Null: it has none.
const ElfW(Dyn)* dynamic_section(const dl_phdr_info& info);
// False: nothing of it is dynamic.
bool read_object(const dl_phdr_info& info, Object& object);

// The hash of DT_GNU_HASH.
constexpr uint32_t gnu_hash_of(const char* name) {
  uint32_t hash = 5381;
  for (; *name != 0; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

// Not libc's strcmp: a sanitizer stands in front of that one, and looks it up by dlsym, when weir
// looks up dlsym.
constexpr bool is_same(const char* one, const char* other) {
  while (*one != 0 && *one == *other) ++one, ++other;
  return *one == *other;
}

// The address of a function that the object defines, in its default version; 0: it defines none.
uintptr_t find_defined(const Object& object, const char* name, uint32_t hash);
// Whether a definition there has a version of its own.
bool is_versioned(const Object& object, const char* name);
// The version that an undefined symbol asks for; null: none.
const char* version_of(const Object& object, uint32_t symbol);
// Undefined symbols have indices from 1 to below this one; others may lie among them.
uint32_t end_of_undefined(const Object& object);

// Whether the object needs a symbol of others for whose name is(name) is true.
template <typename Is>
bool any_undefined(const Object& object, Is is) {
  for (uint32_t i = 1, end = end_of_undefined(object); i < end; ++i) {
    const ElfW(Sym)& symbol = object.symbols[i];
    if (symbol.st_shndx == SHN_UNDEF && is(object.names + symbol.st_name)) return true;
  }
  return false;
}

// Calls see(object) for each loaded object, in the order of loading, until it returns true. Holds
// the lock of that list: see calls nothing of the dynamic linker but this.
template <typename See>
bool for_each_object(See see) {
  return dl_iterate_phdr(
             [](dl_phdr_info* info, size_t, void* argument) -> int {
               Object object;
               return read_object(*info, object) && (*static_cast<See*>(argument))(object) ? 1 : 0;
             },
             &see) != 0;
}

// The object that an address lies in. False: none of this namespace.
bool object_at(const void* address, Object& object);
// A function that the kernel gives each process (vdso(7)), e.g. __vdso_clock_gettime. Null: it
// gives none.
void* find_of_kernel(const char* name);
// The definition that comes first behind this library in the order of loading: what
// dlsym(RTLD_NEXT) finds from here. It calls no function of another library: a sanitizer defines
// dl_iterate_phdr, and calls dlsym before its own functions work. Takes no lock: to be called first
// before there are threads that load libraries.
void* next_defined(const char* name);

}  // namespace weir::hook
