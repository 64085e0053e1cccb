// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/reader.h"

#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "output/model/text.h"

namespace weir::output::grib {
namespace {

// Scanning mode (flag table 3.4; of edition 1: 8).
constexpr int kWestward = 0x80, kUpward = 0x40, kByColumns = 0x20, kAlternating = 0x10;

double apart(double a, double b) { return std::abs(std::remainder(a - b, 360)); }

// Whether its values are in rows of the same length.
bool is_regular(const Identity& id) {
  return id.grid.size() == 4 && id.grid[1] > 0 && id.grid[2] > 0 &&
         (id.edition == 1 || id.grid[1] * id.grid[2] == id.grid[3]);
}

struct Corners {
  double north, south, west, east;
};
Corners corners(const Identity& id) {
  Corners c{id.first_lat, id.last_lat, id.first_lon, id.last_lon};
  if (id.scanning & kUpward) std::swap(c.north, c.south);
  if (id.scanning & kWestward) std::swap(c.west, c.east);
  return c;
}

bool is_same(const Corners& a, const Corners& b) {
  return apart(a.north, b.north) <= kSameDegrees && apart(a.south, b.south) <= kSameDegrees &&
         apart(a.west, b.west) <= kSameDegrees && apart(a.east, b.east) <= kSameDegrees;
}

// The place of a point among the values of a message. row: from north, column: from west.
int64_t place_of(int64_t row, int64_t column, int64_t rows, int64_t columns, int scanning) {
  if (scanning & kUpward) row = rows - 1 - row;
  if (scanning & kWestward) column = columns - 1 - column;
  if (scanning & kByColumns) std::swap(row, column), std::swap(rows, columns);
  if (scanning & kAlternating && row % 2 == 1) column = columns - 1 - column;
  return row * columns + column;
}

// What writes the variable in messages of this edition.
Result<std::unique_ptr<Encoder>> encoder_of(const FileDescription& description, int variable,
                                            int edition) {
  Result<Plan> plan = plan_of(description, variable, edition);
  if (!plan.ok()) return plan.status();
  return Encoder::make(std::move(*plan));
}

// What its message of a level is known by.
Result<Identity> identity_of(Encoder& encoder, size_t level) {
  Result<const Bytes*> header = encoder.header(level);
  if (!header.ok()) return header.status();
  return identity_of(**header, encoder.plan().edition);
}

FileDescription of_centre(const FileDescription& description, int64_t centre) {
  FileDescription own = description;
  own.keys.push_back({"centre", static_cast<double>(centre), ""});
  return own;
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
    found.records += id == identities_.back();
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
  if (!exact.empty()) return of_member(wanted, std::move(exact), what);
  if (all.empty())
    return Status(WEIR_E_FORMAT, what + " is not in the file (" + in_words(wanted) + ")");
  if (mixed) {
    return Status(WEIR_E_FORMAT, what + " is in the file as several of mean, sum, minimum and "
                                        "maximum, but not as a value of one moment");
  }
  return of_member(wanted, std::move(all), what);
}

// A field that names no member is that of a file with one.
Result<std::vector<size_t>> GribReader::of_member(const Identity& wanted,
                                                  std::vector<size_t> messages,
                                                  const std::string& what) const {
  std::set<int64_t> members;
  for (const size_t message : messages) members.insert(identities_[message].member);
  if (!members.contains(wanted.member)) {
    if (wanted.member < 0 && members.size() == 1) return messages;
    std::string text;
    for (const int64_t member : members) {
      if (member < 0) continue;
      text += (text.empty() ? "" : ", ") + std::to_string(member);
    }
    const std::string has = text.empty() ? "no member of an ensemble"
                                         : "members " + text + " of an ensemble";
    const std::string cure = wanted.member < 0
        ? "; name one (grib = { perturbationNumber = " + std::to_string(*members.rbegin()) +
              " }, or attribute GRIB_perturbationNumber), or give the field an axis of members "
              "(attribute GRIB_key = \"perturbationNumber\")"
        : "";
    const std::string not_as =
        wanted.member < 0 ? "" : ", not as member " + std::to_string(wanted.member);
    return Status(WEIR_E_FORMAT, what + " is in the file as " + has + not_as + " (" +
                                     in_words(wanted) + ")" + cure);
  }
  std::erase_if(messages, [&](size_t message) {
    return identities_[message].member != wanted.member;
  });
  return messages;
}

Status GribReader::check_grid(const Identity& wanted, size_t message,
                              const std::string& what) const {
  const Identity& has = identities_[message];
  const std::string cure = "; declare the grid of the file, or bring the file to the field's "
                           "first (cdo remapbil)";
  if (has.grid != wanted.grid) {
    return {WEIR_E_FORMAT, what + " is on another grid, " + grid_in_words(has) +
                               ", than the field, which is on " +
                               grid_in_words(wanted) + cure};
  }
  if ((has.scanning != wanted.scanning && !is_regular(has)) ||
      !is_same(corners(has), corners(wanted))) {
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
                                   grid_in_words(identities_[*alone]) +
                                   "; take the messages of one grid out of it (grib_copy -w)");
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
  for (const int64_t centre : centres_for(description, edition)) {
    Result<Known> there = find_field(of_centre(description, centre), variable, edition, nullptr);
    if (there.ok()) return there;
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
  Result<std::unique_ptr<Encoder>> made = encoder_of(description, variable, edition);
  if (!made.ok()) return made.status();
  std::vector<size_t> all;
  for (size_t level = 0; level < (*made)->plan().messages(); level++) {
    Result<Identity> wanted = identity_of(**made, level);
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
  if (std::ranges::none_of(messages_, [&](const Message& m) { return m.edition == other; }))
    return all;
  Result<Known> more = find_in_edition(description, variable, other);
  if (!all.ok() && !more.ok()) return all;
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
  return all;
}

Result<GribReader::Known> GribReader::find_field(const FileDescription& description, int variable,
                                                 int edition,
                                                 std::unique_ptr<Encoder>* keep) const {
  const Variable& v = description.variables[static_cast<size_t>(variable)];
  const std::string what = file_.path() + ": field " + quoted(v.name);
  Result<std::unique_ptr<Encoder>> made = encoder_of(description, variable, edition);
  if (!made.ok()) return made.status();
  Encoder& encoder = **made;
  Known known;
  known.found = {v.type, v.over_time, 1, encoder.plan().lengths};
  known.points = encoder.plan().points;
  known.missing = encoder.plan().missing;
  for (size_t level = 0; level < encoder.plan().messages(); level++) {
    Result<Identity> known_by = identity_of(encoder, level);
    if (!known_by.ok()) return known_by.status();
    const Identity& wanted = *known_by;
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
  if (const int scanning = identities_[message].scanning; scanning != known.scanning) {
    const int64_t rows = known.rows, columns = known.points / rows;
    const std::vector<double> there = values_;
    for (int64_t row = 0; row < rows; row++) {
      for (int64_t column = 0; column < columns; column++) {
        values_[static_cast<size_t>(place_of(row, column, rows, columns, known.scanning))] =
            there[static_cast<size_t>(place_of(row, column, rows, columns, scanning))];
      }
    }
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
