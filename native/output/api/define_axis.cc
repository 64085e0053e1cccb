// SPDX-License-Identifier: Apache-2.0
#include "output/api/define.h"
#include "output/model/text.h"

using namespace weir::api;
using weir::output::Axis;

int weir_axis_create(weir_context* context, const char* name, int64_t size, const double* values,
                     const char* units, weir_axis** axis, weir_error* err) {
  return define(context, "weir_axis_create", err, [&]() -> Status {
    if (!name || !axis) return is_null(name ? "axis" : "name");
    *axis = nullptr;
    constexpr int64_t kMost = 1 << 24;
    if (size < 1 || size > kMost)
      return {WEIR_E_ARGUMENT, "axis " + weir::output::quoted(name) + ": " + std::to_string(size) +
                                   " values; expected 1 to 2^24"};
    Axis mine;
    mine.name = name;
    mine.units = units ? units : "1";
    for (int64_t i = 0; i < size; i++)
      mine.values.push_back(values ? values[i] : static_cast<double>(i + 1));
    return add(context, context->catalogue.axes, std::move(mine), context->axes, axis,
               weir::output::check_axis);
  });
}

int weir_axis_set_text(weir_axis* axis, const char* name, const char* value, weir_error* err) {
  if (!axis) return report(is_null("axis"), err);
  return define(axis->context, "weir_axis_set_text", err, [&]() -> Status {
    if (!name || !value) return is_null(name ? "value" : "name");
    const auto set = [&](Axis& mine) -> Status {
      if (std::string(name) == "units") {
        mine.units = value;
      } else {
        set_attribute(mine.attributes, name, std::string(value));
      }
      return {};
    };
    return change(axis->context, axis->context->catalogue.axes[axis->index], set,
                  weir::output::check_axis);
  });
}

int weir_axis_set_bounds(weir_axis* axis, const double* bounds, weir_error* err) {
  if (!axis) return report(is_null("axis"), err);
  return define(axis->context, "weir_axis_set_bounds", err, [&]() -> Status {
    if (!bounds) return is_null("bounds");
    const auto set = [&](Axis& mine) -> Status {
      mine.bounds.assign(bounds, bounds + 2 * mine.values.size());
      return {};
    };
    return change(axis->context, axis->context->catalogue.axes[axis->index], set,
                  weir::output::check_axis);
  });
}
