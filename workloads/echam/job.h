// SPDX-License-Identifier: Apache-2.0
// What the parts of the program share: options, the grid, records that are encoded already.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "fields.h"
#include "grib.h"
#include "workload.h"

namespace echam {

struct Options {
  const char* writer = "direct";
  const char* io = "auto";
  const char* directory = ".";
  const char* encoder = "weir";
  const char* packing = "grid_simple";
  int64_t files = 10, variables = 40, nlat = 96, steps = 4, bits = 16;
  int64_t writers = 1, buffer_kb = 4096;
  int64_t model = 0, windows = 1, sweep_mb = 64, sweeps = 4;
  int64_t kill = -1, kill_step = 2;
  double limit_s = 60;
  int encoded = 0;
};

// Of this rank.
struct Times {
  double encode_s = 0, gather_s = 0, compute_s = 0;
};

class Clocked {
 public:
  explicit Clocked(double* sum) : sum_(sum), begun_(workload_clock()) {}
  ~Clocked() { *sum_ += workload_clock() - begun_; }
  Clocked(const Clocked&) = delete;
  Clocked& operator=(const Clocked&) = delete;

 private:
  double* const sum_;
  const double begun_;
};

struct Job {
  workload w{};
  Options options;
  Grid grid;
  std::vector<weir::output::writer::Variable> variables;
  Values values;
  Times times;
  int refused = 0;  // ranks that write by pwrite though --io auto tries io_uring; on rank 0

  std::vector<std::string> paths() const;
  // The variables of a collector, of so many.
  std::vector<weir::output::writer::Variable> of_collector(int collector, int collectors) const;
  std::unique_ptr<Encoder> encoder_of(const std::vector<weir::output::writer::Variable>& mine);
  void need(const weir::output::Status& status);
};

// Records of some variables in the order of a step, encoded beforehand as those of step 0.
class Encoded {
 public:
  void encode(Job& job, const std::vector<weir::output::writer::Variable>& mine);
  std::span<const char> next();
  // Those of one file, one after the other.
  std::vector<char> of_file(int file) const;

 private:
  struct Record {
    int file;
    std::vector<char> bytes;
  };
  std::vector<Record> records_;
  size_t at_ = 0;
};

// Beside the writers. ecCodes alone: rank 0 encodes and writes by codes_write_message's fwrite.
// pwrite: each rank writes bytes that it has, at offsets that it knows.
void run_eccodes(Job& job);
void run_pwrite(Job& job);

}  // namespace echam
