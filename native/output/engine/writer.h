// SPDX-License-Identifier: Apache-2.0
// An owner's work on frames: its range of each frame goes slab by slab from the clients to the
// file; while one slab is written, the next is brought together, where there is a processor for it.
// Opens, completes and publishes files: a file is written under a hidden temporary name beside its
// final one and renamed when it is complete. All owners of a group call the same functions in the
// same order.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "output/engine/file_lock.h"
#include "output/engine/gather.h"
#include "output/engine/note.h"
#include "output/engine/saved_state.h"
#include "output/engine/write_behind.h"
#include "output/format/format.h"
#include "output/reduce/accumulator.h"
#include "output/reduce/interval.h"

namespace weir::output {

class Writer {
 public:
  Writer(World& world, Setup& setup);
  ~Writer();
  // Memory; [collective over nothing]
  Status prepare();
  void on_pause(const std::function<void()>& f) { gather_.on_pause = behind_.on_pause = f; }

  // Of a server: see Gather::late.
  void on_late(const std::function<Status(double since_s)>& f) { gather_.late = f; }
  Status overdue() const { return gather_.overdue(); }
  // Of a server: returns when all ranks that send pieces of the frame have said that they were the
  // frame's (kKept).
  std::function<Status(const Frame&)> kept = [](const Frame&) { return Status(); };

  // [collective over the group's owners] All clients have their part of the frame in their windows.
  // `refused`: why it is not to be written; the file then has a record less. Returns when the frame
  // is in the file, with the same result on all owners, which names stream, file, rank and cause.
  Status write(const Frame& frame, const Status& refused);
  // What is to be notified of frames that were written all the same: means that have not all their
  // steps, values that their type in files cannot hold. Reported once.
  Status take_remark() { return std::exchange(remark_, {}); }
  // [collective over the group's owners] Complete and publish all files, unless an owner knows why
  // they cannot be complete: then they stay as they are, under their temporary names.
  Status close_all(const Status& incomplete);

 private:
  struct Open {
    std::unique_ptr<File> file;
    std::string path;    // for messages
    std::string target;  // the same, absolute
    FileLock lock;       // of the first owner
    int64_t number = 0;
    int generation = 0;
    int64_t before = 0;   // records of a run before, which this one's follow
    int64_t written = 0;  // records in the file, those with them
    Status failed;  // the first failure: the file is left as it is
    std::set<size_t> reported;  // columns whose faults were reported
  };

  Team& team(int stream) { return alone(stream) ? *lone_ : *setup_.owners; }
  bool alone(int stream) const {
    return !setup_.layout.streams[static_cast<size_t>(stream)].facts.parallel;
  }
  int owners(int stream) const;
  void warn_of_threads() const;
  Status open(const Frame& frame, Open* open);
  // On the first owner: what is there of a run before that the frame is to follow.
  Status look_before(const Frame& frame, Open* open) const;
  Status write_times(const Frame& frame, Open& open);
  // Every slab of the section that this frame concerns; `file` null: they are taken and forgotten.
  Status walk(const Frame& frame, const Section& section, bool lonlat, File* file,
              const Status& before);
  Status walk_slabs(const Frame& frame, const Section& section, bool lonlat, File* file,
                    const Status& before);
  Status write_slab(const Frame& frame, const Section& section, size_t index, const Part& slab,
                    File* file, int64_t record);
  // The slab that was brought together last goes to the file; the result may be that of the one
  // before.
  Status put(const Frame& frame, const Column& column, int64_t record, const Part& slab,
             File& file);
  char* slab() const { return slabs_[turn_].data(); }
  Status accumulate(const Frame& frame, const Column& column, size_t index, const Part& slab,
                    File* file, int64_t record);
  Status still_ours(const Frame& frame, const Status& before);
  // [collective over the stream's owners] Lost: this group was given up.
  Status agree_on_stamps(const Frame& frame, const Status& mine);
  Status write_frame(const Frame& frame, const Status& refused, Open& open);
  Status publish(Open& open, int stream);
  Status begin_interval(const Frame& frame);
  void end_interval(const Frame& frame, const Open& open);
  // [collective over the stream's owners] The first one notes what values of the frame were lost,
  // once for each field and file.
  Status tell_faults(const Frame& frame, Open& open);
  Status each_accumulator(int stream,
                          const std::function<Status(const Part& slab, Accumulator& sums)>& visit);
  Status restore(const Frame& frame);
  // [collective over the stream's owners]
  Status save(const Frame& frame);
  Status write_state(const std::string& path, const SavedState& state, const Frame& frame,
                     const Standing& standing);
  void remark(const Status& more);
  Status explain(const Status& cause, int stream, const std::string& path) const;

  World& world_;
  Setup& setup_;
  Gather gather_;
  Buffer slabs_[2], result_;  // one is brought together, one written
  int turn_ = 0;
  std::unique_ptr<Team> lone_ = lone_team();
  bool drains_ = false;  // a client sends, wanted or not
  std::map<int, Open> files_;  // by stream
  std::map<std::pair<int, size_t>, Accumulator> accumulators_;  // by stream and slab
  std::map<int, Interval> intervals_;  // by stream
  std::vector<Faults> lost_;  // of the frame, by column
  Status remark_;
  Status given_up_;  // this group was given up: nothing is written any more
  WriteBehind behind_;  // the last member: it ends before what it works on
};

}  // namespace weir::output
