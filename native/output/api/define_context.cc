// SPDX-License-Identifier: Apache-2.0
#include "output/api/define.h"
#include "output/model/path.h"
#include "output/model/text.h"

namespace weir::api {

void set_attribute(output::Attributes& attributes, const char* name,
                   decltype(output::Attribute::value) value) {
  for (output::Attribute& attribute : attributes) {
    if (attribute.name == name) {
      attribute.value = std::move(value);
      return;
    }
  }
  attributes.push_back({name, std::move(value)});
}

namespace {

Status set(weir_context* context, const char* name, decltype(output::Attribute::value) value) {
  if (!name) return is_null("name");
  WEIR_TRY(output::check_attribute("context", {name, value}));
  set_attribute(context->catalogue.attributes, name, std::move(value));
  return {};
}

}  // namespace
}  // namespace weir::api

using namespace weir::api;

int weir_context_set_time(weir_context* context, const char* reference, const char* calendar,
                          weir_error* err) {
  return define(context, "weir_context_set_time", err, [&]() -> Status {
    const std::string date = reference ? reference : context->catalogue.reference;
    const std::string name = calendar && *calendar ? calendar : context->catalogue.calendar;
    if (!weir::output::is_calendar(name)) {
      return {WEIR_E_ARGUMENT, "calendar " + weir::output::quoted(name) +
                                   ": expected proleptic_gregorian, standard, julian, noleap, "
                                   "all_leap or 360_day (CF 4.4.1)"};
    }
    auto parsed = weir::output::parse_date(date, name);
    if (!parsed.ok()) return {WEIR_E_ARGUMENT, "reference of time: " + parsed.status().message()};
    context->catalogue.reference = date;
    context->catalogue.calendar = name;
    return {};
  });
}

int weir_context_set_text(weir_context* context, const char* name, const char* value,
                          weir_error* err) {
  return define(context, "weir_context_set_text", err, [&]() -> Status {
    return value ? set(context, name, std::string(value)) : is_null("value");
  });
}

int weir_context_set_number(weir_context* context, const char* name, double value,
                            weir_error* err) {
  return define(context, "weir_context_set_number", err,
                [&]() -> Status { return set(context, name, value); });
}
