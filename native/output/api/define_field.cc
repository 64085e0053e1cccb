// SPDX-License-Identifier: Apache-2.0
#include "output/api/define.h"
#include "output/model/text.h"

using namespace weir::api;
using weir::output::Field;

namespace {

Status make(weir_decomposition* decomposition, const char* name, weir_type type, int axis_count,
            weir_axis* const* axes, weir_field** out) {
  weir_context* context = decomposition->context;
  *out = nullptr;
  Field field;
  field.name = name;
  field.type = field.file_type = type;
  field.decomposition = decomposition->index;
  if (axis_count < 0 || (axis_count > 0 && !axes))
    return {WEIR_E_ARGUMENT, "field " + weir::output::quoted(name) + ": " +
                                 std::to_string(axis_count) + " axes at a null pointer"};
  for (int i = 0; i < axis_count; i++) {
    if (!axes[i]) return is_null("axis");
    if (axes[i]->context != context)
      return {WEIR_E_ARGUMENT,
              "field " + weir::output::quoted(name) + ": an axis is of another context"};
    field.axes.push_back(axes[i]->index);
  }
  return add(context, context->catalogue.fields, std::move(field), context->fields, out,
             weir::output::check_field);
}

template <typename Set>
int set(weir_field* field, const char* call, weir_error* err, Set set_it) {
  if (!field) return report(is_null("field"), err);
  return define(field->context, call, err, [&]() -> Status {
    return change(field->context, field->context->catalogue.fields[field->index], set_it,
                  weir::output::check_field);
  });
}

}  // namespace

int weir_field_create(weir_decomposition* decomposition, const char* name, weir_type type,
                      int axis_count, weir_axis* const* axes, weir_field** field, weir_error* err) {
  if (!decomposition) return report(is_null("decomposition"), err);
  return define(decomposition->context, "weir_field_create", err, [&]() -> Status {
    if (!name || !field) return is_null(name ? "field" : "name");
    return make(decomposition, name, type, axis_count, axes, field);
  });
}

int weir_field_set_text(weir_field* field, const char* name, const char* value, weir_error* err) {
  return set(field, "weir_field_set_text", err, [&](Field& mine) -> Status {
    if (!name || !value) return is_null(name ? "value" : "name");
    set_attribute(mine.attributes, name, std::string(value));
    return {};
  });
}

int weir_field_set_number(weir_field* field, const char* name, double value, weir_error* err) {
  return set(field, "weir_field_set_number", err, [&](Field& mine) -> Status {
    if (!name) return is_null("name");
    if (std::string(name) == "missing_value") {
      mine.missing = value;
    } else {
      set_attribute(mine.attributes, name, value);
    }
    return {};
  });
}

int weir_field_set_missing_int64(weir_field* field, int64_t value, weir_error* err) {
  return set(field, "weir_field_set_missing_int64", err, [&](Field& mine) -> Status {
    mine.missing = weir::output::Number::exactly(value);
    return {};
  });
}

int weir_field_set_file_type(weir_field* field, weir_type type, weir_error* err) {
  return set(field, "weir_field_set_file_type", err, [&](Field& mine) -> Status {
    mine.file_type = type;
    return {};
  });
}

int weir_field_set_compression(weir_field* field, const char* compression, weir_error* err) {
  return set(field, "weir_field_set_compression", err, [&](Field& mine) -> Status {
    if (!compression) return is_null("compression");
    auto parsed = weir::output::parse_compression(compression);
    if (!parsed.ok())
      return {WEIR_E_ARGUMENT,
              "field " + weir::output::quoted(mine.name) + ": " + parsed.status().message()};
    mine.compression = *parsed;
    return {};
  });
}

int weir_field_set_chunk(weir_field* field, int count, const int64_t* chunk, weir_error* err) {
  return set(field, "weir_field_set_chunk", err, [&](Field& mine) -> Status {
    constexpr int kMostDimensions = 6;  // four axes and two of the grid
    if (count < 1 || count > kMostDimensions || !chunk) {
      return {WEIR_E_ARGUMENT, "field " + weir::output::quoted(mine.name) + ": a chunk of " +
                                   std::to_string(count) + " numbers" +
                                   (chunk ? "" : " at a null pointer")};
    }
    mine.chunk.assign(chunk, chunk + count);
    return {};
  });
}

int64_t weir_field_local_size(const weir_field* field) {
  if (!field) return 0;
  const weir::output::Catalogue& catalogue = field->context->catalogue;
  const Field& mine = catalogue.fields[field->index];
  return catalogue.decompositions[mine.decomposition].points() * catalogue.levels_of(mine);
}

int weir_field_array_shape(const weir_field* field, int64_t shape[6]) {
  if (!field || !shape) return 0;
  const weir::output::Catalogue& catalogue = field->context->catalogue;
  const Field& mine = catalogue.fields[field->index];
  const weir::output::Decomposition& part = catalogue.decompositions[mine.decomposition];
  int rank = 0;
  for (int axis : mine.axes)
    shape[rank++] = static_cast<int64_t>(catalogue.axes[axis].values.size());
  if (!part.block || catalogue.grids[part.grid].one_dimensional()) {
    shape[rank++] = part.block ? part.ni + part.halo.west + part.halo.east : part.points();
  } else {
    shape[rank++] = part.nj + part.halo.south + part.halo.north;
    shape[rank++] = part.ni + part.halo.west + part.halo.east;
  }
  return rank;
}

weir_type weir_field_memory_type(const weir_field* field) {
  return field ? field->context->catalogue.fields[field->index].type : WEIR_FLOAT32;
}
