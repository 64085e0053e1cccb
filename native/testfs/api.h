/* SPDX-License-Identifier: Apache-2.0
 * libweir-testfs.so: the counters and options of a mount for Python, without a process of its own:
 * a child that closes its copies of files on a mount sends it requests, which would be counted, and
 * would wait with the mount when it hangs. A string that is returned is given back by
 * weir_testfs_free. Thread-safe. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* The counters as JSON; with reset they are then set to zero. NULL with errno when the file is no
 * state of a mount. */
char* weir_testfs_stats(const char* state_path, int reset);

/* Sets an option, "name=value". NULL when it is set; otherwise what is wrong with it. */
char* weir_testfs_control(const char* state_path, const char* option);

void weir_testfs_free(char* text);

#ifdef __cplusplus
}
#endif
