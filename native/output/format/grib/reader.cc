// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/reader.h"

#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "output/format/grib/choose.h"
#include "output/format/grib/grid.h"
#include "output/format/grib/members.h"
#include "output/model/text.h"

namespace weir::output::grib {
namespace {

// The place of a point among the values of a message. row: from north, column: from west.
int64_t place_of(int64_t row, int64_t column, int64_t rows, int64_t columns, int scanning) {
  if (scanning & kUpward) row = rows - 1 - row;
  if (scanning & kWestward) column = columns - 1 - column;
  if (scanning & kByColumns) std::swap(row, column), std::swap(rows, columns);
  if (scanning & kAlternating && row % 2 == 1) column = columns - 1 - column;
  return row * columns + column;
}

// What says which messages of this edition are the variable's. ecCodes may take the number of a
// parameter for reading alone (that of a mean without its interval, of another centre): the
// messages are those that have it.
Result<std::unique_ptr<Encoder>> encoder_of(const FileDescription& description, int variable,
                                            int edition, bool for_writing) {
  Result<Plan> plan = plan_of(description, variable, edition);
  if (!plan.ok()) return plan.status();
  if (for_writing) return Encoder::make(std::move(*plan));
  plan->header_only = true;
  Result<std::unique_ptr<Encoder>> made = Encoder::make(*plan);
  if (made.ok() || plan->parameter() == 0) return made;
  plan->of_parameter = plan->parameter();
  std::erase_if(plan->header, [](const FormatKey& key) { return key.name == "paramId"; });
  plan->units = plan->standard_name = "";
  Result<std::unique_ptr<Encoder>> other = Encoder::make(std::move(*plan));
  return other.ok() ? std::move(other) : std::move(made);
}

FileDescription of_centre(const FileDescription& description, int64_t centre) {
  FileDescription own = description;
  own.keys.push_back({"centre", static_cast<double>(centre), ""});
  return own;
}

}  // namespace

std::string in_words(const Identity& id) {
  std::string text;
  for (int64_t n : id.parameter) text += (text.empty() ? "" : ".") + std::to_string(n);
  if (!text.empty()) text = "parameter " + text;
  const std::string comma = text.empty() ? "" : ", ";
  if (!id.level.empty()) text += comma + "level type " + number_text(id.level[0]);
  if (id.level.size() > 1) text += ", level " + number_text(id.level[1]);
  if (id.member >= 0) text += ", member " + std::to_string(id.member);
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
  Members1 members;
  for (const Message& message : reader->messages_) {
    Result<std::vector<char>> head = read_head(reader->file_, message);
    if (!head.ok()) return head.status();
    reader->identities_.push_back(identity_of(*head, message.edition));
    WEIR_TRY(members.find(reader->file_, message, *head, &reader->identities_.back()));
  }
  Members1::number_zeros(&reader->identities_);
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
    found.records += id == identities_.back();
  return found;
}

// A parameter may have a number of its own in the tables of a centre: those of the file, unless the
// configuration has one.
std::set<int64_t> GribReader::centres_for(const FileDescription& description, int edition) const {
  std::set<int64_t> centres;
  if (std::ranges::any_of(description.keys, [](const FormatKey& key) {
        return key.name == "centre" || key.name == "originatingCentre";
      }))
    return centres;
  for (const Identity& id : identities_) {
    if (id.edition == edition) centres.insert(id.centre);
  }
  return centres;
}

Result<GribReader::Known> GribReader::find_in_edition(const FileDescription& description,
                                                      int variable, int edition) const {
  Result<Known> found = find_field(description, variable, edition, nullptr);
  if (found.ok()) return found;
  int64_t before = -1;
  for (const int64_t centre : centres_for(description, edition)) {
    Result<Known> there = find_field(of_centre(description, centre), variable, edition, nullptr);
    if (!there.ok()) continue;
    if (found.ok() && found->levels != there->levels) {
      const std::string number = std::to_string(centre);
      const Variable& v = description.variables[static_cast<size_t>(variable)];
      return Status(WEIR_E_FORMAT, file_.path() + ": field " + quoted(v.name) +
                                       " is in the file in messages of the centres " +
                                       std::to_string(before) + " and " + number +
                                       ", which number parameters each for itself; say which "
                                       "(grib = { where = \"centre=" + number +
                                       "\" }, or attribute GRIB_where)");
    }
    found = std::move(there);
    before = centre;
  }
  return found;
}

// What cannot be read of an edition is left out where the other one has all of its times.
Status GribReader::check_left_out(const FileDescription& description, int variable, int edition,
                                  const Known& taken) const {
  std::set<int64_t> times;
  for (const std::vector<size_t>& level : taken.levels) {
    for (const size_t message : level) times.insert(identities_[message].time_s);
  }
  const auto check = [&](const FileDescription& one) -> Status {
    Result<std::vector<size_t>> messages = messages_in_edition(one, variable, edition);
    if (!messages.ok()) return {};  // the edition has no such field
    for (const size_t message : *messages) {
      if (times.contains(identities_[message].time_s)) continue;
      const std::string other = std::to_string(3 - edition);
      return {WEIR_E_FORMAT,
              find_field(one, variable, edition, nullptr).status().message() +
                  "; so it is in edition " + std::to_string(edition) + ". Edition " + other +
                  " can be read, but has no message at the time of that at byte " +
                  std::to_string(messages_[message].offset) + "; to do without, take edition " +
                  other + " out of the file (grib_copy -w edition=" + other + ")"};
    }
    return {};
  };
  WEIR_TRY(check(description));
  for (const int64_t centre : centres_for(description, edition))
    WEIR_TRY(check(of_centre(description, centre)));
  return {};
}

// Of all levels that it has there, on any grid.
Result<std::vector<size_t>> GribReader::messages_in_edition(const FileDescription& description,
                                                            int variable, int edition) const {
  Result<std::unique_ptr<Encoder>> made = encoder_of(description, variable, edition, false);
  if (!made.ok()) return made.status();
  std::vector<size_t> all;
  for (size_t level = 0; level < (*made)->plan().messages(); level++) {
    Result<Wanted> wanted = wanted_at(**made, level);
    if (!wanted.ok()) return wanted.status();
    Result<std::vector<size_t>> found = messages_of(*wanted, "");
    if (found.ok()) all.insert(all.end(), found->begin(), found->end());
  }
  return all;
}

Result<GribReader::Known> GribReader::find_field(const FileDescription& description,
                                                 int variable) const {
  const int first = edition(), other = 3 - first;
  Result<Known> all = find_in_edition(description, variable, first);
  const bool mixed =
      std::ranges::any_of(messages_, [&](const Message& m) { return m.edition == other; });
  if (all.ok() && !mixed) return all;
  Result<Known> more = mixed ? find_in_edition(description, variable, other) : all;
  if (!all.ok() && !more.ok()) {
    const Status both = mixed ? Status(all.status().code(),
                                       all.status().message() + "; in edition " +
                                           std::to_string(other) + ": " + more.status().message())
                              : all.status();
    return find_by_level(description, variable, both);
  }
  if (!all.ok() || !more.ok()) {
    Result<Known>& taken = all.ok() ? all : more;
    WEIR_TRY(check_left_out(description, variable, all.ok() ? other : first, *taken));
    return std::move(taken);
  }
  for (size_t level = 0; level < all->levels.size(); level++) {
    std::vector<size_t>& messages = all->levels[level];
    messages.insert(messages.end(), more->levels[level].begin(), more->levels[level].end());
    std::ranges::sort(messages);
  }
  if (all->found.over_time) all->found.records += more->found.records;
  const Variable& v = description.variables[static_cast<size_t>(variable)];
  WEIR_TRY(check_times(*all, file_.path() + ": field " + quoted(v.name)));
  return all;
}

Result<GribReader::Known> GribReader::find_field(const FileDescription& description, int variable,
                                                 int edition,
                                                 std::unique_ptr<Encoder>* keep) const {
  const Variable& v = description.variables[static_cast<size_t>(variable)];
  const std::string what = file_.path() + ": field " + quoted(v.name);
  Result<std::unique_ptr<Encoder>> made =
      encoder_of(description, variable, edition, keep != nullptr);
  if (!made.ok()) return made.status();
  Encoder& encoder = **made;
  Known known;
  known.found = {v.type, v.over_time, 1, encoder.plan().lengths};
  known.points = encoder.plan().points;
  known.missing = encoder.plan().missing;
  for (size_t level = 0; level < encoder.plan().messages(); level++) {
    Result<Wanted> wanted = wanted_at(encoder, level);
    if (!wanted.ok()) return wanted.status();
    const Identity& id = wanted->id;
    Result<std::vector<size_t>> found = messages_of(*wanted, what);
    if (!found.ok()) return found.status();
    found = on_grid(id, std::move(*found), what);
    if (!found.ok()) return found.status();
    WEIR_TRY(check_alike(*found, what));
    known.of_any_member = id.member < 0;
    known.scanning = id.scanning;
    known.has_scanning = wanted->has_scanning;
    if (!known.levels.empty() && known.levels[0].size() != found->size()) {
      return Status(WEIR_E_FORMAT, what + " has " + std::to_string(found->size()) +
                                       " messages at " + in_words(id) + ", but " +
                                       std::to_string(known.levels[0].size()) +
                                       " at the first level");
    }
    known.levels.push_back(std::move(*found));
  }
  WEIR_TRY(check_times(known, what));
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
    Result<Known> field = find_field(description, static_cast<int>(v));
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
    Result<Known> found = find_field(description, variable);
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
  loaded_ = SIZE_MAX;
  return known_.insert_or_assign(v.name, std::move(known)).first->second.found;
}

Status GribReader::load(const Known& known, size_t message) {
  if (loaded_ == message && loaded_for_ == &known) return {};
  loaded_ = SIZE_MAX;
  const Message& at = messages_[message];
  Result<std::vector<char>> bytes = read_message(file_, at);
  if (!bytes.ok()) return bytes.status();
  const auto explain = [&](const Status& status) {
    return status.ok() ? status
                       : Status(status.code(), file_.path() + ": the message at byte " +
                                                   std::to_string(at.offset) + ": " +
                                                   status.message());
  };
  Result<Handle> handle = Handle::from_bytes(*bytes);
  if (!handle.ok()) return explain(handle.status());
  // A bitmap, or numbers of complex packing that stand for missing values (template 5.2, 5.3).
  bool gaps = false;
  for (const char* key : {"bitmapPresent", "missingValueManagementUsed"}) {
    const Result<int64_t> has = handle->whole(key);
    gaps = gaps || (has.ok() && *has != 0);
  }
  if (gaps) WEIR_TRY(explain(handle->set({"missingValue", kGap, ""})));
  values_.resize(static_cast<size_t>(known.points));
  WEIR_TRY(explain(handle->values(values_.data(), values_.size())));
  for (double& value : values_) {
    if (gaps && value == kGap) value = known.missing.value_or(NAN);
  }
  const Identity& id = identities_[message];
  const int scanning = id.scanning,
            wanted = known.has_scanning ? known.scanning : scanning & (kWestward | kUpward);
  if (const int64_t rows = id.rows, columns = id.columns; rows > 0 && scanning != wanted) {
    const std::vector<double> there = values_;
    for (int64_t row = 0; row < rows; row++) {
      for (int64_t column = 0; column < columns; column++) {
        values_[static_cast<size_t>(place_of(row, column, rows, columns, wanted))] =
            there[static_cast<size_t>(place_of(row, column, rows, columns, scanning))];
      }
    }
  }
  loaded_ = message;
  loaded_for_ = &known;
  return {};
}

Status GribReader::read_time(const Known& known, int64_t record, int64_t first, int64_t count,
                             double* to) const {
  const Message& at = messages_[known.levels[0][static_cast<size_t>(record)]];
  Result<std::vector<char>> bytes = read_without_data(file_, at);
  if (!bytes.ok()) return bytes.status();
  TimePlaces places;
  {
    Result<Handle> handle = Handle::from_bytes(*bytes);
    if (!handle.ok()) return handle.status();
    places = TimePlaces::in(*handle, at.edition);
  }
  Result<Moment> moment = take_times(bytes->data(), places, *clock_);
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
