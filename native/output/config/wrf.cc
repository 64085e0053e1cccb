// SPDX-License-Identifier: Apache-2.0
// What weir makes of WRF's namelist.input: &namelist_quilt says how many servers there are,
// io_form_history whether files are written by one rank or by several, and the history, auxhist and
// restart entries of &time_control what the streams of these names do, one for each domain:
// `history` is domain 1 (`history_d01` too), `history_d02` domain 2. Source: run/README.namelist of
// WRF 4. All other entries are WRF's own.
#include <algorithm>
#include <charconv>
#include <map>

#include "output/config/namelist.h"
#include "output/config/settings.h"
#include "output/model/path.h"
#include "output/model/text.h"

namespace weir::output {
namespace {

constexpr int kMostDomains = 99;

struct Form {
  int number;
  bool parallel;
  const char* format;  // null: the program's
};
constexpr Form kForms[] = {{2, false, nullptr}, {11, true, nullptr}, {13, true, "netcdf4"}};

class Meaning {
 public:
  explicit Meaning(const Source& source) : file_(source.path) {}

  Status read(const std::string& text, Config* config) {
    Result<std::vector<NamelistGroup>> groups =
        read_namelist(file_, text, {"time_control", "namelist_quilt", "domains"});
    if (!groups.ok()) return groups.status();
    for (const NamelistGroup& group : *groups) {
      for (const NamelistEntry& entry : group.entries) {
        if (group.name == "namelist_quilt") {
          WEIR_TRY(quilt(entry));
        } else if (group.name == "domains") {
          WEIR_TRY(max_dom(entry));
        } else {
          time_[entry.name] = merged(entry);
        }
      }
    }
    WEIR_TRY(mode(config));
    WEIR_TRY(streams("history", "history_", "frames_per_outfile", "history_outname", config));
    WEIR_TRY(streams("restart", "restart_", "", "rst_outname", config));
    for (int i = 1; i <= 24; i++) {
      const std::string name = "auxhist" + std::to_string(i);
      WEIR_TRY(streams(name, name + "_", "frames_per_" + name, name + "_outname", config));
    }
    return {};
  }

 private:
  Status wrong(const NamelistEntry& entry, const std::string& why) const {
    return {WEIR_E_CONFIG, file_ + ":" + std::to_string(entry.line) + ":" +
                               std::to_string(entry.column) + ": " + entry.name + ": " + why};
  }
  Status wrong(const NamelistEntry& entry, const NamelistValue& value,
               const std::string& expected) const {
    return {WEIR_E_CONFIG, file_ + ":" + std::to_string(value.line) + ":" +
                               std::to_string(value.column) + ": " + entry.name + " is " +
                               quoted(value.text) + "; expected " + expected};
  }

  // A name may be given several times, element by element.
  NamelistEntry merged(const NamelistEntry& entry) const {
    NamelistEntry all = entry;
    if (const auto before = time_.find(entry.name); before != time_.end())
      all.values.insert(before->second.values.begin(), before->second.values.end());
    return all;
  }

  Result<int64_t> whole(const NamelistEntry& entry, const NamelistValue& value, int64_t low) const {
    int64_t number = 0;
    const char* end = value.text.data() + value.text.size();
    const auto done = std::from_chars(value.text.data(), end, number);
    if (value.quoted || done.ec != std::errc() || done.ptr != end || number < low ||
        number > (int64_t{1} << 30)) {
      return wrong(entry, value, "a whole number from " + std::to_string(low));
    }
    return number;
  }

  // Element `domain` of the entry, or nothing when it is not given.
  Result<std::optional<int64_t>> number(const std::string& name, int domain) const {
    const auto entry = time_.find(name);
    if (entry == time_.end()) return std::optional<int64_t>();
    const auto value = entry->second.values.find(domain);
    if (value == entry->second.values.end()) return std::optional<int64_t>();
    Result<int64_t> found = whole(entry->second, value->second, 0);
    if (!found.ok()) return found.status();
    return std::optional<int64_t>(*found);
  }

  Status quilt(const NamelistEntry& entry) {
    const std::vector<std::string> keys = {"nio_tasks_per_group", "nio_groups", "poll_servers"};
    if (entry.name == "poll_servers") return {};  // groups take frames in turn
    if (entry.name != "nio_tasks_per_group" && entry.name != "nio_groups") {
      return wrong(entry, "&namelist_quilt has no such entry" + did_you_mean(entry.name, keys));
    }
    const auto first = entry.values.find(1);
    if (first == entry.values.end()) return {};
    Result<int64_t> count = whole(entry, first->second, entry.name == "nio_groups" ? 1 : 0);
    if (!count.ok()) return count.status();
    (entry.name == "nio_groups" ? groups_ : ranks_) = *count;
    return {};
  }

  Status max_dom(const NamelistEntry& entry) {
    const auto first = entry.values.find(1);
    if (entry.name != "max_dom" || first == entry.values.end()) return {};
    Result<int64_t> count = whole(entry, first->second, 1);
    if (!count.ok()) return count.status();
    if (*count > kMostDomains) return wrong(entry, first->second, "at most 99 domains");
    max_dom_ = static_cast<int>(*count);
    return {};
  }

  // The form of a stream's files: nothing when it is not given.
  Status form(const std::string& name, const Form** found, bool* off) const {
    Result<std::optional<int64_t>> number_given = number("io_form_" + name, 1);
    if (!number_given.ok()) return number_given.status();
    if (!*number_given) return {};
    *off = **number_given == 0;
    for (const Form& one : kForms) {
      if (one.number == **number_given) *found = &one;
    }
    if (*off || *found) return {};
    const NamelistEntry& entry = time_.at("io_form_" + name);
    return wrong(
        entry, entry.values.at(1),
        "2 (netCDF, one writer), 11 (netCDF, parallel), 13 (netCDF-4, parallel) or 0 (none)");
  }

  Status mode(Config* config) {
    const Form* history = nullptr;
    bool off = false;
    WEIR_TRY(form("history", &history, &off));
    const bool parallel = history && history->parallel;
    Settings& settings = config->settings;
    if (ranks_ > 0) {
      settings.mode = parallel ? Mode::kServersParallel : Mode::kServers;
      settings.groups = groups_;
      settings.servers_per_group = ranks_;
    } else {
      settings.mode = parallel ? Mode::kCollective : Mode::kSerial;
    }
    return {};
  }

  // WRF adds nothing up: an interval in days, hours, minutes, seconds goes before the one in
  // minutes.
  Status interval(const std::string& prefix, int domain, std::optional<double>* seconds) const {
    constexpr std::pair<const char*, double> kParts[] = {
        {"interval_d", 86400}, {"interval_h", 3600}, {"interval_m", 60}, {"interval_s", 1}};
    double sum = 0;
    for (const auto& [suffix, unit] : kParts) {
      Result<std::optional<int64_t>> part = number(prefix + suffix, domain);
      if (!part.ok()) return part.status();
      sum += unit * static_cast<double>(part->value_or(0));
    }
    Result<std::optional<int64_t>> minutes = number(prefix + "interval", domain);
    if (!minutes.ok()) return minutes.status();
    if (sum > 0) {
      *seconds = sum;
    } else if (*minutes) {
      *seconds = 60.0 * static_cast<double>(**minutes);
    }
    return {};
  }

  // wrfout_d<domain>_<date>, as WRF expands it.
  Status path(const NamelistEntry& entry, int domain, std::string* out) const {
    const auto value = entry.values.find(1);
    if (value == entry.values.end()) return {};
    const std::string& text = value->second.text;
    for (size_t at = 0; at < text.size();) {
      const size_t close = text[at] == '<' ? text.find('>', at) : std::string::npos;
      if (close == std::string::npos) {
        if (text[at] == '%' || text[at] == '{' || text[at] == '}') *out += text[at];
        *out += text[at++];
        continue;
      }
      const std::string word = text.substr(at + 1, close - at - 1);
      if (word == "domain") {
        *out += (domain < 10 ? "0" : "") + std::to_string(domain);
      } else if (word == "date") {
        *out += "%Y-%m-%d_%H:%M:%S";
      } else {
        return wrong(entry, value->second,
                     "<domain> and <date> to stand for themselves, and no other <" + word + ">");
      }
      at = close + 1;
    }
    Status status = check_path_template(*out);
    return status.ok() ? status : wrong(entry, status.message());
  }

  // max_dom, and without it the most that an entry lists.
  int domains_of(const std::vector<std::string>& names) const {
    if (max_dom_ > 0) return max_dom_;
    int64_t most = 1;
    for (const std::string& name : names) {
      const auto entry = time_.find(name);
      if (entry != time_.end() && !entry->second.values.empty())
        most = std::max(most, entry->second.values.rbegin()->first);
    }
    return static_cast<int>(std::min<int64_t>(most, kMostDomains));
  }

  Status streams(const std::string& name, const std::string& prefix, const std::string& frames,
                 const std::string& outname, Config* config) const {
    const Form* given = nullptr;
    bool off = false;
    WEIR_TRY(form(name, &given, &off));
    const int domains =
        domains_of({prefix + "interval", prefix + "interval_d", prefix + "interval_h",
                    prefix + "interval_m", prefix + "interval_s", frames});
    for (int domain = 1; domain <= domains; domain++) {
      StreamChoice choice;
      WEIR_TRY(one_domain(prefix, frames, outname, domain, &choice));
      if (given && given->format) choice.format = given->format;
      choice.enabled = choice.enabled && !off;
      choice.must_exist = false;
      if (says_nothing(choice)) continue;
      choice.name = name + (domain < 10 ? "_d0" : "_d") + std::to_string(domain);
      if (domain == 1) {
        config->streams.push_back(choice);
        config->streams.back().name = name;
      }
      config->streams.push_back(std::move(choice));
    }
    return {};
  }

  static bool says_nothing(const StreamChoice& choice) {
    return choice.enabled && !choice.path && !choice.format && !choice.every_s && !choice.rotation;
  }

  Status one_domain(const std::string& prefix, const std::string& frames,
                    const std::string& outname, int domain, StreamChoice* choice) const {
    WEIR_TRY(interval(prefix, domain, &choice->every_s));
    choice->place = file_;
    if (choice->every_s && *choice->every_s == 0) {
      choice->enabled = false;  // WRF's way to switch a stream off
      choice->every_s.reset();
    }
    Result<std::optional<int64_t>> rotation = number(frames, domain);
    if (!rotation.ok()) return rotation.status();
    choice->rotation = *rotation;
    const auto entry = time_.find(outname);
    if (entry == time_.end()) return {};
    std::string expanded;
    WEIR_TRY(path(entry->second, domain, &expanded));
    if (!expanded.empty()) choice->path = expanded;
    return {};
  }

  const std::string& file_;
  std::map<std::string, NamelistEntry> time_;
  int64_t groups_ = 1, ranks_ = 0;
  int max_dom_ = 0;  // 0: not given
};

}  // namespace

Result<Config> parse_wrf_namelist(const Source& source) {
  Config config;
  WEIR_TRY(Meaning(source).read(source.text, &config));
  return config;
}

}  // namespace weir::output
