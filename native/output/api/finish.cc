// SPDX-License-Identifier: Apache-2.0
// The end of definitions: the same on all ranks, changed by the configuration, checked as a whole.
#include <algorithm>
#include <cstdio>

#include "output/api/context.h"
#include "output/cf/describe.h"
#include "output/model/check.h"
#include "output/model/codec.h"

namespace weir::api {
namespace {

using output::Status;

Status compare_with_rank_0(weir_context& context) {
  output::Team& team = *context.team;
  if (team.size() == 1) return {};
  std::vector<char> bytes;
  if (team.rank() == 0) bytes = output::encode_catalogue(context.catalogue);
  WEIR_TRY(team.broadcast(bytes, 0));
  Status mine;
  if (team.rank() != 0) {
    output::Result<output::Catalogue> root = output::decode_catalogue(bytes);
    mine = root.ok() ? output::compare_catalogues(*root, context.catalogue, team.rank())
                     : root.status();
    if (!mine.ok() && !context.broken.ok()) {
      mine = {mine.code(),
              mine.message() + " (earlier, on this rank: " + context.broken.message() + ")"};
    }
  }
  return team.agree(mine);
}

Status configure(weir_context& context, std::vector<std::string>* warnings) {
  WEIR_TRY(output::apply_config(context.config, context.catalogue));
  WEIR_TRY(output::check_catalogue(context.catalogue, warnings));
  for (const output::Stream& stream : context.catalogue.streams)
    WEIR_TRY(output::check_format(context.catalogue, stream));
  return {};
}

// Unless the configuration turns it off.
void warn_of_empty_streams(const weir_context& context) {
  for (const output::Stream& stream : context.catalogue.streams) {
    const bool is_off = std::ranges::any_of(
        context.config.streams, [&](const output::StreamChoice& choice) {
          return choice.name == stream.name && !choice.enabled;
        });
    if (is_off || !stream.fields.empty()) continue;
    std::fprintf(stderr,
                 "weir: stream '%s' has no fields: no file of the path '%s' is written; add fields "
                 "(weir_stream_add_field, or [[stream.%s.field]] in the configuration), or set "
                 "enabled = false\n",
                 stream.name.c_str(), stream.path.c_str(), stream.name.c_str());
  }
}

}  // namespace

Status finish_definitions(weir_context& context) {
  WEIR_TRY(compare_with_rank_0(context));
  std::vector<std::string> warnings;
  WEIR_TRY(context.team->agree(configure(context, &warnings)));
  context.defined = true;
  if (context.team->rank() == 0) warn_of_empty_streams(context);
  if (context.config.settings.verbose && context.team->rank() == 0) {
    for (const std::string& warning : warnings) std::fprintf(stderr, "weir: %s\n", warning.c_str());
  }
  return {};
}

}  // namespace weir::api
