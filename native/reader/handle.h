// SPDX-License-Identifier: Apache-2.0
// What a reader of the C ABI is made of.
#pragma once

#include "reader/accesses.h"
#include "reader/scan.h"

struct weir_reader {
  weir::reader::Mapping file;
  weir::reader::Index index;
  weir::reader::Problems problems;
  weir::reader::Names names;
  weir::reader::Scanned scanned;
  weir::reader::Accesses accesses;
  bool is_scanned = false;
};

#define WEIR_API extern "C" __attribute__((visibility("default")))
