// SPDX-License-Identifier: Apache-2.0
// Where the tasks of one node and one job meet: a folder in shared memory that only their user may enter,
//   /dev/shm/weir.<uid>.<job>/<node>/
// with the arenas of dirty bytes (drain/), the node's registry of open files and the drain helper's socket and lock. The job is
// WEIR_JOB, or what the batch system or the launcher calls it; without any of them all programs of the user are one job. The
// node is 0; WEIR_NODE_TASKS=k makes it rank / k, so that one machine can act as several.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

namespace weir::node {

inline constexpr size_t kPathBytes = 160;

// The task's rank, as the launcher's environment has it. Before anything else of this room, if at all; -1: none.
void set_rank(int rank);

// The folder, made at the first call, without a slash at its end; null when there can be none (no /dev/shm, somebody else's
// folder of that name): the program then runs without what needs it. Any thread.
const char* folder();
// Makes it again when weir-drain has removed it as unused. False: it cannot be.
bool renew_folder();
// The emulated node's number, 0 without WEIR_NODE_TASKS.
uint32_t number();
// For programs that are told (weir-drain): the folder is this one.
void use_folder(const char* path);
// The node's folder of a job, as folder() makes it. False when it does not fit or may not be used.
bool make_folder(char* to, size_t size, base::Text job, uint32_t node);

}  // namespace weir::node
