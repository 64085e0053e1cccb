// SPDX-License-Identifier: Apache-2.0
#include "output/plan/cover.h"

#include <string.h>

namespace weir::output {

namespace {

struct Stretch {
  int64_t first, count;
};

// What one rank found in its part; -1: none.
struct Findings {
  int64_t missing = 0, doubled = 0, first_missing = -1, first_doubled = -1, ranks[2] = {-1, -1};
};

int64_t part_begin(int64_t points, int rank, int size) {
  return points / size * rank + std::min<int64_t>(rank, points % size);
}

int part_of(int64_t index, int64_t points, int size) {
  const int64_t share = points / size, longer = (share + 1) * (points % size);
  return static_cast<int>(index < longer
                              ? index / (share + 1)
                              : points % size + (index - longer) / std::max<int64_t>(share, 1));
}

std::vector<std::vector<char>> by_part(const Pieces& mine, int64_t points, int size) {
  std::vector<std::vector<char>> to(static_cast<size_t>(size));
  mine.each(0, points, [&](int64_t global, int64_t, int64_t count) {
    for (int64_t at = global; at < global + count;) {
      const int part = part_of(at, points, size);
      const Stretch s{at, std::min(global + count, part_begin(points, part + 1, size)) - at};
      const char* bytes = reinterpret_cast<const char*>(&s);
      to[part].insert(to[part].end(), bytes, bytes + sizeof s);
      at += s.count;
    }
  });
  return to;
}

std::vector<Stretch> stretches(const std::vector<char>& bytes) {
  std::vector<Stretch> all(bytes.size() / sizeof(Stretch));
  memcpy(static_cast<void*>(all.data()), bytes.data(), all.size() * sizeof(Stretch));
  return all;
}

Findings look(const std::vector<std::vector<char>>& from, int64_t begin, int64_t end) {
  Findings found;
  std::vector<bool> seen(static_cast<size_t>(end - begin));
  for (const std::vector<char>& bytes : from) {
    for (const Stretch& s : stretches(bytes)) {
      for (int64_t i = s.first; i < s.first + s.count; ++i) {
        if (seen[static_cast<size_t>(i - begin)]) {
          ++found.doubled;
          if (found.first_doubled < 0 || i < found.first_doubled) found.first_doubled = i;
        }
        seen[static_cast<size_t>(i - begin)] = true;
      }
    }
  }
  for (int64_t i = begin; i < end; ++i) {
    if (seen[static_cast<size_t>(i - begin)]) continue;
    if (found.missing++ == 0) found.first_missing = i;
  }
  if (found.first_doubled < 0) return found;
  int claims = 0;
  for (size_t r = 0; r < from.size(); ++r) {
    for (const Stretch& s : stretches(from[r])) {
      if (claims < 2 && s.first <= found.first_doubled && found.first_doubled < s.first + s.count) {
        found.ranks[claims++] = static_cast<int64_t>(r);
      }
    }
  }
  return found;
}

Findings all_of(const std::vector<std::vector<char>>& parts) {
  Findings all;
  for (const std::vector<char>& bytes : parts) {
    Findings f;
    memcpy(&f, bytes.data(), sizeof f);
    if (all.first_missing < 0) all.first_missing = f.first_missing;
    if (all.first_doubled < 0 && f.first_doubled >= 0) {
      all.first_doubled = f.first_doubled;
      memcpy(all.ranks, f.ranks, sizeof all.ranks);
    }
    all.missing += f.missing;
    all.doubled += f.doubled;
  }
  return all;
}

std::string place(int64_t index, int64_t nx, int64_t points) {
  std::string text = std::to_string(index);
  if (nx < points)
    text += ", that is i = " + std::to_string(index % nx) + ", j = " + std::to_string(index / nx);
  return text;
}

std::string in_words(const Findings& f, int64_t nx, int64_t points) {
  std::string text;
  if (f.missing > 0) {
    text = std::to_string(f.missing) + " of " + std::to_string(points) +
           " points belong to no rank (the first: " + place(f.first_missing, nx, points) + ")";
  }
  if (f.doubled > 0) {
    text += (text.empty() ? "" : "; ") + std::to_string(f.doubled) +
            " claims are doubled (the first: " + place(f.first_doubled, nx, points) +
            ", claimed by ";
    text += f.ranks[0] == f.ranks[1] ? "rank " + std::to_string(f.ranks[0]) + " twice)"
                                     : "ranks " + std::to_string(f.ranks[0]) + " and " +
                                           std::to_string(f.ranks[1]) + ")";
  }
  return text;
}

}  // namespace

Status check_cover(Team& team, const Pieces& mine, int64_t points, int64_t nx,
                   const std::string& what) {
  Result<std::vector<std::vector<char>>> from = team.exchange(by_part(mine, points, team.size()));
  if (!from.ok()) return from.status();
  const Findings here = look(*from, part_begin(points, team.rank(), team.size()),
                             part_begin(points, team.rank() + 1, team.size()));
  Result<std::pair<int64_t, int>> worst = team.maximum(here.missing + here.doubled);
  if (!worst.ok()) return worst.status();
  if (worst->first == 0) return {};
  const char* bytes = reinterpret_cast<const char*>(&here);
  Result<std::vector<std::vector<char>>> parts = team.gather({bytes, sizeof here}, 0);
  if (!parts.ok()) return parts.status();
  std::vector<char> text;
  if (team.rank() == 0) {
    const std::string words = in_words(all_of(*parts), nx, points);
    text.assign(words.begin(), words.end());
  }
  WEIR_TRY(team.broadcast(text, 0));
  return {WEIR_E_DECOMPOSITION, what + ": " + std::string(text.begin(), text.end()) +
                                    "; all ranks together must cover the grid exactly once"};
}

}  // namespace weir::output
