// SPDX-License-Identifier: Apache-2.0
// The operations of the file system, grouped by what they work on. Each group fills its own members
// of libfuse's table.
#pragma once

#include "testfs/request.h"

namespace weir::testfs {

void set_data_operations(
    fuse_lowlevel_ops& operations);  // open, create, read, write, ...: open files
void set_attribute_operations(
    fuse_lowlevel_ops& operations);  // getattr, setattr, statfs, extended attributes
void set_name_operations(
    fuse_lowlevel_ops& operations);  // lookup, rename, unlink, ...: names in directories
void set_directory_operations(fuse_lowlevel_ops& operations);     // readdir and its like

// What the kernel is notified of a file that was found or made, and for how long it may believe it.
[[nodiscard]] fuse_entry_param entry_of(const Options& options, const Inode& inode,
                                        const struct stat& status);
[[nodiscard]] double seconds(const Word& timeout_ns);

// A file that root's daemon made for somebody else becomes theirs. `made` is its name in the
// parent; 0 or an errno.
[[nodiscard]] int give_to_caller(fuse_req_t request, const Inode& parent, const char* made);

}  // namespace weir::testfs
