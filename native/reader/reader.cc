// SPDX-License-Identifier: Apache-2.0
// The C ABI over the rooms' parts. No logic: no exception leaves, arrays are handed out where they
// lie.
#include "reader/weir_reader.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <memory>

#include "reader/active.h"
#include "reader/clock.h"
#include "reader/events.h"
#include "reader/handle.h"
#include "reader/ops.h"
#include "reader/rereads.h"
#include "reader/tiles.h"
#include "reader/times.h"

using namespace weir::reader;

namespace {

template <class T>
const void* hand_out(const std::vector<T>& list, uint64_t* count, uint64_t* entry_bytes) {
  *count = list.size();
  *entry_bytes = sizeof(T);
  return list.data();
}

std::vector<ReadsInput> inputs_of(const weir_reader_reads& reads) {
  std::vector<ReadsInput> inputs;
  for (uint64_t i = 0; i < reads.count; ++i) {
    inputs.push_back({&reads.readers[i]->file,
                      &reads.readers[i]->index,
                      reads.clocks[i],
                      {reads.files[i], reads.files_count[i]}});
  }
  return inputs;
}

// Of passes that may be the first to read records.
void check_all(weir_reader* const* readers, uint64_t count, unsigned threads) {
  for (uint64_t i = 0; i < count; ++i) {
    if (!readers[i]->index.has_times)
      readers[i]->index.checks.check_all(readers[i]->file, readers[i]->index, threads);
  }
}

// Empty string on success.
std::string load(weir_reader& reader, const char* path, uint64_t& place) {
  std::string failure = reader.file.open(path);
  if (failure.empty()) failure = read_header(reader.file, reader.index, place);
  if (!failure.empty()) return failure;
  walk_chunks(reader.file, reader.index, reader.problems);
  reader.file.close_descriptor();
  reader.names = read_names(reader.file, reader.index, reader.problems);
  reader.index.checks.begin(reader.file, reader.index, reader.names,
                            !reader.problems.list().empty());
  reader.index.chunks.shrink_to_fit();
  reader.names.ids.shrink_to_fit();
  return "";
}

}  // namespace

WEIR_API const char* weir_reader_built_for(void) { return WEIR_READER_BUILT_FOR; }

WEIR_API weir_reader* weir_reader_create(const char* path, char* message, uint64_t message_bytes,
                                         uint64_t* place) {
  *place = ~uint64_t{0};
  std::string failure;
  try {
    auto reader = std::make_unique<weir_reader>();
    failure = load(*reader, path, *place);
    if (failure.empty()) return reader.release();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  if (message_bytes != 0) std::snprintf(message, message_bytes, "%s", failure.c_str());
  return nullptr;
}

WEIR_API void weir_reader_destroy(weir_reader** reader) {
  delete *reader;
  *reader = nullptr;
}

WEIR_API void weir_reader_exclude(weir_reader* reader, const uint8_t* excluded, uint64_t count) {
  std::vector<weir_reader_text>& texts = reader->names.texts;
  for (uint64_t i = 0; i < std::min<uint64_t>(count, texts.size()); ++i) {
    if (excluded[i] != 0) texts[i].is_file = 0;
  }
}

WEIR_API int weir_reader_scan(weir_reader* reader, uint32_t threads) {
  if (reader->is_scanned) return 0;
  return guarded([&] {
    reader->scanned = scan(reader->file, reader->index, reader->names, reader->problems, threads);
    reader->is_scanned = true;
  });
}

WEIR_API int weir_reader_syncs(weir_reader* reader) {
  if (reader->is_scanned || !reader->scanned.syncs.empty()) return 0;
  return guarded([&] { reader->scanned.syncs = syncs_of(reader->file, reader->index); });
}

WEIR_API void weir_reader_forget(weir_reader* reader) {
  reader->scanned.rows = std::vector<weir_reader_row>();  // {} would keep the memory
  reader->scanned.histograms = std::vector<weir_reader_histogram>();
}

WEIR_API weir_reader_row* weir_reader_rows_of(const weir_reader* reader, uint32_t first,
                                              uint32_t end, uint64_t* count) {
  weir_reader_row* made = nullptr;
  guarded([&] {
    const auto rows = rows_of(reader->file, reader->index, reader->names, first, end);
    made = new weir_reader_row[rows.size() + 1];
    std::copy(rows.begin(), rows.end(), made);
    *count = rows.size();
  });
  return made;
}

WEIR_API void weir_reader_free_rows(weir_reader_row* rows) { delete[] rows; }

WEIR_API int weir_reader_times(weir_reader* reader, uint32_t threads) {
  return guarded([&] { find_times(reader->file, reader->index, threads); });
}

WEIR_API int weir_reader_exchanges(weir_reader* reader, uint32_t threads) {
  return guarded(
      [&] { reader->exchanges = find_exchanges(reader->file, reader->index, threads); });
}

WEIR_API void weir_reader_leave(weir_reader* reader) {
  reader->file.leave(0, reader->file.size());
  reader->exchanges = std::vector<weir_reader_exchange>();
}

WEIR_API void weir_reader_get_header(const weir_reader* reader, weir_reader_header* out) {
  *out = reader->index.header;
}

WEIR_API const void* weir_reader_bytes(const weir_reader* reader, uint64_t* size) {
  *size = reader->file.size();
  return reader->file.data();
}

WEIR_API const void* weir_reader_get(const weir_reader* reader, uint32_t array, uint64_t* count,
                                     uint64_t* entry_bytes) {
  switch (array) {
    case WEIR_READER_CHUNKS: return hand_out(reader->index.chunks, count, entry_bytes);
    case WEIR_READER_PROCESSES: return hand_out(reader->index.processes, count, entry_bytes);
    case WEIR_READER_TEXTS: return hand_out(reader->names.texts, count, entry_bytes);
    case WEIR_READER_NAMES: return hand_out(reader->names.ids, count, entry_bytes);
    case WEIR_READER_ROWS: return hand_out(reader->scanned.rows, count, entry_bytes);
    case WEIR_READER_HISTOGRAMS: return hand_out(reader->scanned.histograms, count, entry_bytes);
    case WEIR_READER_UNITS: return hand_out(reader->scanned.units, count, entry_bytes);
    case WEIR_READER_SYNCS: return hand_out(reader->scanned.syncs, count, entry_bytes);
    case WEIR_READER_EXCHANGES: return hand_out(reader->exchanges, count, entry_bytes);
    case WEIR_READER_PROBLEMS: return hand_out(reader->problems.list(), count, entry_bytes);
    default: *count = *entry_bytes = 0; return nullptr;
  }
}

WEIR_API void weir_reader_texts_of(const weir_reader* reader, const uint32_t* processes,
                                   const uint32_t* ids, uint64_t count, uint32_t* out) {
  for (uint64_t i = 0; i < count; ++i) out[i] = reader->names.text_of(processes[i], ids[i]);
}

WEIR_API const char* weir_reader_records(weir_reader* reader, uint64_t chunk_offset) {
  auto& chunks = reader->index.chunks;
  const auto chunk = std::lower_bound(chunks.begin(), chunks.end(), chunk_offset,
                                      [](const auto& one, uint64_t at) { return one.offset < at; });
  if (chunk != chunks.end() && chunk->offset == chunk_offset)
    guarded([&] { reader->index.checks.check(reader->file, *chunk); });
  return reader->file.records(chunk_offset);
}

WEIR_API void weir_reader_copy_texts(const weir_reader* reader, char* out) {
  for (const weir_reader_text& one : reader->names.texts) {
    char* const end = std::copy_n(reader->file.data() + one.offset, one.length, out);
    std::replace(out, end, '\0', '?');  // where the file has changed meanwhile
    *end = '\0';
    out = end + 1;
  }
}

WEIR_API const char* weir_reader_reason(uint32_t reason) { return text_of(Reason(reason)); }

WEIR_API const char* weir_reader_op(uint32_t value, uint32_t* layer, char* op_class) {
  if (value >= kOps.size() || kOps[value].name == nullptr) return nullptr;
  *layer = uint32_t(kOps[value].layer);
  *op_class = kOps[value].op_class;
  return kOps[value].name;
}

WEIR_API const char* weir_reader_op_size(uint32_t value) {
  return value < kOps.size() ? kOps[value].size : nullptr;
}

WEIR_API const char* weir_reader_function(uint32_t index, uint32_t* number, uint32_t* layer,
                                          char* collective) {
  if (index >= std::size(kFunctions)) return nullptr;
  *number = kFunctions[index].number;
  *layer = uint32_t(kFunctions[index].layer);
  *collective = kFunctions[index].collective;
  return kFunctions[index].name;
}

WEIR_API const char* weir_reader_mpi_routine(uint32_t value) {
  return value < kMpiRoutines.size() ? kMpiRoutines[value] : nullptr;
}

WEIR_API const char* weir_reader_layer(uint32_t kind) {
  return kind < kLayers.size() ? kLayers[kind].name : nullptr;
}

WEIR_API const char* weir_reader_statistic(uint32_t kind, uint32_t index, const char** unit) {
  if (kind >= kLayers.size() || index >= std::size(kLayers[kind].statistics)) return nullptr;
  *unit = kLayers[kind].statistics[index].unit;
  return kLayers[kind].statistics[index].name;
}

WEIR_API int weir_reader_active(weir_reader* const* readers, const weir_reader_clock* clocks,
                                const uint8_t* const* masks, uint64_t count, uint32_t all_names,
                                uint32_t threads, int64_t* total_ns, int64_t* first_ns,
                                int64_t* last_ns, uint64_t* records) {
  return guarded([&] {
    check_all(readers, count, threads);
    std::vector<ActiveInput> inputs;
    for (uint64_t i = 0; i < count; ++i) {
      inputs.push_back(
          {&readers[i]->file, &readers[i]->index, &readers[i]->names, clocks[i], masks[i]});
    }
    const Active active = active_time(inputs, all_names != 0, threads);
    *total_ns = active.total_ns;
    *first_ns = active.first_ns;
    *last_ns = active.last_ns;
    *records = active.records;
  });
}

WEIR_API int weir_reader_tiles(weir_reader* const* readers, const weir_reader_clock* clocks,
                               const uint32_t* const* rows_of, const uint8_t* const* groups_of,
                               uint64_t count, uint32_t all_names, const weir_reader_window* window,
                               weir_reader_tile* by_row, weir_reader_tile* by_group) {
  if (window->shift > 52 ||
      window->bins > std::min(uint64_t{1} << 19, uint64_t{1} << 62 >> window->shift))
    return -1;
  return guarded([&] {
    check_all(readers, count, window->threads);
    std::vector<TilesInput> inputs;
    for (uint64_t i = 0; i < count; ++i) {
      inputs.push_back({&readers[i]->file, &readers[i]->index, &readers[i]->names, clocks[i],
                        rows_of[i], groups_of[i]});
    }
    make_tiles(inputs, all_names != 0, *window, by_row, by_group);
  });
}

WEIR_API int weir_reader_uses_between(const weir_reader_reads* reads, char op_class,
                                      const uint64_t* first_cut, uint64_t groups,
                                      const int64_t* cuts, weir_reader_use* uses) {
  return guarded([&] {
    uses_between(inputs_of(*reads), reads->threads, op_class, {first_cut, groups + 1},
                 {cuts, first_cut[groups]}, uses);
  });
}

WEIR_API int weir_reader_read_extents(const weir_reader_reads* reads, const uint32_t* name_of,
                                      uint64_t groups, uint64_t room, weir_reader_extent* of_groups,
                                      uint64_t* of_names) {
  return guarded([&] {
    read_extents(inputs_of(*reads), reads->threads, {name_of, groups}, room, of_groups, of_names);
  });
}

WEIR_API uint64_t weir_reader_events(weir_reader* reader, const weir_reader_clock* clock,
                                     weir_reader_cursor* cursor, uint64_t room,
                                     const uint8_t* wanted, const uint8_t* chosen,
                                     const weir_reader_columns* out) {
  return read_events(reader->file, reader->index, reader->names, *clock, *cursor, room, wanted,
                     chosen, *out);
}

WEIR_API void weir_reader_timestamps(const weir_reader_clock* clock, const uint64_t* ticks,
                                     uint64_t count, int64_t* out_ns) {
  for (uint64_t i = 0; i < count; ++i) out_ns[i] = timestamp_ns(*clock, ticks[i]);
}

WEIR_API void weir_reader_lengths(const weir_reader_clock* clock, const uint64_t* ticks,
                                  uint64_t count, uint64_t* out_ns) {
  for (uint64_t i = 0; i < count; ++i) out_ns[i] = length_ns(*clock, ticks[i]);
}
