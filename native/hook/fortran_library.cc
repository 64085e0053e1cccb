// SPDX-License-Identifier: Apache-2.0
#include "hook/fortran_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>

namespace weir::hook {
namespace {

constexpr int kLibraries = 8;
constexpr uint32_t kCallers = 64;
constexpr const char* kIdentity = "_gfortran_st_write";

constexpr const char* kNames[kSlots] = {
#define WEIR_HOOKED(symbol, library, result) #symbol,
#include "hook/table.def"
#undef WEIR_HOOKED
};

constinit FortranLibrary libraries[kLibraries] = {};
constinit FortranLibrary unknown = {};

constinit FortranCaller callers[kCallers] = {};
constinit uint32_t caller_count = 0;
constinit const FortranCaller nobody{};

struct Search {
  uintptr_t address;
  uintptr_t begin, end;
  const char* name;
};

int look_at_module(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  uintptr_t begin = UINTPTR_MAX, end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const uintptr_t at = info->dlpi_addr + segment.p_vaddr;
    if (at < begin) begin = at;
    if (at + segment.p_memsz > end) end = at + segment.p_memsz;
  }
  if (search->address < begin || search->address >= end) return 0;
  *search = {search->address, begin, end, info->dlpi_name};
  return 1;
}

// The function that the module itself would be bound to if weir were not there.
void* identity_for(const char* module) {
  if (module != nullptr && module[0] != 0) {
    if (void* handle = dlopen(module, RTLD_NOLOAD | RTLD_LAZY)) {
      void* found = dlsym(handle, kIdentity);
      dlclose(handle);
      if (found != nullptr) return found;
    }
  }
  return find_function(kIdentity, Library::gfortran);
}

long nothing() {
  errno = ENOSYS;
  return -1;
}

}  // namespace

constinit const FortranCaller* last_fortran_caller = &nobody;

// Two threads that meet a copy at the same time may both note it: nothing is lost but an entry.
FortranLibrary* find_library(void* identity) {
  for (FortranLibrary& library : libraries) {
    if (base::load(&library.identity_) == identity) return &library;
  }
  Dl_info info;
  void* handle = dladdr(identity, &info) != 0 ? dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY | RTLD_NODELETE) : nullptr;
  for (FortranLibrary& library : libraries) {
    if (base::exchange(&library.taken_, 1u) != 0) continue;
    library.handle_ = handle;
    base::store(&library.identity_, identity);
    return &library;
  }
  return &libraries[0];
}

FortranLibrary* find_library_of_caller(uintptr_t address) {
  const uint32_t known = base::load(&caller_count);
  for (uint32_t i = 0; i < known && i < kCallers; ++i) {
    FortranLibrary* library = base::load(&callers[i].library);
    if (library == nullptr || address < callers[i].begin || address >= callers[i].end) continue;
    base::store(&last_fortran_caller, static_cast<const FortranCaller*>(&callers[i]));
    return library;
  }
  const int before = errno;
  Search search{address, 0, 0, nullptr};
  dl_iterate_phdr(look_at_module, &search);
  const auto own = reinterpret_cast<uintptr_t>(&find_library_of_caller);
  if (own >= search.begin && own < search.end) {  // the library went on, by a jump, from one of its functions to another
    errno = before;
    FortranLibrary* library = base::load(&last_fortran_caller)->library;
    return library != nullptr ? library : &libraries[0];
  }
  void* identity = identity_for(search.name);
  FortranLibrary* library = identity != nullptr ? find_library(identity) : &unknown;
  if (identity != nullptr && search.end != 0) {
    const uint32_t at = base::fetch_add(&caller_count, 1u);
    if (at < kCallers) {
      callers[at].begin = search.begin;
      callers[at].end = search.end;
      base::store(&callers[at].library, library);
    }
  }
  errno = before;
  return library;
}

void* FortranLibrary::resolve(Slot slot) {
  const int before = errno;
  void* found = handle_ != nullptr ? dlsym(handle_, kNames[slot]) : find_function(kNames[slot], Library::gfortran);
  if (found == nullptr) found = reinterpret_cast<void*>(nothing);
  else base::store_relaxed(&functions_[slot], found);
  errno = before;
  return found;
}

}  // namespace weir::hook
