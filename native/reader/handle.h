// SPDX-License-Identifier: Apache-2.0
// What a reader of the C ABI is made of, and what its functions share.
#pragma once

#include <exception>

#include "reader/exchanges.h"
#include "reader/scan.h"

struct weir_reader {
  weir::reader::Mapping file;
  weir::reader::Index index;
  weir::reader::Problems problems;
  weir::reader::Names names;
  weir::reader::Scanned scanned;
  std::vector<weir_reader_exchange> exchanges;
  bool is_scanned = false;
};

namespace weir::reader {

// No exception leaves the C ABI. 0, or -1: no memory, or no thread could be begun.
template <class Work>
int guarded(Work work) {
  try {
    work();
    return 0;
  } catch (const std::exception&) {
    return -1;
  }
}

}  // namespace weir::reader

#define WEIR_API extern "C" __attribute__((visibility("default")))
