// SPDX-License-Identifier: Apache-2.0
#include "reader/events.h"

#include <algorithm>

#include "reader/clock.h"
#include "reader/ops.h"
#include "reader/record.h"

namespace weir::reader {
namespace {

class Filling {
 public:
  Filling(const Names& names, const weir_reader_clock& clock, uint64_t room, const uint8_t* wanted,
          const weir_reader_columns& out)
      : names_(names),
        clock_(clock),
        room_(room),
        wanted_(wanted),
        out_(out) {}

  uint64_t rows() const { return rows_; }
  bool is_full() const { return rows_ == room_; }

  // The cursor stops behind the last record that is written: what is still zero may be written when
  // it is asked again.
  void take(const Mapping& file, const weir_reader_chunk& chunk, weir_reader_cursor& cursor) {
    const char* from = file.records(chunk.offset);
    for (uint64_t i = cursor.record; i < chunk.entries && !is_full(); ++i) {
      const Words record = Words::load(from + i * sizeof(Words));
      if (record.op() == 0) continue;
      cursor.record = i + 1;
      switch (kOps[record.op()].treatment) {
        case Treatment::thread: cursor.thread = uint32_t(record.size()); break;
        case Treatment::call:
        case Treatment::fortran:
        case Treatment::silent:
          if ((wanted_ == nullptr || wanted_[record.op()] != 0) &&
              is_known_layer(record.layer()))
            row(chunk.process, cursor.thread, record);
          break;
        default: break;
      }
    }
  }

 private:
  void row(uint32_t process, uint32_t thread, const Words& record) {
    const uint64_t at = rows_++;
    const int64_t start = timestamp_ns(clock_, record.start());
    out_.start_ns[at] = start;
    // What lies within another record in ticks does so in ns.
    out_.duration_ns[at] = timestamp_ns(clock_, record.end()) - start;
    out_.offset[at] = place(record);
    out_.bytes[at] = int64_t(record.size());
    out_.process[at] = process;
    out_.thread[at] = thread;
    out_.file[at] = record.file();
    out_.text[at] = text(process, record.file());
    out_.op[at] = record.op();
    out_.layer[at] = record.layer();
    out_.flags[at] = record.flags();
    out_.error[at] = record.error();
  }

  static int64_t place(const Words& record) {
    if (record.layer() == uint8_t(wire::Layer::fortran)) return record.unit();
    const uint64_t offset = record.offset();
    return offset == wire::kUnknownOffset ? -1 : int64_t(offset);
  }

  // Most records are of the file of the one before.
  uint32_t text(uint32_t process, uint32_t file) {
    if (file == 0) return Names::kLost;
    if (process != last_process_ || file != last_file_) {
      last_process_ = process;
      last_file_ = file;
      last_text_ = names_.text_of(process, file);
    }
    return last_text_;
  }

  const Names& names_;
  const weir_reader_clock clock_;
  const uint64_t room_;
  const uint8_t* const wanted_;  // by operation; null: all
  const weir_reader_columns out_;
  uint64_t rows_ = 0;
  uint32_t last_process_ = 0, last_file_ = 0, last_text_ = Names::kLost;
};

}  // namespace

uint64_t read_events(const Mapping& file, Index& index, const Names& names,
                     const weir_reader_clock& clock, weir_reader_cursor& cursor, uint64_t room,
                     const uint8_t* wanted, const uint8_t* chosen,
                     const weir_reader_columns& out) {
  Filling filling(names, clock, room, wanted, out);
  const uint64_t end = std::min<uint64_t>(cursor.end_chunk, index.chunks.size());
  for (; cursor.chunk < end; ++cursor.chunk, cursor.record = 0, cursor.thread = 0) {
    auto& chunk = index.chunks[cursor.chunk];
    const bool is_chosen = chosen == nullptr || chosen[chunk.process] != 0;
    if (chunk.kind != uint32_t(wire::Kind::kEvents) || !is_chosen) continue;
    if (cursor.record == 0) cursor.thread = chunk.thread;
    index.checks.check(file, chunk);
    filling.take(file, chunk, cursor);
    if (filling.is_full()) break;
    file.done(chunk.size_bytes);
    if (cursor.chunk + 1 == end) break;
  }
  return filling.rows();
}

}  // namespace weir::reader
