// SPDX-License-Identifier: Apache-2.0
#include "layers/bufa/declared.h"

#include <fcntl.h>

#include "layers/bufa/state.h"
#include "layers/machinery/rules/rules.h"

namespace weir::layers {
namespace {

using namespace bufa;

Result create(Layer& l) {
  State& s = state_of(l);
  uint64_t bytes = rules::argument(*l.spec, kArgumentBytes, kDefaultBytes);
  uint64_t buffers = rules::argument(*l.spec, kArgumentBuffers, kDefaultBuffers);
  if (bytes == 0) bytes = kDefaultBytes;
  if (buffers == 0) buffers = 1;
  s.block_bytes = round_up(bytes < kLargestBytes ? bytes : kLargestBytes, kPage);
  s.buffers = static_cast<uint32_t>(buffers < kLargestBuffers ? buffers : kLargestBuffers);
  s.direct = rules::option_number(*l.spec, "direct", 0) != 0;
  s.inline_jobs = !stack::is_concurrent_below(l);
  s.always = rules::option_number(*l.spec, "always", 0) != 0;
  s.write_limit = s.block_bytes / 2 - 1;
  s.window_segment = -1;
  s.twin = -1;
  s.layer = &l;
  return 0;
}

Result ready(Layer& l) {
  State& s = state_of(l);
  s.known_size = s.below_end = l.file->size_at_open;
  s.below_ns = now_ns();
  open_twin(l);
  return 0;
}

Result size(Layer& l) {
  State& s = state_of(l);
  // Asked before each write to a file that is appended to.
  if (const WriteBlock* b = s.current; b != nullptr && s.writer->appending)
    return static_cast<Result>(b->offset + b->ranges[b->count - 1].hi);
  const uint64_t end = dirty_end(s);
  // While bytes wait to be appended, the end is where the last of them will be if nobody else
  // appends meanwhile.
  if (end != 0 && s.writer->appending) return static_cast<Result>(end);
  const Result below = stack::size_below(l);
  return below < 0 || static_cast<uint64_t>(below) >= end ? below : static_cast<Result>(end);
}

Result truncate(Layer& l, uint64_t bytes) {
  State& s = state_of(l);
  write_all(l);
  drop_all(l);
  const Result result = stack::truncate_below(l, bytes);
  if (result >= 0) s.known_size = s.below_end = bytes;
  else s.below_end = kUnknownEnd;
  return result;
}

Result sync(Layer& l, bool data_only) {
  write_all(l);
  return stack::sync_below(l, data_only);
}

void invalidate(Layer& l) {
  State& s = state_of(l);
  drop_all(l);
  s.known_size = 0;  // asked again by the first read that succeeds
  s.below_end = kUnknownEnd;
  stack::invalidate_below(l);
}

void close(Layer& l) {
  end_writer(l);
  end_flush_timer(l);
  drop_all(l);
  end_reader(state_of(l));
  close_twin(l);
}

}  // namespace

const stack::Kind kBufa{
    .name = kName, .flags = stack::kHolds | stack::kBeginsEmpty, .state_bytes = sizeof(State),
    .statistics_count = kStatistics, .create = create, .open = nullptr, .ready = ready,
    .read = bufa::read, .write = bufa::write, .size = size, .truncate = truncate,
    .flush = bufa::flush, .sync = sync, .invalidate = invalidate, .close = close,
};

}  // namespace weir::layers
