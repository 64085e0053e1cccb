// SPDX-License-Identifier: Apache-2.0
// Pieces, sharing and slabs against the plainest way to compute them; random cases print their
// seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "output/format/team_of_threads.h"
#include "output/plan/cover.h"
#include "output/plan/pieces.h"
#include "output/plan/share.h"

namespace weir::output {
namespace {

using Rng = std::mt19937_64;

int64_t below(Rng& rng, int64_t n) {
  return static_cast<int64_t>(rng() % static_cast<uint64_t>(n));
}

Grid grid_of(int64_t nx, int64_t ny) {
  Grid grid;
  grid.name = "g";
  grid.nx = nx;
  grid.ny = ny;
  return grid;
}

// Local place by global index, from the definition of a decomposition.
std::map<int64_t, int64_t> oracle(const Decomposition& d, const Grid& grid) {
  std::map<int64_t, int64_t> local;
  for (int64_t k = 0; k < d.points(); ++k) {
    local[d.block ? (d.j0 + k / d.ni) * grid.nx + d.i0 + k % d.ni
                  : d.indices[static_cast<size_t>(k)]] = k;
  }
  return local;
}

Decomposition random_decomposition(Rng& rng, const Grid& grid) {
  Decomposition d;
  d.block = rng() % 2 == 0;
  if (d.block) {
    d.i0 = below(rng, grid.nx), d.ni = below(rng, grid.nx - d.i0 + 1);
    d.j0 = below(rng, grid.ny), d.nj = below(rng, grid.ny - d.j0 + 1);
    if (rng() % 4 == 0) d.i0 = 0, d.ni = grid.nx;
    return d;
  }
  for (int64_t i = 0; i < grid.points(); ++i) {
    if (rng() % 3 != 0) d.indices.push_back(i);
  }
  if (rng() % 2 == 0) std::shuffle(d.indices.begin(), d.indices.end(), rng);
  return d;
}

TEST(Pieces, have_the_points_of_the_decomposition_in_any_range_before_and_after_coding) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  for (int round = 0; round < 400; ++round) {
    const Grid grid = grid_of(1 + below(rng, 12), 1 + below(rng, 12));
    const Decomposition d = random_decomposition(rng, grid);
    Result<Pieces> made = Pieces::of(d, grid);
    ASSERT_TRUE(made.ok()) << made.status().message();
    std::vector<char> bytes;
    made->encode(&bytes);
    Result<Pieces> pieces = Pieces::decode(bytes);
    ASSERT_TRUE(pieces.ok());
    const std::map<int64_t, int64_t> local = oracle(d, grid);
    const int64_t first = below(rng, grid.points()),
                  last = first + below(rng, grid.points() - first + 1);
    std::map<int64_t, int64_t> seen;
    int64_t before = -1;
    const auto [lo, hi] = pieces->bounds(first, last);
    pieces->each(first, last, [&](int64_t global, int64_t at, int64_t count) {
      EXPECT_GT(global, before);
      before = global + count - 1;
      EXPECT_LE(lo, at);
      EXPECT_LE(at + count, hi);
      for (int64_t k = 0; k < count; ++k) seen[global + k] = at + k;
    });
    const std::map<int64_t, int64_t> expected(local.lower_bound(first), local.lower_bound(last));
    EXPECT_EQ(seen, expected);
    EXPECT_EQ(lo == hi, expected.empty());
  }
}

TEST(Pieces, outside_of_the_grid_are_refused_by_name) {
  Decomposition d;
  d.name = "mine";
  d.block = false;
  d.indices = {3, 40};
  Result<Pieces> pieces = Pieces::of(d, grid_of(5, 8));
  ASSERT_FALSE(pieces.ok());
  EXPECT_NE(pieces.status().message().find("index 40 at place 1"), std::string::npos)
      << pieces.status().message();
}

TEST(Pieces, that_came_damaged_are_refused) {
  Decomposition d;
  d.block = false;
  d.indices = {1, 3};
  std::vector<char> bytes;
  Pieces::of(d, grid_of(5, 1))->encode(&bytes);
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(Pieces::decode({bytes.data(), n}).ok()) << n;
}

TEST(Cover, names_the_first_missing_and_doubled_points) {
  const std::unique_ptr<Team> team = lone_team();
  Decomposition d;
  d.block = false;
  d.indices = {0, 1, 2, 4, 5, 5, 6, 7, 9};
  Status status = check_cover(*team, *Pieces::of(d, grid_of(5, 2)), 10, 5, "decomposition 'd'");
  EXPECT_EQ(status.code(), WEIR_E_DECOMPOSITION);
  EXPECT_NE(status.message().find(
                "2 of 10 points belong to no rank (the first: 3, that is i = 3, j = 0)"),
            std::string::npos)
      << status.message();
  EXPECT_NE(
      status.message().find(
          "1 claims are doubled (the first: 5, that is i = 0, j = 1, claimed by rank 0 twice)"),
      std::string::npos)
      << status.message();
  d.indices = {3, 0, 1, 2, 4, 9, 8, 7, 6, 5};
  EXPECT_TRUE(check_cover(*team, *Pieces::of(d, grid_of(5, 2)), 10, 5, "").ok());
}

// Points dealt to 64 ranks by hash, each rank's in any order: fine, and with one index of rank 40
// claimed by rank 5 instead of its own.
TEST(Cover, of_sixty_four_ranks_is_the_same_on_all_of_them) {
  constexpr int kRanks = 64;
  const Grid grid = grid_of(1000, 200);
  std::vector<Decomposition> all(kRanks);
  for (int64_t i = 0; i < grid.points(); ++i)
    all[(static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15ULL >> 32) % kRanks].indices.push_back(i);
  Rng rng(11);
  for (Decomposition& d : all) {
    d.block = false;
    std::shuffle(d.indices.begin(), d.indices.end(), rng);
  }
  const auto checked = [&] {
    std::vector<Status> found(kRanks);
    TeamOfThreads team(kRanks);
    team.run([&](Team& mine) {
      const auto r = static_cast<size_t>(mine.rank());
      found[r] =
          check_cover(mine, *Pieces::of(all[r], grid), grid.points(), grid.nx, "decomposition 'd'");
    });
    return found;
  };
  for (const Status& s : checked()) EXPECT_TRUE(s.ok()) << s.message();
  const int64_t missing = all[5].indices[0], doubled = all[40].indices[0];
  all[5].indices[0] = doubled;
  for (const Status& s : checked()) {
    EXPECT_EQ(s.code(), WEIR_E_DECOMPOSITION);
    EXPECT_NE(s.message().find("1 of 200000 points belong to no rank (the first: " +
                               std::to_string(missing) + ","),
              std::string::npos)
        << s.message();
    EXPECT_NE(s.message().find("1 claims are doubled (the first: " + std::to_string(doubled) + ","),
              std::string::npos)
        << s.message();
    EXPECT_NE(s.message().find("claimed by ranks 5 and 40)"), std::string::npos) << s.message();
  }
}

std::vector<ColumnShape> random_columns(Rng& rng) {
  std::vector<ColumnShape> columns(static_cast<size_t>(1 + below(rng, 6)));
  for (ColumnShape& c : columns) {
    c.levels = 1 + below(rng, 7);
    c.points = 1 + below(rng, 50);
    c.element_bytes = 1 << below(rng, 4);
    c.granule = rng() % 2 == 0   ? 1
                : rng() % 2 == 0 ? c.points
                                 : 1 + below(rng, c.points * c.levels);
  }
  return columns;
}

// Every element exactly once, in order, cut at granules only.
void expect_all(const std::vector<ColumnShape>& columns, const std::vector<Part>& parts) {
  size_t column = 0;
  int64_t at = 0;
  for (const Part& p : parts) {
    ASSERT_EQ(p.column, static_cast<int>(column));
    ASSERT_EQ(p.first, at);
    ASSERT_GT(p.count, 0);
    EXPECT_EQ(p.first % columns[column].granule, 0);
    at += p.count;
    if (at == columns[column].levels * columns[column].points) ++column, at = 0;
  }
  EXPECT_EQ(column, columns.size());
}

TEST(Share, gives_every_element_once_cut_at_granules_and_slabs_keep_their_limit) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  for (int round = 0; round < 2000; ++round) {
    const std::vector<ColumnShape> columns = random_columns(rng);
    const int owners = 1 + static_cast<int>(below(rng, 9));
    const int64_t limit = 1 + below(rng, 400);
    std::vector<Part> all, cut;
    for (const std::vector<Part>& parts : share(columns, owners)) {
      all.insert(all.end(), parts.begin(), parts.end());
      for (const Part& slab : slabs(columns, parts, limit)) {
        const ColumnShape& c = columns[static_cast<size_t>(slab.column)];
        EXPECT_LE(slab.count, std::max(c.granule, limit / c.element_bytes));
        cut.push_back(slab);
      }
    }
    expect_all(columns, all);
    expect_all(columns, cut);
    for (const Part& slab : cut) {
      int64_t elements = 0;
      const ColumnShape& c = columns[static_cast<size_t>(slab.column)];
      each_strip(c, slab, [&](const Strip& s) {
        EXPECT_EQ((s.level * c.points) + s.first, slab.first + elements);
        elements += s.levels * (s.last - s.first);
      });
      EXPECT_EQ(elements, slab.count);
    }
    if (testing::Test::HasFailure()) break;
  }
}

TEST(Share, is_even_when_cuts_are_free) {
  const std::vector<ColumnShape> columns(20, ColumnShape{40, 256 * 320, 4, 1});
  for (const std::vector<Part>& parts : share(columns, 7)) {
    int64_t bytes = 0;
    for (const Part& p : parts) bytes += p.count * 4;
    EXPECT_NEAR(static_cast<double>(bytes), 20.0 * 40 * 256 * 320 * 4 / 7,
                256 * 320 * 4.0 * 40 / 8 * 2);
  }
}

// Ten million scattered points on 64 ranks: the work grows with the points, not faster. The bound
// on counts is what can be asserted: bytes of the plan, 16 for each run.
TEST(Pieces, of_ten_million_scattered_points_take_sixteen_bytes_each) {
  const int64_t points = 10'000'000, ranks = 64;
  Rng rng(7);
  std::vector<int64_t> indices(static_cast<size_t>(points / ranks));
  for (int64_t& i : indices) i = below(rng, points / 2) * 2;
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  std::shuffle(indices.begin(), indices.end(), rng);
  Decomposition d;
  d.block = false;
  d.indices = indices;
  Result<Pieces> pieces = Pieces::of(d, grid_of(points, 1));
  ASSERT_TRUE(pieces.ok());
  EXPECT_LE(pieces->memory_bytes(), static_cast<int64_t>(indices.size() * 16 + 256));
  int64_t seen = 0;
  pieces->each(0, points, [&](int64_t global, int64_t local, int64_t count) {
    EXPECT_EQ(indices[static_cast<size_t>(local)], global);
    seen += count;
  });
  EXPECT_EQ(seen, static_cast<int64_t>(indices.size()));
}

}  // namespace
}  // namespace weir::output
