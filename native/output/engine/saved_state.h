// SPDX-License-Identifier: Apache-2.0
// What a stream's means, sums and extremes have of an interval that a run leaves unfinished, in a
// file for the run that continues it (docs/formats/output.md, "Saved state"): where the stream
// stands, and the values of all elements in the order of the file's variables, so that any number
// of ranks and owners may go on with it.
#pragma once

#include <optional>
#include <string>

#include "output/engine/layout.h"
#include "output/reduce/accumulator.h"

namespace weir::output {

// Where a stream stands after a step.
struct Standing {
  int64_t step = 0;          // the number of the last step, all runs counted
  double time_s = 0;         // its time
  double longest_step_s = 0; // between two steps; 0: not known
  double begin_s = 0;        // of the interval under way
  int64_t steps = 0;         // that it has
  int64_t file = 0, record = 0;  // of the next frame
  int64_t file_step = 0;
  double file_time_s = 0;
};

// Streams that leave a state when they end, and begin with that of the run before: they reduce, and
// go on with files.
inline bool keeps_state(const Stream& stream) {
  return stream.reduces() && stream.existing == Existing::kAppend;
}

// "out/history.weir-state" of stream history with path "out/%Y/%m.nc".
std::string state_path(const std::string& directory, const Stream& stream);

class SavedState {
 public:
  SavedState(const Catalogue& catalogue, const Stream& stream, const StreamLayout& layout);

  // The file's first bytes.
  std::string header(const Standing& standing) const;
  // fails: WEIR_E_FORMAT  it is none, or of another stream: with the first line that differs.
  Result<Standing> parse(const std::string& header) const;

  // Where the column's values are, and the counts of those that were not missing; -1: there are
  // none.
  int64_t values_at(size_t column, int64_t element) const;
  int64_t counts_at(size_t column, int64_t element) const;
  int64_t bytes() const { return bytes_; }

  static constexpr int64_t kHeaderBytes = 65536;

 private:
  std::string definition_;
  const StreamLayout& layout_;
  std::vector<int64_t> begins_;  // of columns
  int64_t bytes_ = 0;
};

// The file's first bytes; nothing: there is no such file. On the calling rank alone.
Result<std::optional<std::string>> read_state_header(const std::string& path);

}  // namespace weir::output
