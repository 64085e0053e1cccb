// SPDX-License-Identifier: Apache-2.0
#include "output/api/define.h"
#include "output/model/text.h"

using namespace weir::api;
using weir::output::Decomposition;

namespace {

Status make(weir_grid* grid, const char* name, Decomposition decomposition,
            weir_decomposition** out) {
  weir_context* context = grid->context;
  decomposition.name = name;
  decomposition.grid = grid->index;
  return add(context, context->catalogue.decompositions, std::move(decomposition),
             context->decompositions, out, weir::output::check_decomposition, true);
}

}  // namespace

int weir_decomposition_create_block(weir_grid* grid, const char* name, int64_t i0, int64_t ni,
                                    int64_t j0, int64_t nj, weir_decomposition** decomposition,
                                    weir_error* err) {
  if (!grid) return report(is_null("grid"), err);
  return define(grid->context, "weir_decomposition_create_block", err, [&]() -> Status {
    if (!name || !decomposition) return is_null(name ? "decomposition" : "name");
    Decomposition block;
    block.i0 = i0;
    block.ni = ni;
    block.j0 = j0;
    block.nj = nj;
    if (ni == 0 || nj == 0) block.i0 = block.ni = block.j0 = block.nj = 0;
    return make(grid, name, std::move(block), decomposition);
  });
}

int weir_decomposition_create_indices(weir_grid* grid, const char* name, int64_t count,
                                      const int64_t* indices, weir_decomposition** decomposition,
                                      weir_error* err) {
  if (!grid) return report(is_null("grid"), err);
  return define(grid->context, "weir_decomposition_create_indices", err, [&]() -> Status {
    if (!name || !decomposition) return is_null(name ? "decomposition" : "name");
    *decomposition = nullptr;
    const int64_t points = grid->context->catalogue.grids[grid->index].points();
    Status mine;
    if (count < 0 || count > points) {
      mine = {WEIR_E_DECOMPOSITION, "decomposition " + weir::output::quoted(name) + ": " +
                                        std::to_string(count) + " indices of a grid of " +
                                        std::to_string(points) + " points"};
    } else if (count > 0 && !indices) {
      mine = is_null("indices");
    }
    Decomposition list;
    list.block = false;
    if (mine.ok()) list.indices.assign(indices, indices + count);
    if (!mine.ok()) return agreed(grid->context, mine);
    return make(grid, name, std::move(list), decomposition);
  });
}

int weir_decomposition_set_halo(weir_decomposition* decomposition, int64_t west, int64_t east,
                                int64_t south, int64_t north, weir_error* err) {
  if (!decomposition) return report(is_null("decomposition"), err);
  weir_context* context = decomposition->context;
  return define(context, "weir_decomposition_set_halo", err, [&]() -> Status {
    Decomposition& mine = context->catalogue.decompositions[decomposition->index];
    const auto set = [&](Decomposition& block) -> Status {
      if (!block.block)
        return {WEIR_E_ARGUMENT, "decomposition " + weir::output::quoted(block.name) +
                                     " is a list of indices; only blocks have a halo"};
      block.halo = {west, east, south, north};
      return {};
    };
    const weir::output::Halo before = mine.halo;
    const Status status =
        agreed(context, change(context, mine, set, weir::output::check_decomposition));
    if (!status.ok()) mine.halo = before;  // another rank's halo may be what failed
    return status;
  });
}

int64_t weir_decomposition_local_size(const weir_decomposition* decomposition) {
  return decomposition
             ? decomposition->context->catalogue.decompositions[decomposition->index].points()
             : 0;
}
