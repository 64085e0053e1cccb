// SPDX-License-Identifier: Apache-2.0
#include "hook/redirect.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "hook/binding.h"
#include "hook/loading.h"
#include "hook/names.h"
#include "hook/object.h"
#include "base/syscall.h"

#define WEIR_HOOKED(symbol, library, result) \
  extern "C" void address_of_##symbol(void) __asm__(#symbol);
#include "hook/table.def"
#undef WEIR_HOOKED

namespace weir::hook {

constinit uint32_t unloadings = 1;

namespace {

#if defined(__x86_64__)
constexpr uint32_t kJumpSlot = R_X86_64_JUMP_SLOT, kGlobal = R_X86_64_GLOB_DAT, kWord = R_X86_64_64;
#elif defined(__aarch64__)
constexpr uint32_t kJumpSlot = R_AARCH64_JUMP_SLOT, kGlobal = R_AARCH64_GLOB_DAT,
                   kWord = R_AARCH64_ABS64;
#endif

// A hook of libc's functions, by way of the library's own global offset table. Null for those that
// are not.
void* libc_hook(Slot slot) {
  switch (slot) {
#define WEIR_HOOKED(symbol, library, result)               \
  case kSlot_##symbol:                                     \
    if constexpr (Library::library == Library::c)          \
      return reinterpret_cast<void*>(address_of_##symbol); \
    else return nullptr;
#include "hook/table.def"
#undef WEIR_HOOKED
    default: return nullptr;
  }
}

constinit bool active = false;
constinit uint64_t known_loadings = 0, known_unloadings = 0;

// Objects of which nothing is left to do, by their dynamic sections. Written within the lock of the
// list of objects.
constexpr uint32_t kSettled = 4096, kReach = 16;
constinit const void* settled[kSettled] = {};

uint32_t home_of(const void* dynamic) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(dynamic) * 0x9e3779b97f4a7c15u >> 40) %
         (kSettled - kReach);
}

bool is_settled(const void* dynamic) {
  const uint32_t home = home_of(dynamic);
  for (uint32_t i = home; i < home + kReach; ++i) {
    if (settled[i] == dynamic) return true;
    if (settled[i] == nullptr) return false;
  }
  return false;
}

void settle(const Object& object) {
  const uint32_t home = home_of(object.dynamic);
  for (uint32_t i = home; i < home + kReach; ++i) {
    if (settled[i] != nullptr) continue;
    settled[i] = object.dynamic;
    return;
  }
}

constinit const char here = 0;

// Nothing in them calls functions of optional libraries.
bool is_left_alone(const Object& object) {
  return object.holds(&here) || strncmp(object.file(), "libc.so", 7) == 0 ||
         strncmp(object.file(), "ld-linux", 8) == 0;
}

struct Program {  // the main program
  Object object;
  bool fixed;  // not position-independent: the addresses of functions that it takes are those of
               // its own jumps to them
};

// Opens what is read-only after relocation for as long as it lives.
class Writable {
 public:
  explicit Writable(const Object& object) : object_(object) {}
  Writable(const Writable&) = delete;
  Writable& operator=(const Writable&) = delete;
  ~Writable() {
    if (opened_) protect(PROT_READ);
  }

  void store(void** where, void* value) {
    const auto at = reinterpret_cast<uintptr_t>(where);
    if (!opened_ && at >= object_.relro_begin && at < object_.relro_end) {
      if (base::failed(protect(PROT_READ | PROT_WRITE))) return;
      opened_ = true;
    }
    base::store(where, value);
  }

 private:
  long protect(int how) {
    return base::system_call(SYS_mprotect, static_cast<long>(object_.relro_begin),
                           static_cast<long>(object_.relro_end - object_.relro_begin), how);
  }

  const Object& object_;
  bool opened_ = false;
};

// One place that a relocation has filled with the address of a hooked function.
struct Place {
  void** where;
  Slot slot;
  uint32_t symbol;
  uint32_t type;
};

// PnetCDF's Fortran interface calls the C interface in the same file. The other libraries' Fortran
// interfaces are files of their own.
bool calls_itself(Slot slot) { return library_of(slot) == Library::pnetcdf; }

// Calls see(place) for each one that refers to a hooked function of another object, or of a library
// that calls itself; deep: those of libc, too.
template <typename See>
void for_each_place(const Object& object, bool deep, See see) {
  const auto walk = [&](const ElfW(Rela)* rows, size_t bytes) {
    for (size_t i = 0; i < bytes / sizeof *rows; ++i) {
      const auto type = static_cast<uint32_t>(ELF64_R_TYPE(rows[i].r_info));
      if (type != kJumpSlot && type != kGlobal && type != kWord) continue;
      const auto index = static_cast<uint32_t>(ELF64_R_SYM(rows[i].r_info));
      const ElfW(Sym)& symbol = object.symbols[index];
      if (index == 0 || (type == kWord && rows[i].r_addend != 0)) continue;
      const char* const name = object.names + symbol.st_name;
      const Slot slot = deep ? slot_of(name) : missable_slot_of(name);
      if (slot == kSlots || (symbol.st_shndx != SHN_UNDEF && !calls_itself(slot))) continue;
      const uintptr_t at = object.base + rows[i].r_offset;
      if (object.is_writable(at))
        see(Place{reinterpret_cast<void**>(at), slot, index, type});
    }
  };
  walk(object.plt, object.plt_bytes);
  walk(object.data, object.data_bytes);
}

bool refers_to_missable(const Object& object) {
  return any_undefined(object,
                       [](const char* name) { return missable_slot_of(name) != kSlots; });
}

// Another tool's library, or the program, may define the function, too; a jump of the program to
// one elsewhere is not a definition.
bool is_jump_of(const Program& program, const char* name, const void* value) {
  return program.fixed && program.object.holds(value) &&
         find_defined(program.object, name, gnu_hash_of(name)) == 0;
}

bool is_definition(const char* name, void* value) {
  const uint32_t hash = gnu_hash_of(name);
  Object object;
  return object_at(value, object) &&
         find_defined(object, name, hash) == reinterpret_cast<uintptr_t>(value);
}

// Libraries whose functions have names that any program may give to its own.
bool is_named_plainly(Library library) {
  return library == Library::aio || library == Library::uring;
}

// Whether the function is the library's own, in the version that programs are linked with today:
// older ones take other arguments.
bool is_of_library(Slot slot, void* target) {
  const char *const name = name_of(slot), *const own = own_function_of(library_of(slot));
  Object object;
  return object_at(target, object) && find_defined(object, own, gnu_hash_of(own)) != 0 &&
         find_defined(object, name, gnu_hash_of(name)) == reinterpret_cast<uintptr_t>(target);
}

// What is to stand in front of a function; null: nothing.
void* in_front_of(Slot slot, void* target) {
  if (!is_optional(slot)) return libc_hook(slot);
  return is_named_plainly(library_of(slot)) && !is_of_library(slot, target)
             ? nullptr
             : entry_for(slot, target);
}

// What a place of a function that may be missing, and that holds `value`, is to hold; null: it
// stays.
void* missable_entry(const Program& program, const Place& place, void* value) {
  if (value == nullptr || is_entry(value) || value == libc_hook(place.slot)) return nullptr;
  const char* const name = name_of(place.slot);
  if (is_jump_of(program, name, value)) return nullptr;  // the jump itself leads to the hook
  // A table of functions may have been changed by the program since.
  if (place.type == kWord && !is_definition(name, value)) return nullptr;
  return in_front_of(place.slot, value);
}

// A jump that waits for its first call leads back into the object, but not to the function itself.
bool is_unbound(const Object& object, const Place& place, void* value) {
  const ElfW(Sym)& symbol = object.symbols[place.symbol];
  const bool own = symbol.st_shndx != SHN_UNDEF &&
                   object.base + symbol.st_value == reinterpret_cast<uintptr_t>(value);
  return place.type == kJumpSlot && value != nullptr && object.holds(value) && !own;
}

// A library loaded with RTLD_DEEPBIND is bound past the exported hooks.
void* deep_entry(const Object& object, const Place& place, void* value) {
  void* const real = base::load_relaxed(&real_functions[place.slot]);
  if (real == nullptr || (value != real && !is_unbound(object, place, value))) return nullptr;
  return libc_hook(place.slot);
}

// True when nothing waits for its first call.
bool redirect_bound(const Program& program, const Object& object, bool deep) {
  bool all = true;
  Writable writable(object);
  for_each_place(object, deep, [&](const Place& place) {
    void* const value = *place.where;
    void* entry = nullptr;
    if (!may_be_missing(place.slot)) entry = deep_entry(object, place, value);
    else if (is_unbound(object, place, value)) all = false;
    else entry = missable_entry(program, place, value);
    if (entry != nullptr) writable.store(place.where, entry);
  });
  return all;
}

// What a jump that waits would be bound to now. The first definition of all that were loaded for
// everybody comes first, then the object's own libraries; the other way round for one that was
// loaded so. Null: nothing yet.
void* bound_to(const Program& program, const Object& object, const Place& place, void* handle,
               bool deep) {
  const char* const name = name_of(place.slot);
  const char* const version = version_of(object, place.symbol);
  const auto find = [&](void* scope) -> void* {
    void* const any = look_up(scope, name);
    if (any == nullptr || version == nullptr) return any;
    Object of_any;
    // Wrapper libraries have no versions, and stand in front of each.
    if (object_at(any, of_any) && !is_versioned(of_any, name)) return any;
    return look_up(scope, name, version);
  };
  void* found = deep && handle != nullptr ? find(handle) : find(RTLD_DEFAULT);
  if (found == nullptr && handle != nullptr) found = deep ? find(RTLD_DEFAULT) : find(handle);
  if (found == nullptr || !is_jump_of(program, name, found)) return found;
  const uint32_t hash = gnu_hash_of(name);
  uintptr_t behind = 0;
  for_each_object([&](const Object& one) { return (behind = find_defined(one, name, hash)) != 0; });
  return reinterpret_cast<void*>(behind);
}

// The jumps of an object that wait for their first call. handle holds the object; null for the
// program.
bool redirect_unbound(const Program& program, const Object& object, void* handle, bool deep) {
  bool all = true;
  Writable writable(object);
  for_each_place(object, false, [&](const Place& place) {
    void* const value = *place.where;
    if (!is_unbound(object, place, value)) return;
    void* const target = bound_to(program, object, place, handle, deep);
    void* const entry = target != nullptr ? in_front_of(place.slot, target) : nullptr;
    if (entry != nullptr) writable.store(place.where, entry);
    else all = false;
  });
  return all;
}

constexpr int kMostUnbound = 64;
constexpr size_t kPathBytes = 4096;

struct Scan {
  Program program;
  bool at_start;
  bool deep;
  int unbound_count;
  const void* unbound[kMostUnbound];  // dynamic sections
};

void forget_unloaded() {
  memset(settled, 0, sizeof settled);
  base::fetch_add(&unloadings, 1u);
}

// Whether memory can be written: adds 0 to it, by the kernel's hand.
bool can_be_written(uintptr_t address) {
  constexpr long kWakeOp = 5 | 128,
                 kAdd0 = 1l << 28;  // FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, FUTEX_OP_ADD
  static constinit uint32_t nobody = 0;
  return !base::failed(base::system_call(SYS_futex, reinterpret_cast<long>(&nobody), kWakeOp, 0, 0,
                                         static_cast<long>(address), kAdd0));
}

// Another thread may be loading this object at the moment. The dynamic linker closes what is
// read-only after relocation last.
bool is_relocated(const Object& object) {
  if (object.relro_begin < object.relro_end) return !can_be_written(object.relro_begin);
  const size_t jumps = object.plt_bytes / sizeof *object.plt;
  if (jumps == 0) return true;
  const uintptr_t last =
      *reinterpret_cast<const uintptr_t*>(object.base + object.plt[jumps - 1].r_offset);
  return last == 0 || last > object.end - object.begin;
}

// What is to be done with an object that has not been settled yet.
void look_at_new(Scan& scan, const Object& object) {
  if (is_left_alone(object) || (!scan.deep && !refers_to_missable(object))) return settle(object);
  if (!scan.at_start && !is_relocated(object)) {
    known_loadings = 0;  // the other thread looks at it when it is loaded
    return;
  }
  if (redirect_bound(scan.program, object, scan.deep)) return settle(object);
  if (scan.unbound_count < kMostUnbound) scan.unbound[scan.unbound_count++] = object.dynamic;
}

// Within the lock of the list of objects. Non-zero: nothing has been loaded since.
int look_at(dl_phdr_info* info, size_t, void* argument) {
  auto& scan = *static_cast<Scan*>(argument);
  Object object;
  if (scan.program.object.dynamic == nullptr) {  // the program is the first
    if (known_loadings == info->dlpi_adds && !scan.deep) return 1;
    known_loadings = info->dlpi_adds;
    if (known_unloadings != info->dlpi_subs) forget_unloaded();
    known_unloadings = info->dlpi_subs;
    if (!read_object(*info, object)) return 1;
    scan.program = {object, object.base == 0};
  }
  if (!is_settled(dynamic_section(*info)) && read_object(*info, object)) look_at_new(scan, object);
  return 0;
}

// The object with this dynamic section, and its path.
bool find_object(const void* dynamic, Object& object, char* path) {
  return for_each_object([&](const Object& one) {
    if (one.dynamic != dynamic) return false;
    object = one;
    strncpy(path, one.path, kPathBytes - 1);
    return true;
  });
}

// Outside that lock: looking up takes another.
void redirect_waiting(const Scan& scan, const void* dynamic) {
  char path[kPathBytes] = {};
  Object object;
  if (!find_object(dynamic, object, path)) return;
  void* const handle = path[0] != 0 ? open_loaded(path) : nullptr;
  if (path[0] != 0 &&
      (handle == nullptr || static_cast<const link_map*>(handle)->l_ld != dynamic)) {
    if (handle != nullptr) close_loaded(handle);
    return;
  }
  object.path = path;
  if (redirect_unbound(scan.program, object, handle, scan.deep)) {
    for_each_object(
        [&](const Object& one) { return one.dynamic == dynamic && (settle(one), true); });
  }
  if (handle != nullptr) close_loaded(handle);
}

}  // namespace

bool is_redirecting() { return base::load_relaxed(&active); }

namespace {

void scan_objects(bool at_start, bool deep) {
  const int before = errno;
  Scan scan{};
  scan.at_start = at_start;
  scan.deep = deep;
  dl_iterate_phdr(look_at, &scan);
  for (int i = 0; i < scan.unbound_count; ++i) redirect_waiting(scan, scan.unbound[i]);
  errno = before;
}

}  // namespace

void redirect_loaded(bool deep) {
  if (is_redirecting()) scan_objects(false, deep);
}

void begin_redirecting() {
  base::store(&active, true);
  scan_objects(true, false);
}

void* redirected(Slot slot, void* found) {
  const char* const name = name_of(slot);
  Program program{};
  Object of_found{};
  for_each_object([&](const Object& one) {
    if (program.object.dynamic == nullptr) program = {one, one.base == 0};
    if (!one.holds(found)) return false;
    of_found = one;
    return true;
  });
  if (of_found.dynamic == nullptr || is_jump_of(program, name, found))
    return nullptr;  // of another namespace; a jump of the program
  return in_front_of(slot, found);
}

}  // namespace weir::hook
