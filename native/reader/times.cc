// SPDX-License-Identifier: Apache-2.0
#include "reader/times.h"

#include "reader/parallel.h"

namespace weir::reader {
namespace {

void find(const Mapping& file, const Index& index, weir_reader_chunk& chunk) {
  index.checks.check(file, chunk);
  ChunkTimes times;
  const char* at = file.records(chunk.offset);
  for (uint64_t i = 0; i < chunk.entries; ++i, at += sizeof(Words)) {
    const Words record = Words::load(at);
    if (!is_timed_call(record)) continue;
    times.take(record.start(), record.end());
    times.take_op(record.op());
  }
  times.give(chunk);
  file.done(chunk.size_bytes);
}

}  // namespace

void find_times(const Mapping& file, Index& index, unsigned threads) {
  if (index.has_times) return;
  each_in_parallel(std::max(threads, 1u), index.chunks.size(), [&](size_t, size_t i) {
    if (index.chunks[i].kind == uint32_t(wire::Kind::kEvents))
      find(file, index, index.chunks[i]);
  });
  index.has_times = true;
}

}  // namespace weir::reader
