// SPDX-License-Identifier: Apache-2.0
// Where the ranks of one node and one job meet: a directory in shared memory that only their user
// may enter,
//   /dev/shm/weir.<uid>.<job>/<node>/
// with the arenas of dirty bytes (drain/), the node's registry of open files and the write-back
// daemon's socket and lock. The job is WEIR_JOB, or what the batch system or the launcher calls it;
// without any of them all programs of the user are one job. The node is 0; WEIR_NODE_RANKS=k makes
// it rank / k, so that one machine can act as several.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

namespace weir::node {

inline constexpr size_t kPathBytes = 160;

// The rank, as the launcher's environment has it. Before anything else of this room, if at all; -1:
// none.
void set_rank(int rank);

// The directory, made at the first call, without a slash at its end; null when there can be none
// (no /dev/shm, somebody else's directory of that name): the program then runs without what needs
// it. Any thread.
const char* own_directory();
// Makes it again when weir-drain has removed it as unused. False: it cannot be.
bool renew_directory();
// WEIR_JOB, or what the batch system calls the job; else none.
base::Text job_name();
// The emulated node's number, 0 without WEIR_NODE_RANKS.
uint32_t number();
// Of the `weir run` that started this process (WEIR_RUN_NUMBER, python/weir/capture/_number.py), as
// it was when this, or own_directory(), was first called; 0: no weir run did.
uint64_t run_number();
// For weir-drain, which has it as an argument: the directory is this one.
void use_directory(const char* path);
// The node's directory of a job, as own_directory() makes it. False when it does not fit or may not
// be used.
bool make_directory(char* to, size_t size, base::Text job, uint32_t node);

}  // namespace weir::node
