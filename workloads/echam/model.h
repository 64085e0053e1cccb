// SPDX-License-Identifier: Apache-2.0
// Ranks that compute, beside those of the I/O: each has a band of latitudes of all variables, puts
// it into RMA windows and goes on computing, which is bound by memory. A collector gathers a
// variable from the windows and puts its points in order.
#pragma once

#include <mpi.h>

#include <memory>
#include <span>
#include <vector>

#include "fields.h"

namespace echam {

struct ModelOptions {
  int ranks = 0;      // that compute: the last ones
  int windows = 1;    // variables take turns
  int64_t sweep_mb = 64;  // of a rank's arrays
  int64_t sweeps = 4;     // through them, in a step
  int64_t steps = 0;
  double limit_s = 60;
};

// Two frames of all variables in windows: one is fetched while the other is filled.
class Exchange {
 public:
  // [collective over the world] collectors: ranks of the world.
  Exchange(const ModelOptions& options, const Grid& grid,
           const std::vector<weir::output::writer::Variable>& variables,
           std::vector<int> collectors);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Of a rank that computes.
  weir::output::Status compute_and_put(const Values& values, double* compute_s);
  // Of a collector: a step begins, the values of a variable, the step's frame is free again.
  weir::output::Status begin_step(int step);
  weir::output::Result<std::span<const double>> gather(
      const weir::output::writer::Variable& variable);
  weir::output::Status end_step();

 private:
  struct Place {
    int window = 0;
    int64_t first = 0;  // record in the frame
  };
  int64_t first_row(int model) const;
  int64_t points_of(int model) const;
  MPI_Aint at(int model, const Place& place) const;  // doubles
  void put(const Values& values, int step);
  void sweep();
  weir::output::Status await(const std::vector<int>& from, int step, const char* what);
  void notify(const std::vector<int>& to, int step);

  const ModelOptions options_;
  const Grid grid_;
  const std::vector<weir::output::writer::Variable>& variables_;
  const std::vector<int> collectors_;
  std::vector<int> models_;  // ranks of the world
  int mine_ = -1;            // of models_, or -1
  std::vector<Place> places_;
  std::vector<int64_t> records_;  // of a frame in each window
  std::vector<MPI_Win> windows_;
  std::vector<double*> memory_;
  std::vector<double> part_, whole_, a_, b_;
  std::vector<MPI_Request> sent_;
  int step_ = 0;
};

}  // namespace echam
