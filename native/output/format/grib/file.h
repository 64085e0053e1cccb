// SPDX-License-Identifier: Apache-2.0
// A file of GRIB with its owners. Each encodes the messages of its levels while the record is
// written, those of a slab by several threads, and keeps them until the record ends: then the first
// owner has the lengths of all, gives each message its place (by variable and level), and each
// owner writes its own there. Nobody takes a lock, and the file is the same whoever encoded what.
// An only owner knows the places before: it writes what it has encoded while more comes.
#pragma once

#include <map>
#include <thread>

#include "output/format/chunks/bands.h"
#include "output/format/format.h"
#include "output/format/grib/encoder.h"
#include "output/format/posix_file.h"

namespace weir::output::grib {

// Of a description's variables; null: not one of messages.
using Encoders = std::vector<std::shared_ptr<Encoder>>;

class GribFile : public File {
 public:
  GribFile(const FileDescription& description, Encoders encoders, Clock clock,
           const FileOptions& options, Team& owners);
  // What was written of a record that did not end is taken off.
  ~GribFile() override;

  // [collective] records < 0: an empty file; else one that has them, and perhaps one more.
  Status open(const std::string& path, int64_t records);
  Status write(int variable, int64_t record, int64_t first, int64_t count,
               const void* data) override;
  Status end_record(int64_t record) override;
  Status close() override;
  std::vector<Saving> savings() const override { return savings_; }

 private:
  struct Held {
    int64_t variable = 0, level = 0, bytes = 0, offset = 0;  // in the file
    int64_t part = 0, at = 0;                                // in parts_
    int64_t bits = 0;                                        // of a packed value
  };
  // What one thread encodes of the record: messages one behind the other.
  struct Part {
    Bytes messages;
    std::vector<Held> held;
    Scratch scratch;
  };
  // Messages in the order of the file, with their offsets.
  struct Batch {
    std::vector<Held> held;
    std::vector<Bytes> messages;  // by part
  };
  // What the first owner gives to all.
  struct Places {
    int64_t end = 0;
    Moment moment;
    std::vector<Held> held;  // in the order of the file
  };

  // Messages of the variables that are in every record, or once in the file.
  int64_t messages(bool over_time) const;
  Status find_end(int64_t records);
  Status check_intact() const;  // of the first owner, when the file is complete
  Status encode(int variable, int64_t level, const char* values, size_t part);
  static int64_t room_for(const Plan& plan, int64_t messages);
  void make_room(const Plan& plan, int64_t messages, Bytes* bytes) const;
  Status encode_levels(int variable, int64_t first, int64_t levels, const char* values);
  Status take_time(int variable, const void* data, int64_t first, int64_t count);
  bool knows_places() const;
  Status write_behind();
  Status wait_for_writer();
  void take_off();
  void fill_batch();
  Status place_all(int64_t record, Places* places);
  Status put_in_place(const Places& places);
  Status complete_batch(const Moment& moment);
  Status put_batch();
  Result<std::vector<Held>> sort_all(const std::vector<std::vector<char>>& all, int64_t record);

  FileDescription description_;
  Encoders encoders_;
  Clock clock_;
  FileOptions options_;
  Team& owners_;
  PosixFile file_;
  std::vector<chunks::Layout> layouts_;
  std::vector<chunks::Bands> bands_;
  std::vector<Part> parts_;  // by thread
  std::vector<Saving> savings_;
  Moment moment_;
  bool has_time_ = false;  // moment_ is the record's
  int64_t end_ = 0;        // of the last record that ended
  // Of the record that is being written: messages that have gone, and where the next ones go.
  int64_t gone_ = 0, next_ = 0;
  std::pair<int64_t, int64_t> last_{-1, -1};  // variable and level of the last one
  std::thread writer_;
  Batch batch_;  // the writer's, until it is joined
  Status written_;
  bool has_fixed_ = false;  // what is once in the file is there
  Status failed_;
};

}  // namespace weir::output::grib
