// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/reader.h"

#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "output/model/text.h"

namespace weir::output::grib {
namespace {

constexpr int kUpward = 0x40;  // rows from south to north

double apart(double a, double b) { return std::abs(std::remainder(a - b, 360)); }

// Whether the rows of a message are in the opposite order.
bool is_turned(const Identity& has, int scanning) {
  return (has.scanning & kUpward) != (scanning & kUpward);
}

// Where a grid begins and ends, in words.
std::string corners_of(const Identity& id) {
  return number_text(id.first_lat) + " N, " + number_text(id.first_lon) + " E to " +
         number_text(id.last_lat) + " N, " + number_text(id.last_lon) + " E (scanning mode " +
         std::to_string(id.scanning) + ")";
}

}  // namespace

std::string in_words(const Identity& id) {
  std::string text;
  for (int64_t n : id.parameter) text += (text.empty() ? "" : ".") + std::to_string(n);
  text = "parameter " + text;
  if (!id.level.empty()) text += ", level type " + number_text(id.level[0]);
  if (id.level.size() > 1) text += ", level " + number_text(id.level[1]);
  return text;
}

bool is_grib(const std::string& path) {
  const Result<PosixFile> file = PosixFile::open(path, O_RDONLY);
  if (!file.ok()) return false;
  char word[4] = {};
  if (!(*file).read_at(word, sizeof word, 0).ok()) return false;
  if (std::memcmp(word, "GRIB", sizeof word) == 0) return true;  // also a torn one
  const Result<std::optional<int64_t>> first = find_message(*file, 0);
  return first.ok() && (*first).has_value();
}

Result<std::unique_ptr<Reader>> GribReader::open(const std::string& path) {
  Result<std::unique_ptr<GribReader>> reader = open_grib(path);
  if (!reader.ok()) return reader.status();
  return std::unique_ptr<Reader>(std::move(*reader));
}

Result<std::unique_ptr<GribReader>> GribReader::open_grib(const std::string& path) {
  WEIR_TRY(library_ready());
  auto reader = std::make_unique<GribReader>();
  Result<PosixFile> file = PosixFile::open(path, O_RDONLY);
  if (!file.ok()) return file.status();
  reader->file_ = std::move(*file);
  Result<std::vector<Message>> messages = scan(reader->file_);
  if (!messages.ok()) return messages.status();
  reader->messages_ = std::move(*messages);
  for (const Message& message : reader->messages_) {
    Result<std::vector<char>> head = read_head(reader->file_, message);
    if (!head.ok()) return head.status();
    reader->identities_.push_back(identity_of(*head, message.edition));
  }
  return reader;
}

Status GribReader::check_whole() const {
  Result<int64_t> size = file_.size();
  if (!size.ok()) return size.status();
  const int64_t end =
      messages_.empty() ? 0 : messages_.back().offset + messages_.back().length;
  if (*size == end) return {};
  Result<bool> ends = is_end(file_, end);
  if (!ends.ok()) return ends.status();
  if (*ends && !messages_.empty()) return {};
  return {WEIR_E_FORMAT,
          file_.path() + " is truncated: it has " + std::to_string(*size) +
              " bytes, and what begins at byte " + std::to_string(end) + ", behind " +
              std::to_string(messages_.size()) +
              " messages, is no complete message; copy it again, or take what is whole out of it "
              "(head -c " + std::to_string(end) + ")"};
}

Result<Found> GribReader::find(const std::string& variable) {
  if (const auto known = known_.find(variable); known != known_.end()) return known->second.found;
  if (variable != "time") {
    return Status(WEIR_E_FORMAT, file_.path() + ": files of GRIB have no names; " +
                                     quoted(variable) + " is found by the definition of a field");
  }
  Found found{WEIR_FLOAT64, true, 0, {}};
  // What is once in a file comes before what is in every record.
  for (const Identity& id : identities_)
    found.records += id.is_of(identities_.back()) && id.process == identities_.back().process;
  return found;
}

Result<std::vector<size_t>> GribReader::messages_of(const Identity& wanted,
                                                    const std::string& what) const {
  std::vector<size_t> all, exact;
  int process = INT_MIN;
  bool mixed = false;
  for (size_t i = 0; i < identities_.size(); i++) {
    if (!identities_[i].is_of(wanted)) continue;
    all.push_back(i);
    mixed |= process != INT_MIN && process != identities_[i].process;
    process = identities_[i].process;
    if (identities_[i].process == wanted.process) exact.push_back(i);
  }
  if (!exact.empty()) return exact;
  if (all.empty())
    return Status(WEIR_E_FORMAT, what + " is not in the file (" + in_words(wanted) + ")");
  if (mixed) {
    return Status(WEIR_E_FORMAT, what + " is in the file as several of mean, sum, minimum and "
                                        "maximum, but not as a value of one moment");
  }
  return all;
}

Status GribReader::check_grid(const Identity& wanted, size_t message,
                              const std::string& what) const {
  const Identity& has = identities_[message];
  const std::string cure = "; declare the grid of the file, or bring the file to the field's "
                           "first (cdo remapbil)";
  if (has.grid != wanted.grid) {
    return {WEIR_E_FORMAT, what + " is on another grid, " + grid_in_words(has, edition()) +
                               ", than the field, which is on " +
                               grid_in_words(wanted, edition()) + cure};
  }
  const bool turned = is_turned(has, wanted.scanning);
  const double first = turned ? wanted.last_lat : wanted.first_lat,
               last = turned ? wanted.first_lat : wanted.last_lat;
  if ((has.scanning | kUpward) != (wanted.scanning | kUpward) ||
      apart(has.first_lat, first) > kSameDegrees || apart(has.last_lat, last) > kSameDegrees ||
      apart(has.first_lon, wanted.first_lon) > kSameDegrees ||
      apart(has.last_lon, wanted.last_lon) > kSameDegrees) {
    return {WEIR_E_FORMAT, what + " is on a grid from " + corners_of(has) +
                               ", the field's is from " + corners_of(wanted) + cure};
  }
  return {};
}

// Those of the messages that are on the field's grid. A file may have a field on several grids,
// each at every time; a time for which it is on others alone is none to be left out.
Result<std::vector<size_t>> GribReader::on_grid(const Identity& wanted,
                                                std::vector<size_t> messages,
                                                const std::string& what) const {
  std::vector<size_t> others;
  std::set<int64_t> times;
  Status wrong;
  std::erase_if(messages, [&](size_t message) {
    const Status status = check_grid(wanted, message, what);
    if (status.ok()) {
      times.insert(identities_[message].time_s);
    } else {
      others.push_back(message);
      if (wrong.ok()) wrong = status;
    }
    return !status.ok();
  });
  const auto alone = std::ranges::find_if(
      others, [&](size_t message) { return !times.contains(identities_[message].time_s); });
  if (alone == others.end()) return messages;
  if (messages.empty()) return wrong;
  return Status(WEIR_E_FORMAT, what + " is on the grid of the field in " +
                                   std::to_string(messages.size()) +
                                   " messages, and at another time, in the message at byte " +
                                   std::to_string(messages_[*alone].offset) +
                                   ", on another one alone: " +
                                   grid_in_words(identities_[*alone], edition()) +
                                   "; take the messages of one grid out of it (grib_copy -w)");
}

Result<GribReader::Known> GribReader::find_field(const FileDescription& description, int variable,
                                                 std::unique_ptr<Encoder>* keep) const {
  const Variable& v = description.variables[static_cast<size_t>(variable)];
  const std::string what = file_.path() + ": field " + quoted(v.name);
  Result<Plan> plan = plan_of(description, variable, edition());
  if (!plan.ok()) return plan.status();
  Result<std::unique_ptr<Encoder>> made = Encoder::make(std::move(*plan));
  if (!made.ok()) return made.status();
  Encoder& encoder = **made;
  Known known;
  known.found = {v.type, v.over_time, 1, encoder.plan().lengths};
  known.points = encoder.plan().points;
  known.missing = encoder.plan().missing;
  for (size_t level = 0; level < encoder.plan().messages(); level++) {
    Result<const Bytes*> header = encoder.header(level);
    if (!header.ok()) return header.status();
    const Identity wanted = identity_of(**header, edition());
    Result<std::vector<size_t>> found = messages_of(wanted, what);
    if (!found.ok()) return found.status();
    found = on_grid(wanted, std::move(*found), what);
    if (!found.ok()) return found.status();
    known.scanning = wanted.scanning;
    if (!known.levels.empty() && known.levels[0].size() != found->size()) {
      return Status(WEIR_E_FORMAT, what + " has " + std::to_string(found->size()) +
                                       " messages at " + in_words(wanted) + ", but " +
                                       std::to_string(known.levels[0].size()) +
                                       " at the first level");
    }
    known.rows = std::max<int64_t>(1, wanted.grid.size() > 2 ? wanted.grid[2] : 1);
    known.levels.push_back(std::move(*found));
  }
  if (v.over_time) known.found.records = static_cast<int64_t>(known.levels[0].size());
  if (keep != nullptr) *keep = std::move(*made);
  return known;
}

Status GribReader::find_time(const FileDescription& description, Known* known) {
  Result<Clock> clock = Clock::of(description);
  if (!clock.ok()) return clock.status();
  clock_ = std::move(*clock);
  known->found.over_time = true;
  for (size_t v = 0; v < description.variables.size(); v++) {
    const bool is_one = is_field(description, static_cast<int>(v), edition());
    if (!is_one || !description.variables[v].over_time) continue;
    Result<Known> field = find_field(description, static_cast<int>(v), nullptr);
    if (!field.ok()) return field.status();
    known->found.records = field->found.records;
    known->levels = std::move(field->levels);
    return {};
  }
  known->found.records = 0;
  return {};
}

Result<Found> GribReader::find(const FileDescription& description, int variable) {
  const Variable& v = description.variables[static_cast<size_t>(variable)];
  Known known;
  if (is_field(description, variable, edition())) {
    Result<Known> found = find_field(description, variable, nullptr);
    if (!found.ok()) return found.status();
    known = std::move(*found);
  } else {
    known.found.type = v.type;
    for (int d : v.dimensions)
      known.found.lengths.push_back(description.dimensions[static_cast<size_t>(d)].size);
    known.values = v.values;
    known.is_time = v.over_time;
    known.is_bounds = v.name == "time_bnds";
    if (known.is_time) WEIR_TRY(find_time(description, &known));
  }
  return known_.insert_or_assign(v.name, std::move(known)).first->second.found;
}

Status GribReader::load(const Known& known, size_t message) {
  if (loaded_ == message) return {};
  loaded_ = SIZE_MAX;
  const Message& at = messages_[message];
  std::vector<char> bytes(static_cast<size_t>(at.length));
  WEIR_TRY(file_.read_at(bytes.data(), bytes.size(), at.offset));
  const auto explain = [&](const Status& status) {
    return status.ok() ? status
                       : Status(status.code(), file_.path() + ": the message at byte " +
                                                   std::to_string(at.offset) + ": " +
                                                   status.message());
  };
  Result<Handle> handle = Handle::from_bytes(bytes);
  if (!handle.ok()) return explain(handle.status());
  Result<int64_t> bitmap = handle->whole("bitmapPresent");
  const bool gaps = bitmap.ok() && *bitmap != 0;
  if (gaps) WEIR_TRY(explain(handle->set({"missingValue", kGap, ""})));
  values_.resize(static_cast<size_t>(known.points));
  WEIR_TRY(explain(handle->values(values_.data(), values_.size())));
  for (double& value : values_) {
    if (gaps && value == kGap) value = known.missing.value_or(NAN);
  }
  const int64_t columns = known.points / known.rows;
  const bool turned = is_turned(identities_[message], known.scanning);
  for (int64_t row = 0; turned && row < known.rows / 2; row++) {
    std::swap_ranges(values_.begin() + row * columns, values_.begin() + (row + 1) * columns,
                     values_.begin() + (known.rows - 1 - row) * columns);
  }
  loaded_ = message;
  return {};
}

Status GribReader::read_time(const Known& known, int64_t record, int64_t first, int64_t count,
                             double* to) const {
  const Message& at = messages_[known.levels[0][static_cast<size_t>(record)]];
  std::vector<char> bytes(static_cast<size_t>(at.length));
  WEIR_TRY(file_.read_at(bytes.data(), bytes.size(), at.offset));
  TimePlaces places;
  {
    Result<Handle> handle = Handle::from_bytes(bytes);
    if (!handle.ok()) return handle.status();
    places = TimePlaces::in(*handle, at.edition);
  }
  Result<Moment> moment = take_times(bytes.data(), places, *clock_);
  if (!moment.ok()) return moment.status();
  for (int64_t i = first; i < first + count; i++)
    to[i - first] = known.is_bounds && i == 0 ? moment->begin_s : moment->time_s;
  return {};
}

Status GribReader::read(const std::string& variable, int64_t record, int64_t first, int64_t count,
                        void* to) {
  const auto found = known_.find(variable);
  if (found == known_.end()) return find(variable).status();
  const Known& known = found->second;
  if (record < 0 || record >= known.found.records || first < 0 || count < 0 ||
      first + count > known.found.elements()) {
    return {WEIR_E_ARGUMENT, file_.path() + ": " + variable + ": no such record or elements"};
  }
  if (known.is_time) return read_time(known, record, first, count, static_cast<double*>(to));
  float* floats = static_cast<float*>(to);
  double* doubles = static_cast<double*>(to);
  while (count > 0) {
    const double* from = known.values.data() + first;
    int64_t n = count;
    if (known.values.empty()) {
      const int64_t level = first / known.points, inside = first % known.points;
      n = std::min(count, known.points - inside);
      WEIR_TRY(load(known, known.levels[static_cast<size_t>(level)][static_cast<size_t>(record)]));
      from = values_.data() + inside;
    }
    if (known.found.type == WEIR_FLOAT32) {
      for (int64_t i = 0; i < n; i++) *floats++ = static_cast<float>(from[i]);
    } else {
      doubles = std::copy_n(from, n, doubles);
    }
    first += n;
    count -= n;
  }
  return {};
}

}  // namespace weir::output::grib
