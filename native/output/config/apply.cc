// SPDX-License-Identifier: Apache-2.0
#include "output/config/config.h"
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
std::string expected(const std::string& name, const std::vector<std::string>& names, const std::string& of) {
  const std::string near = did_you_mean(name, names);
  if (!near.empty()) return near;
  constexpr size_t kShown = 40;
  if (names.empty()) return "; " + of + " has none";
  return names.size() <= kShown ? "; " + of + " has " + one_of(names) : "";
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
      return {WEIR_E_CONFIG, wanted.place + ": stream " + quoted(stream->name) + " wants field " + quoted(wanted.name) +
                                 ", which the program does not define" + expected(wanted.name, names, "it")};
    }
    for (const StreamField& own : stream->fields) {
      if (own.field == member.field) member.operation = own.operation;  // the program's, when the configuration says nothing
    }
    member.operation = wanted.operation.value_or(member.operation);
    member.compression = wanted.compression;
    member.chunk = wanted.chunk;
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
  if (choice.rotation) stream->rotation = *choice.rotation;
  if (choice.compression) stream->compression = choice.compression;
  for (const auto& hint : choice.hints) stream->hints.push_back(hint);
}

}  // namespace

Status apply_config(const Config& config, Catalogue& catalogue) {
  for (const StreamChoice& choice : config.streams) {
    Stream* stream = nullptr;
    for (Stream& one : catalogue.streams) {
      if (one.name == choice.name) stream = &one;
    }
    if (!stream && !choice.must_exist) continue;
    if (!stream) {
      const std::vector<std::string> names = names_of(catalogue.streams);
      return {WEIR_E_CONFIG, choice.place + ": stream " + quoted(choice.name) + " is not defined by the program" +
                                 expected(choice.name, names, "it")};
    }
    apply_plain(choice, stream);
    if (choice.fields) WEIR_TRY(apply_fields(choice, catalogue, stream));
    if (!choice.enabled) stream->fields.clear();
  }
  return {};
}

}  // namespace weir::output
