// SPDX-License-Identifier: Apache-2.0
#include "layers/cos/declared.h"

#include <errno.h>
#include <fcntl.h>

#include "layers/writeback/arena.h"
#include "layers/writeback/client.h"
#include "layers/cos/blocking.h"
#include "layers/registration/register_file.h"
#include "base/syscall.h"
#include "layers/machinery/rules/rules.h"
#include "layers/machinery/stack/file.h"

namespace weir::layers {
namespace {

using namespace stack;
using namespace cos_declared;
using namespace cos;

// Blocked files have no holes: what is skipped is written as zeros.
constexpr uint64_t kLargestGap = 1u << 30;

// The buffer holds bytes [base, base + bytes) of the file as they lie on disk: whole blocks.
struct State {
  uint8_t* buffer;
  uint64_t bytes;
  uint64_t base;         // kNothing: empty
  uint64_t valid;        // bytes of the buffer that are the file's, from its start
  uint64_t dirty_from, dirty_to;
  uint64_t size;         // as the program sees it
  uint64_t ended_at;  // size that the control words at the end speak of; kNothing: there are none
  bool end_is_wrong;     // the control word of the last block was overwritten
  writeback::Arena* arena;   // of a file that is written: the buffer is its block
  int block, slot;
  bool writes;
};
constexpr uint64_t kNothing = ~uint64_t{0};

State& state(Layer& layer) { return *static_cast<State*>(layer.state()); }

Result create(Layer& layer) {
  State& s = state(layer);
  s.bytes = rules::argument(*layer.spec, kArgumentBytes, kDefaultBytes) / kBlock * kBlock;
  s.base = kNothing;
  return s.bytes != 0 ? 0 : -EINVAL;
}

bool has_buffer(Layer& layer) {
  State& s = state(layer);
  if (s.buffer != nullptr) return true;
  if (s.writes) {
    s.arena = writeback::create_arena(1, static_cast<uint32_t>(s.bytes), 1);
    if (s.arena != nullptr) s.slot = register_file(s.arena, layer, false);
    if (s.arena != nullptr && s.slot >= 0) s.block = writeback::take_block(s.arena);
    if (s.arena != nullptr && s.slot >= 0 && s.block >= 0) {
      s.buffer = static_cast<uint8_t*>(writeback::data(s.arena, s.block));
      return true;
    }
    if (s.arena != nullptr) writeback::destroy_arena(s.arena);
    s.arena = nullptr;
    note_bypass(layer, Reason::kNoDaemon);  // every write goes down at once
  }
  const long memory = base::map(s.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (base::failed(memory)) return false;
  s.buffer = reinterpret_cast<uint8_t*>(memory);
  return true;
}

// Fewer bytes than wanted only at the end of the file.
Result read_whole(Layer& layer, uint8_t* to, uint64_t bytes, uint64_t offset) {
  uint64_t done = 0;
  while (done < bytes) {
    const Result got = read_below(layer, to + done, bytes - done, offset + done);
    if (got < 0) return got;
    if (got == 0) break;
    done += static_cast<uint64_t>(got);
  }
  return static_cast<Result>(done);
}

Result write_whole(Layer& layer, const uint8_t* from, uint64_t bytes, uint64_t offset) {
  uint64_t done = 0;
  while (done < bytes) {
    const Result moved = write_below(layer, from + done, bytes - done, offset + done);
    if (moved < 0) return moved;
    if (moved == 0) return -EIO;
    done += static_cast<uint64_t>(moved);
  }
  return 0;
}

Result write_dirty(Layer& layer) {
  State& s = state(layer);
  if (s.dirty_from == s.dirty_to) return 0;
  const Result result =
      write_whole(layer, s.buffer + s.dirty_from, s.dirty_to - s.dirty_from, s.base + s.dirty_from);
  ++layer.statistics[kWrites];
  if (result < 0) return result;
  if (s.arena != nullptr) writeback::mark_clean(s.arena, s.block);
  s.dirty_from = s.dirty_to = 0;
  return 0;
}

// The control words at the end, when they do not speak of the size that the file has.
Result write_end(Layer& layer) {
  State& s = state(layer);
  if (s.ended_at == s.size && !s.end_is_wrong) return 0;
  const Tail tail(s.size);
  Result result = 0;
  if (s.ended_at != kNothing &&
      s.ended_at < s.size) {  // the block that used to be the last is a full one now
    const uint64_t old_last = Tail(s.ended_at).first_block;
    if (old_last != tail.first_block) {
      uint8_t word[kWord];
      store_word(word, block_control(old_last, kBlockWords - 1));
      result = write_whole(layer, word, sizeof word, old_last * kBlock);
    }
  }
  if (result >= 0) result = write_whole(layer, tail.image, kWord, tail.first_block * kBlock);
  if (result >= 0)
    result = write_whole(layer, tail.image + tail.from, tail.bytes - tail.from,
                         tail.first_block * kBlock + tail.from);
  if (result >= 0) result = truncate_below(layer, tail.file_bytes());
  ++layer.statistics[kTailWrites];
  s.base = kNothing;
  if (result < 0) return result;
  s.ended_at = s.size;
  s.end_is_wrong = false;
  return 0;
}

Result flush(Layer& layer) {
  State& s = state(layer);
  if (!s.writes) return flush_below(layer);
  Result result = write_dirty(layer);
  if (result >= 0) result = write_end(layer);
  if (result < 0) {
    const uint64_t lost = s.dirty_to - s.dirty_from;
    if (s.arena != nullptr) writeback::mark_clean(s.arena, s.block);
    s.dirty_from = s.dirty_to = 0;
    s.ended_at = s.size;
    s.end_is_wrong = false;
    s.base = kNothing;
    if (lost != 0) defer_error(layer, static_cast<int>(-result), lost);
    return lost != 0 ? 0 : result;
  }
  return flush_below(layer);
}

Result sync(Layer& layer, bool data_only) {
  const Result result = flush(layer);
  return result < 0 ? result : sync_below(layer, data_only);
}

// Moves the buffer to where n bytes of the file (as on disk; of one block) lie. load: with what the
// file has there.
Result move_to(Layer& layer, uint64_t at, uint64_t n, bool load) {
  State& s = state(layer);
  const uint64_t base = at / s.bytes * s.bytes;
  if (s.base == base && (!load || at + n - base <= s.valid)) return 0;
  if (const Result result = write_dirty(layer); result < 0) return result;
  if (s.base != base) s.valid = 0;
  s.base = base;
  if (s.arena != nullptr) writeback::assign(s.arena, s.block, s.slot, base);
  if (!load) return 0;
  const Result got = read_whole(layer, s.buffer, s.bytes, base);
  ++layer.statistics[kReads];
  s.valid = got < 0 ? 0 : static_cast<uint64_t>(got);
  return got < 0 ? got : 0;
}

// The pieces of a transfer one after another, each cut so that it lies in the data of one block.
// step(memory, bytes, place on disk).
template <typename Step>
Result by_pieces(const Transfer& t, uint64_t bytes, Step step) {
  uint64_t done = 0;
  for (int i = 0; i < t.count && done < bytes; ++i) {
    auto* memory = static_cast<uint8_t*>(t.pieces[i].iov_base);
    uint64_t left = t.pieces[i].iov_len < bytes - done ? t.pieces[i].iov_len : bytes - done;
    while (left > 0) {
      const uint64_t at = t.offset + done, room = kData - at % kData,
                     piece = left < room ? left : room;
      const Result result = step(memory, piece, physical(at));
      if (result < 0) return done > 0 ? static_cast<Result>(done) : result;
      memory += piece;
      done += piece;
      left -= piece;
    }
  }
  return static_cast<Result>(done);
}

Result read(Layer& layer, const Transfer& t) {
  if ((layer.file->flags & O_ACCMODE) == O_WRONLY) return -EBADF;  // below it can be read
  State& s = state(layer);
  if (t.offset >= s.size) return 0;
  if (!has_buffer(layer)) return -ENOMEM;
  const uint64_t bytes = t.bytes < s.size - t.offset ? t.bytes : s.size - t.offset;
  return by_pieces(t, bytes, [&](uint8_t* to, uint64_t n, uint64_t at) -> Result {
    if (const Result result = move_to(layer, at, n, true); result < 0) return result;
    // What was never written (a hole, or bytes still on their way) reads as zeros.
    const uint64_t in = at - s.base, there = in >= s.valid      ? 0
                                             : s.valid - in < n ? s.valid - in
                                                                : n;
    memcpy(to, s.buffer + in, there);
    memset(to + there, 0, n - there);
    return 0;
  });
}

// Zeros between the end of the file and where a write begins: they are data like any other here.
Result fill_up_to(Layer& layer, uint64_t offset);

Result put(Layer& layer, const uint8_t* from, uint64_t n, uint64_t at) {
  State& s = state(layer);
  const uint64_t base = at / s.bytes * s.bytes;
  const uint64_t in = at - base;
  const uint64_t block = in / kBlock * kBlock;
  // The dirty bytes are one run: from the control word of the first block that was begun.
  const uint64_t from_byte = in - block == kWord ? block : in;
  const bool continues =
      s.base == base && s.dirty_from != s.dirty_to && from_byte <= s.dirty_to && in >= s.dirty_from;
  if (s.base == base && s.dirty_from != s.dirty_to && !continues) {
    if (const Result result = write_dirty(layer); result < 0) return result;
  }
  if (const Result result = move_to(layer, at, n, false); result < 0) return result;
  if (from_byte == block) s.end_is_wrong = true;
  if (from_byte == block)
    store_word(s.buffer + block, block_control((base + block) / kBlock, kBlockWords - 1));
  memcpy(s.buffer + in, from, n);
  if (s.dirty_from == s.dirty_to) s.dirty_from = s.dirty_to = from_byte;
  if (in + n > s.dirty_to) s.dirty_to = in + n;
  if (s.valid >= from_byte && in + n > s.valid) s.valid = in + n;
  if (s.arena != nullptr)
    writeback::mark_dirty(s.arena, s.block, static_cast<uint32_t>(s.dirty_from),
                          static_cast<uint32_t>(s.dirty_to));
  return 0;
}

Result put_all(Layer& layer, const Transfer& t) {
  State& s = state(layer);
  const Result done = by_pieces(
      t, t.bytes, [&](uint8_t* from, uint64_t n, uint64_t at) { return put(layer, from, n, at); });
  if (done > 0 && t.offset + static_cast<uint64_t>(done) > s.size)
    s.size = t.offset + static_cast<uint64_t>(done);
  return done;
}

Result fill_up_to(Layer& layer, uint64_t offset) {
  static const uint8_t zeros[kBlock] = {};
  State& s = state(layer);
  if (offset > s.size && offset - s.size > kLargestGap) return -EFBIG;
  while (s.size < offset) {
    const uint64_t n = offset - s.size < sizeof zeros ? offset - s.size : sizeof zeros;
    const iovec piece{const_cast<uint8_t*>(zeros), n};
    const Result done = put_all(layer, {&piece, 1, n, s.size});
    if (done < 0) return done;
  }
  return 0;
}

Result write(Layer& layer, const Transfer& t) {
  State& s = state(layer);
  if (!has_buffer(layer)) return -ENOMEM;
  if (const Result result = fill_up_to(layer, t.offset); result < 0) return result;
  const Result done = put_all(layer, t);
  const bool is_safe =
      s.arena != nullptr && writeback::held(s.arena, s.slot) && writeback::protected_now();
  if (done > 0 && !is_safe) {
    writeback::ensure();
    if (const Result result = write_dirty(layer); result < 0) return result;
  }
  return done;
}

Result size(Layer& layer) { return static_cast<Result>(state(layer).size); }

Result truncate(Layer& layer, uint64_t bytes) {
  State& s = state(layer);
  if (!has_buffer(layer)) return -ENOMEM;
  if (bytes > s.size) {
    if (const Result result = fill_up_to(layer, bytes); result < 0) return result;
  } else {
    if (const Result result = write_dirty(layer); result < 0) return result;
    s.size = bytes;
    s.base = kNothing;
    s.end_is_wrong = true;
  }
  return flush(layer);
}

// Writes go where they belong, which is not the end of what lies on disk.
Result open(Layer& layer, Opening& o) {
  Opening below = o;
  below.flags &= ~O_APPEND;
  if ((o.flags & O_ACCMODE) == O_WRONLY &&
      (o.flags & O_TRUNC) == 0) {  // what is there must be understood to be gone on with
    below.flags ^= O_WRONLY ^ O_RDWR;
    const Result fd = open_below(layer, below);
    if (fd != -EACCES) return fd;
    below.flags ^= O_WRONLY ^ O_RDWR;
  }
  return open_below(layer, below);
}

Result understand(Layer& layer) {
  State& s = state(layer);
  const File& f = *layer.file;
  s.writes = (f.flags & O_ACCMODE) != O_RDONLY;
  s.ended_at = kNothing;
  if (f.size_at_open == 0) return 0;
  if (f.size_at_open % kBlock != 0) return -EINVAL;
  const uint64_t blocks = f.size_at_open / kBlock,
                 tail = blocks < kTailBlocks ? blocks : kTailBlocks;
  uint8_t image[kTailBlocks * kBlock];
  const Result got = read_whole(layer, image, tail * kBlock, (blocks - tail) * kBlock);
  if (got != static_cast<Result>(tail * kBlock)) return got < 0 ? got : -EINVAL;
  const int64_t bytes = record_bytes(image, tail, blocks - tail);
  if (bytes < 0) return -EINVAL;
  s.size = s.ended_at = static_cast<uint64_t>(bytes);
  return 0;
}

// What the file is: empty, or one record. Anything else is left as it is, to the kernel, which then
// appends by itself again.
Result ready(Layer& layer) {
  const Result result = understand(layer);
  if (result < 0 && (layer.file->flags & O_APPEND) != 0) {
    const long flags = base::system_call(SYS_fcntl, layer.file->descriptor, F_GETFL);
    if (flags >= 0) base::system_call(SYS_fcntl, layer.file->descriptor, F_SETFL, flags | O_APPEND);
  }
  return result;
}

void invalidate(Layer& layer) {
  State& s = state(layer);
  if (s.dirty_from == s.dirty_to) s.base = kNothing;
  invalidate_below(layer);
}

void close(Layer& layer) {
  State& s = state(layer);
  if (s.dirty_from != s.dirty_to) {
    defer_error(layer, EIO, s.dirty_to - s.dirty_from);
    if (s.arena != nullptr) writeback::mark_clean(s.arena, s.block);
  }
  if (s.arena != nullptr) {
    writeback::give_block(s.arena, s.block);
    writeback::unregister_file(s.arena, s.slot);
    writeback::destroy_arena(s.arena);
  } else if (s.buffer != nullptr) {
    base::unmap(s.buffer, s.bytes);
  }
  s.arena = nullptr;
  s.buffer = nullptr;
}

}  // namespace

const Kind kCos = {
    .name = kName, .flags = kHolds | kTransforms | kOrdered, .state_bytes = sizeof(State),
    .statistics_count = kStatistics, .create = create, .open = open, .ready = ready, .read = read,
    .write = write, .size = size, .truncate = truncate, .flush = flush, .sync = sync,
    .invalidate = invalidate, .close = close,
};

}  // namespace weir::layers
