// SPDX-License-Identifier: Apache-2.0
#include "layers/gather/declared.h"

#include "layers/global/shared_file.h"
#include "layers/machinery/rules/rules.h"

namespace weir::layers {
namespace {

using namespace gather_declared;
constexpr uint32_t kWastedBlocks = 8;

stack::Result create(stack::Layer& l) {
  const uint64_t bytes = rules::argument(*l.spec, kArgumentBytes, kDefaultBytes);
  const uint64_t buffers = rules::argument(*l.spec, kArgumentBuffers, kDefaultBuffers);
  shared_file::begin(l, bytes != 0 ? bytes : kDefaultBytes, buffers != 0 ? buffers : 1, false);
  shared_file::State& s = shared_file::state_of(l);
  s.wasted_blocks = s.always ? 0 : kWastedBlocks;
  return 0;
}

}  // namespace

constinit const stack::Kind kGather = shared_file::kind_of(kName, kStatistics, create);

}  // namespace weir::layers
