// SPDX-License-Identifier: Apache-2.0
// Names that lie apart, for calls that read a directory at once.
#pragma once

namespace weir::hook {

// What scandir has found, with the names that a layer stores apart. list: the program's `namelist`;
// filter and order as given, null: none. The number of names.
int complete_scan(int directory, const char* path, void* list, int count, void* filter,
                  void* order);

}  // namespace weir::hook
