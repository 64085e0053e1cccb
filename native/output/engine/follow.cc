// SPDX-License-Identifier: Apache-2.0
#include "output/engine/follow.h"

#include <sys/stat.h>

#include "output/format/reader.h"
#include "output/model/text.h"

namespace weir::output {

Result<int64_t> records_to_follow(const Format& format, const StreamFile& stream,
                                  const std::string& path, std::optional<double> time_s) {
  struct stat of;
  if (lstat(path.c_str(), &of) != 0) return int64_t{0};
  WEIR_TRY(format.same(stream.file, path));
  Result<std::unique_ptr<Reader>> reader = open_whole(path);
  if (!reader.ok()) return reader.status();
  const std::string& time = stream.file.variables[static_cast<size_t>(stream.time)].name;
  Result<Found> found = (*reader)->find(stream.file, stream.time);
  if (!found.ok()) return found.status();
  const int64_t records = (*found).records;
  if (records == 0 || !time_s) return records;
  double last_s = 0;
  WEIR_TRY((*reader)->read(time, records - 1, 0, 1, &last_s));
  if (last_s < *time_s) return records;
  return Status(WEIR_E_FILE, "cannot go on with " + path + ": its last time is " +
                                 number_text(last_s) + " s, this run's first in it " +
                                 number_text(*time_s) +
                                 " s, which is not later; write to another path, or take the later "
                                 "records out of the file (" +
                                 format.selects_records() + ")");
}

}  // namespace weir::output
