// SPDX-License-Identifier: Apache-2.0
#include "output/format/zarr/shard.h"

#include <fcntl.h>

#include <cstring>

#include "output/format/zarr/crc32c.h"

namespace weir::output::zarr {

Result<Shard> Shard::create(const std::string& path, int64_t places, int64_t present) {
  Result<PosixFile> file = PosixFile::open(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.ok()) return file.status();
  Shard shard;
  shard.file_ = std::move(*file);
  shard.index_.assign(static_cast<size_t>(2 * places), ~uint64_t{0});
  shard.missing_ = present;
  return shard;
}

Status Shard::append(int64_t place, const char* data, size_t bytes) {
  WEIR_TRY(file_.write_at(data, bytes, bytes_));
  index_[static_cast<size_t>(2 * place)] = static_cast<uint64_t>(bytes_);
  index_[static_cast<size_t>(2 * place + 1)] = bytes;
  bytes_ += static_cast<int64_t>(bytes);
  missing_--;
  return {};
}

Status Shard::finish(bool sync) {
  std::vector<char> tail(index_.size() * sizeof(uint64_t) + sizeof(uint32_t));
  const size_t bytes = tail.size() - sizeof(uint32_t);
  std::memcpy(tail.data(), index_.data(), bytes);
  const uint32_t crc = crc32c(tail.data(), bytes);
  std::memcpy(tail.data() + bytes, &crc, sizeof crc);
  WEIR_TRY(file_.write_at(tail.data(), tail.size(), bytes_));
  if (sync) WEIR_TRY(file_.sync());
  return file_.close();
}

}  // namespace weir::output::zarr
