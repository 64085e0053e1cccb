// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/node/place.h"

#include <stdlib.h>

#include "layers/machinery/node/private.h"
#include "base/syscall.h"

namespace weir::node {
namespace {

// What a launcher or batch system calls one job; the first that is set.
constexpr const char* kJobs[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "FLUX_JOB_ID"};

enum State : uint32_t { kUnknown, kMaking, kMade, kNone };
constinit uint32_t state = kUnknown;
constinit int own_rank = -1;
constexpr uint64_t kNotRead = UINT64_MAX;
constinit uint64_t own_run = kNotRead;
constinit char the_directory[kPathBytes] = {};

bool safe(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '_';
}

void add_safely(base::Writer& to, base::Text name) {
  for (size_t i = 0; i < name.size && i < 64; ++i)
    to.add(base::Text{safe(name.data[i]) ? name.data + i : "_", 1});
}

}  // namespace

base::Text job_name() {
  const char* own = getenv("WEIR_JOB");
  if (own != nullptr && *own != 0) return base::text(own);
  for (const char* variable : kJobs) {
    const char* value = getenv(variable);
    if (value != nullptr && *value != 0) return base::text(value);
  }
  return base::text("none");
}

void set_rank(int rank) { own_rank = rank; }

uint32_t number() {
  int64_t ranks = 0;
  const char* text = getenv("WEIR_NODE_RANKS");
  if (text == nullptr || !base::parse_number(base::text(text), &ranks) || ranks <= 0 ||
      own_rank < 0)
    return 0;
  return static_cast<uint32_t>(own_rank / ranks);
}

uint64_t run_number() {
  if (const uint64_t known = base::load(&own_run); known != kNotRead) return known;
  int64_t run = 0;
  const char* text = getenv("WEIR_RUN_NUMBER");
  if (text == nullptr || !base::parse_number(base::text(text), &run) || run < 0) run = 0;
  base::store(&own_run, static_cast<uint64_t>(run));
  return static_cast<uint64_t>(run);
}

bool make_directory(char* to, size_t size, base::Text job, uint32_t node) {
  base::Writer path(to, size);
  path.add(kOurs).add_number(static_cast<uint64_t>(base::system_call(SYS_geteuid))).add(".");
  add_safely(path, job);
  path.add("/").add_number(node);
  const base::HoldsDescriptor held;
  return !path.cut() && make_private(to);
}

bool renew_directory() {
  const char* whole = own_directory();
  const base::HoldsDescriptor held;
  return whole != nullptr && make_private(whole);
}

void use_directory(const char* path) {
  base::Writer(the_directory, sizeof the_directory).add(path);
  base::store(&state, uint32_t{kMade});
}

const char* own_directory() {
  uint32_t now = base::load(&state);
  if (WEIR_LIKELY(now == kMade)) return the_directory;
  if (base::sealed()) return nullptr;
  const base::SignalsBlocked blocked;
  now = kUnknown;
  if (base::compare_exchange(&state, &now, uint32_t{kMaking})) {
    run_number();
    const bool made = make_directory(the_directory, sizeof the_directory, job_name(), number());
    base::store(&state, uint32_t{made ? kMade : kNone});
  }
  while ((now = base::load(&state)) == kMaking) base::yield();
  return now == kMade ? the_directory : nullptr;
}

}  // namespace weir::node
