// SPDX-License-Identifier: Apache-2.0
// A stream as a client sees it: which frame is being filled, where, and what became of the frames
// before it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "output/engine/note.h"
#include "output/engine/saved_state.h"
#include "output/engine/setup.h"

namespace weir::output {

class Flow {
 public:
  Flow(const Setup& setup, int stream);

  // The run goes on with the saved state of another, before its first step.
  void resume(const Standing& standing);
  // Whether a run may go on so with a first step at this time.
  Status check_first(double time_s) const;
  // After the last step: the frame is the one by which the state is saved.
  void begin_saving();

  // A step has begun: whether the stream has a frame at it.
  void begin(double time_s, int64_t step);
  bool active() const { return active_; }
  bool due() const { return active_ && frame_.due; }
  // The frame is to be the first of a file.
  bool begins_file() const { return due() && frame_.record == 0; }
  // This frame is not to be written after all. The next one begins the file.
  void refuse();
  bool wants(int column) const;
  bool has(int column) const { return put_[static_cast<size_t>(column)]; }
  void mark(int column) { put_[static_cast<size_t>(column)] = true; }
  const Frame& frame() const { return frame_; }
  // What this rank has of the frame is not to be relied on, and why. Nothing comes of the frame's
  // file.
  void spoil(const Status& why);
  const Status& spoiled() const { return spoiled_; }
  // This rank has reported that it cannot store the frame: its other fields are not stored either,
  // and are not reported one by one.
  void lose() { lost_ = true; }
  bool lost() const { return lost_; }
  // The first column that is wanted and was not put; -1: none.
  int missing_column() const;
  // The frame is complete: it stays in its slot until it is released.
  void end();

  // Frames in slots, the oldest first; `flight` is what is still being sent of one.
  struct Held {
    Frame frame;
    int group = 0;
    MissingField missing;
    std::unique_ptr<Flight> flight;
    bool released = false;
    // Pieces that wait for those before them, or for a call of MPI that has failed to succeed; in
    // order.
    struct Piece {
      int to = -1;
      const char* from = nullptr;
      int64_t bytes = 0;
    };
    std::deque<Piece> unsent;
    Status spoiled = {};

    bool is_sending() const { return flight != nullptr || !unsent.empty(); }
  };
  std::vector<Held> held;
  bool sends_left = false;  // of frames that went to others: MPI has not ended them
  Status sends_nothing;  // why: a piece was lost on its way, and what came after it would be taken
                         // for it
  // Whether the slot of the frame that is being filled is still another frame's; that one, or null.
  Held* in_the_way();
  // The group of the file that is being filled with frames: always the same one, unless it is lost.
  int group(const std::vector<int>& alive);
  // Groups are lost: their frames and files are `alive`'s now.
  void pass_on(const std::vector<int>& dead, const std::vector<int>& alive);
  // Only from the group that has the frame: one that was given up may still say so, too late.
  void released(int64_t number, int group, bool written);
  // The last frame that a group has said to have finished; -1: none.
  int64_t last_finished(int group) const;

 private:
  void count_written();

  const Setup& setup_;
  int stream_;
  int64_t number_step(double time_s, int64_t step);
  double file_time_s() const;
  void choose_file();
  void begin_record();

  bool active_ = false;
  Frame frame_;  // the next one, or the one being filled
  double last_due_s_ = 0;
  struct Written {
    int64_t frames = 0;
    int32_t generation = 0;  // of the file that has them
  };
  std::map<int64_t, Written> written_;  // by file: files of two groups grow at the same time
  int64_t group_file_ = -1;  // which file group_ has
  int group_ = 0;
  bool lonlat_given_ = false;  // to the group, for that file
  std::optional<double> step_s_;  // the time of the last step, frame or not
  int64_t period_ = 0;            // of the file
  bool stepped_ = false;          // in this run
  int64_t steps_before_ = 0;      // of other runs
  int64_t resumed_file_ = -1;
  std::vector<bool> put_;
  Status spoiled_;
  bool lost_ = false;
  std::map<int, int64_t> last_finished_;  // by group
};

}  // namespace weir::output
