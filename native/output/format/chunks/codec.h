// SPDX-License-Identifier: Apache-2.0
// Compression of one chunk: bytes of elements shuffled (all first bytes, then all second ones,
// ...), then deflate or zstd. The shuffle is HDF5's filter 2; it makes zstd level 1 as good as
// deflate for fields at ten times the speed.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "output/core/status.h"
#include "output/model/catalogue.h"

namespace weir::output::chunks {

void shuffle(const char* from, size_t bytes, size_t element, char* to);
void unshuffle(const char* from, size_t bytes, size_t element, char* to);

// How deflated data are wrapped: HDF5 has zlib's stream, Zarr has gzip's.
enum class Container { kZlib, kGzip };

// Appends to `out`. kNone copies.
Status compress(const Compression& compression, const char* from, size_t bytes,
                std::vector<char>& out, Container container = Container::kZlib);
// Exactly `bytes` bytes, of a zlib or gzip stream.
Status inflate(std::span<const char> from, char* to, size_t bytes);
// A zstd frame of exactly `bytes` bytes.
Status decompress_zstd(std::span<const char> from, char* to, size_t bytes);

}  // namespace weir::output::chunks
