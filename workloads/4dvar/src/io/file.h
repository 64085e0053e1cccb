/* SPDX-License-Identifier: Apache-2.0
 * Sequential files for the Fortran side, through C's streams (fread, fwrite) or through descriptors
 * (read, write). All that passes is added to the file's checksum. Errors are returned as negative
 * errno; who reports them is the caller. */
#ifndef FDV_FILE_H
#define FDV_FILE_H

#include "sum.h"

enum { FDV_STDIO = 1, FDV_POSIX = 2 };

typedef struct fdv_file fdv_file;

/* writing: 0 opens to read, 1 creates or empties. block_bytes: largest request; a POSIX file
 * collects what is written into requests of this size. NULL and *error on failure. */
fdv_file *fdv_file_open(const char *name, int kind, int writing, int64_t block_bytes, int *error);

/* Bytes moved (fewer than asked for: end of file), or a negative errno. */
int64_t fdv_file_read(fdv_file *file, void *data, int64_t bytes);
int64_t fdv_file_write(fdv_file *file, const void *data, int64_t bytes);

/* Writes what is left, closes and frees; the checksum is stored in *sum. 0 or a negative errno. */
int fdv_file_close(fdv_file *file, fdv_sum *sum);

#endif
