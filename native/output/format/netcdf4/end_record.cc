// SPDX-License-Identifier: Apache-2.0
// The end of a record of a netCDF-4 file: compressed chunks get their places, all is written, then
// the metadata make it true.
#include <algorithm>
#include <cstring>

#include "output/format/modules.h"
#include "output/format/netcdf4/file.h"
#include "output/transport/team.h"

namespace weir::output::netcdf4 {

// Places go by variable and position, whoever has the chunk: so the file does not depend on the
// number of owners.
Status Netcdf4File::place_packed(int64_t record, const std::vector<std::vector<char>>& lists,
                                 std::vector<std::vector<char>>& answers) {
  struct Asked {
    PackedChunk chunk;
    size_t owner, index;
  };
  std::vector<Asked> asked;
  for (size_t owner = 0; owner < lists.size(); owner++) {
    const size_t n = lists[owner].size() / sizeof(PackedChunk);
    answers[owner].resize(n * sizeof(int64_t));
    for (size_t i = 0; i < n; i++) {
      Asked a = {{}, owner, i};
      std::memcpy(&a.chunk, lists[owner].data() + i * sizeof(PackedChunk), sizeof(PackedChunk));
      asked.push_back(a);
    }
  }
  std::sort(asked.begin(), asked.end(), [](const Asked& a, const Asked& b) {
    return std::tuple(a.chunk.variable, a.chunk.band, a.chunk.chunk) <
           std::tuple(b.chunk.variable, b.chunk.band, b.chunk.chunk);
  });
  std::vector<netcdf::Piece> pieces;
  for (const Asked& a : asked) {
    const int variable = static_cast<int>(a.chunk.variable);
    pieces.push_back(
        piece_of_chunk(storage_, variable, record, a.chunk.band, a.chunk.chunk, a.chunk.bytes));
  }
  const std::lock_guard lock(netcdf_mutex());
  netcdf::Why why = {};
  WEIR_TRY(
      call(module_->place(growing_, pieces.data(), static_cast<int64_t>(pieces.size()), why), why));
  for (size_t i = 0; i < pieces.size(); i++) {
    std::memcpy(answers[asked[i].owner].data() + asked[i].index * sizeof(int64_t),
                &pieces[i].address, sizeof(int64_t));
  }
  return {};
}

Status Netcdf4File::write_packed(int64_t record) {
  const std::vector<PackedChunk>& mine = packed_.chunks();
  Result<std::vector<std::vector<char>>> lists = owners_.gather(
      {reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(PackedChunk)}, 0);
  if (!lists.ok()) return lists.status();
  std::vector<std::vector<char>> answers(static_cast<size_t>(owners_.size()));
  Status placed;
  if (owners_.rank() == 0) placed = place_packed(record, *lists, answers);
  WEIR_TRY(owners_.agree(placed));
  Result<std::vector<std::vector<char>>> places = owners_.exchange(answers);
  if (!places.ok()) return places.status();
  for (size_t i = 0; i < mine.size() && failed_.ok(); i++) {
    int64_t address = 0;
    std::memcpy(&address, (*places)[0].data() + i * sizeof address, sizeof address);
    failed_ = packed_.write_to(file_, mine[i], address);
  }
  packed_.clear();
  return {};
}

Status Netcdf4File::end_record(int64_t record) {
  for (const chunks::Bands& bands : bands_) {
    if (failed_.ok() && !bands.empty())
      failed_ = Status(WEIR_E_INTERNAL,
                       path_ + ": a record ended with a chunk of which only a part was written");
  }
  if (packs_) {
    WEIR_TRY(owners_.agree(failed_));
    WEIR_TRY(write_packed(record));
  }
  if (failed_.ok() && options_.sync) failed_ = file_.sync();
  WEIR_TRY(owners_.agree(failed_));
  file_.expect_whole();
  std::vector<netcdf::Piece> pieces;
  Status mine;
  if (owners_.rank() == 0) {
    {
      const std::lock_guard lock(netcdf_mutex());
      netcdf::Why why = {};
      mine = call(module_->commit(growing_, why), why);
    }
    // What comes after the last record is forgotten at close.
    if (mine.ok() && record + 1 != options_.record_limit)
      mine = look_ahead(record + 1, false, pieces);
  }
  if (record + 1 == options_.record_limit) return owners_.agree(mine);
  return share_places(mine, record + 1, false, std::move(pieces));
}

}  // namespace weir::output::netcdf4
