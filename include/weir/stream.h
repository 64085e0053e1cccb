/* SPDX-License-Identifier: Apache-2.0
 * A stream is a series of files: which fields, how often, in which format, under which names. The
 * configuration may change everything of it by its name without recompiling ([stream.<name>] in
 * TOML). */
#ifndef WEIR_STREAM_H
#define WEIR_STREAM_H

#include "field.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_stream weir_stream;

/* [collective] path: a template. strftime's %Y %m %d %H %M %S %j stand for the time of the file's
 * first record (of a stream with means and the like: for the time at which its first interval
 * begins), {step} (or {step:06}) for its step number from 0, {stream} for the stream's name, {file}
 * for the file's number from 0. Directories are made. format: a name of docs/reference/formats.md;
 * null: "cdf5". */
WEIR_OUTPUT_API int weir_stream_create(weir_context *context, const char *name, const char *path,
                                       const char *format, weir_stream **stream, weir_error *err);

/* [collective] Write at the first step at or after each multiple of `seconds` since the reference
 * (default: at every step). */
WEIR_OUTPUT_API int weir_stream_set_every(weir_stream *stream, double seconds, weir_error *err);
/* [collective] Write at every n-th step, the first of them step 0. */
WEIR_OUTPUT_API int weir_stream_set_every_steps(weir_stream *stream, int64_t steps,
                                                weir_error *err);
/* [collective] Begin a new file after `frames` frames (default 0: one file for the run). */
WEIR_OUTPUT_API int weir_stream_set_rotation(weir_stream *stream, int64_t frames, weir_error *err);
/* [collective] Begin a new file with each "day", "month" or "year" of the program's calendar,
 * instead of after a number of frames. The last of the two calls holds. A mean, sum or extreme
 * belongs to the file in which its interval begins. The path tells the files apart (%Y%m for
 * months), and weir_stream_set_every says how often the stream writes: both are checked at the end
 * of definitions, where the configuration is known. */
WEIR_OUTPUT_API int weir_stream_set_rotation_period(weir_stream *stream, const char *period,
                                                    weir_error *err);
/* [collective] What becomes of a file of a run before that has the name: "replace" (default) when
 * the new one is complete, "refuse": it stays, and it is an error (WEIR_E_FILE) of
 * weir_context_end_definition where the name is known then, else of the first frame of the file; or
 * "append": this run's frames follow those that it has. It must be what this run would write
 * (fields, their attributes, grids, chunks) and end before the first of the frames; else it stays
 * as it is, and that is an error of the file's first frame. Meanwhile it is copied. Means, sums and
 * extremes go on, too: weir_finalize leaves what they have of an unfinished interval in a file
 * beside the others, and the next run begins with it. */
WEIR_OUTPUT_API int weir_stream_set_existing(weir_stream *stream, const char *existing,
                                             weir_error *err);

typedef enum weir_operation {
  WEIR_INSTANT = 0, /* the value at the frame's time */
  WEIR_MEAN = 1,    /* over the steps since the frame before, this one included; missing values are
                       left out. A step stands for the time since the one before: the first step of
                       a run is in no mean, and the stream has no frame at it */
  WEIR_MINIMUM = 2,
  WEIR_MAXIMUM = 3,
  WEIR_ACCUMULATE = 4 /* the sum of them */
} weir_operation;

/* [collective] The stream writes the field. With another operation than WEIR_INSTANT the field is
 * put at every step, time has bounds, and cell_methods say so. */
WEIR_OUTPUT_API int weir_stream_add_field(weir_stream *stream, weir_field *field,
                                          weir_operation operation, weir_error *err);
/* [collective] The same, under another name in the files than the field's: it may be in a stream
 * with several operations, each under its own name ("tas" as the mean, "tasmax" as the maximum).
 * GRIB has no names: there the operations are to differ. null: the field's name. */
WEIR_OUTPUT_API int weir_stream_add_field_as(weir_stream *stream, weir_field *field,
                                             weir_operation operation, const char *name,
                                             weir_error *err);

/* Whether the stream wants data at the step that has begun (1) or not (0): a model may leave out
 * the computing of diagnostics. */
WEIR_OUTPUT_API int weir_stream_is_due(const weir_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
