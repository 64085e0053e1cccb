// SPDX-License-Identifier: Apache-2.0
// HDF5's registered filter 32015, Zstandard, for files that this process writes and reads: Debian
// has no plugin of it. One chunk is one zstd frame with its content size; the filter's only value
// is the level. Other programs need the plugin (the wheels of netCDF4 and h5py's hdf5plugin bring
// it).
#include <hdf5.h>
#include <zstd.h>

#include <cstdlib>

#include "output/format/netcdf/parts.h"

namespace weir::output::netcdf {
namespace {

size_t take(void* made, size_t result, size_t capacity, size_t* buffer_size, void** buffer) {
  if (!made || ZSTD_isError(result)) {
    std::free(made);
    return 0;
  }
  std::free(*buffer);
  *buffer = made;
  *buffer_size = capacity;
  return result;
}

size_t filter(unsigned flags, size_t values_count, const unsigned* values, size_t bytes,
              size_t* buffer_size, void** buffer) {
  if (flags & H5Z_FLAG_REVERSE) {
    const unsigned long long size = ZSTD_getFrameContentSize(*buffer, bytes);
    if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR ||
        size > size_t{1} << 40)
      return 0;
    void* made = std::malloc(size ? size : 1);
    return take(made, made ? ZSTD_decompress(made, size, *buffer, bytes) : 0, size, buffer_size,
                buffer);
  }
  const size_t bound = ZSTD_compressBound(bytes);
  void* made = std::malloc(bound);
  const int level = values_count > 0 ? static_cast<int>(values[0]) : ZSTD_CLEVEL_DEFAULT;
  return take(made, made ? ZSTD_compress(made, bound, *buffer, bytes, level) : 0, bound,
              buffer_size, buffer);
}

}  // namespace

void register_zstd() {
  static bool done = false;
  if (done) return;
  done = true;
  static const H5Z_class2_t kClass = {H5Z_CLASS_T_VERS, 32015,   1,       1,
                                      "zstd",           nullptr, nullptr, filter};
  if (H5Zfilter_avail(kClass.id) <= 0) H5Zregister(&kClass);
}

}  // namespace weir::output::netcdf
