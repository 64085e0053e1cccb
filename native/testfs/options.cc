// SPDX-License-Identifier: Apache-2.0
#include "testfs/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <array>
#include <charconv>
#include <cmath>
#include <vector>

namespace weir::testfs {
namespace {

struct Number {
  const char* name;
  Word Options::*word;
  double unit;  // what one of the option is in the word's unit
  bool fixed;   // from the mount on
  double largest;
  double smallest = 0;
};

constexpr Number kNumbers[] = {
    {"round_trip_us", &Options::round_trip_ns, 1e3, false, 60e6},
    {"metadata_us", &Options::metadata_ns, 1e3, false, 60e6},
    {"data_us", &Options::data_ns, 1e3, false, 60e6},
    {"bandwidth_mb", &Options::bytes_per_s, 1e6, false, 1e6},
    {"direct_io", &Options::direct_io, 1, false, 1},
    {"attr_timeout_s", &Options::attr_timeout_ns, 1e9, false, 86400},
    {"entry_timeout_s", &Options::entry_timeout_ns, 1e9, false, 86400},
    {"threads", &Options::threads, 1, true, 1024, 1},
    {"writeback", &Options::writeback, 1, true, 1},
};

struct Errno {
  const char* name;
  int number;
};
constexpr Errno kErrnos[] = {
    {"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT},       {"EACCES", EACCES},
    {"EPERM", EPERM},   {"ENOENT", ENOENT}, {"ESTALE", ESTALE},       {"EINTR", EINTR},
    {"EAGAIN", EAGAIN}, {"EROFS", EROFS},   {"EFBIG", EFBIG},         {"EMFILE", EMFILE},
    {"ENFILE", ENFILE}, {"ENOMEM", ENOMEM}, {"ETIMEDOUT", ETIMEDOUT}, {"EBUSY", EBUSY},
    {"ENOLCK", ENOLCK}, {"ENXIO", ENXIO},   {"EINVAL", EINVAL},       {"ENOTCONN", ENOTCONN},
};

// A plain decimal number from 0 to `largest`, all of the text.
bool number(std::string_view text, double largest, double* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && *value >= 0 &&
         *value <= largest;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// One kind, several joined by `+`, `any`, `data` or `metadata`.
uint64_t kinds_of(std::string_view text) {
  uint64_t kinds = 0;
  for (std::string_view name : split(text, '+')) {
    uint64_t found = 0;
    for (unsigned i = 0; i < kKinds; ++i) {
      const Kind kind = static_cast<Kind>(i);
      const bool wanted = name == "any" || name == kind_name(kind) ||
                          (name == "data" && kind_cost(kind) == Cost::data) ||
                          (name == "metadata" && kind_cost(kind) == Cost::metadata);
      // The kernel ignores the answer to a release: an error of it would only be lost.
      if (wanted && kind_cost(kind) != Cost::nothing) found |= 1ull << i;
    }
    if (found == 0) return 0;
    kinds |= found;
  }
  return kinds;
}

uint64_t errno_of(std::string_view text) {
  for (const Errno& known : kErrnos) {
    if (text == known.name) return static_cast<uint64_t>(known.number);
  }
  double value = 0;
  return number(text, 133, &value) ? static_cast<uint64_t>(value) : 0;
}

struct FailText {
  uint64_t kinds = 0, error = EIO, seed = 1, after = 0, times = kNever;
  double rate = 1;
};

// op:errno[:rate[:seed]][:after=N][:times=N]
bool parse_fail(std::string_view text, FailText* fail) {
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() < 2) return false;
  fail->kinds = kinds_of(parts[0]);
  fail->error = errno_of(parts[1]);
  if (fail->kinds == 0 || fail->error == 0) return false;
  for (size_t i = 2; i < parts.size(); ++i) {
    const std::vector<std::string_view> pair = split(parts[i], '=');
    double value = 0;
    if (pair.size() > 2 || !number(pair.back(), 9e15, &value)) return false;
    const uint64_t whole = static_cast<uint64_t>(value);
    if (pair.size() == 2 && pair[0] == "after") fail->after = whole;
    else if (pair.size() == 2 && pair[0] == "times") fail->times = whole;
    else if (pair.size() == 1 && i == 2 && value <= 1) fail->rate = value;
    else if (pair.size() == 1 && i == 3) fail->seed = whole;
    else return false;
  }
  return true;
}

bool add_fail(Options& options, std::string_view text, std::string* message) {
  if (text.empty() || text == "none") {
    for (FailRule& rule : options.fail) rule.kinds = 0;
    return true;
  }
  FailText fail;
  if (!parse_fail(text, &fail)) {
    *message =
        "expected fail=op:errno:rate:seed (op: a request as the counters name it, several joined "
        "by +, data, "
        "metadata or any; errno: its name; then also after=N and times=N), or fail=none";
    return false;
  }
  for (FailRule& rule : options.fail) {
    if (rule.kinds != 0) continue;
    rule.error = fail.error;
    rule.rate = static_cast<uint64_t>(std::ldexp(fail.rate, 32));
    rule.seed = fail.seed;
    rule.after = fail.after;
    rule.times = fail.times;
    rule.seen = 0;
    rule.kinds = fail.kinds;  // last: now it counts
    return true;
  }
  *message =
      "there are " + std::to_string(kFailRules) + " failures already; fail=none removes them";
  return false;
}

bool set_hang(Options& options, std::string_view text) {
  double seconds = 0;
  if (!number(text, 86400, &seconds)) return false;
  options.hang_until_ns = seconds == 0 ? 0 : now_ns() + static_cast<uint64_t>(seconds * 1e9);
  return true;
}

bool set_space(Options& options, std::string_view text) {
  double bytes = 0;
  if (text == "none") {
    options.space_bytes = kNever;
    return true;
  }
  if (!number(text, 9e15, &bytes)) return false;
  options.space_bytes = static_cast<uint64_t>(bytes);
  return true;
}

}  // namespace

void set_defaults(Options& options) {
  options.space_bytes = kNever;
  options.attr_timeout_ns = 1'000'000'000;
  options.entry_timeout_ns = 1'000'000'000;
  options.threads = 128;
}

bool set_option(State& state, std::string_view text, When when, std::string* message) {
  Options& options = state.options;
  const size_t equals = text.find('=');
  const std::string name(text.substr(0, equals));
  const std::string_view value = equals == std::string_view::npos ? "" : text.substr(equals + 1);
  if (name == "fail") return add_fail(options, value, message);
  if (name == "hang_s" || name == "hang") {
    *message = "expected hang=SECONDS, 0 to go on at once";
    return set_hang(options, value);
  }
  if (name == "enospc_after") {
    *message = "expected enospc_after=BYTES, or none";
    return set_space(options, value);
  }
  for (const Number& option : kNumbers) {
    if (name != option.name) continue;
    double given = 0;
    if (option.fixed && when == When::running) {
      *message = name + " can only be given at the mount";
      return false;
    }
    if (!number(value, option.largest, &given) || given < option.smallest) {
      *message = "expected " + name + "=N, a number from " +
                 std::to_string(static_cast<long long>(option.smallest)) + " to " +
                 std::to_string(static_cast<long long>(option.largest));
      return false;
    }
    (options.*option.word) = static_cast<uint64_t>(std::llround(given * option.unit));
    return true;
  }
  *message = "there is no option `" + name + "`; there are hang, enospc_after, fail";
  for (const Number& option : kNumbers) *message += std::string(", ") + option.name;
  return false;
}

std::string options_json(const Options& options) {
  std::string json;
  char text[64];
  for (const Number& option : kNumbers) {
    snprintf(text, sizeof text, "\"%s\": %.9g, ", option.name,
             static_cast<double>((options.*option.word).load()) / option.unit);
    json += text;
  }
  const uint64_t space = options.space_bytes;
  json += "\"enospc_after\": " + (space == kNever ? "null" : std::to_string(space));
  unsigned rules = 0;
  for (const FailRule& rule : options.fail) rules += rule.kinds != 0;
  const uint64_t until = options.hang_until_ns, now = now_ns();
  snprintf(text, sizeof text, ", \"fail\": %u, \"hang\": %.3f", rules,
           until > now ? static_cast<double>(until - now) / 1e9 : 0.0);
  return json + text;
}

}  // namespace weir::testfs
