// SPDX-License-Identifier: Apache-2.0
// Where the transfers of C streams begin, which their records do not have.
#pragma once

#include "reader/ops.h"
#include "reader/record.h"

namespace weir::reader {

// Where a C stream of the file stands: the trace has the offsets of opens, seeks and tells, and
// what the calls between them move. Not known: streams opened to append, and two streams at a time.
class Stream {
 public:
  // Where a transfer begins: as its record has it, else where the stream stands, which it advances.
  uint64_t begin_of(const Words& record) {
    const uint64_t offset = record.offset();
    const bool of_stream = record.layer() == uint8_t(wire::Layer::stdio);
    return of_stream && offset == wire::kUnknownOffset ? advance(record) : offset;
  }

  void move(const Words& record) {
    const auto op = wire::Op(record.op());
    const uint64_t offset = record.offset();
    if (op == wire::Op::kFflush || op == wire::Op::kSetvbuf) return;
    if (op == wire::Op::kFclose) {
      open_ -= open_ > 0;
      at_ = wire::kUnknownOffset;
      appends_ = false;
    } else if (kOps[record.op()].op_class == 'O') {
      ++open_;
      at_ = offset;
      appends_ = offset == wire::kUnknownOffset;
    } else {
      at_ = op == wire::Op::kRewind ? 0 : offset;
    }
  }

 private:
  uint64_t advance(const Words& record) {
    if (open_ > 1 || appends_ || at_ == wire::kUnknownOffset) return wire::kUnknownOffset;
    const uint64_t at = at_;
    at_ += record.size();
    return at;
  }

  uint64_t at_ = wire::kUnknownOffset;
  uint32_t open_ = 0;
  bool appends_ = false;
};

}  // namespace weir::reader
