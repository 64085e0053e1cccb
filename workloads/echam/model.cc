// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include <algorithm>

#include "output/writer/phase.h"
#include "output/writer/wait.h"
#include "workload.h"

namespace echam {

using weir::output::Result;
using weir::output::Status;
using weir::output::writer::from_mpi;
using weir::output::writer::Phase;
using weir::output::writer::Variable;

namespace {
constexpr int kTags = 16384, kBase = 1000;  // of messages that a frame is filled, or free
}

Exchange::Exchange(const ModelOptions& options, const Grid& grid,
                   const std::vector<Variable>& variables, std::vector<int> collectors)
    : options_(options),
      grid_(grid),
      variables_(variables),
      collectors_(std::move(collectors)),
      records_(static_cast<size_t>(options.windows)),
      windows_(records_.size()),
      memory_(records_.size()) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < options.ranks; ++i) models_.push_back(ranks - options.ranks + i);
  if (!models_.empty() && rank >= models_.front()) mine_ = rank - models_.front();
  for (const Variable& v : variables_) {
    const int window = v.number % options.windows;
    int64_t& records = records_[static_cast<size_t>(window)];
    places_.push_back({window, records});
    records += v.records;
  }
  for (size_t w = 0; w < windows_.size(); ++w) {
    const int64_t doubles = mine_ < 0 ? 0 : 2 * records_[w] * points_of(mine_);
    MPI_Win_allocate(doubles * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory_[w], &windows_[w]);
    MPI_Win_lock_all(0, windows_[w]);
  }
  if (mine_ < 0) return;
  a_.assign(static_cast<size_t>(options.sweep_mb) << 16, 1.0);
  b_.assign(a_.size(), 2.0);
}

Exchange::~Exchange() {
  for (MPI_Win& window : windows_) {
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
  }
  MPI_Waitall(static_cast<int>(sent_.size()), sent_.data(), MPI_STATUSES_IGNORE);
}

int64_t Exchange::first_row(int model) const {
  return workload_first(grid_.nlat, model, options_.ranks);
}

int64_t Exchange::points_of(int model) const {
  return (first_row(model + 1) - first_row(model)) * grid_.nlon;
}

MPI_Aint Exchange::at(int model, const Place& place) const {
  const int64_t frame = (step_ % 2) * records_[static_cast<size_t>(place.window)];
  return (frame + place.first) * points_of(model);
}

void Exchange::sweep() {
  for (int64_t n = 0; n < options_.sweeps; ++n)
    for (size_t i = 0; i < a_.size(); ++i) a_[i] = b_[i] + 0.5 * a_[i];
}

void Exchange::put(const Values& values, int step) {
  const int64_t points = points_of(mine_), first = first_row(mine_) * grid_.nlon;
  for (size_t v = 0; v < variables_.size(); ++v) {
    double* to = memory_[static_cast<size_t>(places_[v].window)] + at(mine_, places_[v]);
    for (int level = 0; level < variables_[v].records; ++level, to += points)
      values.fill(step, variables_[v].number, level, first,
                  std::span(to, static_cast<size_t>(points)));
  }
  for (const MPI_Win window : windows_) MPI_Win_sync(window);
}

void Exchange::notify(const std::vector<int>& to, int step) {
  for (const int rank : to) {
    sent_.emplace_back();
    MPI_Isend(nullptr, 0, MPI_BYTE, rank, kBase + step % kTags, MPI_COMM_WORLD, &sent_.back());
  }
}

Status Exchange::await(const std::vector<int>& from, int step, const char* what) {
  for (const int rank : from) {
    MPI_Request request;
    MPI_Irecv(nullptr, 0, MPI_BYTE, rank, kBase + step % kTags, MPI_COMM_WORLD, &request);
    WEIR_TRY(weir::output::writer::wait(&request, what, options_.limit_s));
  }
  return {};
}

Status Exchange::compute_and_put(const Values& values, double* compute_s) {
  for (step_ = 0; step_ < options_.steps; ++step_) {
    const double begun = workload_clock();
    sweep();
    *compute_s += workload_clock() - begun;
    if (step_ >= 2) WEIR_TRY(await(collectors_, step_ - 2, "a frame that collectors have taken"));
    put(values, step_);
    notify(collectors_, step_);
  }
  const int left = static_cast<int>(std::min<int64_t>(2, options_.steps));
  for (int last = step_ - left; last < step_; ++last)
    WEIR_TRY(await(collectors_, last, "a frame that collectors have taken"));
  return {};
}

Status Exchange::begin_step(int step) {
  step_ = step;
  WEIR_TRY(await(models_, step, "a frame of the model"));
  for (const MPI_Win window : windows_) MPI_Win_sync(window);
  return {};
}

Status Exchange::end_step() {
  notify(models_, step_);
  return {};
}

Result<std::span<const double>> Exchange::gather(const Variable& variable) {
  const Place& place = places_[static_cast<size_t>(variable.number)];
  const MPI_Win window = windows_[static_cast<size_t>(place.window)];
  const auto points = static_cast<size_t>(grid_.points());
  const size_t all = points * static_cast<size_t>(variable.records);
  if (whole_.size() < all) whole_.resize(all);
  if (part_.size() < all) part_.resize(all);
  Phase phase("rma");
  double* to = part_.data();
  for (int model = 0; model < options_.ranks; ++model) {
    const int64_t count = points_of(model) * variable.records;
    WEIR_TRY(from_mpi(MPI_Get(to, static_cast<int>(count), MPI_DOUBLE,
                              models_[static_cast<size_t>(model)], at(model, place),
                              static_cast<int>(count), MPI_DOUBLE, window),
                      "MPI_Get"));
    to += count;
  }
  WEIR_TRY(from_mpi(MPI_Win_flush_all(window), "MPI_Win_flush_all"));
  const double* from = part_.data();
  for (int model = 0; model < options_.ranks; ++model) {
    const auto count = static_cast<size_t>(points_of(model));
    const auto first = static_cast<size_t>(first_row(model) * grid_.nlon);
    for (int level = 0; level < variable.records; ++level, from += count)
      std::copy_n(from, count, whole_.data() + static_cast<size_t>(level) * points + first);
  }
  return std::span<const double>(whole_).first(all);
}

}  // namespace echam
