// SPDX-License-Identifier: Apache-2.0
#include "hook/library.h"

#include <dlfcn.h>
#include <link.h>

#include "hook/mpi_io.h"
#include "os/scratch.h"
#include "os/syscall.h"

namespace weir::hook {

WEIR_THREAD int library_depth = 0;

namespace {

constexpr size_t kSites = 8192, kProbes = 16, kCopies = 16;
constinit CallSite sites[kSites] = {};
constinit LibraryCopy copies[kCopies] = {};

// Two threads that meet a copy at the same time may both note it: nothing is lost but an entry.
LibraryCopy* copy_of(void* function) {
  Dl_info info;
  if (function == nullptr || dladdr(function, &info) == 0) return nullptr;
  for (LibraryCopy& copy : copies) {
    if (base::load(&copy.base) == info.dli_fbase) return &copy;
  }
  void* const handle = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY | RTLD_NODELETE);
  for (LibraryCopy& copy : copies) {
    if (base::exchange(&copy.taken, 1u) != 0) continue;
    copy.handle = handle;
    base::store(&copy.base, info.dli_fbase);
    return &copy;
  }
  return nullptr;
}

// The copy that this thread has called last.
WEIR_THREAD LibraryCopy* last_copy = nullptr;

void* loaded_at(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

bool is_own(const void* address) { return loaded_at(address) == loaded_at(reinterpret_cast<void*>(copy_of)); }

// What the caller would be bound to if weir were not there: the first of its own dependences that has it; the program itself, and what
// depends on none, takes the first that was loaded for all.
void* bound_for(const char* symbol, Library library, const void* caller) {
  Dl_info info;
  link_map* loaded = nullptr;
  const bool known = dladdr1(caller, &info, reinterpret_cast<void**>(&loaded), RTLD_DL_LINKMAP) != 0 && loaded != nullptr;
  // The program has no name there; by the one that dladdr gives for it, its argv[0], ld.so would look through its folders.
  if (known && loaded->l_name != nullptr && loaded->l_name[0] != 0) {
    void* const handle = dlopen(loaded->l_name, RTLD_NOLOAD | RTLD_LAZY);
    void* const found = handle != nullptr ? dlsym(handle, symbol) : nullptr;
    if (handle != nullptr) dlclose(handle);
    if (found != nullptr && !is_own(found)) return found;
  }
  return find_function(symbol, library);
}

// The library went on, by a jump, from one of its functions to another: the return address is still that in the hook of the first.
CallSite continued(const char* symbol, Library library, const void* caller) {
  void* function = function_of(last_copy, symbol);
  if (function == nullptr) function = find_function(symbol, library);
  return {symbol, caller, function, copy_of(function)};
}

CallSite& probed(const char* symbol, const void* caller, size_t probe) {
  const uint64_t both = reinterpret_cast<uintptr_t>(caller) ^ reinterpret_cast<uintptr_t>(symbol) << 20;
  const uint64_t first = both * 0x9e3779b97f4a7c15u >> 40;
  return sites[(first + probe) % kSites];
}

}  // namespace

CallSite find_call_site(const char* symbol, Library library, const void* caller) {
  for (size_t i = 0; i < kProbes; ++i) {
    const CallSite& site = probed(symbol, caller, i);
    if (WEIR_LIKELY(base::load(&site.caller) == caller && site.symbol == symbol)) {
      last_copy = site.copy;
      return site;
    }
  }
  const int before = errno;
  if (is_own(caller)) {
    const CallSite next = continued(symbol, library, caller);
    errno = before;
    return next;
  }
  CallSite made{symbol, caller, bound_for(symbol, library, caller), nullptr};
  last_copy = made.copy = copy_of(made.function);
  for (size_t i = 0; made.copy != nullptr && i < kProbes; ++i) {
    CallSite& site = probed(symbol, caller, i);
    void* expected = nullptr;
    if (!base::compare_exchange(&site.function, &expected, made.function)) continue;
    site.symbol = symbol;
    site.copy = made.copy;
    base::store(&site.caller, caller);
    break;
  }
  errno = before;
  return made;
}

void* function_of(const LibraryCopy* copy, const char* name) {
  return copy != nullptr && copy->handle != nullptr ? dlsym(copy->handle, name) : nullptr;
}

void end_library_call(const LibraryCall& call, Span span) {
  --library_depth;
  const uint8_t flags = call.failed ? uint8_t{wire::kError} : uint8_t{0};
  keep({call.op, call.layer, flags, 0, call.name, span.start, span.end, kUnknownOffset, clip(call.bytes)});
}

uint32_t name_of_variable(const char* library, const char* path, const char* variable) {
  const os::Scratch room;
  char* const text = room.data();
  if (text == nullptr) return 0;
  constexpr size_t kHalf = os::Scratch::kBytes / 2;
  char* const folder = text + kHalf;
  path = without_file_system(path);
  base::Writer name(text, kHalf);
  name.add(library).add(":");
  if (path[0] != '/' && !os::failed(os::working_directory(folder, kHalf))) name.add(folder).add("/");
  name.add(path).add(":").add(variable);
  return record::process().names().id(name.view(), wire::NameSource::kGiven);
}

}  // namespace weir::hook
