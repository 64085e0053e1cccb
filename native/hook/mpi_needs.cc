// SPDX-License-Identifier: Apache-2.0
// Reads the dynamic symbols of what is loaded: an undefined one is a function that somebody may call.
#include "hook/mpi_needs.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

namespace weir::hook {
namespace {

struct Search {
  const char* prefix;
  const char* other;
};

// The parts of an object's dynamic section that are wanted.
struct Tables {
  const ElfW(Sym)* symbols;
  const char* names;
  const uint32_t* hash;
  const uint32_t* gnu_hash;
};

// ld.so relocates these addresses in the loaded section, but for the vDSO, which nobody need look at.
Tables tables_of(const dl_phdr_info& object) {
  Tables found{};
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      const ElfW(Addr) at = entry->d_un.d_ptr;
      if (at < object.dlpi_addr) continue;
      if (entry->d_tag == DT_SYMTAB) found.symbols = reinterpret_cast<const ElfW(Sym)*>(at);
      if (entry->d_tag == DT_STRTAB) found.names = reinterpret_cast<const char*>(at);
      if (entry->d_tag == DT_HASH) found.hash = reinterpret_cast<const uint32_t*>(at);
      if (entry->d_tag == DT_GNU_HASH) found.gnu_hash = reinterpret_cast<const uint32_t*>(at);
    }
  }
  return found;
}

// Those that the GNU table does not hash come first, the undefined ones among them.
uint32_t first_symbols(const Tables& t) { return t.gnu_hash != nullptr ? t.gnu_hash[1] : t.hash != nullptr ? t.hash[1] : 0; }

bool is_of_mpi(const char* path) {
  const char* slash = strrchr(path, '/');
  const char* file = slash != nullptr ? slash + 1 : path;
  constexpr const char* kPrefixes[] = {"libmpi", "libpmpi", "libompi", "libopen-", "mca_", "libweir-preload"};
  for (const char* prefix : kPrefixes) {
    if (strncmp(file, prefix, strlen(prefix)) == 0) return true;
  }
  return false;
}

int look_into(dl_phdr_info* object, size_t, void* argument) {
  const auto& search = *static_cast<const Search*>(argument);
  if (object->dlpi_name == nullptr || is_of_mpi(object->dlpi_name) || strstr(object->dlpi_name, "vdso") != nullptr) return 0;
  const Tables t = tables_of(*object);
  if (t.symbols == nullptr || t.names == nullptr) return 0;
  for (uint32_t i = 1, end = first_symbols(t); i < end; ++i) {
    if (t.symbols[i].st_shndx != SHN_UNDEF) continue;
    const char* name = t.names + t.symbols[i].st_name;
    if (strncmp(name, search.prefix, strlen(search.prefix)) == 0 || strncmp(name, search.other, strlen(search.other)) == 0) return 1;
  }
  return 0;
}

}  // namespace

bool program_needs(const char* prefix, const char* other_prefix) {
  Search search{prefix, other_prefix};
  return dl_iterate_phdr(look_into, &search) != 0;
}

}  // namespace weir::hook
