/* SPDX-License-Identifier: Apache-2.0 */
/* C ABI of libweir-reader.so, continued: the memory of large arrays. Up to a limit they are private
 * memory of the process; what is beyond lies in a temporary file without a name, mapped, which the
 * kernel writes to disk when memory is short. Decides what is large, and which pages of the file
 * stay mapped; who allocates arrays so is left to python/weir/analysis/memory.py. */
#ifndef WEIR_SPILL_H
#define WEIR_SPILL_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Begin: arrays that would take large private ones above kept_bytes go to the file of the
 * descriptor, which is copied. Again: only the limit changes. Call it before other threads
 * allocate. A child of fork() must not use its parent's arrays of the file; its own are private.
 * A thread looks some hundred times a second how many pages of files are mapped as long as there
 * are arrays in the file: those of arrays leave the tables of the process when they are many.
 * fails: -1 with errno, and all arrays stay private: EOPNOTSUPP: the file lies in memory.
 */
int weir_spill_begin(int descriptor, uint64_t kept_bytes);

/* As PyDataMem_Handler of numpy/ndarraytypes.h. Functions: any thread; a full disk, or no address
 * space, makes an array private, too; NULL: no memory. */
typedef struct {
  char name[127];
  uint8_t version;
  void *context; /* unused */
  void *(*allocate)(void *context, size_t bytes);
  void *(*allocate_zeros)(void *context, size_t count, size_t bytes);
  void *(*resize)(void *context, void *array, size_t bytes);
  void (*release)(void *context, void *array, size_t bytes);
} weir_spill_handler;

/* Who allocates arrays so, and the name of the capsule that NumPy wants it in. Both static. */
const weir_spill_handler *weir_spill_get_handler(const char **capsule_name);

/* Large arrays now: bytes in private memory, and in the file. */
void weir_spill_bytes(uint64_t *private_bytes, uint64_t *file_bytes);

#ifdef __cplusplus
}
#endif
#endif
