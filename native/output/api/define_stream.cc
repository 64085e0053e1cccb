// SPDX-License-Identifier: Apache-2.0
// Whether names of files differ from frame to frame is checked at the end of definitions, when
// rotation, frequency and configuration are known.
#include <cmath>

#include "output/api/define.h"
#include "output/format/format.h"
#include "output/model/path.h"
#include "output/model/text.h"

using namespace weir::api;
using weir::output::Stream;

namespace {

Status check_new(const weir::output::Catalogue& catalogue, const Stream& stream) {
  const std::string what = "stream " + weir::output::quoted(stream.name);
  WEIR_TRY(weir::output::check_name("stream", stream.name));
  for (const Stream& other : catalogue.streams) {
    if (&other != &stream && other.name == stream.name) {
      return {WEIR_E_ARGUMENT,
              what + ": there is a stream of this name already; names are unique in a context"};
    }
  }
  Status path = weir::output::check_path_template(stream.path);
  if (!path.ok()) return {WEIR_E_ARGUMENT, what + ": " + path.message()};
  std::string why;
  return weir::output::find_format(stream.format, &why)
             ? Status()
             : Status(WEIR_E_ARGUMENT, what + ": " + why);
}

template <typename Set>
int set(weir_stream* stream, const char* call, weir_error* err, Set set_it) {
  if (!stream) return report(is_null("stream"), err);
  return define(stream->context, call, err, [&]() -> Status {
    return set_it(stream->context->catalogue.streams[stream->index]);
  });
}

Status wrong(const Stream& stream, const std::string& why) {
  return {WEIR_E_ARGUMENT, "stream " + weir::output::quoted(stream.name) + ": " + why};
}

}  // namespace

int weir_stream_create(weir_context* context, const char* name, const char* path,
                       const char* format, weir_stream** stream, weir_error* err) {
  return define(context, "weir_stream_create", err, [&]() -> Status {
    if (!name || !path || !stream) return is_null(!name ? "name" : path ? "stream" : "path");
    Stream mine;
    mine.name = name;
    mine.path = path;
    if (format && *format) mine.format = format;
    return add(context, context->catalogue.streams, std::move(mine), context->streams, stream,
               check_new);
  });
}

int weir_stream_set_every(weir_stream* stream, double seconds, weir_error* err) {
  return set(stream, "weir_stream_set_every", err, [&](Stream& mine) -> Status {
    if (!(seconds > 0 && std::isfinite(seconds)))
      return wrong(mine,
                   "every " + weir::output::number_text(seconds) + " s; expected seconds above 0");
    mine.every_s = seconds;
    return {};
  });
}

int weir_stream_set_every_steps(weir_stream* stream, int64_t steps, weir_error* err) {
  return set(stream, "weir_stream_set_every_steps", err, [&](Stream& mine) -> Status {
    if (steps < 1)
      return wrong(mine, "every " + std::to_string(steps) + " steps; expected a number from 1");
    mine.every_steps = steps;
    mine.every_s = 0;
    return {};
  });
}

int weir_stream_set_rotation(weir_stream* stream, int64_t frames, weir_error* err) {
  return set(stream, "weir_stream_set_rotation", err, [&](Stream& mine) -> Status {
    if (frames < 0)
      return wrong(mine, "a new file after " + std::to_string(frames) +
                             " frames; expected a number of frames, or 0 for one file");
    mine.rotation = frames;
    mine.period = weir::output::Period::kNone;
    return {};
  });
}

int weir_stream_set_rotation_period(weir_stream* stream, const char* period, weir_error* err) {
  return set(stream, "weir_stream_set_rotation_period", err, [&](Stream& mine) -> Status {
    if (!period) return is_null("period");
    const auto parsed = weir::output::parse_period(period);
    if (!parsed.ok()) return wrong(mine, parsed.status().message());
    mine.period = *parsed;
    mine.rotation = 0;
    return {};
  });
}

int weir_stream_set_existing(weir_stream* stream, const char* existing, weir_error* err) {
  return set(stream, "weir_stream_set_existing", err, [&](Stream& mine) -> Status {
    if (!existing) return is_null("existing");
    const auto parsed = weir::output::parse_existing(existing);
    if (!parsed.ok()) return wrong(mine, parsed.status().message());
    mine.existing = *parsed;
    return {};
  });
}

int weir_stream_add_field(weir_stream* stream, weir_field* field, weir_operation operation,
                          weir_error* err) {
  return weir_stream_add_field_as(stream, field, operation, nullptr, err);
}

int weir_stream_add_field_as(weir_stream* stream, weir_field* field, weir_operation operation,
                             const char* name_in_files, weir_error* err) {
  return set(stream, "weir_stream_add_field", err, [&](Stream& mine) -> Status {
    if (!field) return is_null("field");
    const std::string name =
        weir::output::quoted(field->context->catalogue.fields[field->index].name);
    if (field->context != stream->context)
      return wrong(mine, "field " + name + " is of another context");
    if (operation < WEIR_INSTANT || operation > WEIR_ACCUMULATE)
      return wrong(mine, "field " + name + " with operation " + std::to_string(operation) +
                             ", which is none");
    weir::output::StreamField added{field->index, operation, {}, {}, {}};
    if (name_in_files) added.name = name_in_files;
    for (const weir::output::StreamField& member : mine.fields) {
      if (member.field == added.field && member.operation == operation && member.name == added.name)
        return wrong(mine, "field " + name + " is in the stream already");
    }
    mine.fields.push_back(std::move(added));
    return {};
  });
}
