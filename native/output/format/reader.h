// SPDX-License-Identifier: Apache-2.0
// Reading of files for restarts and initial conditions: any file of a format that weir writes,
// whoever wrote it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "output/core/status.h"
#include "output/core/types.h"
#include "output/model/packing.h"

namespace weir::output {

struct FileDescription;

// Degrees by which places of a file and of a grid may differ: edition 1 of GRIB has thousandths.
constexpr double kSameDegrees = 2e-3;

// A variable as it is in the file.
struct Found {
  Type type = WEIR_FLOAT64;
  bool over_time = false;
  int64_t records = 1;           // of the file; 1 without time
  std::vector<int64_t> lengths;  // without time, slowest first
  std::optional<Packing> packing = {};
  Fills fills = {};
  std::vector<std::string> dimensions = {};  // their names; empty: the format has none
  std::string units = {}, standard_name = {};
  std::string coordinates = {};  // names of variables that say where its points are
  bool is_unsigned = false;      // read() gives unsigned integers with as many bits as `type`
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t length : lengths) n *= length;
    return n;
  }
};

class Reader {
 public:
  virtual ~Reader() = default;
  // fails: WEIR_E_FORMAT no such variable, or one of a type that weir has not.
  virtual Result<Found> find(const std::string& variable) = 0;
  // The same of a variable whose attributes and dimensions are known, too: files of GRIB have no
  // names. Afterwards `read` takes its name.
  virtual Result<Found> find(const FileDescription& description, int variable);
  // Elements [first, first + count) of record `record`, counted as File::write counts them, in the
  // file's type and native byte order.
  virtual Status read(const std::string& variable, int64_t record, int64_t first, int64_t count,
                      void* to) = 0;
  // fails: WEIR_E_FORMAT, what follows the last record is a torn one. Only of formats in which it
  // is left out otherwise.
  virtual Status check_whole() const { return {}; }
};

// By the format whose file it is. Only the calling rank opens it.
Result<std::unique_ptr<Reader>> open_reader(const std::string& path);
// The same of a file that nobody is writing. fails: WEIR_E_FORMAT it is truncated
Result<std::unique_ptr<Reader>> open_whole(const std::string& path);

// A file that is gone on with has the description's variables and `records` records, or one more.
// fails: WEIR_E_FORMAT, with what differs.
Status check_records(const FileDescription& description, const std::string& path, int64_t records);

}  // namespace weir::output
