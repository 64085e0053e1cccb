// SPDX-License-Identifier: Apache-2.0
// What all definitions have in common.
#pragma once

#include "output/api/context.h"
#include "output/model/check.h"

namespace weir::api {

using output::Status;

// A null argument, in words.
inline Status is_null(const char* what) {
  return {WEIR_E_ARGUMENT, std::string(what) + " is null"};
}

// Whether definitions may still be made.
inline Status still_open(const weir_context* context, const char* call) {
  if (!context) return is_null("context");
  WEIR_TRY(not_ended(*context, call));
  if (context->defined)
    return {WEIR_E_ORDER,
            std::string(call) + ": definitions have ended; the first weir_step ends them"};
  return {};
}

// For calls whose arguments differ from rank to rank: what failed on one has failed on all.
inline Status agreed(weir_context* context, const Status& status) {
  return context->team ? context->team->agree(status) : status;
}

// Remembers the first definition that failed on this rank, for the message when ranks turn out to
// differ.
template <typename Body>
int define(weir_context* context, const char* call, weir_error* err, Body body) {
  return guarded(err, [&]() -> Status {
    WEIR_TRY(still_open(context, call));
    Status status = body();
    if (!status.ok() && context->broken.ok()) context->broken = status;
    return status;
  });
}

// A new object: `things` gets it when the check is fine, and handles the handle.
template <typename Thing, typename Handle, typename Check>
Status add(weir_context* context, std::vector<Thing>& things, Thing thing,
           std::vector<std::unique_ptr<Handle>>& handles, Handle** handle, Check check,
           bool differs_by_rank = false) {
  *handle = nullptr;
  things.push_back(std::move(thing));
  Status status = check(context->catalogue, things.back());
  if (differs_by_rank) status = agreed(context, status);
  if (!status.ok()) {
    things.pop_back();
    return status;
  }
  handles.push_back(std::make_unique<Handle>(Handle{context, static_cast<int>(things.size()) - 1}));
  *handle = handles.back().get();
  return {};
}

// A change of an object: made on a copy, and kept when the check is fine.
template <typename Thing, typename Change, typename Check>
Status change(const weir_context* context, Thing& thing, Change change_it, Check check) {
  Thing before = thing;
  Status status = change_it(thing);
  if (status.ok()) status = check(context->catalogue, thing);
  if (!status.ok()) thing = std::move(before);
  return status;
}

void set_attribute(output::Attributes& attributes, const char* name,
                   decltype(output::Attribute::value) value);

}  // namespace weir::api
