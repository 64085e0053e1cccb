/* SPDX-License-Identifier: Apache-2.0
 * The matcher of the preload library as a C ABI: `weir assign --explain` and the check of rules ask
 * what an open will get. Any thread. Texts end with a zero and are read during the call only. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_rules_open {
  const char *path;           /* absolute and normalised */
  const char *file_system;    /* "": not known */
  uint64_t size_bytes;
  int32_t flags, rank, unit;  /* as of open(2); negative: none, not known */
  int32_t fortran;            /* 1: opened by Fortran */
  int32_t access, form;       /* 0: not known, else as weir::rules numbers them */
} weir_rules_open;

/* The conditions of the first rule or hints of a compiled text (docs/formats/rules.md) that the
 * open does not meet, as bits of weir::rules::Misfit; 0: it matches; -1: the text is wrong. */
int64_t weir_rules_misfits(const char *compiled, const weir_rules_open *open);
/* 1: the pattern fits the whole text, else 0. */
int32_t weir_rules_fits(const char *pattern, const char *text);
/* The file system of a file, or of the directory in which it would be made, in `size` bytes of
 * `to`; "" when not known or too long. */
void weir_rules_file_system(const char *path, char *to, uint64_t size);

#ifdef __cplusplus
}
#endif
