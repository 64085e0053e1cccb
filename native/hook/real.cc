// SPDX-License-Identifier: Apache-2.0
#include "hook/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

namespace weir::hook {
namespace {

struct Known {
  const char* name;
  Library library;
  Result result;
};

constexpr Known kKnown[kSlots] = {
#define WEIR_HOOKED(symbol, library, result) {#symbol, Library::library, Result::result},
#include "hook/table.def"
#undef WEIR_HOOKED
};

long no_number() {
  errno = ENOSYS;
  return -1;
}

void* no_pointer() {
  errno = ENOSYS;
  return nullptr;
}

struct Search {
  const char* function;
  const char* library;
  void* found;
};

// dl_iterate_phdr's callback: the function in a loaded library whose file name begins as wanted.
int look_into(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  const char* slash = strrchr(info->dlpi_name, '/');
  const char* file = slash != nullptr ? slash + 1 : info->dlpi_name;
  if (strncmp(file, search->library, strlen(search->library)) != 0) return 0;
  void* handle = dlopen(info->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
  if (handle == nullptr) return 0;
  search->found = dlsym(handle, search->function);
  dlclose(handle);
  return search->found != nullptr;
}

const char* file_of(Library library) {
  switch (library) {
    case Library::gfortran: return "libgfortran";
    case Library::mpi: return "libmpi";
    case Library::netcdf: return "libnetcdf";
    case Library::pnetcdf: return "libpnetcdf";
    case Library::hdf5: return "libhdf5";
    case Library::c: break;
  }
  return "libc.so";
}

}  // namespace

constinit void* real_functions[kSlots] = {};

void* find_function(const char* name, Library library) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found != nullptr || library == Library::c) return found;
  Search search{name, file_of(library), nullptr};
  dl_iterate_phdr(look_into, &search);
  return search.found;
}

void* resolve(Slot slot) {
  const int before = errno;
  const Known& known = kKnown[slot];
  void* found = find_function(known.name, known.library);
  if (found == nullptr) {
    found = known.result == Result::pointer ? reinterpret_cast<void*>(no_pointer) : reinterpret_cast<void*>(no_number);
    if (known.library != Library::c) {  // may be loaded later
      errno = before;
      return found;
    }
  }
  base::store_relaxed(&real_functions[slot], found);
  errno = before;
  return found;
}

void resolve_libc() {
  for (uint16_t slot = 0; slot < kSlots; ++slot) {
    if (kKnown[slot].library == Library::c) resolve(static_cast<Slot>(slot));
  }
}

}  // namespace weir::hook
