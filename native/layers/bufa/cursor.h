// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "layers/machinery/stack/layer.h"

namespace weir::layers::bufa {

// Where in a request's pieces the next byte goes.
class Cursor {
 public:
  explicit Cursor(const stack::Transfer& t) : piece_(t.pieces) { skip(); }
  char* at() const { return static_cast<char*>(piece_->iov_base) + in_; }
  uint64_t room() const { return piece_->iov_len - in_; }
  void advance(uint64_t bytes, bool last) {
    in_ += bytes;
    if (!last) skip();
  }

 private:
  void skip() {
    while (in_ == piece_->iov_len) {
      ++piece_;
      in_ = 0;
    }
  }
  const iovec* piece_;
  uint64_t in_ = 0;
};

}  // namespace weir::layers::bufa
