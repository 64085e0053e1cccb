/* SPDX-License-Identifier: Apache-2.0
 * Phases of a program for `weir report`: what lies between weir_phase_begin("9write") and
 * weir_phase_end("9write") is distinguished in the table of phases. This header is all there is to
 * it: nothing is linked, and without weir's preload library in the process a call does nothing (one
 * look-up by name the first time, then a test). In a static program calls do nothing. The same name
 * in all ranks makes one phase; phases may lie in one another.
 *
 * threads: any; the marks of one name in one rank follow one another.
 * fails:   never. A name is cut at 240 bytes; null marks nothing.
 * cost:    about that of recording one call (docs/reference/cost.md). */
#ifndef WEIR_PHASE_H
#define WEIR_PHASE_H

#include <dlfcn.h>

/* Where the C library keeps dlsym in a library of its own (glibc before 2.34) and that is not
 * linked, calls do nothing. */
#pragma weak dlsym

#ifdef __cplusplus
extern "C" {
#endif

typedef void weir_phase_recorder(int event, const char *name);

static inline weir_phase_recorder *weir_phase_find(void) {
  static weir_phase_recorder *found;
  static int looked;
  weir_phase_recorder *recorder = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (!recorder && !__atomic_load_n(&looked, __ATOMIC_RELAXED)) {
    void *symbol = &dlsym ? dlsym((void *)0 /* RTLD_DEFAULT */, "weir_phase_event") : (void *)0;
    __builtin_memcpy(&recorder, &symbol, sizeof symbol);
    __atomic_store_n(&found, recorder, __ATOMIC_RELAXED);
    __atomic_store_n(&looked, 1, __ATOMIC_RELAXED);
  }
  return recorder;
}

static inline void weir_phase_begin(const char *name) {
  weir_phase_recorder *recorder = weir_phase_find();
  if (recorder) recorder(1, name);
}

static inline void weir_phase_end(const char *name) {
  weir_phase_recorder *recorder = weir_phase_find();
  if (recorder) recorder(2, name);
}

#ifdef __cplusplus
}
#endif
#endif
