// SPDX-License-Identifier: Apache-2.0
#include "output/format/chunks/codec.h"

#include <zlib.h>
#include <zstd.h>

#include <cstring>
#include <memory>

namespace weir::output::chunks {
namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

// One a thread: making one costs as much as compressing a small chunk.
ZSTD_CCtx* context() {
  thread_local std::unique_ptr<ZSTD_CCtx, FreeContext> own(ZSTD_createCCtx());
  return own.get();
}

template <size_t kSize>
void shuffle_fixed(const char* from, size_t elements, char* to) {
  for (size_t byte = 0; byte < kSize; byte++) {
    char* plane = to + byte * elements;
    for (size_t i = 0; i < elements; i++) plane[i] = from[i * kSize + byte];
  }
}

template <size_t kSize>
void unshuffle_fixed(const char* from, size_t elements, char* to) {
  for (size_t byte = 0; byte < kSize; byte++) {
    const char* plane = from + byte * elements;
    for (size_t i = 0; i < elements; i++) to[i * kSize + byte] = plane[i];
  }
}

}  // namespace

void shuffle(const char* from, size_t bytes, size_t element, char* to) {
  switch (element) {
    case 8: return shuffle_fixed<8>(from, bytes / 8, to);
    case 4: return shuffle_fixed<4>(from, bytes / 4, to);
    case 2: return shuffle_fixed<2>(from, bytes / 2, to);
    default: std::memcpy(to, from, bytes);
  }
}

void unshuffle(const char* from, size_t bytes, size_t element, char* to) {
  switch (element) {
    case 8: return unshuffle_fixed<8>(from, bytes / 8, to);
    case 4: return unshuffle_fixed<4>(from, bytes / 4, to);
    case 2: return unshuffle_fixed<2>(from, bytes / 2, to);
    default: std::memcpy(to, from, bytes);
  }
}

Status compress(const Compression& compression, const char* from, size_t bytes, std::vector<char>& out) {
  const size_t begin = out.size();
  if (compression.kind == Compression::Kind::kNone) {
    out.insert(out.end(), from, from + bytes);
    return {};
  }
  if (compression.kind == Compression::Kind::kDeflate) {
    uLongf made = compressBound(bytes);
    out.resize(begin + made);
    const int error = compress2(reinterpret_cast<Bytef*>(out.data() + begin), &made, reinterpret_cast<const Bytef*>(from), bytes,
                                compression.level);
    if (error != Z_OK) return {WEIR_E_MEMORY, std::string("cannot deflate a chunk: ") + zError(error)};
    out.resize(begin + made);
    return {};
  }
  out.resize(begin + ZSTD_compressBound(bytes));
  const size_t made = ZSTD_compressCCtx(context(), out.data() + begin, out.size() - begin, from, bytes, compression.level);
  if (ZSTD_isError(made)) return {WEIR_E_MEMORY, std::string("cannot compress a chunk: ") + ZSTD_getErrorName(made)};
  out.resize(begin + made);
  return {};
}

Status decompress_zstd(std::span<const char> from, char* to, size_t bytes) {
  const size_t made = ZSTD_decompress(to, bytes, from.data(), from.size());
  if (ZSTD_isError(made) || made != bytes) {
    return {WEIR_E_FORMAT, std::string("a chunk is damaged: ") + (ZSTD_isError(made) ? ZSTD_getErrorName(made) : "wrong length")};
  }
  return {};
}

}  // namespace weir::output::chunks
