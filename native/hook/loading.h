// SPDX-License-Identifier: Apache-2.0
// dlopen, dlsym and dlvsym: what the program loads is looked at at once, and what it looks up is
// what it would call.
#pragma once

namespace weir::hook {

// The dynamic linker's own answers, for weir's questions: a hook is never among them.
void* look_up(void* handle, const char* name);
void* look_up(void* handle, const char* name, const char* version);  // null version: any
void* open_loaded(const char* path);  // null when it is not loaded
void close_loaded(void* handle);

}  // namespace weir::hook
