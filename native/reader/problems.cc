// SPDX-License-Identifier: Apache-2.0
#include "reader/problems.h"

#include <array>

namespace weir::reader {

const char* text_of(Reason reason) {
  static constexpr std::array<const char*, size_t(Reason::count_)> texts = {
      "the file ends before the space that its header says was taken",
      "neither a chunk nor unwritten space",
      "chunk of a kind that this version does not know",
      "chunk whose size is impossible",
      "chunk whose entry size does not fit its kind",
      "chunk that claims more entries than it has room for",
      "chunk cut off by the end of the file",
      "chunk beyond the end that the header gives",
      "chunk that refers to a place where no process can be",
      "process chunk missing or damaged: its records are read as of an unknown process",
      "name entry that does not fit its chunk",
      "file id named twice in one process",
      "record of an operation that this version does not know",
      "record missing before others of its thread: erased, or its thread was killed within a "
      "signal handler",
      "record of a layer that does not exist",
      "record whose time is impossible",
      "record whose checksum is wrong: not one of its 32 bytes is believed",
      "record of more bytes than one call moves (1 TiB)",
      "record of a routine of MPI that does not exist",
      "record of a name or communicator whose number the process never gave",
      "total that no longer fits 64 bits",
      "counter of an operation or layer that does not exist",
      "counter whose figures contradict each other",
      "name whose checksum is wrong",
      "chunk whose checksum is wrong: nothing of it is believed",
      "process whose checksum is wrong: its number, rank, command or times were changed",
      "header whose checksum is wrong: clock, node or level were changed",
      "histogram that its chunk has no room for",
      "calibration of the clock is impossible",
      "more problems than are listed",
  };
  return reason < Reason::count_ ? texts[size_t(reason)] : "unknown problem";
}

}  // namespace weir::reader
