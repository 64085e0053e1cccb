// SPDX-License-Identifier: Apache-2.0
// One file as the daemon writes it: the descriptor that the program handed over, or one opened by
// path when there is none.
#pragma once

#include <stdint.h>

#include "layers/writeback/format.h"

namespace weir::daemon {

// When the file was made; 0: its file system does not keep that. No request reaches a server.
uint64_t born_ns(int descriptor);

class Output {
 public:
  Output(const writeback::FileSlot& slot, int descriptor) : slot_(slot), given_(descriptor) {}
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Each returns 0 or an errno; *done counts what arrived.
  int write_at(const char* from, uint64_t bytes, uint64_t offset, uint64_t* done);
  int append(const char* from, uint64_t bytes, uint64_t* done);
  // How many of the first `tried` bytes are in the file already, from `expected` on or behind what
  // others have appended since.
  int find_appended(const char* from, uint64_t tried, uint64_t expected, uint64_t* there);
  int size(uint64_t* bytes);

 private:
  int prepare();            // opens what is missing
  bool is_the_file(int descriptor) const;
  int reopen(int flags);    // the same file once more, or -1
  int for_positions();      // a descriptor without O_APPEND
  int for_appending();

  const writeback::FileSlot& slot_;
  const int given_;
  int opened_ = -1;     // by path
  int positioned_ = -1;
  int appending_ = -1;
  int reading_ = -1;
};

}  // namespace weir::daemon
