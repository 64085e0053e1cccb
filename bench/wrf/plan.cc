// SPDX-License-Identifier: Apache-2.0
// How long plans take: wrf-plan RANKS POINTS... makes, for grids of so many points, the plans of a job whose ranks have blocks, and of one whose
// ranks have scattered points in any order, which is the worst there can be. Processor seconds of what a job waits for: the slowest
// rank's own plan, its part of the check that every point is there once, and one owner that takes in the plans of all, with the frame's
// sharing among 64 owners.
#include <ctime>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>

#include "output/plan/cover.h"
#include "output/plan/pieces.h"
#include "output/plan/share.h"

namespace {

using weir::output::ColumnShape;
using weir::output::Decomposition;
using weir::output::Grid;
using weir::output::Pieces;

double cpu_s() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "wrf-plan: %s\n", why.c_str());
  std::exit(1);
}

std::vector<Decomposition> blocks(const Grid& grid, int ranks) {
  int columns = 1;
  for (int c = 1; c * c <= ranks; ++c) {
    if (ranks % c == 0) columns = c;
  }
  const int rows = ranks / columns;
  std::vector<Decomposition> all(static_cast<size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    Decomposition& d = all[static_cast<size_t>(r)];
    const int64_t column = r % columns, row = r / columns;
    d.i0 = grid.nx * column / columns, d.ni = grid.nx * (column + 1) / columns - d.i0;
    d.j0 = grid.ny * row / rows, d.nj = grid.ny * (row + 1) / rows - d.j0;
  }
  return all;
}

std::vector<Decomposition> scattered(const Grid& grid, int ranks) {
  std::vector<int64_t> order(static_cast<size_t>(grid.points()));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
  std::vector<Decomposition> all(static_cast<size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    Decomposition& d = all[static_cast<size_t>(r)];
    d.block = false;
    d.indices.assign(order.begin() + grid.points() * r / ranks, order.begin() + grid.points() * (r + 1) / ranks);
  }
  return all;
}

// A rank's part of the check: as many points as it has, scattered, of a grid of as many.
double cover(int64_t points) {
  Grid grid;
  grid.name = "part";
  grid.nx = points;
  grid.ny = 1;
  const std::vector<Decomposition> all = scattered(grid, 1);
  auto pieces = Pieces::of(all[0], grid);
  const auto team = weir::output::lone_team();
  const double began = cpu_s();
  if (!pieces.ok() || !weir::output::check_cover(*team, *pieces, points, points, "part").ok()) fail("the check of a part fails");
  return cpu_s() - began;
}

double seconds(const Grid& grid, const std::vector<Decomposition>& all) {
  double slowest = 0;
  std::vector<std::vector<char>> messages(all.size());
  for (size_t r = 0; r < all.size(); ++r) {
    const double began = cpu_s();
    auto pieces = Pieces::of(all[r], grid);
    if (!pieces.ok()) fail(pieces.status().message());
    pieces->encode(&messages[r]);
    slowest = std::max(slowest, cpu_s() - began);
  }
  const double began = cpu_s();
  std::vector<Pieces> taken;
  for (const std::vector<char>& message : messages) {
    auto pieces = Pieces::decode(message);
    if (!pieces.ok()) fail(pieces.status().message());
    taken.push_back(std::move(*pieces));
  }
  const std::vector<ColumnShape> columns(8, ColumnShape{28, grid.points(), 4, 1});
  size_t slabs = 0;
  for (const auto& parts : weir::output::share(columns, 64)) slabs += weir::output::slabs(columns, parts, 4 << 20).size();
  if (slabs == 0) fail("no slabs");
  const double taken_in = cpu_s() - began;
  return slowest + taken_in + cover(grid.points() / static_cast<int64_t>(all.size()));
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 2 ? std::atoi(argv[1]) : 0;
  if (ranks < 1) fail("usage: wrf-plan RANKS POINTS...");
  std::printf("wrf-plan: ranks=%d", ranks);
  for (int a = 2; a < argc; ++a) {
    Grid grid;
    grid.name = "g";
    grid.nx = 1000;
    grid.ny = std::atoll(argv[a]) / grid.nx;
    if (grid.ny < 1) fail("at least 1000 points");
    std::printf(" blocks_%" PRId64 "=%.6f", grid.points(), seconds(grid, blocks(grid, ranks)));
    std::printf(" scattered_%" PRId64 "=%.6f", grid.points(), seconds(grid, scattered(grid, ranks)));
  }
  std::printf("\n");
}
