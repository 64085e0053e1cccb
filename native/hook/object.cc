// SPDX-License-Identifier: Apache-2.0
#include "hook/object.h"

#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

#include "hook/redirect.h"

// Of this library: the linker defines it.
extern "C" __attribute__((visibility("hidden")))
const ElfW(Dyn) own_dynamic_section[] __asm__("_DYNAMIC");

namespace weir::hook {
namespace {

constexpr uintptr_t kPage = 4096;

void read_segments(const dl_phdr_info& info, Object& object) {
  object.begin = UINTPTR_MAX;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    const uintptr_t at = info.dlpi_addr + segment.p_vaddr;
    switch (segment.p_type) {
      case PT_LOAD:
        if (at < object.begin) object.begin = at;
        if (at + segment.p_memsz > object.end) object.end = at + segment.p_memsz;
        break;
      case PT_DYNAMIC: object.dynamic = reinterpret_cast<const ElfW(Dyn)*>(at); break;
      case PT_GNU_RELRO:
        object.relro_begin = at & ~(kPage - 1);
        object.relro_end = (at + segment.p_memsz) & ~(kPage - 1);
        break;
    }
  }
}

void read_dynamic(Object& object) {
  for (const ElfW(Dyn)* entry = object.dynamic; entry->d_tag != DT_NULL; ++entry) {
    // The dynamic linker has relocated most of these, not those of the vDSO and not DT_VERNEED.
    const ElfW(Addr) given = entry->d_un.d_ptr;
    const ElfW(Addr) at = given < object.base ? given + object.base : given;
    switch (entry->d_tag) {
      case DT_JMPREL: object.plt = reinterpret_cast<const ElfW(Rela)*>(at); break;
      case DT_PLTRELSZ: object.plt_bytes = entry->d_un.d_val; break;
      case DT_RELA: object.data = reinterpret_cast<const ElfW(Rela)*>(at); break;
      case DT_RELASZ: object.data_bytes = entry->d_un.d_val; break;
      case DT_SYMTAB: object.symbols = reinterpret_cast<const ElfW(Sym)*>(at); break;
      case DT_STRTAB: object.names = reinterpret_cast<const char*>(at); break;
      case DT_HASH: object.hash = reinterpret_cast<const uint32_t*>(at); break;
      case DT_GNU_HASH: object.gnu_hash = reinterpret_cast<const uint32_t*>(at); break;
      case DT_VERSYM: object.versions = reinterpret_cast<const uint16_t*>(at); break;
      case DT_VERNEED: object.needed_versions = reinterpret_cast<const char*>(at); break;
      case DT_RPATH: object.has_rpath = true; break;
      case DT_RUNPATH: object.has_runpath = true; break;
    }
  }
  if (object.plt == nullptr) object.plt_bytes = 0;
  if (object.data == nullptr) object.data_bytes = 0;
}

constexpr uint16_t kHidden = 0x8000, kUnversioned = 1;

// The index of a definition in its default version, 0: none.
uint32_t defined_index(const Object& object, const char* name, uint32_t hash) {
  const uint32_t* const table = object.gnu_hash;
  if (table == nullptr || table[0] == 0) return 0;
  const uint32_t buckets = table[0], first = table[1], words = table[2], shift = table[3];
  const auto* const bloom = reinterpret_cast<const ElfW(Addr)*>(table + 4);
  constexpr uint32_t kBits = sizeof(ElfW(Addr)) * 8;
  const ElfW(Addr) word = bloom[hash / kBits & (words - 1)];
  if ((word >> hash % kBits & word >> (hash >> shift) % kBits & 1) == 0) return 0;
  const auto* const heads = reinterpret_cast<const uint32_t*>(bloom + words);
  const uint32_t* const chains = heads + buckets;
  uint32_t i = heads[hash % buckets];
  if (i < first) return 0;
  for (;; ++i) {
    const uint32_t found = chains[i - first];
    const bool is_default = object.versions == nullptr || (object.versions[i] & kHidden) == 0;
    const ElfW(Sym)& symbol = object.symbols[i];
    if ((found | 1) == (hash | 1) && is_default && symbol.st_shndx != SHN_UNDEF &&
        is_same(object.names + symbol.st_name, name))
      return i;
    if ((found & 1) != 0) return 0;
  }
}

// Libraries without a DT_GNU_HASH: old ones, and those that were linked so.
uint32_t defined_without_hash(const Object& object, const char* name) {
  if (object.gnu_hash != nullptr || object.hash == nullptr) return 0;
  for (uint32_t i = 1; i < object.hash[1]; ++i) {
    const ElfW(Sym)& symbol = object.symbols[i];
    const bool is_default = object.versions == nullptr || (object.versions[i] & kHidden) == 0;
    if (symbol.st_shndx != SHN_UNDEF && is_default && is_same(object.names + symbol.st_name, name))
      return i;
  }
  return 0;
}

uint32_t find_index(const Object& object, const char* name, uint32_t hash) {
  const uint32_t found = defined_index(object, name, hash);
  return found != 0 ? found : defined_without_hash(object, name);
}

}  // namespace

const char* Object::file() const {
  const char* const slash = strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

bool Object::is_writable(uintptr_t address) const {
  for (uint16_t i = 0; i < segment_count; ++i) {
    const ElfW(Phdr)& segment = segments[i];
    if (segment.p_type == PT_LOAD && address - base - segment.p_vaddr < segment.p_memsz)
      return (segment.p_flags & PF_W) != 0;
  }
  return false;
}

const ElfW(Dyn)* dynamic_section(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type == PT_DYNAMIC)
      return reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + segment.p_vaddr);
  }
  return nullptr;
}

bool read_object(const dl_phdr_info& info, Object& object) {
  object = {};
  object.base = info.dlpi_addr;
  object.path = info.dlpi_name != nullptr ? info.dlpi_name : "";
  object.segments = info.dlpi_phdr;
  object.segment_count = info.dlpi_phnum;
  read_segments(info, object);
  if (object.dynamic == nullptr) return false;
  read_dynamic(object);
  return object.symbols != nullptr && object.names != nullptr;
}

uintptr_t find_defined(const Object& object, const char* name, uint32_t hash) {
  const uint32_t found = find_index(object, name, hash);
  return found != 0 ? object.base + object.symbols[found].st_value : 0;
}

bool is_versioned(const Object& object, const char* name) {
  const uint32_t found = find_index(object, name, gnu_hash_of(name));
  return found != 0 && object.versions != nullptr &&
         (object.versions[found] & ~kHidden) > kUnversioned;
}

const char* version_of(const Object& object, uint32_t symbol) {
  if (object.versions == nullptr || object.needed_versions == nullptr) return nullptr;
  const uint16_t wanted = object.versions[symbol] & static_cast<uint16_t>(~kHidden);
  if (wanted <= kUnversioned) return nullptr;
  const char* at = object.needed_versions;
  for (;;) {
    const auto& file = *reinterpret_cast<const ElfW(Verneed)*>(at);
    const char* entry = at + file.vn_aux;
    for (uint16_t i = 0; i < file.vn_cnt; ++i) {
      const auto& version = *reinterpret_cast<const ElfW(Vernaux)*>(entry);
      if ((version.vna_other & ~kHidden) == wanted) return object.names + version.vna_name;
      entry += version.vna_next;
    }
    if (file.vn_next == 0) return nullptr;
    at += file.vn_next;
  }
}

// Those that the GNU table does not hash come first, the undefined ones among them. An empty table
// says that there are none where no symbol is defined; what the relocations name is the answer
// then.
uint32_t end_of_undefined(const Object& object) {
  if (object.gnu_hash == nullptr) return object.hash != nullptr ? object.hash[1] : 0;
  const uint32_t first = object.gnu_hash[1];
  if (first > 1) return first;
  uint32_t end = first;
  const auto take = [&](const ElfW(Rela)* rows, size_t bytes) {
    for (size_t i = 0; i < bytes / sizeof *rows; ++i) {
      const uint32_t symbol = static_cast<uint32_t>(ELF64_R_SYM(rows[i].r_info));
      if (symbol >= end) end = symbol + 1;
    }
  };
  take(object.plt, object.plt_bytes);
  take(object.data, object.data_bytes);
  return end;
}

bool object_at(const void* address, Object& object) {
  return for_each_object([&](const Object& one) {
    if (!one.holds(address)) return false;
    object = one;
    return true;
  });
}

void* find_of_kernel(const char* name) {
  const uintptr_t at = getauxval(AT_SYSINFO_EHDR);
  if (at == 0) return nullptr;
  const auto& file = *reinterpret_cast<const ElfW(Ehdr)*>(at);
  dl_phdr_info info{};
  info.dlpi_phdr = reinterpret_cast<const ElfW(Phdr)*>(at + file.e_phoff);
  info.dlpi_phnum = file.e_phnum;
  for (int i = file.e_phnum - 1; i >= 0; --i) {
    if (info.dlpi_phdr[i].p_type == PT_LOAD)
      info.dlpi_addr = at + info.dlpi_phdr[i].p_offset - info.dlpi_phdr[i].p_vaddr;
  }
  Object object;
  if (!read_object(info, object)) return nullptr;
  return reinterpret_cast<void*>(find_defined(object, name, gnu_hash_of(name)));
}

ClockFunction kernel_clock() {
#if defined(__x86_64__)
  return reinterpret_cast<ClockFunction>(find_of_kernel("__vdso_clock_gettime"));
#else
  return reinterpret_cast<ClockFunction>(find_of_kernel("__kernel_clock_gettime"));
#endif
}

void* next_defined(const char* name) {
  const uint32_t hash = gnu_hash_of(name);
  bool behind = false;
  for (const link_map* one = _r_debug.r_map; one != nullptr; one = one->l_next) {
    if (behind && one->l_ld != nullptr) {
      Object object{};
      object.base = one->l_addr;
      object.dynamic = one->l_ld;
      read_dynamic(object);
      const bool is_whole = object.symbols != nullptr && object.names != nullptr;
      if (const uintptr_t found = is_whole ? find_defined(object, name, hash) : 0)
        return reinterpret_cast<void*>(found);
    }
    behind = behind || one->l_ld == own_dynamic_section;
  }
  return nullptr;
}

}  // namespace weir::hook
