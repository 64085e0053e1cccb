// SPDX-License-Identifier: Apache-2.0
#include "testfs/report.h"

#include <stdio.h>

#include "testfs/options.h"

namespace weir::testfs {
namespace {

std::string quoted(const char* text) {
  std::string json = "\"";
  for (; *text != '\0'; ++text) {
    const unsigned char c = static_cast<unsigned char>(*text);
    if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f) {
      char escape[8];
      snprintf(escape, sizeof escape, "\\u%04x", c);
      json += escape;
    } else {
      json += *text;
    }
  }
  return json + '"';
}

std::string member(const char* name, const Word& word) {
  return quoted(name) + ": " + std::to_string(word.load(std::memory_order_relaxed));
}

// Counters by kind of request; those of a file without the zeros.
std::string by_kind(const Word* counts, bool zeros) {
  std::string json = "{";
  for (unsigned i = 0; i < kKinds; ++i) {
    if (!zeros && counts[i].load(std::memory_order_relaxed) == 0) continue;
    if (json.size() > 1) json += ", ";
    json += member(kind_name(static_cast<Kind>(i)), counts[i]);
  }
  return json + "}";
}

std::string transfers(const Transfers& of) {
  std::string sizes;
  for (unsigned i = 0; i < kSizeClasses; ++i) {
    const uint64_t count = of.sizes[i].load(std::memory_order_relaxed);
    if (count == 0) continue;
    if (!sizes.empty()) sizes += ", ";
    sizes += "\"" + std::to_string(1ull << i) + "\": " + std::to_string(count);
  }
  return "{\"sizes\": {" + sizes + "}, " + member("offsets_4k", of.offsets_4k) + ", " +
         member("offsets_1m", of.offsets_1m) + ", " + member("aligned_4k", of.aligned_4k) + ", " +
         member("aligned_1m", of.aligned_1m) + "}";
}

bool is_used(const FileEntry& entry) {
  for (const Word& count : entry.requests) {
    if (count.load(std::memory_order_relaxed) != 0) return true;
  }
  return false;
}

std::string files(const State& state) {
  std::string json = "{";
  const uint64_t count = state.file_count.load(std::memory_order_acquire);
  for (uint64_t i = 0; i < count; ++i) {
    const FileEntry& entry = state.files[i];
    if (!is_used(entry)) continue;
    if (json.size() > 1) json += ", ";
    json += quoted(state.names + entry.name_at) +
            ": {\"requests\": " + by_kind(entry.requests, false) + ", " +
            member("bytes_read", entry.bytes_read) + ", " +
            member("bytes_written", entry.bytes_written) + "}";
  }
  return json + "}";
}

}  // namespace

std::string stats_json(const State& state) {
  std::string json = "{\"mount\": " + quoted(state.names + state.mount_at);
  json += ", \"backing\": " + quoted(state.names + state.backing_at);
  json += ", \"pid\": " + std::to_string(state.pid) +
          ", \"running\": " + (is_alive(state) ? "true" : "false");
  json += ", \"options\": {" + options_json(state.options) + "}";
  json += ", \"requests\": " + by_kind(state.requests, true);
  json += ", \"errors\": " + by_kind(state.errors, false);
  json += ", " + member("injected", state.injected);
  json += ", " + member("bytes_read", state.bytes_read) + ", " +
          member("bytes_written", state.bytes_written);
  json += ", " + member("in_flight", state.in_flight) + ", " +
          member("max_in_flight", state.max_in_flight);
  json += ", " + member("max_data_in_flight", state.max_data_in_flight);
  json += ", \"reads\": " + transfers(state.reads) + ", \"writes\": " + transfers(state.writes);
  json += ", " + member("files_lost", state.files_lost);
  return json + ", \"files\": " + files(state) + "}\n";
}

}  // namespace weir::testfs
