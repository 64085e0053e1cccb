// SPDX-License-Identifier: Apache-2.0
#include "layers/global/declared.h"

#include "layers/cache/job.h"
#include "layers/global/shared_file.h"
#include "layers/machinery/rules/rules.h"

namespace weir::layers {
namespace {

using namespace global_declared;

stack::Result create(stack::Layer& l) {
  const uint64_t bytes = rules::argument(*l.spec, kArgumentBytes, kDefaultBytes);
  const uint64_t buffers = rules::argument(*l.spec, kArgumentBuffers, kDefaultBuffers);
  shared_file::begin(l, bytes != 0 ? bytes : kDefaultBytes,
                     (buffers != 0 ? buffers : 1) * cache::job().ranks, true);
  shared_file::State& s = shared_file::state_of(l);
  s.wasted_blocks = static_cast<uint32_t>(
      rules::option_number(*l.spec, "wasted_blocks", s.always ? 0 : kDefaultWastedBlocks));
  return 0;
}

}  // namespace

constinit const stack::Kind kGlobal = shared_file::kind_of(kName, kStatistics, create);

}  // namespace weir::layers
