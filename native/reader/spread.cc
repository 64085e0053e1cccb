// SPDX-License-Identifier: Apache-2.0
// What differs between the ranks of a file (weir_spread.h): a list of the files, and a hash table
// of their places in it. Deviations of parts are combined as by T. F. Chan, G. H. Golub and
// R. J. LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, 1979.
#include "reader/spread.h"

#include <algorithm>
#include <memory>
#include <tuple>

#include "reader/handle.h"

namespace weir::reader {
namespace {

using Rows = Spread::Rows;

bool is_of_one_file(const weir_spread_row* a, const weir_spread_row* b) {
  return a->name == b->name && a->way == b->way;
}

// Hands each stretch of rows that belong together to `take`.
template <class Alike, class Take>
void each_group(const Rows& rows, Alike alike, Take take) {
  for (auto begin = rows.begin(); begin != rows.end();) {
    const auto end =
        std::find_if(begin, rows.end(), [&](const auto* one) { return !alike(*begin, one); });
    take(std::span(begin, end));
    begin = end;
  }
}

Rows chosen(std::span<const weir_spread_row> rows, int32_t counts) {
  Rows made;
  for (const weir_spread_row& one : rows) {
    if ((one.counts & counts) != 0) made.push_back(&one);
  }
  return made;
}

// One rank's sums.
struct OfRank {
  int64_t rank, ns, bytes;
};

// Mean, and squares of the distances to it.
std::pair<double, double> moments(const std::vector<OfRank>& ranks, int64_t OfRank::*figure) {
  int64_t sum = 0;
  for (const OfRank& one : ranks) add_to(sum, one.*figure);
  const double mean = double(sum) / double(ranks.size());
  double squares = 0;
  for (const OfRank& one : ranks) {
    const double apart = double(one.*figure) - mean;
    squares += apart * apart;
  }
  return {mean, squares};
}

weir_spread_file of_ranks(const std::vector<OfRank>& ranks) {
  const auto fastest = std::min_element(ranks.begin(), ranks.end(), [](auto& a, auto& b) {
    return std::tie(a.ns, a.rank) < std::tie(b.ns, b.rank);
  });
  const auto slowest = std::min_element(ranks.begin(), ranks.end(), [](auto& a, auto& b) {
    return std::tie(b.ns, a.rank) < std::tie(a.ns, b.rank);
  });
  const auto [mean_ns, squares_ns] = moments(ranks, &OfRank::ns);
  const auto [mean_bytes, squares_bytes] = moments(ranks, &OfRank::bytes);
  return {int64_t(ranks.size()), 0,          fastest->rank, fastest->ns, slowest->rank,
          slowest->ns,           mean_ns,    squares_ns,    mean_bytes,  squares_bytes,
          0,                     0};
}

void combine(double& mean, double& squares, int64_t count, double other_mean, double other_squares,
             int64_t others) {
  const double both =
      (mean * double(count) + other_mean * double(others)) / double(count + others);
  const double apart = mean - both, other_apart = other_mean - both;
  squares += other_squares + double(count) * (apart * apart) +
             double(others) * (other_apart * other_apart);
  mean = both;
}

// How many ranks of one node interleave. rows: of one file and node that have a range of bytes, by
// where it begins.
int64_t interleaved_in(std::span<const weir_spread_row* const> rows, std::vector<int32_t>& ranks) {
  const auto other = [&](const auto* one) { return one->rank != rows[0]->rank; };
  if (std::none_of(rows.begin(), rows.end(), other)) return 0;
  ranks.clear();
  int64_t before = rows[0]->begin;  // where all earlier ranges have ended
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool meets_next = i + 1 < rows.size() && rows[i + 1]->begin < rows[i]->end;
    if (rows[i]->begin < before || meets_next) ranks.push_back(rows[i]->rank);
    before = std::max(before, rows[i]->end);
  }
  std::sort(ranks.begin(), ranks.end());
  return std::unique(ranks.begin(), ranks.end()) - ranks.begin();
}

}  // namespace

void Spread::add(std::span<const weir_spread_row> rows) {
  add_ranks(chosen(rows, WEIR_SPREAD_RANKS));
  add_interleaved(chosen(rows, WEIR_SPREAD_INTERLEAVED));
}

void Spread::join(const weir_spread_file& one) {
  weir_spread_file& known = of(one.name, one.way);
  known.interleaved += one.interleaved;
  if (one.ranks == 0) return;
  if (known.ranks == 0) {
    const int64_t interleaved = known.interleaved;
    known = one;
    known.interleaved = interleaved;
    return;
  }
  combine(known.mean_ns, known.squares_ns, known.ranks, one.mean_ns, one.squares_ns, one.ranks);
  combine(known.mean_bytes, known.squares_bytes, known.ranks, one.mean_bytes, one.squares_bytes,
          one.ranks);
  known.ranks += one.ranks;
  if (std::tie(one.fastest_ns, one.fastest_rank) <
      std::tie(known.fastest_ns, known.fastest_rank)) {
    known.fastest_ns = one.fastest_ns;
    known.fastest_rank = one.fastest_rank;
  }
  if (std::tie(known.slowest_ns, one.slowest_rank) <
      std::tie(one.slowest_ns, known.slowest_rank)) {
    known.slowest_ns = one.slowest_ns;
    known.slowest_rank = one.slowest_rank;
  }
}

weir_spread_file& Spread::of(int32_t name, int32_t way) {
  const uint32_t next = uint32_t(files_.size());
  const uint32_t place = places_.find_or_add(
      weir::reader::hash_of(uint64_t(uint32_t(name)), uint64_t(way)), next,
      [&](uint32_t at) { return files_[at].name == name && files_[at].way == way; });
  if (place == next) {
    files_.push_back({});
    files_.back().name = name;
    files_.back().way = way;
  }
  return files_[place];
}

void Spread::add_ranks(Rows rows) {
  std::sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
    return std::tie(a->name, a->way, a->rank) < std::tie(b->name, b->way, b->rank);
  });
  std::vector<OfRank> ranks;
  each_group(rows, is_of_one_file, [&](auto its) {
    ranks.clear();
    for (const weir_spread_row* one : its) {
      if (ranks.empty() || ranks.back().rank != one->rank) ranks.push_back({one->rank, 0, 0});
      add_to(ranks.back().ns, one->ns);
      add_to(ranks.back().bytes, one->bytes);
    }
    weir_spread_file found = of_ranks(ranks);
    found.name = its[0]->name;
    found.way = its[0]->way;
    join(found);
  });
}

void Spread::add_interleaved(Rows rows) {
  std::erase_if(rows, [](const auto* one) { return one->end <= one->begin; });
  std::sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
    return std::tie(a->name, a->way, a->node, a->begin, a) <
           std::tie(b->name, b->way, b->node, b->begin, b);
  });
  const auto is_alike = [](const auto* a, const auto* b) {
    return is_of_one_file(a, b) && a->node == b->node;
  };
  std::vector<int32_t> ranks;
  each_group(rows, is_alike, [&](auto its) {
    const int64_t found = its.size() > 1 ? interleaved_in(its, ranks) : 0;
    if (found != 0) of(its[0]->name, its[0]->way).interleaved += found;
  });
}

void SpreadOfFile::add(std::span<weir_spread_row> rows) {
  std::vector<weir_spread_row> others;
  for (weir_spread_row& one : rows) {
    const bool is_apart =
        one.name >= 0 && uint64_t(one.name) < apart_.size() && apart_[uint64_t(one.name)] != 0;
    one.counts = WEIR_SPREAD_RANKS | WEIR_SPREAD_INTERLEAVED;
    if (is_apart) {
      kept_.push_back(one);
      continue;
    }
    if (std::binary_search(loose_.begin(), loose_.end(), one.rank)) {
      one.counts = WEIR_SPREAD_RANKS;
      kept_.push_back(one);
      one.counts = WEIR_SPREAD_INTERLEAVED;  // which ranks of one node do
    }
    others.push_back(one);
  }
  spread_.add(others);
}

}  // namespace weir::reader

struct weir_spread {
  weir::reader::Spread of;
};

using weir::reader::guarded;

WEIR_API weir_spread* weir_spread_create(void) {
  std::unique_ptr<weir_spread> made;
  guarded([&] { made = std::make_unique<weir_spread>(); });
  return made.release();
}

WEIR_API void weir_spread_destroy(weir_spread** spread) {
  delete *spread;
  *spread = nullptr;
}

WEIR_API int weir_spread_add(weir_spread* spread, const weir_spread_row* rows, uint64_t count) {
  return guarded([&] { spread->of.add({rows, count}); });
}

WEIR_API int weir_spread_join(weir_spread* spread, const weir_spread_file* files, uint64_t count) {
  return guarded([&] {
    for (uint64_t i = 0; i < count; ++i) spread->of.join(files[i]);
  });
}

WEIR_API const weir_spread_file* weir_spread_get(const weir_spread* spread, uint64_t* count) {
  *count = spread->of.files().size();
  return spread->of.files().data();
}
