// SPDX-License-Identifier: Apache-2.0
// GRIB, editions 1 and 2: each level of each field is a message of its own, encoded by one owner.
#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "output/format/grib/file.h"
#include "output/format/grib/reader.h"
#include "output/model/text.h"
#include "output/transport/team.h"

namespace weir::output::grib {
namespace {

// All that decides about the headers of a plan, as a text.
std::string fingerprint(const Plan& plan) {
  std::string text = plan.field + " " + std::to_string(plan.edition) + " " +
                     std::to_string(plan.points) + " " + std::to_string(plan.type) + " " +
                     plan.standard_name + " " + plan.units + " " + plan.named_grid + " " +
                     std::to_string(plan.from_start) + " " + number_text(plan.information) +
                     (plan.missing ? number_text(*plan.missing) : "");
  const auto add = [&](const FormatKeys& keys) {
    for (const FormatKey& key : keys) {
      text += "\n" + key.name + "=";
      if (const auto* list = std::get_if<std::vector<double>>(&key.value)) {
        for (double number : *list) text += number_text(number) + " ";
      } else {
        text += value_text(key);
      }
    }
    text += ";";
  };
  for (const FormatKeys* keys : {&plan.header, &plan.parameters, &plan.rest, &plan.packing})
    add(*keys);
  for (const FormatKeys& level : plan.levels) add(level);
  return text;
}

}  // namespace

class GribFormat : public Format {
 public:
  GribFormat(const FormatRow& row, int edition) : Format(row), edition_(edition) {}
  Status ready() const override { return library_ready(); }
  Status check(const FileDescription& description) const override;
  Status prepare(const FileDescription& description) override {
    return encoders_of(description).status();
  }
  Status same(const FileDescription& description, const std::string& path) const override;
  int64_t granule(const FileDescription& description, int variable) const override;
  bool encodes_in_threads() const override { return true; }
  Result<std::unique_ptr<File>> create(const FileDescription& description, const std::string& path,
                                       const FileOptions& options, Team& owners) override {
    return make(description, path, options, owners, -1);
  }
  Result<std::unique_ptr<File>> open(const FileDescription& description, const std::string& path,
                                     const FileOptions& options, Team& owners,
                                     int64_t records) override {
    return make(description, path, options, owners, records);
  }
  std::string selects_records() const override {
    return "grib_copy -w validityDate=DATE,validityTime=TIME1/TIME2 IN OUT";
  }
  bool is_file(const std::string& path) const override { return is_grib(path); }
  Result<std::unique_ptr<Reader>> reader(const std::string& path) const override {
    return GribReader::open(path);
  }

 private:
  Result<Encoders> encoders_of(const FileDescription& description);
  Result<std::unique_ptr<File>> make(const FileDescription& description, const std::string& path,
                                     const FileOptions& options, Team& owners, int64_t records);

  const int edition_;
  std::mutex mutex_;
  // Headers are made once, whatever the number of files: those of a stream that begins a new file
  // are the same. Encoders have scratch memory, and belong to one file at a time.
  std::map<std::string, std::vector<std::shared_ptr<Encoder>>> made_;
};

Status GribFormat::check(const FileDescription& description) const {
  Result<Clock> clock = Clock::of(description);
  if (!clock.ok()) return clock.status();
  for (size_t v = 0; v < description.variables.size(); v++) {
    if (!is_field(description, static_cast<int>(v), edition_)) continue;
    const Result<Plan> plan = plan_of(description, static_cast<int>(v), edition_);
    if (!plan.ok())
      return {plan.status().code(), std::string(name()) + ": " + plan.status().message()};
    const Variable& field = description.variables[v];
    if (field.compression.kind != Compression::Kind::kNone) {
      return {WEIR_E_ARGUMENT, std::string(name()) + ": variable " + field.name +
                                   " asks for compression, which GRIB has not; " +
                                   (edition_ == 2 ? "give grib = { packingType = \"grid_ccsds\" }, "
                                                  : "") +
                                   "use format " +
                                   one_of(format_names(true)) + ", or compression none"};
    }
  }
  return {};
}

Status GribFormat::same(const FileDescription& description, const std::string& path) const {
  Result<std::unique_ptr<GribReader>> reader = GribReader::open_grib(path);
  return reader.ok() ? (*reader)->same(description, edition_) : reader.status();
}

int64_t GribFormat::granule(const FileDescription& description, int variable) const {
  if (!is_field(description, variable, edition_)) return 1;
  const Result<Plan> plan = plan_of(description, variable, edition_);
  return plan.ok() ? (*plan).points : 1;
}

Result<Encoders> GribFormat::encoders_of(const FileDescription& description) {
  Encoders encoders(description.variables.size());
  for (size_t v = 0; v < encoders.size(); v++) {
    if (!is_field(description, static_cast<int>(v), edition_)) continue;
    Result<Plan> plan = plan_of(description, static_cast<int>(v), edition_);
    if (!plan.ok()) return plan.status();
    const std::string key = fingerprint(*plan);
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Encoder>>& known = made_[key];
    const auto idle = std::find_if(known.begin(), known.end(),
                                   [](const auto& one) { return one.use_count() == 1; });
    if (idle != known.end()) {
      encoders[v] = *idle;
      continue;
    }
    Result<std::unique_ptr<Encoder>> made = Encoder::make(std::move(*plan));
    if (!made.ok()) return made.status();
    encoders[v] = std::move(*made);
    known.push_back(encoders[v]);
  }
  return encoders;
}

Result<std::unique_ptr<File>> GribFormat::make(const FileDescription& description,
                                               const std::string& path, const FileOptions& options,
                                               Team& owners, int64_t records) {
  Result<Encoders> encoders = encoders_of(description);
  Result<Clock> clock = Clock::of(description);
  WEIR_TRY(owners.agree(encoders.ok() ? clock.status() : encoders.status()));
  auto file = std::make_unique<GribFile>(description, std::move(*encoders), std::move(*clock),
                                         options, owners);
  WEIR_TRY(file->open(path, records));
  return std::unique_ptr<File>(std::move(file));
}

}  // namespace weir::output::grib

namespace weir::output {

Format& grib1_format(const FormatRow& row) {
  static grib::GribFormat format(row, 1);
  return format;
}

Format& grib2_format(const FormatRow& row) {
  static grib::GribFormat format(row, 2);
  return format;
}

}  // namespace weir::output
