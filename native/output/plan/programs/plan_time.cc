// SPDX-License-Identifier: Apache-2.0
// weir-plan-time POINTS RANKS [KIND]: processor seconds for the plan of a grid of so many points,
// which all ranks share, without MPI: the ranks are threads of this process. KIND: block, rows,
// cyclic (each point another rank than its neighbour), scattered (and in any order); without one:
// all. "ranks" is the work of all of them together, "owner" that of the one that writes and so
// knows everybody's part.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <random>
#include <string>

#include "output/format/team_of_threads.h"
#include "output/plan/cover.h"
#include "output/plan/share.h"

namespace weir::output {
namespace {

constexpr int64_t kLevels = 10, kSlabBytes = 4 << 20;

double processor_s() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

Decomposition block(const Grid& grid, int rank, int ranks, bool rows) {
  int columns = 1;
  for (int c = 1; c * c <= ranks && !rows; ++c) columns = ranks % c == 0 ? c : columns;
  const int lines = ranks / columns, i = rank % columns, j = rank / columns;
  Decomposition d;
  d.i0 = grid.nx * i / columns, d.ni = grid.nx * (i + 1) / columns - d.i0;
  d.j0 = grid.ny * j / lines, d.nj = grid.ny * (j + 1) / lines - d.j0;
  return d;
}

std::vector<Decomposition> decompositions(const Grid& grid, int ranks, const std::string& kind) {
  std::vector<Decomposition> all(static_cast<size_t>(ranks));
  if (kind == "block" || kind == "rows") {
    for (int r = 0; r < ranks; ++r)
      all[static_cast<size_t>(r)] = block(grid, r, ranks, kind == "rows");
    return all;
  }
  for (int64_t i = 0; i < grid.points(); ++i) {
    const auto mixed = static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15ULL >> 32;
    const auto rank = kind == "cyclic" ? static_cast<uint64_t>(i) % static_cast<uint64_t>(ranks)
                                       : mixed % static_cast<uint64_t>(ranks);
    all[rank].indices.push_back(i);
  }
  std::mt19937_64 rng(7);
  for (Decomposition& d : all) {
    d.block = false;
    if (kind == "scattered") std::shuffle(d.indices.begin(), d.indices.end(), rng);
  }
  return all;
}

// What an owner does with the ranks' parts at the end of definitions, when it sees none of their
// memory.
Status meet(const std::vector<std::vector<char>>& introductions, const ColumnShape& column,
            int64_t* memory_bytes, int64_t* staging_bytes) {
  std::vector<Pieces> views;
  for (const std::vector<char>& bytes : introductions) {
    Result<Pieces> pieces = Pieces::decode(bytes);
    if (!pieces.ok()) return pieces.status();
    *memory_bytes += pieces->memory_bytes();
    views.push_back(std::move(*pieces));
  }
  for (const Part& slab : slabs({column}, share({column}, 1)[0], kSlabBytes)) {
    int64_t bytes = 0;
    for (const Pieces& pieces : views) {
      each_strip(column, slab, [&](const Strip& strip) {
        const auto [lo, hi] = pieces.bounds(strip.first, strip.last);
        bytes += strip.levels * (hi - lo) * column.element_bytes;
      });
    }
    *staging_bytes = std::max(*staging_bytes, bytes);
  }
  return {};
}

Status time_plan(const Grid& grid, int ranks, const std::string& kind) {
  const std::vector<Decomposition> all = decompositions(grid, ranks, kind);
  std::vector<Pieces> pieces(all.size());
  std::vector<Status> found(all.size());
  const double began = processor_s();
  TeamOfThreads team(ranks);
  team.run([&](Team& mine) {
    const auto r = static_cast<size_t>(mine.rank());
    Result<Pieces> made = Pieces::of(all[r], grid);
    if (made.ok()) pieces[r] = std::move(*made);
    found[r] =
        made.ok() ? check_cover(mine, pieces[r], grid.points(), grid.nx, kind) : made.status();
  });
  for (const Status& s : found) WEIR_TRY(s);
  std::vector<std::vector<char>> introductions(all.size());
  for (size_t r = 0; r < all.size(); ++r) pieces[r].encode(&introductions[r]);
  const double reported = processor_s();
  int64_t memory_bytes = 0, staging_bytes = 0;
  WEIR_TRY(meet(introductions, {kLevels, grid.points(), 4, 1}, &memory_bytes, &staging_bytes));
  const double met = processor_s();
  printf(
      "%-9s %10lld points %4d ranks: ranks %.3f s, owner %.3f s, plan %lld bytes, staging %lld "
      "bytes\n",
      kind.c_str(), static_cast<long long>(grid.points()), ranks, reported - began, met - reported,
      static_cast<long long>(memory_bytes), static_cast<long long>(staging_bytes));
  return {};
}

}  // namespace
}  // namespace weir::output

int main(int argc, char** argv) {
  using namespace weir::output;
  if (argc < 3 || atoll(argv[1]) < 1 || atoi(argv[2]) < 1) {
    fprintf(stderr, "weir-plan-time POINTS RANKS [block|rows|cyclic|scattered]\n");
    return 2;
  }
  Grid grid;
  grid.name = "grid";
  grid.ny = 1000;
  grid.nx = std::max<int64_t>(atoll(argv[1]) / grid.ny, 1);
  for (const char* kind : {"block", "rows", "cyclic", "scattered"}) {
    if (argc > 3 && std::string(argv[3]) != kind) continue;
    if (Status s = time_plan(grid, atoi(argv[2]), kind); !s.ok()) {
      fprintf(stderr, "%s: %s\n", kind, s.message().c_str());
      return 1;
    }
  }
  return 0;
}
