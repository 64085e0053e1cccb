// SPDX-License-Identifier: Apache-2.0
// The C ABI of what waits, the critical path and wall time are made of. No logic.
#include "reader/causes.h"
#include "reader/line.h"
#include "reader/members.h"
#include "reader/replay.h"
#include "reader/shares.h"

struct weir_reader_causes {
  weir::reader::Causes causes;
};

using namespace weir::reader;

WEIR_API int weir_reader_replay_order(const weir_reader_replay* run, uint32_t* order) {
  return guarded([&] { order_events(*run, order); });
}

WEIR_API int weir_reader_replay_run(const weir_reader_replay* run, const uint32_t* order,
                                    const int64_t* free_ns, weir_reader_replayed* result) {
  return guarded([&] { replay(*run, order, free_ns, *result); });
}

WEIR_API int weir_reader_line_lengths(const weir_reader_line* line, int64_t* lengths,
                                      int64_t* lasts) {
  return guarded([&] {
    line_lengths(calls_of(line->members, line->members_count), *line, lengths, lasts);
  });
}

WEIR_API int weir_reader_call_time(const weir_reader_edges* edges, uint64_t rows, int64_t* cells) {
  return guarded([&] {
    call_time(calls_of(edges->members, edges->members_count), *edges, rows, cells);
  });
}

WEIR_API int weir_reader_call_shares(const weir_reader_edges* edges, uint64_t costs,
                                     const double* sums, double* out) {
  return guarded([&] {
    call_shares(calls_of(edges->members, edges->members_count), *edges, costs, sums, out);
  });
}

WEIR_API weir_reader_causes* weir_reader_causes_create(const weir_reader_stays* stays) {
  weir_reader_causes* made = nullptr;
  guarded([&] { made = new weir_reader_causes{Causes(*stays)}; });
  return made;
}

WEIR_API void weir_reader_causes_destroy(weir_reader_causes** causes) {
  delete *causes;
  *causes = nullptr;
}

WEIR_API const int64_t* weir_reader_causes_points(const weir_reader_causes* causes,
                                                  const uint64_t** first) {
  *first = causes->causes.first().data();
  return causes->causes.points().data();
}

WEIR_API int weir_reader_causes_give(weir_reader_causes* causes, uint64_t low, uint64_t high,
                                     const int64_t* const lengths[4]) {
  return guarded([&] { causes->causes.give(low, high, lengths); });
}

WEIR_API int weir_reader_causes_run(weir_reader_causes* causes, weir_reader_caused* at) {
  return guarded([&] { causes->causes.run(at); });
}
