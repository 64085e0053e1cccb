// SPDX-License-Identifier: Apache-2.0
// The end of definitions, and the calls of each step.
#include "capi/context.h"
#include "output/engine/session.h"

using weir::capi::guarded;
using weir::output::Status;

namespace {

Status end_definition(weir_context& context) {
  if (context.defined) return {WEIR_E_ORDER, "weir_context_end_definition: definitions have ended before"};
  WEIR_TRY(weir::capi::finish_definitions(context));
  context.defined = true;
  return context.session->end_definition(context.catalogue);
}

Status null_argument(const char* function) { return {WEIR_E_ARGUMENT, std::string(function) + ": an argument is null"}; }

Status not_defined(const char* function) {
  return {WEIR_E_ORDER, std::string(function) + ": before the first weir_step"};
}

}  // namespace

extern "C" {

int weir_context_end_definition(weir_context* context, weir_error* err) {
  return guarded(err, [&]() -> Status { return context == nullptr ? null_argument("weir_context_end_definition") : end_definition(*context); });
}

int weir_step(weir_context* context, double time_s, weir_error* err) {
  return guarded(err, [&]() -> Status {
    if (context == nullptr) return null_argument("weir_step");
    if (!context->defined) WEIR_TRY(end_definition(*context));
    return context->session->step(time_s);
  });
}

int weir_end_step(weir_context* context, weir_error* err) {
  return guarded(err, [&]() -> Status { return context == nullptr ? null_argument("weir_end_step") : context->session->end_step(); });
}

int weir_context_costs(const weir_context* context, weir_costs* costs, weir_error* err) {
  return guarded(err, [&]() -> Status {
    if (context == nullptr || costs == nullptr) return null_argument("weir_context_costs");
    const weir::output::Costs& c = context->session->costs();
    *costs = {c.put_s, c.wait_s, c.end_step_s, c.final_s, c.put_bytes, c.frames};
    return {};
  });
}

int weir_stream_is_due(const weir_stream* stream) {
  return stream != nullptr && stream->context->defined ? stream->context->session->is_due(stream->index) : 0;
}

int weir_put(weir_field* field, const void* data, weir_error* err) {
  return guarded(err, [&]() -> Status {
    if (field == nullptr) return null_argument("weir_put");
    return field->context->defined ? field->context->session->put(field->index, data) : not_defined("weir_put");
  });
}

int weir_field_lend(weir_field* field, void** data, weir_error* err) {
  return guarded(err, [&]() -> Status {
    if (field == nullptr || data == nullptr) return null_argument("weir_field_lend");
    return field->context->defined ? field->context->session->lend(field->index, data) : not_defined("weir_field_lend");
  });
}

int weir_get(weir_field* field, const char* path, int64_t record, void* data, weir_error* err) {
  return guarded(err, [&]() -> Status {
    if (field == nullptr || path == nullptr) return null_argument("weir_get");
    weir_context& context = *field->context;
    return context.session->get(context.catalogue, field->index, path, record, data);
  });
}

}  // extern "C"
