// SPDX-License-Identifier: Apache-2.0
// A frame in numbers, and the messages of control about it. A frame costs clients + 2 x members
// messages on its way to the writers, and as many back: clients tell their member of the group
// (frame), members tell the head when all have (ready), the head starts all members (go), and
// members release their clients.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "output/core/status.h"

namespace weir::output {

struct Frame {
  int32_t stream = 0;
  int32_t due = 0;      // it is written; else it only adds to means, sums and extremes
  int32_t lonlat = 0;   // the group's first frame of the file: longitude and latitude come with it
  int32_t last = 0;     // of its file, as far as is known
  int64_t number = 0;   // of the stream, all frames counted
  int64_t step = 0;
  int64_t file = 0;     // the file's number
  int64_t record = 0;   // place among the file's frames
  int64_t written = 0;  // how many of them are in the file, as far as the client was notified: for
                        // a group that takes a file over
  int32_t generation = 0;  // how often the file has been taken over
  int32_t source = 0;      // the generation of the file that has those `written`
  int64_t file_step = 0;
  // The number of the frame after the last due one: where means and the like begin.
  int64_t interval = 0;
  double previous_s = 0;  // the time of the step before
  // Of streams whose state is saved.
  int32_t save = 0;  // no frame of the stream, but the end of the model: its state is to be saved
  int32_t resumed = 0;         // the run goes on with a saved state
  int64_t resumed_steps = 0;   // that it has of the first interval
  int64_t resumed_records = -1;  // that the file of the first frame has by it; -1: not known
  double longest_step_s = 0;
  double time_s = 0, begin_s = 0,
         file_time_s = 0;  // of the frame, of its interval, of the file's first record
};

enum class NoteKind : int32_t {
  kDefine = 1,  // client 0 to all servers: take part in the end of definitions
  kFrame,       // client to its member: my part of the frame is in my window
  kReady,       // member to head: all my clients' parts are
  kGo,          // head to members: write it
  kDone,        // head to members that only forward: it is written, or why not
  kRelease,  // member to its clients: the frame's place in the window is free; with an error when
             // it was not written
  kAlive,    // member to its clients, while a frame takes long; head to members that only forward,
             // who pass it on
  kKept,  // client to an owner that it sends pieces to: all of this frame's have left, and were the
          // frame's when they did
  kWaiting,   // client to an owner that it sends pieces to, now and then while it waits for that
              // owner's group or for other ranks
  kGivenUp,   // client 0 to the members of a group that was silent for too long: others write its
              // frames
  kShutdown,  // client to its member: no more frames
  kAllShutdown,  // member to head
  kClose,        // head to members: complete all files and end
  kClosed,       // head to members that only forward
  kFinished      // member to its clients: all is written, or why not
};

// How often a rank that waits says so (kWaiting).
constexpr double kSayWaitingEvery_s = 1;

// What a client could not deliver of a frame.
struct MissingField {
  int32_t column = -1, rank = -1, count = 0;  // the first column; the lowest rank; how many ranks
};

struct Note {
  NoteKind kind = NoteKind::kAlive;
  int32_t group = 0;
  Frame frame;
  MissingField missing;
  Status status;
  bool in_file = false;  // kRelease, kDone: the frame is written, whatever the status tells of it
  bool to_the_end = false;  // kWaiting: from now on
  // kShutdown, kAllShutdown, kClose: some rank is lost; the ranks end their world together before
  // MPI_Finalize, and not now.
  bool apart = false;

  std::vector<char> encode() const;
  static Result<Note> decode(std::span<const char> bytes);
};

}  // namespace weir::output
