// SPDX-License-Identifier: Apache-2.0
#include "output/engine/names.h"

#include <algorithm>
#include <filesystem>

#include "output/engine/target.h"
#include "output/model/path.h"
#include "output/model/text.h"

namespace weir::output {

namespace {

// Text as it is, in a template.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '%' || c == '{' || c == '}') out += c;
  }
  return out;
}

// The directories that are the same for all files lose their links, "." and ".."; what follows them
// stays a template.
std::string canonical_template(const std::string& directory, const Stream& stream) {
  const size_t special = std::min(stream.path.find_first_of("%{}"), stream.path.size());
  const size_t name = stream.path.rfind('/', special) + 1;
  const std::string literal = absolute_path(directory, stream.path.substr(0, name));
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(literal, error);
  if (literal.empty() || error) return stream.path;
  std::string text = escaped(real.string());
  if (text.back() != '/') text += '/';
  return text + stream.path.substr(name);
}

// Every rank must come to the same.
uint64_t hash_of(const std::string& text) {
  uint64_t value = 0xcbf29ce484222325;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return value;
}

// Of files whose names have a time in them the first name is not known before the first step.
bool is_known(const Stream& stream) {
  return !path_has(stream.path, PathPart::kTime) &&
         !((stream.every_s > 0 || stream.reduces()) && path_has(stream.path, PathPart::kStep));
}

Status compare_streams(const Catalogue& catalogue, const std::vector<std::string>& templates) {
  std::unordered_map<std::string, size_t> seen;
  for (size_t s = 0; s < templates.size(); ++s) {
    if (catalogue.streams[s].fields.empty()) continue;
    const std::string path = path_has(templates[s], PathPart::kStream)
                                 ? templates[s] + "\n" + catalogue.streams[s].name
                                 : templates[s];
    const auto [before, fresh] = seen.emplace(path, s);
    if (fresh) continue;
    return {WEIR_E_ARGUMENT, "stream " + quoted(catalogue.streams[s].name) + ": stream " +
                                 quoted(catalogue.streams[before->second].name) +
                                 " writes to the same path, " + quoted(templates[s]) +
                                 "; put {stream} into it"};
  }
  return {};
}

Status check_known_names(const Catalogue& catalogue, const std::string& directory) {
  for (const Stream& stream : catalogue.streams) {
    if (stream.fields.empty() || !is_known(stream)) continue;
    const Status status =
        check_target(absolute_path(directory, expand_path(stream.path, {{}, 0, 0, stream.name})),
                     stream.existing);
    if (!status.ok())
      return {status.code(), "stream " + quoted(stream.name) + ": " + status.message()};
  }
  return {};
}

}  // namespace

Status Names::prepare(Team& model, const Catalogue& catalogue, const std::string& directory) {
  Status mine;
  std::vector<char> bytes;
  if (model.rank() == 0) {
    for (const Stream& stream : catalogue.streams) {
      templates_.push_back(canonical_template(directory, stream));
      bytes.insert(bytes.end(), templates_.back().c_str(),
                   templates_.back().c_str() + templates_.back().size() + 1);
    }
    mine = compare_streams(catalogue, templates_);
    if (mine.ok()) mine = check_known_names(catalogue, directory);
  }
  WEIR_TRY(model.agree(mine));
  WEIR_TRY(model.broadcast(bytes, 0));
  if (model.rank() == 0) return {};
  for (size_t at = 0; at < bytes.size(); at += templates_.back().size() + 1)
    templates_.emplace_back(bytes.data() + at);
  return {};
}

Status Names::claim(const Catalogue& catalogue, const Frame& frame) {
  const Stream& stream = catalogue.streams[static_cast<size_t>(frame.stream)];
  Result<Date> date = date_after(catalogue.reference, catalogue.calendar, frame.file_time_s);
  if (!date.ok()) return {};  // who writes the frame will tell
  const PathValues values{*date, frame.file_step, frame.file, stream.name};
  const auto [before, fresh] = used_.emplace(
      hash_of(expand_path(templates_[static_cast<size_t>(frame.stream)], values)), frame.stream);
  if (fresh) return {};
  return {WEIR_E_FILE, "stream " + quoted(stream.name) + ", step " + std::to_string(frame.step) +
                           ", file " + expand_path(stream.path, values) +
                           ": this run has written a file of that name already (stream " +
                           quoted(catalogue.streams[static_cast<size_t>(before->second)].name) +
                           "), which stays; the frame is not written. Names from " +
                           quoted(stream.path) +
                           " repeat: use finer codes of time, {step} or {file}, or rotation = "
                           "\"day\", \"month\" or \"year\""};
}

}  // namespace weir::output
