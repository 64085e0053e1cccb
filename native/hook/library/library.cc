// SPDX-License-Identifier: Apache-2.0
#include "hook/library/library.h"

#include <string.h>

#include "hook/mpi/io.h"
#include "hook/names.h"
#include "base/scratch.h"
#include "base/syscall.h"

namespace weir::hook {

WEIR_THREAD int library_depth = 0;

namespace {

constexpr size_t kCopies = 32;
constinit LibraryCopy copies[kCopies] = {};

}  // namespace

// The library that has a function: what defines it may be another tool's wrapper. Then it is the
// next one in the order of loading.
bool find_library_behind(const void* target, Library library, Object& found) {
  const char* const own = own_function_of(library);
  const char* const file = file_of(library);
  const uint32_t hash = gnu_hash_of(own);
  Object target_object{}, next{}, first{};
  for_each_object([&](const Object& one) {
    const bool here = one.holds(target);
    const bool owns = find_defined(one, own, hash) != 0;
    if (here) target_object = one;
    if (here && owns) next = one;
    if (!owns || next.dynamic != nullptr) return next.dynamic != nullptr;
    if (target_object.dynamic != nullptr && strncmp(one.file(), file, strlen(file)) == 0)
      next = one;
    if (first.dynamic == nullptr) first = one;
    return next.dynamic != nullptr;
  });
  found = next.dynamic != nullptr ? next : first.dynamic != nullptr ? first : target_object;
  return found.dynamic != nullptr;
}

// Two threads that meet a copy at the same time may both note it: nothing is lost but an entry.
LibraryCopy* CallSite::find_copy() const {
  Object object;
  const uint32_t now = base::load(&unloadings);
  if (!find_library_behind(binding_.target, library_of(binding_.slot), object)) return nullptr;
  LibraryCopy* copy = nullptr;
  for (LibraryCopy& one : copies) {
    if (base::load(&one.unloadings) != 0 && one.object.dynamic == object.dynamic) copy = &one;
  }
  for (size_t i = 0; copy == nullptr && i < kCopies; ++i) {
    if (base::exchange(&copies[i].taken, 1u) == 0) copy = &copies[i];
  }
  if (copy == nullptr) return nullptr;
  copy->object = object;
  base::store(&copy->unloadings, now);
  base::store(&binding_.copy, static_cast<void*>(copy));
  return copy;
}

void* function_of(const LibraryCopy* copy, const char* name) {
  return copy != nullptr
             ? reinterpret_cast<void*>(find_defined(copy->object, name, gnu_hash_of(name)))
             : nullptr;
}

void end_library_call(const LibraryCall& call, Span span) {
  --library_depth;
  const uint8_t flags = call.failed ? uint8_t{wire::kError} : uint8_t{0};
  record_call({call.op, call.layer, flags, 0, call.name, span.start, span.end, call.function,
               clip(call.bytes)});
}

uint32_t name_of_variable(const char* library, const char* path, const char* variable) {
  const base::Scratch room;
  char* const text = room.data();
  if (text == nullptr) return 0;
  constexpr size_t kHalf = base::Scratch::kBytes / 2;
  char* const directory = text + kHalf;
  path = without_file_system(path);
  base::Writer name(text, kHalf);
  name.add(library).add(":");
  if (path[0] != '/' && !base::failed(base::working_directory(directory, kHalf)))
    name.add(directory).add("/");
  name.add(path).add(":").add(variable);
  return trace::process().names().id(name.view(), wire::NameSource::kGiven);
}

}  // namespace weir::hook
