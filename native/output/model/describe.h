// SPDX-License-Identifier: Apache-2.0
// The one description of what a catalogue consists of, for everything that goes through all of it:
// the encoder, the decoder, the comparison. An archive is called with each part's name and the
// part; enumerations come with their greatest value. What is each rank's own is not described.
#pragma once

#include "output/model/catalogue.h"

namespace weir::output {

template <typename Archive>
void describe(Archive& a, Attribute& attribute) {
  a("name", attribute.name);
  a("value", attribute.value);
}

template <typename Archive>
void describe(Archive& a, FormatKey& key) {
  a("name", key.name);
  a("value", key.value);
  a("place", key.place);
}

template <typename Archive>
void describe(Archive& a, Grid& grid) {
  a("name", grid.name);
  a.choice("kind", grid.kind, GridKind::kUnstructured);
  a("nx", grid.nx);
  a("ny", grid.ny);
  a("x", grid.x);
  a("y", grid.y);
  a("decomposition of lon and lat", grid.lonlat_decomposition);
  a("grid mapping", grid.mapping.name);
  a.list("attribute of the grid mapping", grid.mapping.attributes);
}

template <typename Archive>
void describe(Archive& a, Decomposition& decomposition) {
  a("name", decomposition.name);
  a("grid", decomposition.grid);
}

template <typename Archive>
void describe(Archive& a, Axis& axis) {
  a("name", axis.name);
  a("units", axis.units);
  a("values", axis.values);
  a("bounds", axis.bounds);
  a.list("attribute", axis.attributes);
}

template <typename Archive>
void describe(Archive& a, Compression& compression) {
  a.choice("compression", compression.kind, Compression::Kind::kZstd);
  a("compression's level", compression.level);
}

template <typename Archive>
void describe(Archive& a, Rounding& rounding) {
  a("bits of the mantissa", rounding.bits);
  a("share of the information", rounding.information);
}

template <typename Archive>
void describe(Archive& a, Field& field) {
  a("name", field.name);
  a.choice("type", field.type, WEIR_INT8);
  a.choice("type in files", field.file_type, WEIR_INT8);
  a("decomposition", field.decomposition);
  a("axes", field.axes);
  a.list("attribute", field.attributes);
  a("missing value", field.missing);
  a("compression", field.compression);
  a("chunk", field.chunk);
}

template <typename Archive>
void describe(Archive& a, StreamField& member) {
  a("number", member.field);
  a("name in files", member.name);
  a.choice("operation", member.operation, WEIR_ACCUMULATE);
  a("compression", member.compression);
  a("rounding", member.rounding);
  a("chunk", member.chunk);
  a.list("key of the format", member.keys);
}

template <typename Archive>
void describe(Archive& a, std::pair<std::string, std::string>& hint) {
  a("name", hint.first);
  a("value", hint.second);
}

template <typename Archive>
void describe(Archive& a, Stream& stream) {
  a("name", stream.name);
  a("path", stream.path);
  a("format", stream.format);
  a("interval", stream.every_s);
  a("interval in steps", stream.every_steps);
  a("rotation", stream.rotation);
  a.choice("period of files", stream.period, Period::kYear);
  a.choice("existing files", stream.existing, Existing::kAppend);
  a.list("field", stream.fields);
  a.list("hint", stream.hints);
  a("compression", stream.compression);
  a("rounding", stream.rounding);
  a.list("key of the format", stream.keys);
}

template <typename Archive>
void describe(Archive& a, Catalogue& catalogue) {
  a("reference of time", catalogue.reference);
  a("calendar", catalogue.calendar);
  a.list("attribute", catalogue.attributes);
  a.list("grid", catalogue.grids);
  a.list("decomposition", catalogue.decompositions);
  a.list("axis", catalogue.axes);
  a.list("field", catalogue.fields);
  a.list("stream", catalogue.streams);
}

}  // namespace weir::output
