// SPDX-License-Identifier: Apache-2.0
#include "output/format/chunks/codec.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "output/core/trace.h"

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

// Room for the largest that can come of so many bytes, one a thread. It is not filled with zeros,
// as a vector that grows would be.
char* room(size_t bytes) {
  thread_local std::unique_ptr<char[]> own;
  thread_local size_t has = 0;
  if (has < bytes) {
    own.reset(new (std::nothrow) char[bytes]);
    has = own ? bytes : 0;
  }
  return own.get();
}

// As many elements as a register has bytes, in kSize registers. The place of byte b of element e
// has the bits of e above those of b; a perfect shuffle of all bytes rotates these bits by one.
using Register = unsigned char __attribute__((vector_size(16)));
constexpr size_t kElements = sizeof(Register);

template <size_t kSize>
void rotate(Register (&all)[kSize]) {
  Register next[kSize];
  for (size_t i = 0; i < kSize / 2; i++) {
    const Register a = all[i], b = all[i + kSize / 2];
    next[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22,
                                          7, 23);
    next[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29,
                                              14, 30, 15, 31);
  }
  std::memcpy(all, next, sizeof all);
}

template <size_t kSize>
void shuffle_fixed(const char* from, size_t elements, char* to) {
  const size_t whole = elements / kElements * kElements;
  for (size_t i = 0; i < whole; i += kElements) {
    Register all[kSize];
    std::memcpy(all, from + i * kSize, sizeof all);
    for (size_t bits = kElements; bits > 1; bits /= 2) rotate(all);
    for (size_t byte = 0; byte < kSize; byte++)
      std::memcpy(to + byte * elements + i, &all[byte], sizeof(Register));
  }
  for (size_t i = whole; i < elements; i++) {
    for (size_t byte = 0; byte < kSize; byte++) to[byte * elements + i] = from[i * kSize + byte];
  }
}

template <size_t kSize>
void unshuffle_fixed(const char* from, size_t elements, char* to) {
  const size_t whole = elements / kElements * kElements;
  for (size_t i = 0; i < whole; i += kElements) {
    Register all[kSize];
    for (size_t byte = 0; byte < kSize; byte++)
      std::memcpy(&all[byte], from + byte * elements + i, sizeof(Register));
    for (size_t bits = kSize; bits > 1; bits /= 2) rotate(all);
    std::memcpy(to + i * kSize, all, sizeof all);
  }
  for (size_t i = whole; i < elements; i++) {
    for (size_t byte = 0; byte < kSize; byte++) to[i * kSize + byte] = from[byte * elements + i];
  }
}

constexpr int kWindowBits = 15, kWithGzipHeader = 16, kAnyHeader = 32, kMemoryLevel = 8;
// zlib counts in 32 bits.
constexpr size_t kMostAtOnce = size_t{1} << 30;

Status deflate_all(int level, const char* from, size_t bytes, std::vector<char>& out,
                   Container container) {
  z_stream stream = {};
  const int window = kWindowBits + (container == Container::kGzip ? kWithGzipHeader : 0);
  if (deflateInit2(&stream, level, Z_DEFLATED, window, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    return {WEIR_E_MEMORY, "cannot deflate a chunk: no memory"};
  }
  size_t at = out.size();
  out.resize(at + deflateBound(&stream, bytes));
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from));
    stream.avail_in = static_cast<uInt>(std::min(bytes, kMostAtOnce));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + at);
    stream.avail_out = static_cast<uInt>(std::min(out.size() - at, kMostAtOnce));
    const uInt in = stream.avail_in, room = stream.avail_out;
    state = ::deflate(&stream, in == bytes ? Z_FINISH : Z_NO_FLUSH);
    from += in - stream.avail_in;
    bytes -= in - stream.avail_in;
    at += room - stream.avail_out;
  }
  deflateEnd(&stream);
  if (state != Z_STREAM_END)
    return {WEIR_E_MEMORY, "cannot deflate a chunk: " + std::to_string(state)};
  out.resize(at);
  return {};
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

Status compress(const Compression& compression, const char* from, size_t bytes,
                std::vector<char>& out, Container container) {
  const Traced traced(Event::kEncode, {}, static_cast<int64_t>(bytes));
  if (compression.kind == Compression::Kind::kNone) {
    out.insert(out.end(), from, from + bytes);
    return {};
  }
  if (compression.kind == Compression::Kind::kDeflate)
    return deflate_all(compression.level, from, bytes, out, container);
  const size_t most = ZSTD_compressBound(bytes);
  char* to = room(most);
  if (!to) return {WEIR_E_MEMORY, "cannot compress a chunk: no memory"};
  const size_t made = ZSTD_compressCCtx(context(), to, most, from, bytes, compression.level);
  if (ZSTD_isError(made))
    return {WEIR_E_MEMORY, std::string("cannot compress a chunk: ") + ZSTD_getErrorName(made)};
  out.insert(out.end(), to, to + made);
  return {};
}

Status inflate(std::span<const char> from, char* to, size_t bytes) {
  z_stream stream = {};
  if (from.size() > kMostAtOnce || bytes > kMostAtOnce)
    return {WEIR_E_FORMAT, "a deflated chunk is larger than 1 GiB"};
  if (inflateInit2(&stream, kWindowBits + kAnyHeader) != Z_OK)
    return {WEIR_E_MEMORY, "cannot inflate a chunk: no memory"};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from.data()));
  stream.avail_in = static_cast<uInt>(from.size());
  stream.next_out = reinterpret_cast<Bytef*>(to);
  stream.avail_out = static_cast<uInt>(bytes);
  const int state = ::inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  return state == Z_STREAM_END && stream.avail_out == 0
             ? Status()
             : Status(WEIR_E_FORMAT, "a chunk is damaged: it does not inflate");
}

Status decompress_zstd(std::span<const char> from, char* to, size_t bytes) {
  const size_t made = ZSTD_decompress(to, bytes, from.data(), from.size());
  if (ZSTD_isError(made) || made != bytes) {
    return {WEIR_E_FORMAT, std::string("a chunk is damaged: ") +
                               (ZSTD_isError(made) ? ZSTD_getErrorName(made) : "wrong length")};
  }
  return {};
}

}  // namespace weir::output::chunks
