// SPDX-License-Identifier: Apache-2.0
#include "output/engine/saved_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>

#include "output/engine/target.h"
#include "output/format/posix_file.h"
#include "output/model/text.h"

namespace weir::output {

namespace {

constexpr const char* kFirstLine = "weir saved state 1\n";
constexpr const char* kStanding = "standing\n";

std::string exact(double value) {
  char text[64];
  snprintf(text, sizeof text, "%.17g", value);
  return text;
}

// What must be the same in the run that goes on.
std::string definition_of(const Catalogue& catalogue, const Stream& stream,
                          const StreamLayout& layout) {
  std::string text = kFirstLine;
  text += std::string("byte order ") +
          (std::endian::native == std::endian::little ? "little" : "big") + "\n";
  text += "stream " + stream.name + "\npath " + stream.path + "\nreference " + catalogue.reference +
          "\ncalendar " + catalogue.calendar + "\n";
  text +=
      "every " + exact(stream.every_s) + " s or " + std::to_string(stream.every_steps) + " steps\n";
  text += "files of " + std::to_string(stream.rotation) + " frames, period " +
          std::to_string(static_cast<int>(stream.period)) + "\n";
  for (const Column& c : layout.fields.columns) {
    const Field& field = catalogue.fields[static_cast<size_t>(c.field)];
    text += "field " + field.name + " " + name_of(c.operation) + " " + output::name_of(c.type) +
            " " + std::to_string(c.shape.levels) + " x " + std::to_string(c.shape.points) +
            (c.missing ? " missing " + exact(c.missing->real) : "") + "\n";
  }
  return text;
}

std::string first_line(const std::string& text, size_t at) {
  return text.substr(at, text.find('\n', at) - at);
}

}  // namespace

std::string state_path(const std::string& directory, const Stream& stream) {
  const size_t special = std::min(stream.path.find_first_of("%{}"), stream.path.size());
  const size_t slash = stream.path.rfind('/', special);
  const std::string below = slash == std::string::npos ? "" : stream.path.substr(0, slash + 1);
  return absolute_path(directory, below + stream.name + ".weir-state");
}

SavedState::SavedState(const Catalogue& catalogue, const Stream& stream, const StreamLayout& layout)
    : definition_(definition_of(catalogue, stream, layout)), layout_(layout), bytes_(kHeaderBytes) {
  for (const Column& c : layout.fields.columns) {
    begins_.push_back(bytes_);
    bytes_ += Accumulator::memory_bytes(c.operation, c.type, c.missing.has_value(),
                                        c.shape.levels * c.shape.points);
    bytes_ = (bytes_ + 7) / 8 * 8;
  }
}

std::string SavedState::header(const Standing& s) const {
  std::string text = definition_ + kStanding;
  text += "step " + std::to_string(s.step) + "\ntime_s " + exact(s.time_s) + "\nlongest_step_s " +
          exact(s.longest_step_s) + "\nbegin_s " + exact(s.begin_s) + "\nsteps " +
          std::to_string(s.steps) + "\nfile " + std::to_string(s.file) + "\nrecord " +
          std::to_string(s.record) + "\nfile_step " + std::to_string(s.file_step) +
          "\nfile_time_s " + exact(s.file_time_s) + "\nend\n";
  return text;
}

Result<Standing> SavedState::parse(const std::string& header) const {
  const std::string expected = definition_ + kStanding;
  if (header.compare(0, expected.size(), expected) != 0) {
    for (size_t at = 0; at < expected.size();) {
      const std::string mine = first_line(expected, at),
                        theirs = at < header.size() ? first_line(header, at) : "";
      if (mine != theirs)
        return Status{WEIR_E_FORMAT, "it says " + quoted(theirs) +
                                         " where this run has " + quoted(mine)};
      at += mine.size() + 1;
    }
  }
  Standing s;
  const auto number = [&](const char* key, auto* to) {
    const size_t at = header.find(std::string("\n") + key + " ", expected.size() - 1);
    if (at == std::string::npos) return false;
    const char* text = header.c_str() + at + std::char_traits<char>::length(key) + 2;
    char* end = nullptr;
    if constexpr (std::is_same_v<decltype(to), double*>) {
      *to = strtod(text, &end);
    } else {
      *to = strtoll(text, &end, 10);
    }
    return end != text && *end == '\n';
  };
  const bool whole = number("step", &s.step) && number("time_s", &s.time_s) &&
                     number("longest_step_s", &s.longest_step_s) && number("begin_s", &s.begin_s) &&
                     number("steps", &s.steps) && number("file", &s.file) &&
                     number("record", &s.record) && number("file_step", &s.file_step) &&
                     number("file_time_s", &s.file_time_s) &&
                     header.find("\nend\n") != std::string::npos;
  if (!whole || s.steps < 0 || s.file < 0 || s.record < 0)
    return Status{WEIR_E_FORMAT, "its header is damaged"};
  return s;
}

int64_t SavedState::values_at(size_t column, int64_t element) const {
  const Column& c = layout_.fields.columns[column];
  return begins_[column] +
         element * static_cast<int64_t>(size_of(Accumulator::result_type(c.operation, c.type)));
}

int64_t SavedState::counts_at(size_t column, int64_t element) const {
  const Column& c = layout_.fields.columns[column];
  if (!Accumulator::counts_values(c.operation, c.missing.has_value())) return -1;
  return values_at(column, c.shape.levels * c.shape.points) +
         element * static_cast<int64_t>(sizeof(uint32_t));
}

Result<std::optional<std::string>> read_state_header(const std::string& path) {
  struct stat of;
  if (stat(path.c_str(), &of) != 0 && errno == ENOENT) return std::optional<std::string>();
  Result<PosixFile> file = PosixFile::open(path, O_RDONLY);
  if (!file.ok()) return file.status();
  Result<int64_t> size = file->size();
  if (!size.ok()) return size.status();
  std::string text(static_cast<size_t>(std::min(*size, SavedState::kHeaderBytes)), '\0');
  WEIR_TRY(file->read_at(text.data(), text.size(), 0));
  text.resize(std::min(text.find('\0'), text.size()));
  return std::optional<std::string>(std::move(text));
}

}  // namespace weir::output
