// SPDX-License-Identifier: Apache-2.0
// Catalogues for tests: a small one, and random ones.
#pragma once

#include <random>

#include "output/model/catalogue.h"

namespace weir::output {

inline Catalogue small_catalogue() {
  Catalogue c;
  c.attributes = {{"title", "a test"}, {"version", 3.0}};
  Grid grid;
  grid.name = "atmosphere";
  grid.nx = 4;
  grid.ny = 3;
  grid.x = {0, 90, 180, 270};
  grid.y = {-45, 0, 45};
  c.grids.push_back(grid);
  Decomposition all;
  all.name = "blocks";
  all.grid = 0;
  all.ni = 4;
  all.nj = 3;
  c.decompositions.push_back(all);
  c.axes.push_back({"level", "hPa", {1000, 850, 500}, {}, {{"positive", "down"}}});
  Field field;
  field.name = "t";
  field.decomposition = 0;
  field.axes = {0};
  field.attributes = {{"units", "K"}};
  field.missing = -999;
  field.chunk = {1, 3, 4};
  c.fields.push_back(field);
  field.name = "ps";
  field.axes = {};
  field.chunk = {};
  c.fields.push_back(field);
  Stream stream;
  stream.name = "history";
  stream.path = "history_%Y%m%d%H%M%S.nc";
  stream.rotation = 1;
  stream.fields = {{0, WEIR_INSTANT, {}, {}, {{"paramId", 130.0, "o.toml:3:1"}}},
                   {1, WEIR_MEAN, Compression{Compression::Kind::kZstd, 3}, {3, 4}, {}}};
  stream.keys = {{"centre", std::string("ecmf"), "o.toml:2:1"}};
  stream.hints = {{"striping_factor", "16"}};
  c.streams.push_back(stream);
  return c;
}

// Everything that the structure allows, whether or not the checks of definitions would.
class RandomCatalogue {
 public:
  explicit RandomCatalogue(uint64_t seed) : random_(seed) {}

  Catalogue make() {
    Catalogue c;
    c.reference = word();
    c.calendar = word();
    c.attributes = attributes();
    for (int n = below(4) + 1; n > 0; n--) c.grids.push_back(grid());
    for (int n = below(4) + 1; n > 0; n--) {
      Decomposition d;
      d.name = word();
      d.grid = below(static_cast<int>(c.grids.size()));
      c.decompositions.push_back(d);
    }
    for (int n = below(3) + 1; n > 0; n--)
      c.axes.push_back({word(), word(), numbers(), numbers(), attributes()});
    for (int n = below(6) + 1; n > 0; n--) c.fields.push_back(field(c));
    for (int n = below(4); n > 0; n--) c.streams.push_back(stream(c));
    return c;
  }
  int below(int limit) { return static_cast<int>(random_() % static_cast<uint64_t>(limit)); }

 private:
  std::string word() {
    std::string text;
    for (int n = below(12); n > 0; n--) text += static_cast<char>(below(256));
    return text;
  }
  std::vector<double> numbers() {
    std::vector<double> values;
    for (int n = below(5); n > 0; n--) values.push_back(below(1000) / 7.0 - 60);
    return values;
  }
  Attributes attributes() {
    Attributes all;
    for (int n = below(4); n > 0; n--) {
      switch (below(3)) {
        case 0: all.push_back({word(), word()}); break;
        case 1: all.push_back({word(), numbers()}); break;
        default: all.push_back({word(), below(1000) / 3.0});
      }
    }
    return all;
  }
  std::optional<Compression> compression() {
    if (below(2)) return std::nullopt;
    return Compression{static_cast<Compression::Kind>(below(3)), below(20)};
  }
  Grid grid() {
    Grid g;
    g.name = word();
    g.kind = static_cast<GridKind>(below(5));
    g.nx = below(100);
    g.ny = below(100);
    g.x = numbers();
    g.y = numbers();
    g.mapping = {word(), attributes()};
    return g;
  }
  Field field(const Catalogue& c) {
    Field f;
    f.name = word();
    f.type = static_cast<Type>(below(6));
    f.file_type = static_cast<Type>(below(6));
    f.decomposition = below(static_cast<int>(c.decompositions.size()));
    for (int n = below(4); n > 0; n--) f.axes.push_back(below(static_cast<int>(c.axes.size())));
    f.attributes = attributes();
    if (below(2)) f.missing = below(100);
    f.compression = compression();
    for (int n = below(3); n > 0; n--) f.chunk.push_back(below(10));
    return f;
  }
  Stream stream(const Catalogue& c) {
    Stream s;
    s.name = word();
    s.path = word();
    s.format = word();
    s.every_s = below(100) / 3.0;
    s.every_steps = below(100);
    s.rotation = below(5);
    s.period = static_cast<Period>(below(4));
    s.existing = static_cast<Existing>(below(3));
    for (int n = below(5); n > 0; n--) {
      s.fields.push_back({below(static_cast<int>(c.fields.size())),
                          static_cast<weir_operation>(below(5)),
                          compression(),
                          {},
                          {}});
    }
    for (int n = below(3); n > 0; n--) s.hints.emplace_back(word(), word());
    s.compression = compression();
    if (below(2)) s.rounding = Rounding{below(60), below(100) / 99.0};
    return s;
  }

  std::mt19937_64 random_;
};

}  // namespace weir::output
