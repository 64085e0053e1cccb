// SPDX-License-Identifier: Apache-2.0
#include "output/format/netcdf4/packed.h"

#include <fcntl.h>

#include <filesystem>

namespace weir::output::netcdf4 {

Status Packed::spool() {
  if (spool_.descriptor() < 0) {
    const std::string directory = std::filesystem::path(path_).parent_path().string();
    Result<PosixFile> file =
        PosixFile::open(directory.empty() ? "." : directory, O_TMPFILE | O_RDWR);
    if (!file.ok())
      return {WEIR_E_FILE,
              "no place for compressed chunks of " + path_ + ": " + file.status().message()};
    spool_ = std::move(*file);
  }
  WEIR_TRY(spool_.write_at(memory_.data(), memory_.size(), spool_bytes_));
  for (PackedChunk& chunk : chunks_) {
    if (chunk.spooled) continue;
    chunk.spooled = true;
    chunk.at += spool_bytes_;
  }
  spool_bytes_ += static_cast<int64_t>(memory_.size());
  memory_.clear();
  return {};
}

Status Packed::take(int64_t variable, int64_t band, int64_t chunk, size_t begin) {
  chunks_.push_back({variable, band, chunk, static_cast<int64_t>(memory_.size() - begin),
                     static_cast<int64_t>(begin), false});
  return memory_.size() > limit_ ? spool() : Status();
}

Status Packed::write_to(PosixFile& file, const PackedChunk& chunk, int64_t address) {
  if (!chunk.spooled)
    return file.write_at(memory_.data() + chunk.at, static_cast<size_t>(chunk.bytes), address);
  std::vector<char> bytes(static_cast<size_t>(chunk.bytes));
  WEIR_TRY(spool_.read_at(bytes.data(), bytes.size(), chunk.at));
  return file.write_at(bytes.data(), bytes.size(), address);
}

void Packed::clear() {
  chunks_.clear();
  memory_.clear();
  spool_ = PosixFile();
  spool_bytes_ = 0;
}

}  // namespace weir::output::netcdf4
