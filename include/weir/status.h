/* SPDX-License-Identifier: Apache-2.0
 * What every call of libweir returns, and the message that goes with it. A call returns WEIR_OK or
 * one of the codes below; with `err` given it also says what failed, on which object, what was
 * expected and what to do. Calls marked [collective] return the same code on all ranks of the
 * model's communicator. */
#ifndef WEIR_STATUS_H
#define WEIR_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_OUTPUT_API __attribute__((visibility("default")))

typedef enum weir_status {
  WEIR_OK = 0,
  /* an argument is null, out of range, or contradicts another one */
  WEIR_E_ARGUMENT = 1,
  /* the configuration cannot be read or is wrong; the message has file, line and column */
  WEIR_E_CONFIG = 2,
  /* a call at the wrong place: put outside of a step, definition after the first step, time going
   * back */
  WEIR_E_ORDER = 3,
  /* indices missing, doubled or outside of the grid; the message names the first of them */
  WEIR_E_DECOMPOSITION = 4,
  /* a field that a stream needs at this step was not put; the message names field and ranks */
  WEIR_E_MISSING = 5,
  /* a file could not be created, written, read, closed or renamed; the message says why */
  WEIR_E_FILE = 6,
  /* a file that is read is not what was expected, or this build lacks the format */
  WEIR_E_FORMAT = 7,
  /* memory or an MPI window was refused, or a limit of the configuration is too small; the message
   * has bytes */
  WEIR_E_MEMORY = 8,
  /* an earlier write of a stream failed elsewhere; the message names stream, file, server, cause */
  WEIR_E_REMOTE = 9,
  /* a server or rank is gone or silent past the time limit; the message names it and the frames
   * lost */
  WEIR_E_LOST = 10,
  /* an MPI call failed; the message has MPI's own text */
  WEIR_E_MPI = 11,
  /* a defect of weir */
  WEIR_E_INTERNAL = 12,
  /* values that a field's type in files (weir_get: in memory) cannot hold; the message says how
   * many and where */
  WEIR_E_VALUE = 13
} weir_status;

typedef struct weir_error {
  int code; /* a weir_status */
  char message[1020];
} weir_error;

/* The code's name, as it is written above. Never null. */
WEIR_OUTPUT_API const char *weir_status_name(int code);

#ifdef __cplusplus
}
#endif
#endif
