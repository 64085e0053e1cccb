// SPDX-License-Identifier: Apache-2.0
// The end of definitions, and the calls of each step.
#include "output/api/context.h"
#include "output/engine/session.h"

using weir::api::guarded;
using weir::output::Status;

namespace {

Status end_definition(weir_context& context) {
  if (context.defined)
    return {WEIR_E_ORDER, "weir_context_end_definition: definitions have ended before"};
  WEIR_TRY(weir::api::finish_definitions(context));
  context.defined = true;
  return context.session->end_definition(context.catalogue);
}

Status null_argument(const char* function) {
  return {WEIR_E_ARGUMENT, std::string(function) + ": an argument is null"};
}

Status not_defined(const char* function) {
  return {WEIR_E_ORDER, std::string(function) + ": before the first weir_step"};
}

// A call within the life of a context.
template <typename Body>
int live(const weir_context* context, const char* function, weir_error* err, Body body) {
  return guarded(err, [&]() -> Status {
    if (context == nullptr) return null_argument(function);
    WEIR_TRY(weir::api::not_ended(*context, function));
    return body();
  });
}

// The same, of a field whose definition has ended.
template <typename Body>
int live_field(const weir_field* field, const char* function, weir_error* err, Body body) {
  return live(field == nullptr ? nullptr : field->context, function, err, [&]() -> Status {
    return field->context->defined ? body(*field->context->session) : not_defined(function);
  });
}

}  // namespace

weir_costs weir::api::costs_of(const weir_context& context) {
  const weir::output::Costs& c = context.session->costs();
  return {c.put_s, c.wait_s, c.end_step_s, c.final_s, c.put_bytes, c.frames};
}

extern "C" {

int weir_context_end_definition(weir_context* context, weir_error* err) {
  return live(context, "weir_context_end_definition", err,
              [&] { return end_definition(*context); });
}

int weir_step(weir_context* context, double time_s, weir_error* err) {
  return live(context, "weir_step", err, [&]() -> Status {
    if (!context->defined) WEIR_TRY(end_definition(*context));
    return context->session->step(time_s);
  });
}

int weir_end_step(weir_context* context, weir_error* err) {
  return live(context, "weir_end_step", err, [&] { return context->session->end_step(); });
}

int weir_context_costs(const weir_context* context, weir_costs* costs, weir_error* err) {
  return live(context, "weir_context_costs", err, [&]() -> Status {
    if (costs == nullptr) return null_argument("weir_context_costs");
    *costs = weir::api::costs_of(*context);
    return {};
  });
}

int weir_stream_is_due(const weir_stream* stream) {
  return stream != nullptr && stream->context->session != nullptr && stream->context->defined
             ? stream->context->session->is_due(stream->index)
             : 0;
}

int weir_put(weir_field* field, const void* data, weir_error* err) {
  return live_field(field, "weir_put", err, [&](weir::output::Session& session) {
    return session.put(field->index, data);
  });
}

int weir_field_lend(weir_field* field, void** data, weir_error* err) {
  return live_field(field, "weir_field_lend", err, [&](weir::output::Session& session) {
    return data == nullptr ? null_argument("weir_field_lend") : session.lend(field->index, data);
  });
}

int weir_get(weir_field* field, const char* path, int64_t record, void* data, weir_error* err) {
  return live(field == nullptr ? nullptr : field->context, "weir_get", err, [&]() -> Status {
    if (path == nullptr) return null_argument("weir_get");
    weir_context& context = *field->context;
    return context.session->get(context.catalogue, field->index, path, record, data);
  });
}

}  // extern "C"
