// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/file.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>

#include "output/format/grib/scan.h"
#include "output/format/intact.h"
#include "output/model/text.h"
#include "output/transport/team.h"

namespace weir::output::grib {
namespace {

template <typename T>
void append_raw(std::vector<char>* to, const T& value) {
  const char* bytes = reinterpret_cast<const char*>(&value);
  to->insert(to->end(), bytes, bytes + sizeof value);
}

template <typename T>
std::vector<T> all_raw(std::span<const char> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// As many bytes of messages are written before the record ends: requests of that size are as fast
// as longer ones (bench/encode.py --served).
constexpr int64_t kBatchBytes = 4 << 20;

const auto place_of = [](const auto& held) { return std::pair(held.variable, held.level); };

}  // namespace

GribFile::GribFile(const FileDescription& description, Encoders encoders, Clock clock,
                   const FileOptions& options, Team& owners)
    : owners_(owners) {
  description_ = description;
  encoders_ = std::move(encoders);
  clock_ = std::move(clock);
  options_ = options;
  parts_.resize(static_cast<size_t>(std::max<int64_t>(1, options.threads)));
  savings_.resize(encoders_.size());
  layouts_.reserve(encoders_.size());
  for (const auto& encoder : encoders_) {
    const int64_t levels = encoder ? static_cast<int64_t>(encoder->plan().messages()) : 1;
    const int64_t points = encoder ? encoder->plan().points : 1;
    layouts_.emplace_back(std::vector<int64_t>{levels, points}, std::vector<int64_t>{1, points});
    bands_.emplace_back(layouts_.back(), encoder ? size_of(encoder->plan().type) : 1);
  }
}

GribFile::~GribFile() {
  (void)wait_for_writer().ok();
  if (gone_ > 0) take_off();
}

int64_t GribFile::messages(bool over_time) const {
  int64_t n = 0;
  for (const auto& encoder : encoders_) {
    if (encoder && encoder->plan().over_time == over_time)
      n += static_cast<int64_t>(encoder->plan().messages());
  }
  return n;
}

Status GribFile::open(const std::string& path, int64_t records) {
  Status mine;
  if (owners_.rank() == 0) {
    Result<PosixFile> file =
        PosixFile::open(path, records < 0 ? O_RDWR | O_CREAT | O_TRUNC : O_RDWR);
    mine = file.status();
    if (file.ok()) file_ = std::move(*file);
    if (mine.ok() && records >= 0) mine = find_end(records);
  }
  WEIR_TRY(owners_.agree(mine));
  has_fixed_ = records > 0;
  if (owners_.rank() != 0) {
    Result<PosixFile> file = PosixFile::open(path, O_RDWR);
    mine = file.status();
    if (file.ok()) file_ = std::move(*file);
  }
  return owners_.agree(mine);
}

// A writer that died may have finished the record that is to be written again, or a part of it.
Status GribFile::find_end(int64_t records) {
  Result<std::vector<Message>> found = scan(file_);
  if (!found.ok()) return found.status();
  const int64_t each = messages(true), once = records > 0 ? messages(false) : 0;
  const int64_t wanted = once + records * each, has = static_cast<int64_t>(found->size());
  if (has < wanted || has > wanted + each + (records > 0 ? 0 : messages(false))) {
    return {WEIR_E_FORMAT, "cannot go on with " + file_.path() + ": it has " +
                               std::to_string(has) + " messages, expected " +
                               std::to_string(wanted) + " for " + std::to_string(records) +
                               " records"};
  }
  end_ = wanted == 0 ? 0
                     : (*found)[static_cast<size_t>(wanted - 1)].offset +
                           (*found)[static_cast<size_t>(wanted - 1)].length;
  next_ = end_;
  return file_.resize(end_);
}

Status GribFile::take_time(int variable, const void* data, int64_t first, int64_t count) {
  const std::string& name = description_.variables[static_cast<size_t>(variable)].name;
  const double* values = static_cast<const double*>(data);
  if (name == "time" && count == 1) {
    moment_.time_s = values[0];
    has_time_ = true;
  }
  if (name != "time_bnds") return {};
  moment_.interval = true;
  for (int64_t i = 0; i < count; i++) {
    if (first + i == 0) moment_.begin_s = values[i];
  }
  return {};
}

Status GribFile::encode(int variable, int64_t level, const char* values, size_t part) {
  Encoder& encoder = *encoders_[static_cast<size_t>(variable)];
  Part& mine = parts_[part];
  const auto at = static_cast<int64_t>(mine.messages.size());
  int bits = 0;
  WEIR_TRY(
      encoder.encode(static_cast<size_t>(level), values, &mine.scratch, &mine.messages, &bits));
  mine.held.push_back({variable, level, static_cast<int64_t>(mine.messages.size()) - at, 0,
                       static_cast<int64_t>(part), at, bits});
  return {};
}

// As most packings make them.
int64_t GribFile::room_for(const Plan& plan, int64_t messages) {
  constexpr int64_t kHeader = 1024;
  return messages * (kHeader + plan.points * plan.bits / 8);
}

// For so many messages more of this plan. The first ones get room for this owner's part of a
// record, or of a batch; beyond it the bytes before are moved as seldom as a vector does.
void GribFile::make_room(const Plan& plan, int64_t messages, Bytes* bytes) const {
  const size_t wanted = bytes->size() + static_cast<size_t>(room_for(plan, messages));
  if (wanted <= bytes->capacity()) return;
  int64_t record = 0;
  for (const auto& encoder : encoders_) {
    if (encoder)
      record += room_for(encoder->plan(), static_cast<int64_t>(encoder->plan().messages()));
  }
  if (knows_places()) record = std::min(record, kBatchBytes);
  const int64_t parts = owners_.size() * static_cast<int64_t>(parts_.size());
  bytes->reserve(
      std::max({wanted, static_cast<size_t>(record / parts), 2 * bytes->capacity()}));
}

// Each thread takes levels that follow each other: they are one request when they are written.
Status GribFile::encode_levels(int variable, int64_t first, int64_t levels, const char* values) {
  const Plan& plan = encoders_[static_cast<size_t>(variable)]->plan();
  const auto bytes = plan.points * static_cast<int64_t>(size_of(plan.type));
  const auto parts = std::min<int64_t>(levels, static_cast<int64_t>(parts_.size()));
  std::vector<Status> results(static_cast<size_t>(parts));
  const auto work = [&](int64_t part) {
    Status& result = results[static_cast<size_t>(part)];
    const int64_t begin = levels * part / parts, end = levels * (part + 1) / parts;
    make_room(plan, end - begin, &parts_[static_cast<size_t>(part)].messages);
    for (int64_t i = begin; i < end && result.ok(); i++)
      result = encode(variable, first + i, values + i * bytes, static_cast<size_t>(part));
  };
  std::vector<std::thread> threads;
  for (int64_t part = 1; part < parts; part++) {
    try {
      threads.emplace_back(work, part);
    } catch (const std::system_error&) {  // no thread is to be had
      work(part);
    }
  }
  work(0);
  for (std::thread& thread : threads) thread.join();
  for (const Status& result : results) WEIR_TRY(result);
  return {};
}

Status GribFile::write(int variable, int64_t record, int64_t first, int64_t count,
                       const void* data) {
  if (!failed_.ok()) return failed_;
  const auto v = static_cast<size_t>(variable);
  if (!encoders_[v]) return take_time(variable, data, first, count);
  const Plan& plan = encoders_[v]->plan();
  if (!plan.over_time && has_fixed_) return {};
  const bool whole = first % plan.points == 0 && count % plan.points == 0 && bands_[v].empty();
  if (whole) {
    failed_ = encode_levels(variable, first / plan.points, count / plan.points,
                            static_cast<const char*>(data));
  } else {
    failed_ = bands_[v].add(record, first, count, data,
                            [&](int64_t, int64_t level, const char* values) {
                              return encode(variable, level, values, 0);
                            });
  }
  if (failed_.ok() && knows_places()) failed_ = write_behind();
  if (!failed_.ok())
    failed_ = Status(failed_.code(), failed_.message() + " (file " + file_.path() + ")");
  return failed_;
}

// Of the messages that are encoded: an only owner whose record begins where the one before ended,
// and has all variables in their order. What was written of a record that did not end would be
// taken off.
bool GribFile::knows_places() const {
  return owners_.size() == 1 && has_time_ && (has_fixed_ || messages(false) == 0);
}

// What is encoded, when it is enough and is what comes next in the file.
Status GribFile::write_behind() {
  int64_t bytes = 0;
  bool follows = true;
  for (const Part& part : parts_) {
    bytes += static_cast<int64_t>(part.messages.size());
    for (const Held& one : part.held) follows &= last_ < place_of(one);
  }
  if (bytes < kBatchBytes || !follows) return {};
  WEIR_TRY(wait_for_writer());
  fill_batch();
  for (Held& one : batch_.held) one.offset = std::exchange(next_, next_ + one.bytes);
  gone_ += static_cast<int64_t>(batch_.held.size());
  last_ = place_of(batch_.held.back());
  WEIR_TRY(complete_batch(moment_));
  if (options_.writes_behind) {
    try {
      writer_ = std::thread([this] { written_ = put_batch(); });
      return {};
    } catch (const std::system_error&) {  // no thread is to be had
    }
  }
  return put_batch();
}

Status GribFile::wait_for_writer() {
  if (writer_.joinable()) writer_.join();
  return std::exchange(written_, {});
}

// What is behind the last record that ended.
void GribFile::take_off() {
  (void)file_.resize(end_).ok();
  gone_ = 0;
  next_ = end_;
}

// With all that is encoded. Nobody writes it any more.
void GribFile::fill_batch() {
  batch_.held.clear();
  batch_.messages.resize(parts_.size());
  for (size_t i = 0; i < parts_.size(); i++) {
    Part& part = parts_[i];
    batch_.held.insert(batch_.held.end(), part.held.begin(), part.held.end());
    std::swap(batch_.messages[i], part.messages);
    part.messages.clear();
    part.held.clear();
  }
  std::ranges::sort(batch_.held, {}, place_of);
}

Result<std::vector<GribFile::Held>> GribFile::sort_all(const std::vector<std::vector<char>>& all,
                                                       int64_t record) {
  std::vector<Held> held;
  for (const std::vector<char>& one : all) {
    const std::vector<Held> theirs = all_raw<Held>(one);
    held.insert(held.end(), theirs.begin(), theirs.end());
  }
  std::ranges::sort(held, {}, place_of);
  const auto n = gone_ + static_cast<int64_t>(held.size()), each = messages(true);
  const bool whole = n == each || (!has_fixed_ && n == each + messages(false));
  if (!whole) {
    return Status(WEIR_E_INTERNAL, file_.path() + ": record " + std::to_string(record) + " has " +
                                       std::to_string(n) + " messages, expected " +
                                       std::to_string(each));
  }
  return held;
}

// [collective]
Status GribFile::place_all(int64_t record, Places* places) {
  std::vector<char> mine, table;
  for (const Part& part : parts_) {
    for (const Held& one : part.held) append_raw(&mine, one);
  }
  Result<std::vector<std::vector<char>>> all = owners_.gather(mine, 0);
  Status status = failed_.ok() ? all.status() : failed_;
  if (status.ok() && owners_.rank() == 0) {
    Result<std::vector<Held>> sorted = sort_all(*all, record);
    status = sorted.status();
    int64_t at = next_;
    if (sorted.ok()) {
      for (Held& one : *sorted) one.offset = std::exchange(at, at + one.bytes);
      append_raw(&table, at);
      append_raw(&table, moment_);
      for (const Held& one : *sorted) append_raw(&table, one);
    }
  }
  WEIR_TRY(owners_.agree(status));
  WEIR_TRY(owners_.broadcast(table, 0));
  const std::span<const char> bytes(table);
  std::memcpy(&places->end, bytes.data(), sizeof places->end);
  std::memcpy(&places->moment, bytes.data() + sizeof places->end, sizeof places->moment);
  places->held = all_raw<Held>(bytes.subspan(sizeof places->end + sizeof places->moment));
  return {};
}

// Their times are put in.
Status GribFile::complete_batch(const Moment& moment) {
  for (const Held& one : batch_.held) {
    const Encoder& encoder = *encoders_[static_cast<size_t>(one.variable)];
    savings_[static_cast<size_t>(one.variable)].add(
        encoder.plan().points * static_cast<int64_t>(size_of(encoder.plan().type)), one.bytes,
        static_cast<int>(one.bits));
    char* message = batch_.messages[static_cast<size_t>(one.part)].data() + one.at;
    const Status put = put_times(message, encoder.times(), clock_, moment,
                                 encoder.plan().from_start);
    if (!put.ok())
      return {put.code(), "field " + quoted(encoder.plan().field) + ": " + put.message()};
  }
  return {};
}

// What is in a row both in memory and in the file is one request.
Status GribFile::put_batch() {
  const std::vector<Held>& all = batch_.held;
  for (size_t i = 0; i < all.size();) {
    const Held& first = all[i];
    int64_t bytes = 0;
    for (; i < all.size() && all[i].part == first.part &&
           all[i].offset == first.offset + bytes && all[i].at == first.at + bytes;
         i++)
      bytes += all[i].bytes;
    WEIR_TRY(file_.write_at(batch_.messages[static_cast<size_t>(first.part)].data() + first.at,
                            static_cast<size_t>(bytes), first.offset));
  }
  return {};
}

Status GribFile::put_in_place(const Places& places) {
  WEIR_TRY(wait_for_writer());
  fill_batch();
  for (Held& one : batch_.held)
    one.offset = std::ranges::lower_bound(places.held, place_of(one), {}, place_of)->offset;
  WEIR_TRY(complete_batch(places.moment));
  WEIR_TRY(put_batch());
  return options_.sync ? file_.sync() : Status();
}

Status GribFile::end_record(int64_t record) {
  for (const chunks::Bands& bands : bands_) {
    if (failed_.ok() && !bands.empty())
      failed_ = Status(WEIR_E_INTERNAL, file_.path() + ": a record ended with a part of a level");
  }
  Places places;
  failed_ = place_all(record, &places);
  if (failed_.ok()) failed_ = owners_.agree(put_in_place(places));
  if (!failed_.ok()) {  // readers see whole records
    (void)wait_for_writer().ok();
    if (owners_.rank() == 0) take_off();
    return failed_;
  }
  end_ = next_ = places.end;
  gone_ = 0;
  last_ = {-1, -1};
  file_.expect_whole();
  has_fixed_ = true;
  moment_ = {};
  has_time_ = false;
  return {};
}

Status GribFile::check_intact() const {
  Result<PosixFile> file = open_written(file_.path());
  if (!file.ok() || end_ == 0) return file.status();
  WEIR_TRY(expect_bytes(*file, 0, "GRIB"));
  WEIR_TRY(expect_length(*file, end_));
  return expect_bytes(*file, end_ - 4, "7777");
}

Status GribFile::close() {
  const Status written = wait_for_writer();
  if (failed_.ok()) failed_ = written;
  if (gone_ > 0) take_off();
  const Status closed = file_.close();
  if (failed_.ok()) failed_ = closed;
  if (failed_.ok() && owners_.rank() == 0) failed_ = check_intact();
  return owners_.agree(failed_);
}

}  // namespace weir::output::grib
