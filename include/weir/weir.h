/* SPDX-License-Identifier: Apache-2.0
 * libweir, the output library: everything but weir/mpi.h, which has weir_init.
 * docs/guide/output.md begins with an example.
 *
 * threads:   all calls come from the thread that called weir_init; none from a signal handler.
 * ownership: a context owns what is made from it, and weir_finalize frees it. Text and arrays that
 *            a call is given are copied before it returns.
 * failure:   a code (status.h), and with `err` a message; a definition that fails changes nothing.
 * cost:      definitions allocate, steps do not wait for the disk in the modes with servers. */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include "axis.h"
#include "context.h"
#include "decomposition.h"
#include "field.h"
#include "grid.h"
#include "status.h"
#include "stream.h"

#endif
