// SPDX-License-Identifier: Apache-2.0
// What is behind the handles of include/weir. A handle is an object's place in the context's
// catalogue; the context owns all of them. Definitions (define_*.cc) fill the catalogue; step.cc
// hands it to the engine, which has everything from there on.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "output/config/config.h"
#include "output/core/status.h"
#include "output/model/catalogue.h"
#include "output/transport/team.h"
#include <weir/weir.h>

namespace weir::output {
class Session;  // engine: all that a rank of the model has beyond definitions
}

struct weir_grid {
  weir_context* context;
  int index;
};
struct weir_decomposition {
  weir_context* context;
  int index;
};
struct weir_axis {
  weir_context* context;
  int index;
};
struct weir_field {
  weir_context* context;
  int index;
};
struct weir_stream {
  weir_context* context;
  int index;
};

struct weir_context {
  weir_context();
  ~weir_context();  // step.cc, where Session is complete

  weir::output::Catalogue catalogue;
  weir::output::Config config;
  // The model's ranks; set by weir_init, lives as long as session.
  weir::output::Team* team = nullptr;
  bool defined = false;                 // definitions have ended
  weir::output::Status
      broken;  // the first definition that failed on this rank, for the message when ranks differ

  std::vector<std::unique_ptr<weir_grid>> grids;
  std::vector<std::unique_ptr<weir_decomposition>> decompositions;
  std::vector<std::unique_ptr<weir_axis>> axes;
  std::vector<std::unique_ptr<weir_field>> fields;
  std::vector<std::unique_ptr<weir_stream>> streams;

  // Null: weir_finalize has ended it; what remains answers calls with its handles.
  std::unique_ptr<weir::output::Session> session;
};

namespace weir::api {

// What weir_finalize has left of a context takes no calls.
inline output::Status not_ended(const weir_context& context, const char* call) {
  if (context.session != nullptr) return {};
  return {WEIR_E_ORDER, std::string(call) + ": after weir_finalize"};
}

weir_costs costs_of(const weir_context& context);

// The code, and the message into *err when there is one (cut at the end of its buffer, never
// unterminated).
int report(const output::Status& status, weir_error* err);

// [collective over the model's ranks] The catalogue is changed by the configuration, checked, and
// the same on all ranks; with the first failed rank's message everywhere.
// weir_context_end_definition calls it before it plans.
output::Status finish_definitions(weir_context& context);

// For the calls that C programs make: null arguments and exceptions (memory) become codes, nothing
// leaves weir.
template <typename Body>
int guarded(weir_error* err, Body body) {
  try {
    return report(body(), err);
  } catch (const std::bad_alloc&) {
    return report({WEIR_E_MEMORY, "the process has no memory left for weir's own tables"}, err);
  } catch (const std::exception& e) {
    return report({WEIR_E_INTERNAL, std::string("a defect of weir: ") + e.what()}, err);
  }
}

}  // namespace weir::api
