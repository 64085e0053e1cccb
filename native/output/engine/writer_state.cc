// SPDX-License-Identifier: Apache-2.0
// An owner's part of a saved state: its slabs of it are written when the model ends, and read when
// a run begins with them.
#include <fcntl.h>

#include "output/engine/saved_state.h"
#include "output/engine/writer.h"
#include "output/format/posix_file.h"
#include "output/format/publish.h"
#include "output/model/text.h"

namespace weir::output {

namespace {

std::string part_of(const std::string& path) { return path + ".weir-part"; }

}  // namespace

// Every slab of this owner that has values over time, with what it has of them.
Status Writer::each_accumulator(
    int stream, const std::function<Status(const Part& slab, Accumulator& sums)>& visit) {
  const Section& section = setup_.layout.streams[static_cast<size_t>(stream)].fields;
  const std::vector<Part>& slabs = section.of(owners(stream), setup_.owner);
  for (size_t i = 0; i < slabs.size(); ++i) {
    const Column& c = section.columns[static_cast<size_t>(slabs[i].column)];
    if (c.operation == WEIR_INSTANT) continue;
    WEIR_TRY(
        visit(slabs[i],
              accumulators_.try_emplace({stream, i}, c.operation, c.type, c.missing, slabs[i].count)
                  .first->second));
  }
  return {};
}

Status Writer::restore(const Frame& frame) {
  const Stream& stream = setup_.catalogue.streams[static_cast<size_t>(frame.stream)];
  const SavedState state(setup_.catalogue, stream,
                         setup_.layout.streams[static_cast<size_t>(frame.stream)]);
  const std::string path = state_path(setup_.settings.directory, stream);
  Result<PosixFile> file = PosixFile::open(path, O_RDONLY);
  if (!file.ok()) return file.status();
  return each_accumulator(frame.stream, [&](const Part& slab, Accumulator& sums) -> Status {
    const auto column = static_cast<size_t>(slab.column);
    WEIR_TRY(file->read_at(sums.values().data(), sums.values().size(),
                           state.values_at(column, slab.first)));
    if (!sums.counts().empty())
      WEIR_TRY(file->read_at(sums.counts().data(), sums.counts().size(),
                             state.counts_at(column, slab.first)));
    sums.restore(frame.resumed_steps);
    return {};
  });
}

Status Writer::write_state(const std::string& path, const SavedState& state, const Frame& frame,
                           const Standing& standing) {
  Team& owners = team(frame.stream);
  Status made;
  if (owners.rank() == 0) {
    const std::string header = state.header(standing);
    Result<PosixFile> file = PosixFile::open(path, O_WRONLY | O_CREAT | O_TRUNC);
    made = file.status();
    if (made.ok() && static_cast<int64_t>(header.size()) >= SavedState::kHeaderBytes)
      made = {WEIR_E_FILE, path + ": too many fields"};
    if (made.ok()) made = file->resize(state.bytes());
    if (made.ok()) made = file->write_at(header.data(), header.size(), 0);
    if (made.ok()) made = file->close();
  }
  WEIR_TRY(owners.agree(made));
  Result<PosixFile> file = PosixFile::open(path, O_WRONLY);
  Status mine = file.status();
  if (mine.ok()) {
    mine = each_accumulator(frame.stream, [&](const Part& slab, Accumulator& sums) -> Status {
      const auto column = static_cast<size_t>(slab.column);
      WEIR_TRY(file->write_at(sums.values().data(), sums.values().size(),
                              state.values_at(column, slab.first)));
      if (sums.counts().empty()) return {};
      return file->write_at(sums.counts().data(), sums.counts().size(),
                            state.counts_at(column, slab.first));
    });
  }
  if (mine.ok()) mine = file->sync();
  if (mine.ok()) mine = file->close();
  return owners.agree(mine);
}

// The interval that is under way, of which the frame says where it stands.
Status Writer::save(const Frame& frame) {
  Team& owners = team(frame.stream);
  const Stream& stream = setup_.catalogue.streams[static_cast<size_t>(frame.stream)];
  const SavedState state(setup_.catalogue, stream,
                         setup_.layout.streams[static_cast<size_t>(frame.stream)]);
  const std::string path = state_path(setup_.settings.directory, stream);
  WEIR_TRY(owners.agree(begin_interval(frame)));
  const int64_t steps = frame.number - frame.interval;
  const Interval& interval = intervals_[frame.stream];
  Status s;
  if (interval.steps() < steps) {
    s = {WEIR_E_LOST,
         "the means, sums and extremes of the interval that begins at " +
             number_text(frame.begin_s) +
             " s have not all its steps, and are not saved for a run that continues this one"};
  } else {
    const int64_t before = frame.interval == 0 ? frame.resumed_steps : 0;
    const Standing standing{frame.step,    frame.time_s,    frame.longest_step_s,
                            frame.begin_s, before + steps,  frame.file,
                            frame.record,  frame.file_step, frame.file_time_s};
    s = write_state(part_of(path), state, frame, standing);
  }
  if (owners.rank() == 0) {
    const Status done =
        s.ok() ? publish_file(part_of(path), path, true) : discard_file(part_of(path));
    if (s.ok()) s = done;
  }
  s = owners.agree(s);
  return s.ok() ? s
                : Status(WEIR_E_REMOTE, "stream " + quoted(stream.name) + ", saved state " + path +
                                            ": " + s.message() + " (" + weir_status_name(s.code()) +
                                            ")");
}

}  // namespace weir::output
