// SPDX-License-Identifier: Apache-2.0
#include "output/config/config.h"

#include <algorithm>
#include <utility>

#include "output/cf/describe.h"
#include "output/model/check.h"
#include "output/model/text.h"

namespace weir::output {
namespace {

template <typename Things>
std::vector<std::string> names_of(const Things& things) {
  std::vector<std::string> names;
  for (const auto& thing : things) names.push_back(thing.name);
  return names;
}

// What to add when a name is none of these: the near one, or all when they are few.
std::string expected(const std::string& name, const std::vector<std::string>& names,
                     const std::string& of) {
  const std::string near = did_you_mean(name, names);
  if (!near.empty()) return near;
  constexpr size_t kShown = 40;
  if (names.empty()) return "; " + of + " has none";
  return names.size() <= kShown ? "; " + of + " has " + one_of(names) : "";
}

// Null: the program has not the field in this stream. Of several the one of the name or operation.
const StreamField* own_of(const Stream& stream, const Catalogue& catalogue,
                          const FieldChoice& wanted, int field) {
  const StreamField* found = nullptr;
  for (const StreamField& own : stream.fields) {
    if (own.field != field) continue;
    if (!found) found = &own;
    if (wanted.as ? catalogue.name_of(own) == *wanted.as : own.operation == wanted.operation)
      return &own;
  }
  return found;
}

Status apply_fields(const StreamChoice& choice, const Catalogue& catalogue, Stream* stream) {
  std::vector<StreamField> fields;
  const std::vector<std::string> names = names_of(catalogue.fields);
  for (const FieldChoice& wanted : *choice.fields) {
    StreamField member;
    for (size_t i = 0; i < names.size(); i++) {
      if (names[i] == wanted.name) member.field = static_cast<int>(i);
    }
    if (member.field < 0) {
      return {WEIR_E_CONFIG, wanted.place + ": stream " + quoted(stream->name) + " wants field " +
                                 quoted(wanted.name) + ", which the program does not define" +
                                 expected(wanted.name, names, "it")};
    }
    // The program's operation and name, when the configuration says nothing.
    if (const StreamField* own = own_of(*stream, catalogue, wanted, member.field)) {
      member.operation = own->operation;
      member.name = own->name;
    }
    member.operation = wanted.operation.value_or(member.operation);
    member.name = wanted.as.value_or(member.name);
    member.compression = wanted.compression;
    member.chunk = wanted.chunk;
    member.keys = wanted.keys;
    member.rounding = wanted.rounding;
    fields.push_back(std::move(member));
  }
  stream->fields = std::move(fields);
  return {};
}

void apply_plain(const StreamChoice& choice, Stream* stream) {
  if (choice.path) stream->path = *choice.path;
  if (choice.format) stream->format = *choice.format;
  if (choice.every_s) stream->every_s = *choice.every_s;
  if (choice.every_steps) {
    stream->every_steps = *choice.every_steps;
    stream->every_s = 0;
  }
  if (choice.rotation) {
    stream->rotation = *choice.rotation;
    stream->period = choice.period.value_or(Period::kNone);
  }
  if (choice.existing) stream->existing = *choice.existing;
  if (choice.compression) stream->compression = choice.compression;
  if (choice.rounding) stream->rounding = choice.rounding;
  for (const auto& hint : choice.hints) stream->hints.push_back(hint);
  stream->keys = choice.keys;
}

Status apply(const StreamChoice& choice, const Catalogue& catalogue, Stream* stream) {
  apply_plain(choice, stream);
  if (choice.fields) WEIR_TRY(apply_fields(choice, catalogue, stream));
  if (!choice.enabled) stream->fields.clear();
  return {};
}

// Each key alone: what to say of a stream when the configuration had nothing but that.
std::vector<std::pair<Place, StreamChoice>> single_choices(const StreamChoice& choice) {
  std::vector<std::pair<Place, StreamChoice>> all;
  const auto add = [&](const Place& place) -> StreamChoice& {
    all.emplace_back(place, StreamChoice{});
    all.back().second.name = choice.name;
    return all.back().second;
  };
  for (const auto& [key, place] : choice.places) {
    if (key == "path") add(place).path = choice.path;
    if (key == "format") add(place).format = choice.format;
    if (key == "every_s") add(place).every_s = choice.every_s;
    if (key == "every_steps") add(place).every_steps = choice.every_steps;
    if (key == "rotation") {
      StreamChoice& one = add(place);
      one.rotation = choice.rotation;
      one.period = choice.period;
    }
    if (key == "compression") add(place).compression = choice.compression;
    if (key == "keep_bits" || key == "keep_information") add(place).rounding = choice.rounding;
    if (key == "grib") add(place).keys = choice.keys;
  }
  for (const FieldChoice& field : choice.fields.value_or(std::vector<FieldChoice>())) {
    for (const auto& [key, place] : field.places) {
      FieldChoice one;
      one.name = field.name;
      if (key == "compression") one.compression = field.compression;
      if (key == "chunk") one.chunk = field.chunk;
      if (key == "grib") one.keys = field.keys;
      if (key == "keep_bits" || key == "keep_information") one.rounding = field.rounding;
      if (key == "name" || one.compression || one.rounding || !one.chunk.empty() ||
          !one.keys.empty())
        add(place).fields = std::vector<FieldChoice>{one};
    }
  }
  return all;
}

// With this stream in its place: what is wrong with it.
Status check_as(Stream stream, size_t at, Catalogue& catalogue) {
  Stream kept = std::exchange(catalogue.streams[at], std::move(stream));
  Status status = check_stream(catalogue, catalogue.streams[at]);
  if (status.ok()) status = check_format(catalogue, catalogue.streams[at]);
  catalogue.streams[at] = std::move(kept);
  return status;
}

// `program`: the stream without the configuration. What is wrong with that, too, is no mistake of
// the configuration.
Status check_choice(const StreamChoice& choice, const Stream& program, size_t at,
                    Catalogue& catalogue) {
  const Status status = check_as(catalogue.streams[at], at, catalogue);
  if (status.ok() || !check_as(program, at, catalogue).ok()) return {};
  for (const auto& [where, one] : single_choices(choice)) {
    Stream stream = program;
    if (apply(one, catalogue, &stream).ok() && check_as(stream, at, catalogue).ok()) continue;
    // What is wrong with a key of the format has its own place.
    const bool placed = status.message().find(where.substr(0, where.find(':')) + ":") !=
                        std::string::npos;
    return {WEIR_E_CONFIG, placed ? status.message() : where + ": " + status.message()};
  }
  // No key alone; with the program's format the others would do.
  Stream stream = catalogue.streams[at];
  stream.format = program.format;
  const auto format = std::find_if(choice.places.begin(), choice.places.end(),
                                   [](const auto& key) { return key.first == "format"; });
  const bool by_format = format != choice.places.end() && check_as(stream, at, catalogue).ok();
  return {WEIR_E_CONFIG, (by_format ? format->second : choice.place) + ": " + status.message()};
}

}  // namespace

Status apply_config(const Config& config, Catalogue& catalogue) {
  const std::vector<Stream> program = catalogue.streams;
  std::vector<std::pair<const StreamChoice*, size_t>> chosen;
  for (const StreamChoice& choice : config.streams) {
    size_t at = 0;
    while (at < program.size() && program[at].name != choice.name) at++;
    if (at == program.size() && !choice.must_exist) continue;
    if (at == program.size()) {
      return {WEIR_E_CONFIG, choice.place + ": stream " + quoted(choice.name) +
                                 " is not defined by the program" +
                                 expected(choice.name, names_of(program), "it")};
    }
    WEIR_TRY(apply(choice, catalogue, &catalogue.streams[at]));
    chosen.emplace_back(&choice, at);
  }
  WEIR_TRY(check_structure(catalogue));
  for (const auto& [choice, at] : chosen)
    WEIR_TRY(check_choice(*choice, program[at], at, catalogue));
  return {};
}

}  // namespace weir::output
