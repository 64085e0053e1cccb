// SPDX-License-Identifier: Apache-2.0
#include "output/format/chunks/bands.h"

#include <algorithm>
#include <cstring>

namespace weir::output::chunks {

Status Bands::add(int64_t record, int64_t first, int64_t count, const void* data,
                  const Emit& emit) {
  const char* from = static_cast<const char*>(data);
  while (count > 0) {
    const int64_t index = layout_.band_of(first), begin = layout_.first_of(index),
                  whole = layout_.count_of(index);
    const int64_t n = std::min(count, begin + whole - first);
    if (n == whole) {
      WEIR_TRY(emit(record, index, from));
    } else {
      const auto key = std::pair(record, index);
      auto [it, is_new] = open_.try_emplace(key);
      Band& band = it->second;
      if (is_new) {
        band.data = std::move(spare_);
        band.data.resize(static_cast<size_t>(layout_.band_elements()) * size_);
        band.missing = whole;
      }
      std::memcpy(band.data.data() + static_cast<size_t>(first - begin) * size_, from,
                  static_cast<size_t>(n) * size_);
      if ((band.missing -= n) == 0) {
        const Status emitted = emit(record, index, band.data.data());
        spare_ = std::move(band.data);
        open_.erase(it);
        if (!emitted.ok()) return emitted;
      }
    }
    first += n;
    count -= n;
    from += static_cast<size_t>(n) * size_;
  }
  return {};
}

}  // namespace weir::output::chunks
