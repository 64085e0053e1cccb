// SPDX-License-Identifier: Apache-2.0
// What a file format is to the engine. A file is described once (cf/ makes the description from a
// stream); then owners, the ranks that write, each write ranges of elements of a variable's record
// in the order of the file. The engine decides who owns what; a format says where it may be cut,
// and in which byte order it wants the data, so that conversion and transposition are one copy.
// Paths here are temporary ones: the engine renames a file when close has succeeded.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "output/core/status.h"
#include "output/model/catalogue.h"

namespace weir::output {

class Reader;
class Team;

struct Dimension {
  std::string name;
  int64_t size = 0;  // 0: unlimited (time)
};

struct Variable {
  std::string name;
  Type type = WEIR_FLOAT64;
  std::vector<int> dimensions;  // slowest first; over_time: without the time dimension, which is
                                // the first in the file
  bool over_time = false;
  Attributes attributes;
  std::optional<Number> fill;
  Compression compression;
  Rounding rounding;
  std::vector<int64_t> chunk;   // per dimension without time; empty: the format's choice
  std::vector<double> values;   // of small coordinate variables: written at creation
  FormatKeys keys;              // of the configuration, for the format alone
};

struct FileDescription {
  std::vector<Dimension> dimensions;
  int time = -1;  // the unlimited one's index; -1: none
  std::vector<Variable> variables;
  Attributes attributes;
  FormatKeys keys;

  // Elements of one record of the variable.
  int64_t elements(const Variable& v) const {
    int64_t n = 1;
    for (int d : v.dimensions) n *= dimensions[d].size;
    return n;
  }
  // The variable that says where the points of the dimension are; null: none does.
  const Variable* coordinate_of(int dimension) const {
    for (const Variable& v : variables) {
      if (v.name == dimensions[static_cast<size_t>(dimension)].name && !v.values.empty() &&
          v.dimensions == std::vector<int>{dimension})
        return &v;
    }
    return nullptr;
  }
};

struct FileOptions {
  // MPI_Info of the file: striping_factor, cb_nodes, ...
  std::vector<std::pair<std::string, std::string>> hints = {};
  bool sync = false;         // end_record returns when the bytes are on the disk
  int64_t record_limit = 0;  // records that the file will have, 0: not known
  int64_t threads = 1;       // that encode for an owner, in formats whose messages are independent
  bool writes_behind = false;  // a thread may write what is encoded while more of it comes
};

// What became of a variable's values, in what the calling rank wrote of a file.
struct Saving {
  int64_t value_bytes = 0, file_bytes = 0;
  // Of each level or chunk: the bits of the mantissa that stayed, in GRIB those of a packed value.
  int64_t pieces = 0, bits = 0, least_bits = 0, most_bits = 0;

  void add(int64_t values, int64_t in_file, int kept_bits) {
    value_bytes += values;
    file_bytes += in_file;
    least_bits = pieces == 0 || kept_bits < least_bits ? kept_bits : least_bits;
    most_bits = kept_bits > most_bits ? kept_bits : most_bits;
    bits += kept_bits;
    pieces++;
  }
};

// A file being written by the ranks of a team. Each call names the file in its error.
class File {
 public:
  virtual ~File() = default;
  // Elements [first, first + count) of record `record` (0 for variables without time), in the
  // file's type and byte_order().
  virtual Status write(int variable, int64_t record, int64_t first, int64_t count,
                       const void* data) = 0;
  // [collective over the team] All elements of the record have been written by all: from now on
  // readers may see it.
  virtual Status end_record(int64_t record) = 0;
  // [collective over the team] The file is complete. Afterwards the object is only destroyed.
  // Destroying an open file closes its descriptors and leaves what is there.
  virtual Status close() = 0;
  // By variable, for formats that make values smaller; else empty.
  virtual std::vector<Saving> savings() const { return {}; }
};

// A row of formats.def: what is known of a format without a file.
struct FormatRow {
  const char* name;
  ByteOrder byte_order;
  bool parallel;             // several ranks may write to one file
  bool compresses;
  int64_t most_chunk_bytes;  // 0: no limit
  const char* refused;       // completes "refused where ..."; "": nothing that matters
};

class Format {
 public:
  explicit Format(const FormatRow& row) : row_(row) {}
  virtual ~Format() = default;
  const FormatRow& row() const { return row_; }
  const char* name() const { return row_.name; }
  ByteOrder byte_order() const { return row_.byte_order; }
  // Whether what this format needs (a module, a library) is there.
  virtual Status ready() const { return {}; }
  // What this format refuses of a description (types, sizes, names), or fine. Known before anything
  // is written, and without its library.
  virtual Status check(const FileDescription& description) const = 0;
  // What only its library refuses of a description that check() has let through. On owners, at the
  // end of definitions.
  virtual Status prepare(const FileDescription&) { return {}; }
  // Whether a file that is there has the definitions and coordinates of the description, so that
  // `open` may go on with it. Only the calling rank looks. fails: WEIR_E_FORMAT, with what differs.
  virtual Status same(const FileDescription& description, const std::string& path) const = 0;
  // Owners' parts of a record of the variable begin and end at multiples of this many elements (or
  // at its end).
  virtual int64_t granule(const FileDescription& description, int variable) const = 0;
  // Whether FileOptions::threads encode the granules that come in one call of `write`.
  virtual bool encodes_in_threads() const { return false; }
  // [collective over the team] Create the file with its header and coordinates.
  virtual Result<std::unique_ptr<File>> create(const FileDescription& description,
                                               const std::string& path, const FileOptions& options,
                                               Team& owners) = 0;
  // [collective over the team] Go on with a file of the same description that has `records`
  // records.
  virtual Result<std::unique_ptr<File>> open(const FileDescription& description,
                                             const std::string& path, const FileOptions& options,
                                             Team& owners, int64_t records) = 0;
  // What takes the first records of a file out of it, for messages.
  virtual std::string selects_records() const { return "ncks -d time,0,N IN OUT"; }
  // Whether the file or directory is one that `reader` reads. Every other one is read as netCDF.
  virtual bool is_file(const std::string&) const { return false; }
  virtual Result<std::unique_ptr<Reader>> reader(const std::string& path) const;

 private:
  FormatRow row_;
};

// What is wrong with the rounding of a variable that is stored in chunks, or fine: without
// compression it saves nothing.
Status check_rounding(const std::string& format, const Variable& variable);

// In the order of formats.def.
std::span<Format* const> formats();
// Their names, or of those alone that compress.
std::vector<std::string> format_names(bool compressing = false);
// Null: there is none of this name, and *why says which there are.
Format* find_format(const std::string& name, std::string* why);
// Its row; of a name that is none's: one that permits everything.
const FormatRow& format_row(const std::string& name);
// The format whose is_file() is true; null: none's, which may be netCDF.
const Format* format_of_file(const std::string& path);

}  // namespace weir::output
