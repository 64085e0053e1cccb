// SPDX-License-Identifier: Apache-2.0
// Reading back: one rank of each node reads a part of the record, in slabs, and scatters each slab
// to those who have points in it. Every byte is read once, whatever the number of ranks that wrote
// the file, and no rank holds more than a slab beside its own data.
#include <algorithm>
#include <cmath>

#include "output/cf/describe.h"
#include "output/core/trace.h"
#include "output/engine/convert.h"
#include "output/engine/declared.h"
#include "output/engine/getting.h"
#include "output/engine/target.h"
#include "output/engine/writer.h"
#include "output/format/reader.h"
#include "output/model/text.h"
#include "output/plan/cover.h"

namespace weir::output {

namespace {

constexpr int64_t kSlab = 8 << 20;

using Bytes = std::vector<char>;

std::vector<int64_t> lengths_of(const Catalogue& catalogue, const Field& field) {
  std::vector<int64_t> lengths;
  for (int axis : field.axes)
    lengths.push_back(
        static_cast<int64_t>(catalogue.axes[static_cast<size_t>(axis)].values.size()));
  const Grid& grid = catalogue.grid_of(field);
  if (!grid.one_dimensional()) lengths.push_back(grid.ny);
  lengths.push_back(grid.nx);
  return lengths;
}

std::string in_words(const std::vector<int64_t>& lengths) {
  std::string text;
  for (int64_t n : lengths) text += (text.empty() ? "" : " x ") + std::to_string(n);
  return text;
}

// Which dimensions a file has, and what brings them to those of the field.
std::string of_dimensions(const Found& found) {
  std::string names;
  for (const std::string& name : found.dimensions) names += (names.empty() ? "" : ", ") + name;
  if (names.empty()) return "";
  return "; the file's dimensions are " + names +
         (found.over_time ? " and a time in front" : ", and no time in front") +
         ": turn them with ncpdq -a, take one out with ncks -d and ncwa -a, or declare these";
}

bool is_real(Type type) { return type == WEIR_FLOAT32 || type == WEIR_FLOAT64; }

// Of the values that are read: unsigned integers become the next larger type.
Type type_read(const Found& found) {
  if (!found.is_unsigned) return found.type;
  return found.type == WEIR_INT8 ? WEIR_INT16 : found.type == WEIR_INT16 ? WEIR_INT32 : WEIR_INT64;
}

template <typename From, typename To>
void widen_as(const Bytes& from, Bytes& to, int64_t count) {
  const From* in = reinterpret_cast<const From*>(from.data());
  std::copy_n(in, count, reinterpret_cast<To*>(to.data()));
}

Bytes widened(Type type, const Bytes& from, int64_t count) {
  Bytes to(static_cast<size_t>(count) * size_of(type));
  if (type == WEIR_INT16) widen_as<uint8_t, int16_t>(from, to, count);
  if (type == WEIR_INT32) widen_as<uint16_t, int32_t>(from, to, count);
  if (type == WEIR_INT64) widen_as<uint32_t, int64_t>(from, to, count);
  return to;
}

// Values are converted as netCDF does. What has fractions becomes an integer only where the program
// has declared that its files are so.
Status check_type(const Field& field, const Found& found, const std::string& what) {
  const bool has_fractions = is_real(found.type) || found.packing;
  const Type type = type_read(found);
  if (type == field.type || type == field.file_type || is_real(field.type) || !has_fractions)
    return {};
  return {WEIR_E_FORMAT, what + " is of type " + (found.is_unsigned ? "u" : "") +
                             name_of(found.type) +
                             (found.packing ? " with scale_factor or add_offset" : "") +
                             " in the file, the field " + name_of(field.type) + " in memory and " +
                             name_of(field.file_type) +
                             " in files, which may cut fractions off; declare the field as float32 "
                             "or float64, or convert the file first (cdo nint)"};
}

Result<Wanted> look_up(Reader& reader, const Catalogue& catalogue, int index,
                       const std::string& path, int64_t record) {
  const Field& field = catalogue.fields[static_cast<size_t>(index)];
  Result<StreamFile> alone = describe_field(catalogue, index);
  if (!alone.ok()) return alone.status();
  Result<Found> found = reader.find(alone->file, alone->fields[0]);
  if (!found.ok()) return found.status();
  const std::vector<int64_t> expected = lengths_of(catalogue, field);
  const std::string what = path + ": variable '" + field.name + "'";
  if (found->lengths != expected) {
    return Status{WEIR_E_FORMAT, what + " has " + in_words(found->lengths) +
                                     " elements, the field " + in_words(expected) +
                                     of_dimensions(*found)};
  }
  WEIR_TRY(check_type(field, *found, what));
  WEIR_TRY(check_declared(reader, alone->file, alone->fields[0], *found, what));
  const int64_t chosen = record == -1 ? found->records - 1 : record;
  if (chosen < 0 || chosen >= found->records) {
    return Status{WEIR_E_ARGUMENT,
                  what + (found->records == 0 ? " has no records; write one first, or read "
                                                "another file"
                                              : " has no record " + std::to_string(record) +
                                                    " but " + std::to_string(found->records) +
                                                    ", counted from 0")};
  }
  Wanted wanted{chosen, type_read(*found), found->is_unsigned, found->packing, found->fills};
  wanted.places = places_of(reader, *found, catalogue.grid_of(field), chosen);
  return wanted;
}

// All runs of the pieces in the part, with their place in the part and in local memory, in
// elements.
template <typename Visit>
void each_piece(const ColumnShape& shape, const Part& part, const Pieces& pieces, Visit visit) {
  each_strip(shape, part, [&](const Strip& strip) {
    for (int64_t level = strip.level; level < strip.level + strip.levels; ++level) {
      pieces.each(strip.first, strip.last, [&](int64_t global, int64_t local, int64_t count) {
        visit(level * shape.points + global - part.first, level * pieces.points() + local, count);
      });
    }
  });
}

// What is missing has a value of the file's type: 1e20 of float32 is no 1e20 of float64.
bool maps_missing(const Wanted& wanted, const Field& field) {
  return wanted.fills.count > 0 && field.missing && wanted.type != field.type;
}

// The same where the types are: no other value may change by a bit.
template <typename T>
void map_missing_as(const Fills& fills, const Number& missing, Bytes& bytes) {
  const T here = missing.as<T>();
  if (std::all_of(fills.values, fills.values + fills.count,
                  [here](const Number& fill) { return fill.as<T>() == here; }))
    return;
  T* values = reinterpret_cast<T*>(bytes.data());
  for (size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    if (fills.has(values[i])) values[i] = here;
  }
}

void map_missing(const Wanted& wanted, const Field& field, Bytes& bytes) {
  const Fills& fills = wanted.fills;
  if (!field.missing || fills.count == 0 || wanted.type != field.type) return;
  switch (field.type) {
    case WEIR_FLOAT32: return map_missing_as<float>(fills, *field.missing, bytes);
    case WEIR_FLOAT64: return map_missing_as<double>(fills, *field.missing, bytes);
    case WEIR_INT32: return map_missing_as<int32_t>(fills, *field.missing, bytes);
    case WEIR_INT64: return map_missing_as<int64_t>(fills, *field.missing, bytes);
    case WEIR_INT16: return map_missing_as<int16_t>(fills, *field.missing, bytes);
    case WEIR_INT8: return map_missing_as<int8_t>(fills, *field.missing, bytes);
  }
}

// As CF says (section 8.1); what is missing becomes the field's missing value, else NaN.
Bytes unpacked(const Wanted& wanted, const Field& field, const Bytes& packed, int64_t count) {
  Bytes bytes(static_cast<size_t>(count) * sizeof(double));
  double* values = reinterpret_cast<double*>(bytes.data());
  int64_t none = 0;
  converter(wanted.type, WEIR_FLOAT64, ByteOrder::kNative)(packed.data(), values, count, {}, &none);
  const bool whole = !is_real(field.type);
  const double missing = field.missing && !whole ? field.missing->real : NAN;
  for (int64_t i = 0; i < count; ++i) {
    if (wanted.fills.has(values[i])) {
      values[i] = missing;
    } else if (wanted.packing) {
      const double value = values[i] * wanted.packing->scale + wanted.packing->offset;
      values[i] = whole ? std::nearbyint(value) : value;
    }
  }
  return bytes;
}

}  // namespace

void Session::choose_leaders(Getting* g) const {
  std::vector<int> nodes;
  for (size_t r = 0; r < setup_.topology.clients.size(); ++r) {
    const int node = setup_.topology.node_of[static_cast<size_t>(setup_.topology.clients[r])];
    if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) continue;
    nodes.push_back(node);
    if (static_cast<int>(r) == model_->rank()) g->leader = static_cast<int>(g->leaders.size());
    g->leaders.push_back(static_cast<int>(r));
  }
}

Status Session::open_get(const Catalogue& catalogue, const std::string& path, int64_t record,
                         Getting* g) const {
  choose_leaders(g);
  if (g->leader < 0) return {};
  Result<std::unique_ptr<Reader>> reader =
      open_whole(absolute_path(setup_.settings.directory, path));
  if (!reader.ok()) return reader.status();
  g->reader = std::move(*reader);
  Result<Wanted> wanted = look_up(*g->reader, catalogue, g->index, path, record);
  if (!wanted.ok()) return wanted.status();
  g->wanted = std::move(*wanted);
  return {};
}

Status Session::share_get(Getting* g) {
  const std::vector<ColumnShape> shapes = {g->shape};
  for (const std::vector<Part>& parts : share(shapes, static_cast<int>(g->leaders.size())))
    g->slabs.push_back(slabs(shapes, parts, kSlab));
  std::vector<Bytes> to(static_cast<size_t>(model_->size()));
  for (int leader : g->leaders) g->mine.encode(&to[static_cast<size_t>(leader)]);
  Result<std::vector<Bytes>> from = model_->exchange(std::move(to));
  if (!from.ok()) return from.status();
  for (size_t r = 0; r < from->size() && g->leader >= 0; ++r) {
    Result<Pieces> pieces = Pieces::decode((*from)[r]);
    if (!pieces.ok()) return pieces.status();
    g->of_rank.push_back(std::move(*pieces));
  }
  return {};
}

// A leader's slab, read and cut for each rank.
Status Session::read_slab(const Getting& g, const Part& slab, std::vector<Bytes>* to) const {
  const auto file_element =
                 static_cast<int64_t>(size_of(g.wanted.type)) / (g.wanted.is_unsigned ? 2 : 1),
             element = static_cast<int64_t>(size_of(g.field.type));
  Bytes bytes(static_cast<size_t>(slab.count * file_element));
  WEIR_TRY(g.reader->read(g.field.name, g.wanted.record, slab.first, slab.count, bytes.data()));
  if (g.wanted.is_unsigned) bytes = widened(g.wanted.type, bytes, slab.count);
  const Filling filling = Filling::of(g.field.missing, g.field.type);
  Faults lost;
  Type type = g.wanted.type;
  if (g.wanted.packing || maps_missing(g.wanted, g.field))
    bytes = unpacked(g.wanted, g.field, bytes, slab.count), type = WEIR_FLOAT64;
  else
    map_missing(g.wanted, g.field, bytes);
  const auto read_element = static_cast<int64_t>(size_of(type));
  const Convert convert = converter(type, g.field.type, ByteOrder::kNative);
  for (size_t r = 0; r < to->size(); ++r) {
    Bytes& cut = (*to)[r];
    each_piece(g.shape, slab, g.of_rank[r], [&](int64_t at, int64_t, int64_t count) {
      const size_t end = cut.size();
      cut.resize(end + static_cast<size_t>(count * element));
      int64_t first = 0;
      const int64_t n =
          convert(bytes.data() + at * read_element, cut.data() + end, count, filling, &first);
      if (n > 0) lost.add(n, slab.first + at + first, element_at(type, bytes.data(), at + first));
    });
  }
  if (lost.count == 0) return {};
  return {WEIR_E_VALUE, "field '" + g.field.name + "': " + std::to_string(lost.count) +
                            " values of the file are none that its type in memory, " +
                            name_of(g.field.type) + ", can hold (the first: element " +
                            std::to_string(lost.first) + " of the record, " +
                            number_text(lost.value) + "); declare the field with the type of "
                            "the file's values, " +
                            name_of(g.wanted.packing ? type : g.wanted.type) +
                            ", or change them there"};
}

Status Session::get(const Catalogue& catalogue, int field, const std::string& path, int64_t record,
                    void* data) {
  if (!broken_.ok()) return broken_;
  const Decomposition& mine = catalogue.decompositions[static_cast<size_t>(
      catalogue.fields[static_cast<size_t>(field)].decomposition)];
  const int64_t bytes =
      mine.points() * catalogue.levels_of(catalogue.fields[static_cast<size_t>(field)]) *
      static_cast<int64_t>(size_of(catalogue.fields[static_cast<size_t>(field)].type));
  Traced traced(Event::kGet, {}, bytes, path);
  return traced.ended(bring(catalogue, field, path, record, data));
}

Status Session::scatter(const Getting& g, char* into) {
  const auto element = static_cast<int64_t>(size_of(g.field.type));
  size_t rounds = 0;
  for (const std::vector<Part>& parts : g.slabs) rounds = std::max(rounds, parts.size());
  for (size_t round = 0; round < rounds; ++round) {
    std::vector<Bytes> to(static_cast<size_t>(model_->size()));
    Status mine;
    if (g.leader >= 0 && round < g.slabs[static_cast<size_t>(g.leader)].size()) {
      mine = read_slab(g, g.slabs[static_cast<size_t>(g.leader)][round], &to);
    }
    WEIR_TRY(model_->agree(mine));
    Result<std::vector<Bytes>> from = model_->exchange(std::move(to));
    if (!from.ok()) return from.status();
    for (size_t l = 0; l < g.leaders.size(); ++l) {
      if (round >= g.slabs[l].size()) continue;
      const char* at = (*from)[static_cast<size_t>(g.leaders[l])].data();
      each_piece(g.shape, g.slabs[l][round], g.mine, [&](int64_t, int64_t local, int64_t count) {
        std::copy_n(at, count * element, into + local * element);
        at += count * element;
      });
    }
  }
  return {};
}

Status Session::bring(const Catalogue& catalogue, int field, const std::string& path,
                      int64_t record, void* data) {
  Getting g{.index = field, .field = catalogue.fields[static_cast<size_t>(field)]};
  const Decomposition& d = catalogue.decompositions[static_cast<size_t>(g.field.decomposition)];
  Result<Pieces> pieces = Pieces::of(d, catalogue.grid_of(g.field));
  if (pieces.ok()) g.mine = std::move(*pieces);
  Status here = pieces.status();
  if (here.ok() && data == nullptr && g.mine.points() > 0) {
    here = {WEIR_E_ARGUMENT,
            "field '" + g.field.name + "': the array of a rank is null, or was refused there"};
  }
  WEIR_TRY(model_->agree(here));
  if (!defined_) {
    WEIR_TRY(check_cover(*model_, g.mine, catalogue.grid_of(g.field).points(),
                         catalogue.grid_of(g.field).nx, "decomposition '" + d.name + "'"));
  }
  WEIR_TRY(model_->agree(open_get(catalogue, path, record, &g)));
  WEIR_TRY(check_places(catalogue, path, g));
  g.shape = {catalogue.levels_of(g.field), catalogue.grid_of(g.field).points(),
             static_cast<int64_t>(size_of(g.field.type)), 1};
  WEIR_TRY(share_get(&g));
  const bool halo = d.block && d.halo.west + d.halo.east + d.halo.south + d.halo.north > 0;
  Bytes inner(halo ? static_cast<size_t>(g.shape.levels * g.mine.points() *
                                         static_cast<int64_t>(size_of(g.field.type)))
                   : 0);
  WEIR_TRY(scatter(g, halo ? inner.data() : static_cast<char*>(data)));
  if (halo) put_inside_halo(catalogue, field, inner.data(), data);
  return {};
}

void Session::put_inside_halo(const Catalogue& catalogue, int field, const char* inner,
                              void* data) {
  const Field& f = catalogue.fields[static_cast<size_t>(field)];
  const Decomposition& d = catalogue.decompositions[static_cast<size_t>(f.decomposition)];
  const auto element = static_cast<int64_t>(size_of(f.type));
  const int64_t row = (d.ni + d.halo.west + d.halo.east) * element, kept = d.ni * element;
  for (int64_t level = 0; level < catalogue.levels_of(f); ++level) {
    for (int64_t j = 0; j < d.nj; ++j, inner += kept) {
      const int64_t at = (level * (d.nj + d.halo.south + d.halo.north) + d.halo.south + j) * row +
                         d.halo.west * element;
      std::copy_n(inner, kept, static_cast<char*>(data) + at);
    }
  }
}

}  // namespace weir::output
