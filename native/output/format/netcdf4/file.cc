// SPDX-License-Identifier: Apache-2.0
#include "output/format/netcdf4/file.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "output/format/chunks/codec.h"
#include "output/format/intact.h"
#include "output/format/modules.h"
#include "output/transport/team.h"

namespace weir::output::netcdf4 {

Netcdf4File::Netcdf4File(const FileDescription& description, std::vector<Stored> storage,
                         const std::string& path, const FileOptions& options, Team& owners)
    : storage_(std::move(storage)),
      path_(path),
      options_(options),
      owners_(owners),
      packed_(path),
      rounded_(description.variables),
      module_(netcdf_module(nullptr)) {
  for (const Stored& s : storage_) {
    bands_.emplace_back(s.layout, size_of(s.type));
    packs_ = packs_ || s.how == How::kPacked;
  }
  places_.resize(storage_.size());
}

Netcdf4File::~Netcdf4File() {
  if (!growing_) return;
  const std::lock_guard lock(netcdf_mutex());
  module_->finish(growing_);
}

Status Netcdf4File::call(bool done, const netcdf::Why& why) const {
  return done ? Status() : Status(WEIR_E_FILE, why.text);
}

Result<std::unique_ptr<File>> Netcdf4File::open(const FileDescription& description,
                                                std::vector<Stored> storage,
                                                const std::string& path, const FileOptions& options,
                                                Team& owners, int64_t records) {
  std::unique_ptr<Netcdf4File> file(
      new Netcdf4File(description, std::move(storage), path, options, owners));
  WEIR_TRY(file->start(description, records));
  return std::unique_ptr<File>(std::move(file));
}

Status Netcdf4File::start(const FileDescription& description, int64_t records) {
  Status mine;
  std::vector<netcdf::Piece> pieces;
  if (owners_.rank() == 0) {
    {
      const std::lock_guard lock(netcdf_mutex());
      netcdf::Why why = {};
      growing_ =
          module_->grow(with_chunks(description, storage_), path_.c_str(), options_.sync, why);
      mine = call(growing_ != nullptr, why);
      // What a writer that died had beyond these records is taken back, before owners write there.
      if (mine.ok() && records > 0)
        mine = call(module_->extend(growing_, records, why) && module_->commit(growing_, why), why);
    }
    if (mine.ok()) mine = look_ahead(records, true, pieces);
  }
  if (mine.ok()) {
    Result<PosixFile> file = PosixFile::open(path_, O_RDWR);
    mine = file.status();
    if (file.ok()) file_ = std::move(*file);
  }
  return share_places(mine, records, true, std::move(pieces));
}

Status Netcdf4File::look_ahead(int64_t record, bool fixed, std::vector<netcdf::Piece>& pieces) {
  pieces = pieces_of_record(storage_, record, fixed);
  const std::lock_guard lock(netcdf_mutex());
  netcdf::Why why = {};
  WEIR_TRY(call(module_->extend(growing_, record + 1, why), why));
  return call(module_->place(growing_, pieces.data(), static_cast<int64_t>(pieces.size()), why),
              why);
}

Status Netcdf4File::share_places(const Status& mine, int64_t record, bool fixed,
                                 std::vector<netcdf::Piece> pieces) {
  WEIR_TRY(owners_.agree(mine));
  std::vector<char> bytes(pieces.size() * sizeof(int64_t));
  for (size_t i = 0; i < pieces.size(); i++)
    std::memcpy(bytes.data() + i * sizeof(int64_t), &pieces[i].address, sizeof(int64_t));
  WEIR_TRY(owners_.broadcast(bytes, 0));
  if (owners_.rank() != 0) pieces = pieces_of_record(storage_, record, fixed);
  for (size_t v = 0; v < places_.size(); v++) {
    if (storage_[v].how != How::kFixed) places_[v].clear();
  }
  for (size_t i = 0; i < pieces.size(); i++) {
    int64_t address = 0;
    std::memcpy(&address, bytes.data() + i * sizeof address, sizeof address);
    places_[static_cast<size_t>(pieces[i].variable)].push_back(address);
  }
  return {};
}

// Chunks that lie one behind the other in the file are written by one call.
Status Netcdf4File::write_range(const Stored& stored, const std::vector<int64_t>& places,
                                int64_t first, int64_t count, const char* data) {
  const int64_t size = stored.element_bytes();
  while (count > 0) {
    int64_t band = stored.layout.band_of(first);
    const int64_t address =
        places[static_cast<size_t>(band)] + (first - stored.layout.first_of(band)) * size;
    int64_t n = stored.layout.first_of(band) + stored.layout.count_of(band) - first;
    while (n < count && stored.layout.count_of(band) == stored.layout.band_elements() &&
           places[static_cast<size_t>(band) + 1] ==
               places[static_cast<size_t>(band)] + stored.chunk_bytes()) {
      n += stored.layout.count_of(++band);
    }
    n = std::min(n, count);
    WEIR_TRY(file_.write_at(data, static_cast<size_t>(n * size), address));
    first += n;
    count -= n;
    data += n * size;
  }
  return {};
}

Status Netcdf4File::emit(int variable, int64_t band, const char* data) {
  const Stored& s = storage_[static_cast<size_t>(variable)];
  const size_t bytes = static_cast<size_t>(s.chunk_bytes());
  const auto v = static_cast<size_t>(variable);
  if (s.how == How::kPacked) data = rounded_.round(v, s.layout, band, data);
  cut_.resize(bytes);
  for (int64_t c = 0; c < s.layout.chunks_per_band(); c++) {
    const char* chunk = data;
    if (!s.layout.contiguous() || s.layout.count_of(band) != s.layout.band_elements()) {
      s.layout.cut(band, c, data, size_of(s.type), cut_.data());
      chunk = cut_.data();
    }
    if (s.how == How::kInPlace) {
      const int64_t place = places_[static_cast<size_t>(variable)]
                                   [static_cast<size_t>(band * s.layout.chunks_per_band() + c)];
      WEIR_TRY(file_.write_at(chunk, bytes, place));
      continue;
    }
    if (size_of(s.type) > 1) {
      shuffled_.resize(bytes);
      chunks::shuffle(chunk, bytes, size_of(s.type), shuffled_.data());
      chunk = shuffled_.data();
    }
    const size_t begin = packed_.memory().size();
    WEIR_TRY(chunks::compress(s.compression, chunk, bytes, packed_.memory()));
    rounded_.add(v, bytes, packed_.memory().size() - begin);
    WEIR_TRY(packed_.take(variable, band, c, begin));
  }
  return {};
}

Status Netcdf4File::write(int variable, int64_t record, int64_t first, int64_t count,
                          const void* data) {
  if (!failed_.ok()) return failed_;
  const Stored& s = storage_[static_cast<size_t>(variable)];
  const std::vector<int64_t>& places = places_[static_cast<size_t>(variable)];
  const char* from = static_cast<const char*>(data);
  if (s.how == How::kFixed || s.how == How::kSeries) {
    const int64_t in_chunk =
        s.how == How::kSeries ? record % kSeriesRecords * s.layout.elements() : 0;
    const size_t bytes = static_cast<size_t>(count * s.element_bytes());
    failed_ = file_.write_at(from, bytes, places[0] + (in_chunk + first) * s.element_bytes());
  } else if (s.how == How::kInPlace && s.layout.contiguous()) {
    failed_ = write_range(s, places, first, count, from);
  } else if (s.how != How::kCreated) {
    failed_ = bands_[static_cast<size_t>(variable)].add(
        record, first, count, from,
        [&](int64_t, int64_t band, const char* whole) { return emit(variable, band, whole); });
  }
  return failed_;
}

// Values are not read: that would take as long as to write them.
Status Netcdf4File::check_intact() const {
  Result<PosixFile> file = open_written(path_);
  if (!file.ok()) return file.status();
  int64_t least_bytes = 0, at = -1;
  {
    const std::lock_guard lock(netcdf_mutex());
    netcdf::Why why = {};
    WEIR_TRY(call(
        module_->find_damage(growing_, file->descriptor(), &least_bytes, &at, why), why));
  }
  WEIR_TRY(expect_length(*file, least_bytes));
  if (at < 0) return {};
  return not_intact(path_, "other metadata from byte " + std::to_string(at) + " on",
                    "those that were written");
}

Status Netcdf4File::close() {
  const Status closed = file_.close();
  if (failed_.ok()) failed_ = closed;
  if (failed_.ok() && owners_.rank() == 0) failed_ = check_intact();
  if (growing_) {
    const std::lock_guard lock(netcdf_mutex());
    module_->finish(std::exchange(growing_, nullptr));
  }
  return owners_.agree(failed_);
}

}  // namespace weir::output::netcdf4
