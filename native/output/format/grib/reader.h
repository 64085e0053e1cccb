// SPDX-License-Identifier: Apache-2.0
// Reading of GRIB. A file has no names: the messages of a field are those with its parameter and
// levels, in the order of the file, and the record r of a level is the r-th of them. Whoever wrote
// the file, and in which packing, ecCodes decodes it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <tuple>

#include "output/format/grib/encoder.h"
#include "output/format/grib/scan.h"
#include "output/format/reader.h"

namespace weir::output::grib {

// Which quantity at which level a message has.
struct Identity {
  std::vector<int64_t> parameter;  // discipline, category, number; edition 1: table, number
  std::vector<double> level;       // types and values of surfaces, as far as they are given
  int64_t member = -1;             // of an ensemble; -1: of none
  bool is_numbered = false;        // edition 1: it has a number of a member, maybe 0
  // Over time (code table 4.10; edition 1: table 5); -1: of one moment.
  int process = -1;
  std::vector<int64_t> grid;       // template, columns, rows (0 where it has none), points
  double first_lat = 0, first_lon = 0, last_lat = 0, last_lon = 0;
  int scanning = 0;
  int64_t columns = 0, rows = 0;  // of grids with rows of one length; else 0
  std::vector<char> definition;   // of grids whose corners are not compared: its octets
  // In seconds since 1970: the reference, and for which time it is valid, of an interval its begin
  // and end.
  int64_t reference_s = 0, time_s = 0, end_s = 0;
  // What else makes it another quantity (a percentile, a constituent; edition 1: a centre's local
  // definition), without member and times.
  std::vector<char> product;
  // Of edition 2 what of that is the same at all times: without the centre's own section and what
  // kind of run made it.
  std::vector<char> quantity;
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
    bool has_scanning = true;                 // else rows are in the order of the file
    bool of_any_member = false;               // the field names no member
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
  // Those of a level; see choose.cc.
  struct Wanted;
  Result<Wanted> wanted_at(Encoder& encoder, size_t level) const;
  Result<std::vector<size_t>> messages_of(const Wanted& wanted, const std::string& what) const;
  std::vector<size_t> of_parameter(const Wanted& wanted) const;
  int64_t parameter_of(size_t message) const;
  bool is_another(const Wanted& wanted, size_t message) const;
  Result<std::vector<size_t>> with_keys(const Wanted& wanted, std::vector<size_t> messages,
                                        const std::string& what) const;
  Status check_quantity(size_t first, size_t message, const std::string& what) const;
  Status check_alike(const std::vector<size_t>& messages, const std::string& what) const;
  std::string differ_in(size_t a, size_t b, std::span<const char* const> keys) const;
  Result<Handle> header_of(size_t message) const;
  Result<std::vector<size_t>> of_member(const Identity& wanted, std::vector<size_t> messages,
                                        const std::string& what) const;
  Status check_grid(const Identity& wanted, size_t message, const std::string& what) const;
  Result<std::vector<size_t>> on_grid(const Identity& wanted, std::vector<size_t> messages,
                                      const std::string& what) const;
  // Level by level, where no edition has all; see levels_apart.cc. fails: with `otherwise` where
  // that says more
  Result<Known> find_by_level(const FileDescription& description, int variable,
                              const Status& otherwise) const;
  std::string not_together(const Known& known, size_t a, size_t b) const;
  std::set<int64_t> repeated_times(const std::vector<size_t>& messages) const;
  Status check_times(const Known& known, const std::string& what) const;
  Status find_time(const FileDescription& description, Known* known);
  Status read_time(const Known& known, int64_t record, int64_t first, int64_t count,
                   double* to) const;
  Status load(const Known& known, size_t message);

  PosixFile file_;
  std::vector<Message> messages_;
  std::vector<Identity> identities_;
  std::map<std::string, Known> known_;
  mutable std::map<std::tuple<int, int64_t, std::vector<int64_t>, std::vector<double>, int,
                              std::vector<char>>,
                   int64_t>
      parameters_;  // of messages, as ecCodes numbers them
  std::optional<Clock> clock_;
  std::vector<double> values_;  // of the message that was decoded last
  size_t loaded_ = SIZE_MAX;
  const Known* loaded_for_ = nullptr;  // fields differ in the missing value and the order of rows
};

}  // namespace weir::output::grib
