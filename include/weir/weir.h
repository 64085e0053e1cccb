/* SPDX-License-Identifier: Apache-2.0
 * libweir, the output library: everything but weir/mpi.h, which has weir_init. docs/guide/output.md begins with an example. */
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
