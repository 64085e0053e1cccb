/* SPDX-License-Identifier: Apache-2.0
 * A context is one model component and everything it writes: grids, decompositions, axes, fields
 * and streams, which it owns. It is made by weir_init (mpi.h). Definitions come first; the first
 * weir_step ends them. All ranks define the same things in the same order, with the same arguments
 * but for decompositions, halos, lon and lat: whether they did is found at the end of definitions,
 * which names the first difference. A definition that fails changes nothing. */
#ifndef WEIR_CONTEXT_H
#define WEIR_CONTEXT_H

#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_context weir_context;

/* [collective] The reference of time and the calendar: times of weir_step are seconds since
 * `reference` ("2026-11-21 00:00:00"), which is also what the time coordinate's units say.
 * calendar: a CF name ("proleptic_gregorian", "standard", "noleap", "all_leap", "360_day").
 * Default: 2000-01-01 00:00:00, proleptic_gregorian. */
WEIR_OUTPUT_API int weir_context_set_time(weir_context *context, const char *reference,
                                          const char *calendar, weir_error *err);

/* [collective] A global attribute of every file ("title", "institution", "source", ...).
 * Conventions and history are weir's. */
WEIR_OUTPUT_API int weir_context_set_text(weir_context *context, const char *name,
                                          const char *value, weir_error *err);
WEIR_OUTPUT_API int weir_context_set_number(weir_context *context, const char *name, double value,
                                            weir_error *err);

/* [collective] End the definitions: check them, cover every grid, agree on plans, reserve memory,
 * tell the servers. The first weir_step does it when the program does not; calling it tells errors
 * before the model's first step.
 * fails: WEIR_E_DECOMPOSITION, WEIR_E_CONFIG (a stream of the configuration names an unknown
 *   field), WEIR_E_MEMORY */
WEIR_OUTPUT_API int weir_context_end_definition(weir_context *context, weir_error *err);

/* [collective] Begin the step at `time_s`, seconds since the reference; later than the step before.
 */
WEIR_OUTPUT_API int weir_step(weir_context *context, double time_s, weir_error *err);

/* [collective] End the step: hand what was put to those who write it, and return before it is on
 * disk (modes with servers).
 * fails: WEIR_E_MISSING a field was not put; WEIR_E_REMOTE, WEIR_E_LOST an earlier frame failed.
 *   In modes with servers each is reported, on all ranks, by the weir_end_step after the one at
 *   which the first rank knew it, or by weir_finalize: nobody waits to hear of it.
 * cost: a few messages; see docs/guide/output-engine.md. */
WEIR_OUTPUT_API int weir_end_step(weir_context *context, weir_error *err);

/* [collective] Wait until everything that was put is written and its files have their final names,
 * release the servers, free the context's memory, and null the pointer. Errors that no call has
 * reported yet are reported here. Of a null pointer: nothing to be done, WEIR_OK. Calls with what
 * belonged to the context (a field, a stream) fail from then on with WEIR_E_ORDER. */
WEIR_OUTPUT_API int weir_finalize(weir_context **context, weir_error *err);

/* [local] End without finalize: after an error of the program, where the other ranks may not come
 * to weir_finalize. Nothing more is written, the rank's files are closed and their locks released,
 * servers are let go, the pointer becomes null. Files that are not complete keep their finished
 * steps under their temporary names (docs/guide/output.md: weir output recover). The model's
 * communicator is not freed.
 * cost: with servers a wait until they have ended, at most time_limit_s. */
WEIR_OUTPUT_API int weir_abandon(weir_context **context, weir_error *err);

/* What output has cost this rank so far. Seconds are wall time on the calling rank. */
typedef struct weir_costs {
  double put_s;       /* in weir_put: copies */
  double wait_s;      /* in weir_step, weir_put and weir_end_step: for free buffers and groups */
  double end_step_s;  /* in weir_end_step */
  double final_s;     /* in weir_finalize: what could not be overlapped; see weir_finalize_costs */
  int64_t put_bytes;
  int64_t frames;
} weir_costs;
WEIR_OUTPUT_API int weir_context_costs(const weir_context *context, weir_costs *costs,
                                       weir_error *err);
/* [collective] weir_finalize, and then *costs is what output has cost in all, final_s with it;
 * costs may be null. */
WEIR_OUTPUT_API int weir_finalize_costs(weir_context **context, weir_costs *costs, weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
