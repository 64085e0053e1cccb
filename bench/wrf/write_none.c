/* SPDX-License-Identifier: Apache-2.0
 * No output at all: what the others are compared with. */
#include "experiment.h"

const struct writer kWriter = {.name = "none"};
