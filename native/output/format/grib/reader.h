// SPDX-License-Identifier: Apache-2.0
// Reading of GRIB. A file has no names: the messages of a field are those with its parameter and
// levels, in the order of the file, and the record r of a level is the r-th of them. Whoever wrote
// the file, and in which packing, ecCodes decodes it.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "output/format/grib/encoder.h"
#include "output/format/grib/scan.h"
#include "output/format/reader.h"

namespace weir::output::grib {

// Which quantity at which level a message has.
struct Identity {
  std::vector<int64_t> parameter;  // discipline, category, number; edition 1: table, number
  std::vector<double> level;       // types and values of surfaces, as far as they are given
  int64_t member = -1;             // of an ensemble; -1: of none
  // Over time (code table 4.10; edition 1: table 5); -1: of one moment.
  int process = -1;
  std::vector<int64_t> grid;       // template, columns, rows (0 where it has none), points
  double first_lat = 0, first_lon = 0, last_lat = 0, last_lon = 0;
  int scanning = 0;
  int64_t time_s = 0;  // for which it is valid, since 1970; of an interval: its begin
  int edition = 2;
  int64_t centre = 255;  // that made it; parameters of its own have its numbers

  // The quantity at the level, of any member.
  bool is_of(const Identity& other) const {
    return edition == other.edition && parameter == other.parameter && level == other.level;
  }
  bool operator==(const Identity& other) const {
    return is_of(other) && member == other.member && process == other.process;
  }
};

// Of the begin of a message, as read_head gives it.
Identity identity_of(std::span<const char> head, int edition);

std::string in_words(const Identity& id);
// Its grid: "a reduced Gaussian grid (64 rows, 5248 points)".
std::string grid_in_words(const Identity& id);

bool is_grib(const std::string& path);

class GribReader : public Reader {
 public:
  static Result<std::unique_ptr<Reader>> open(const std::string& path);
  static Result<std::unique_ptr<GribReader>> open_grib(const std::string& path);
  // "time" alone: how many there are.
  Result<Found> find(const std::string& variable) override;
  Result<Found> find(const FileDescription& description, int variable) override;
  Status read(const std::string& variable, int64_t record, int64_t first, int64_t count,
              void* to) override;
  Status check_whole() const override;
  // See Format::same.
  Status same(const FileDescription& description, int edition) const;

 private:
  struct Known {
    Found found;
    std::vector<double> values;  // of a coordinate
    bool is_time = false, is_bounds = false;
    int64_t points = 0, rows = 1;
    std::optional<double> missing;
    std::vector<std::vector<size_t>> levels;  // messages, by record
    int scanning = 0;                         // of the field
  };

  // In the messages of all editions; the parameter as the centres of the file number it.
  Result<Known> find_field(const FileDescription& description, int variable) const;
  // *made: what writes the field.
  Result<Known> find_field(const FileDescription& description, int variable, int edition,
                           std::unique_ptr<Encoder>* made) const;
  std::set<int64_t> centres_for(const FileDescription& description, int edition) const;
  Result<Known> find_in_edition(const FileDescription& description, int variable,
                                int edition) const;
  Result<std::vector<size_t>> messages_in_edition(const FileDescription& description, int variable,
                                                  int edition) const;
  Status check_left_out(const FileDescription& description, int variable, int edition,
                        const Known& taken) const;
  Status same_field(const FileDescription& description, int variable, int edition,
                    std::vector<bool>* claimed) const;
  Status cannot_follow(const std::string& why) const;
  int edition() const { return messages_.empty() ? 2 : messages_[0].edition; }
  Result<std::vector<size_t>> messages_of(const Identity& wanted, const std::string& what) const;
  Result<std::vector<size_t>> of_member(const Identity& wanted, std::vector<size_t> messages,
                                        const std::string& what) const;
  Status check_grid(const Identity& wanted, size_t message, const std::string& what) const;
  Result<std::vector<size_t>> on_grid(const Identity& wanted, std::vector<size_t> messages,
                                      const std::string& what) const;
  Status find_time(const FileDescription& description, Known* known);
  Status read_time(const Known& known, int64_t record, int64_t first, int64_t count,
                   double* to) const;
  Status load(const Known& known, size_t message);

  PosixFile file_;
  std::vector<Message> messages_;
  std::vector<Identity> identities_;
  std::map<std::string, Known> known_;
  std::optional<Clock> clock_;
  std::vector<double> values_;  // of the message that was decoded last
  size_t loaded_ = SIZE_MAX;
};

}  // namespace weir::output::grib
