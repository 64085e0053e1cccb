// SPDX-License-Identifier: Apache-2.0
// What stat and access said of names, for files under rules with the layer keep: asked again within
// its valid_ms the answer comes from memory. Served is only what cannot have changed on this node:
// no name was changed since (unlink, rename), no file was opened or closed for writing by any rank,
// and nobody has this one open for writing but a file of this process that is kept itself. Regular
// files alone; that a name does not exist is not remembered.
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/credentials.h"
#include "layers/machinery/stack/bypass.h"

namespace weir::stack {

extern WEIR_OWN uint32_t names_kept;  // a rule has the layer keep
WEIR_INLINE bool keeps_names() { return WEIR_UNLIKELY(base::load_relaxed(&names_kept) != 0); }

// The node does not know of a file that this process writes: nothing is remembered from then on.
extern WEIR_OWN uint32_t names_unsure;
// Where the system answers in microseconds nothing is remembered, until a call takes longer again.
extern WEIR_OWN uint32_t names_rest, names_always;
WEIR_INLINE bool remembers_names() {
  return keeps_names() && base::load_relaxed(&names_rest) == 0 &&
         base::load_relaxed(&names_unsure) == 0;
}
void time_question(uint64_t ns);
template <typename Real>
int timed_question(Real real) {
  if (WEIR_LIKELY(!keeps_names()) || base::load_relaxed(&names_always) != 0) return real();
  const uint64_t start = base::now_ns();
  const int result = real();
  if (result == 0) time_question(base::now_ns() - start);
  return result;
}

// A question, from before the call to after it.
struct NameQuestion {
  uint64_t hash, names_epoch, writes_epoch, valid_ns;
  base::Credentials asker;
  bool asked;  // a rule with keep has this name
};

// True: `to` is filled.
bool known_stat(NameQuestion* q, int directory, const char* path, bool follow, struct stat* to);
void learn_stat(const NameQuestion& q, int directory, const char* path, bool follow,
                const struct stat& is);
// True: access would succeed.
bool known_access(NameQuestion* q, int directory, const char* path, int mode);
void learn_access(const NameQuestion& q, int directory, const char* path, int mode);

}  // namespace weir::stack
