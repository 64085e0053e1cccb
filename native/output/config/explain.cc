// SPDX-License-Identifier: Apache-2.0
#include "output/config/explain.h"

#include "output/format/format.h"
#include "output/model/path.h"
#include "output/model/text.h"

namespace weir::output {
namespace {

std::string counted(int64_t n, const std::string& thing) {
  return std::to_string(n) + " " + thing + (n == 1 ? "" : "s");
}

std::string size_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  double value = static_cast<double>(bytes);
  while (unit < 4 && value >= 1024) {
    value /= 1024;
    unit++;
  }
  return number_text(value) + " " + kUnits[unit];
}

std::string duration_text(double seconds) {
  const auto whole = [&](double unit) {
    return seconds >= unit &&
           seconds / unit == static_cast<double>(static_cast<int64_t>(seconds / unit));
  };
  if (whole(86400)) return counted(static_cast<int64_t>(seconds / 86400), "day");
  if (whole(3600)) return counted(static_cast<int64_t>(seconds / 3600), "hour");
  if (whole(60)) return counted(static_cast<int64_t>(seconds / 60), "minute");
  return number_text(seconds) + " s";
}

std::string mode_text(const Settings& s) {
  const std::string groups =
      counted(s.groups, "group") + " of " + counted(s.servers_per_group, "server");
  switch (s.mode) {
    case Mode::kSerial:
      return "serial: the first rank of the model gathers every record and writes; the others wait "
             "for it";
    case Mode::kCollective:
      return "collective: " +
             (s.aggregators > 0 ? counted(s.aggregators, "rank")
                                : std::string("some ranks (weir chooses how many)")) +
             " of the model write for all; all wait until it is done";
    case Mode::kServers:
      return "servers: " + groups +
             ", one writer in each group; the model goes on while they write";
    case Mode::kServersParallel:
      return "servers+parallel: " + groups +
             ", all of which write; the model goes on while they write";
  }
  return "";
}

std::string ranks_text(const Settings& s, int64_t ranks) {
  std::string text;
  if (s.has_servers()) {
    constexpr const char* kPlaces[] = {"the last ranks of each node", "ranks spread over each node",
                                       "whole nodes of their own, the last ones"};
    text += "servers are    " + std::string(kPlaces[static_cast<int>(s.placement)]) + "\n";
    if (ranks > 0) {
      text += "ranks          " + std::to_string(ranks) + ": " +
              std::to_string(ranks - s.servers()) + " compute, " + counted(s.servers(), "rank") +
              " serve\n";
    }
    text += "files          go to the groups in turn, all frames of one file to the same group\n";
    text += "server memory  at most " + size_text(s.server_memory_bytes) +
            " of data in each server, whatever the size of a step\n";
  } else if (ranks > 0) {
    text += "ranks          " + std::to_string(ranks) + ": all compute\n";
  }
  if (s.mode != Mode::kSerial) {
    text += "client memory  " +
            (s.client_memory_bytes > 0
                 ? "at most " + size_text(s.client_memory_bytes) + " in each rank of the model"
                 : std::string("two frames of every stream in each rank of the model")) +
            "\n";
    text += "transport      " + std::string(name_of(s.transport)) +
            (s.transport == TransportKind::kAuto
                 ? ": shared memory on a node, else what a probe at the start shows to work"
                 : "") +
            "\n";
  }
  if (s.encode_threads > 1) {
    text += "encoding       " + std::to_string(s.encode_threads) +
            " threads of each rank that writes, for messages of GRIB\n";
  }
  return text + "time limit     " + duration_text(s.time_limit_s) +
         " for any wait; then an error that says for whom\n" + "to the disk    " +
         (s.sync ? "each frame is on the disk before the next is written (sync)\n"
                 : "when the system writes it (no sync)\n");
}

std::string compression_text(const Compression& c) {
  if (c.kind == Compression::Kind::kNone) return "none";
  return (c.kind == Compression::Kind::kDeflate ? "deflate, level " : "zstd, level ") +
         std::to_string(c.level);
}

std::string rounding_text(const Rounding& r) {
  return r.bits > 0 ? "to " + counted(r.bits, "bit") + " of the mantissa"
                    : "to the bits with " + number_text(100 * r.information) +
                          " % of the information";
}

// What is not known here decides whether a job with this configuration begins.
std::string needs_text(const StreamChoice& stream, const std::optional<Compression>& c) {
  if (!c || c->kind == Compression::Kind::kNone || stream.format) return "";
  return "; refused unless the program's format is " + one_of(format_names(true)) +
         " (without a word of it, it is " + Stream().format + "): format says so here";
}

std::string limits_text(const StreamChoice& stream) {
  const char* refused = stream.format ? format_row(*stream.format).refused : "";
  return *refused ? "; refused where " + std::string(refused) : "";
}

// Two names that files would have, from a date that shows every code.
std::string examples_text(const StreamChoice& stream) {
  constexpr double kPeriods_s[] = {
      0, 86400, 30 * 86400.0, 365 * 86400.0};  // from the date below each leads into the next one
  const double interval_s =
      kPeriods_s[static_cast<int>(stream.period.value_or(Period::kNone))] +
      stream.every_s.value_or(0) * static_cast<double>(stream.rotation.value_or(0));
  std::string names;
  for (int64_t file = 0; file < 2; file++) {
    PathValues values;
    Result<Date> date = date_after("2026-11-21 06:00:00", "proleptic_gregorian",
                                   interval_s * static_cast<double>(file));
    if (!date.ok()) break;
    values.date = *date;
    values.file = file;
    values.step = file * stream.rotation.value_or(1) * stream.every_steps.value_or(1);
    values.stream = stream.name;
    const std::string name = expand_path(*stream.path, values);
    if (names.find(name) != std::string::npos) break;
    names += (file ? ", then " : "") + name;
  }
  return names;
}

std::string line(const char* name, const std::string& text) {
  std::string head = std::string("  ") + name;
  head.resize(15, ' ');
  return head + text + "\n";
}

std::string keys_text(const FormatKeys& keys) {
  std::string text;
  for (const FormatKey& key : keys) {
    text += (text.empty() ? "" : ", ") + key.name + " = ";
    if (const auto* word = std::get_if<std::string>(&key.value)) text += *word;
    if (const auto* number = std::get_if<double>(&key.value)) text += number_text(*number);
    if (const auto* list = std::get_if<std::vector<double>>(&key.value))
      text += counted(static_cast<int64_t>(list->size()), "number");
  }
  return text;
}

std::string field_text(const FieldChoice& field) {
  constexpr const char* kOperations[] = {
      "value at the time", "mean since the frame before", "minimum since the frame before",
      "maximum since the frame before", "sum since the frame before"};
  std::string text =
      field.name + ": " + (field.operation ? kOperations[*field.operation] : "as the program says");
  if (field.compression) text += ", compression " + compression_text(*field.compression);
  if (field.rounding) text += ", rounded " + rounding_text(*field.rounding);
  if (!field.chunk.empty()) {
    text += ", chunks of ";
    for (size_t i = 0; i < field.chunk.size(); i++)
      text += (i ? " x " : "") + std::to_string(field.chunk[i]);
  }
  if (!field.keys.empty()) text += ", GRIB: " + keys_text(field.keys);
  return text;
}

std::string files_text(const StreamChoice& s) {
  constexpr const char* kPeriods[] = {"", "day", "month", "year"};
  if (!s.rotation) return "as the program says";
  if (s.period) return "a new one for each " + std::string(kPeriods[static_cast<int>(*s.period)]);
  return *s.rotation == 0 ? "one for the whole run"
                          : "a new one after " + counted(*s.rotation, "frame");
}

std::string stream_text(const StreamChoice& s) {
  std::string text = "\nstream " + s.name + (s.must_exist ? "" : ", if the program has it") +
                     (s.enabled ? "\n" : ": switched off\n");
  if (!s.enabled) return text;
  const std::string program = "as the program says";
  text += line("every", s.every_s       ? duration_text(*s.every_s)
                        : s.every_steps ? counted(*s.every_steps, "step")
                                        : program);
  text += line("files", files_text(s));
  constexpr const char* kExisting[] = {
      "files that are there already are replaced", "a file that is there already is an error",
      "this run's frames follow those of files that are there already"};
  if (s.existing) text += line("existing", kExisting[static_cast<int>(*s.existing)]);
  text += line("names", s.path ? examples_text(s) : program);
  text += line("format", s.format.value_or(program) + limits_text(s));
  if (s.compression)
    text += line("compression", compression_text(*s.compression) + needs_text(s, s.compression));
  if (s.rounding) text += line("rounding", rounding_text(*s.rounding));
  for (const auto& [key, value] : s.hints) text += line("hint", key + " = " + value);
  if (!s.keys.empty()) text += line("GRIB", keys_text(s.keys));
  if (!s.fields) return text + line("fields", program);
  for (const FieldChoice& field : *s.fields)
    text += line("field", field_text(field) + needs_text(s, field.compression));
  return text;
}

}  // namespace

Status check_ranks(const Settings& settings, int64_t ranks) {
  if (ranks > 0 && settings.mode == Mode::kCollective && settings.aggregators > ranks) {
    return {WEIR_E_CONFIG, "aggregators is " + std::to_string(settings.aggregators) +
                               ", but the job has only " + counted(ranks, "rank")};
  }
  if (ranks <= 0 || settings.servers() < ranks) return {};
  return {WEIR_E_CONFIG, std::to_string(settings.groups) + " groups of " +
                             std::to_string(settings.servers_per_group) + " servers are " +
                             std::to_string(settings.servers()) +
                             " servers, but the job has only " + counted(ranks, "rank") +
                             "; at least one must compute"};
}

std::string explain(const Config& config, int64_t ranks) {
  std::string text = "configuration  " + config.source + "\n";
  for (const std::string& override_text : config.overrides)
    text += "environment    " + override_text + "\n";
  text +=
      "mode           " + mode_text(config.settings) + "\n" + ranks_text(config.settings, ranks);
  for (const StreamChoice& stream : config.streams) text += stream_text(stream);
  text += config.streams.empty() ? "\nstreams        all as the program says\n"
                                 : "\nOther streams are as the program says.\n";
  for (const std::string& warning : config.warnings) text += "warning: " + warning + "\n";
  return text;
}

}  // namespace weir::output
