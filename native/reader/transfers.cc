// SPDX-License-Identifier: Apache-2.0
#include "reader/weir_transfers.h"

#include <optional>
#include <unordered_map>

#include "reader/clock.h"
#include "reader/handle.h"
#include "reader/in_order.h"
#include "reader/stream.h"

using namespace weir::reader;
namespace wire = weir::wire;

// One process after the other, each with its files.
struct weir_transfers {
 public:
  weir_transfers(const weir_reader& reader, const weir_reader_clock& clock, const uint8_t* wanted,
                 const uint8_t* chosen)
      : reader_(reader),
        clock_(clock),
        wanted_(wanted),
        chosen_(chosen),
        chunks_(chunks_of(reader.index)) {}

  uint64_t fill(uint64_t room, const weir_transfer_columns& out) {
    uint64_t rows = 0;
    while (rows < room && begin_process()) {
      for (; rows < room && !records_->is_over(); records_->next())
        rows += take(records_->record(), rows, out);
      if (records_->is_over()) {
        records_.reset();
        ++process_;
      }
    }
    return rows;
  }

 private:
  struct File {
    uint32_t text;
    bool is_wanted;
    Stream stream;
  };

  // False: there is no further one.
  bool begin_process() {
    if (records_) return true;
    while (process_ < chunks_.size() &&
           (chosen_[process_] == 0 || chunks_[process_].empty() || !names_wanted(process_)))
      ++process_;
    if (process_ == chunks_.size()) return false;
    files_.clear();
    last_ = nullptr;
    records_.emplace(reader_.file, chunks_[process_]);
    return true;
  }

  // Whether records of a process may be of a wanted file.
  bool names_wanted(size_t process) const {
    bool found = false;
    reader_.names.each(uint32_t(process),
                       [&](uint32_t, uint32_t text) { found = found || wanted_[text] != 0; });
    return found;
  }

  bool take(const Words& record, uint64_t row, const weir_transfer_columns& out) {
    const char found = kOps[record.op()].op_class;
    const bool moves = found == 'R' || found == 'W';
    const bool of_stream = record.layer() == uint8_t(wire::Layer::stdio);
    if ((!moves && !of_stream) || !record.is_lowest() || record.has_failed()) return false;
    File& file = of(record.file());
    if (!file.is_wanted) return false;
    if (!moves) {
      file.stream.move(record);
      return false;
    }
    const uint64_t offset = file.stream.begin_of(record);
    const int64_t begin = timestamp_ns(clock_, record.start());
    out.begin_ns[row] = begin;
    out.length_ns[row] = timestamp_ns(clock_, record.end()) - begin;
    out.offset[row] = offset == wire::kUnknownOffset ? -1 : int64_t(offset);
    out.bytes[row] = int64_t(record.size());
    out.process[row] = uint32_t(process_);
    out.text[row] = file.text;
    out.way[row] = found == 'W';
    return true;
  }

  // Most records are of the file of the one before.
  File& of(uint32_t id) {
    if (last_ != nullptr && last_id_ == id) return *last_;
    const auto [found, is_new] = files_.try_emplace(id);
    if (is_new) {
      const uint32_t text = reader_.names.text_of(uint32_t(process_), id);
      found->second = {text, text != Names::kLost && wanted_[text] != 0, {}};
    }
    last_id_ = id;
    last_ = &found->second;
    return *last_;
  }

  const weir_reader& reader_;
  const weir_reader_clock clock_;
  const uint8_t* const wanted_;
  const uint8_t* const chosen_;
  const std::vector<Chunks> chunks_;
  size_t process_ = 0;
  std::optional<InOrder> records_;
  std::unordered_map<uint32_t, File> files_;
  uint32_t last_id_ = 0;
  File* last_ = nullptr;
};

WEIR_API weir_transfers* weir_transfers_create(const weir_reader* reader,
                                               const weir_reader_clock* clock,
                                               const uint8_t* wanted, const uint8_t* chosen) {
  weir_transfers* made = nullptr;
  guarded([&] { made = new weir_transfers(*reader, *clock, wanted, chosen); });
  return made;
}

WEIR_API int weir_transfers_next(weir_transfers* transfers, uint64_t room,
                                 const weir_transfer_columns* out, uint64_t* rows) {
  return guarded([&] { *rows = transfers->fill(room, *out); });
}

WEIR_API void weir_transfers_destroy(weir_transfers** transfers) {
  delete *transfers;
  *transfers = nullptr;
}
