// SPDX-License-Identifier: Apache-2.0
// Programs whose loader cannot load weir's library: those of other C libraries (musl, uClibc,
// Bionic), whose loaders then end the program or complain, and of 32 bits. exec gives them
// LD_PRELOAD without it. A program without a loader (linked statically) keeps LD_PRELOAD: what it
// starts may be traced.
#pragma once

#include <stddef.h>

#include "base/text.h"

namespace weir::hook {

// What exec is given: a path, relative to a directory, or a bare name that is looked for in PATH.
struct ToExecute {
  int directory;
  const char* path;
  bool searches;
};

// Whether weir's library is preloaded into programs with that environment, which can be read.
bool preloads_library(char* const* environment);
// The program's loader, or "32-bit", where it cannot load weir's library; else empty. Follows
// scripts to their interpreters. Keeps errno. Any thread, a child of vfork too. Costs an open and a
// read of the program.
base::Text foreign_loader(const ToExecute& program, char* room, size_t size);
// How many entries an environment has, and how long those of LD_PRELOAD are with their zeros.
struct EnvironmentSize {
  size_t entries = 0, preload_bytes = 0;
};
EnvironmentSize size_of(char* const* environment);
// The same environment without weir's library. to: entries + 1; text: preload_bytes.
char* const* without_library(char* const* environment, char** to, char* text);

}  // namespace weir::hook

// without_library() in the frame of the caller, for exec by a child of vfork.
#define WEIR_WITHOUT_LIBRARY(environment)                                                        \
  ({                                                                                             \
    const ::weir::hook::EnvironmentSize size_ = ::weir::hook::size_of(environment);              \
    ::weir::hook::without_library(                                                               \
        environment, static_cast<char**>(__builtin_alloca((size_.entries + 1) * sizeof(char*))), \
        static_cast<char*>(__builtin_alloca(size_.preload_bytes + 1)));                          \
  })
