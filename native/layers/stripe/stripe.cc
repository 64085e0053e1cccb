// SPDX-License-Identifier: Apache-2.0
#include "layers/stripe/declared.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "layers/stripe/index.h"
#include "base/syscall.h"
#include "layers/machinery/rules/rules.h"
#include "layers/machinery/stack/carried_locks.h"
#include "layers/machinery/stack/file.h"
#include "layers/machinery/stack/private.h"

namespace weir::layers {
namespace {

using namespace stack;
using namespace stripe_declared;
using namespace stripe;

constexpr unsigned kPermissions = 0777;
constexpr int kJoined = 64;  // units of a piece in one request

struct State {
  uint64_t unit;
  uint32_t pieces;  // 0: this file is no striped one and passes through
  int descriptor[kMostPieces];
  bool writes;
  uint64_t known_bytes;  // the file had as many when it was last asked for its size; reads within
                         // them ask nothing
};

State& state(Layer& layer) { return *static_cast<State*>(layer.state()); }

Result create(Layer& layer) {
  for (int& fd : state(layer).descriptor) fd = -1;
  return 0;
}

void close_pieces(State& s) {
  for (int& fd : s.descriptor) {
    if (fd >= 0) close_private(&fd);
  }
  s.pieces = 0;
}

// Paths in an index end at a line, not at a zero.
long open_piece(base::Text path, int flags, unsigned mode) {
  char name[4096];
  base::Writer writer(name, sizeof name);
  if (writer.add(path).cut()) return -ENAMETOOLONG;
  return base::open_at(AT_FDCWD, name, flags, static_cast<int>(mode));
}

// The pieces are opened for reading too: their bytes may have to be read for a size. makes: -EEXIST
// when the first one is there.
Result open_pieces(State& s, const Index& index, int flags, unsigned mode, bool makes = false) {
  const int access = (flags & O_ACCMODE) == O_RDONLY ? O_RDONLY : O_RDWR;
  const int made = access == O_RDWR ? O_CREAT : 0;
  s.unit = index.unit;
  s.writes = access == O_RDWR;
  for (uint32_t i = 0; i < index.pieces; ++i) {
    const int alone = makes && i == 0 ? O_EXCL : 0;
    const int how = (flags & (O_TRUNC | O_SYNC | O_DSYNC)) | O_CLOEXEC;
    const long fd = open_piece(index.path[i], access | made | alone | how, mode);
    if (base::failed(fd) || !keep_private(static_cast<int>(fd), &s.descriptor[i])) {
      close_pieces(s);
      return base::failed(fd) ? fd : -EMFILE;
    }
    s.pieces = i + 1;
  }
  return 0;
}

enum class Found { nothing, index, other, unknown };

// Bytes of the file, as many as an index has that is there; -errno.
long read_text(int fd, char* text) {
  size_t n = 0;
  while (n < kIndexBytes && is_cut({text, n})) {
    const long got = base::read_at(fd, text + n, kIndexBytes - n, n);
    if (got == -EINTR) continue;
    if (got < 0) return got;
    if (got == 0) break;
    n += static_cast<size_t>(got);
  }
  return static_cast<long>(n);
}

bool is_regular(int directory, const char* path) {
  struct stat about;
  const auto to = reinterpret_cast<long>(&about);
  const auto name = reinterpret_cast<long>(path);
  return base::system_call(SYS_newfstatat, directory, name, to, 0) == 0 && S_ISREG(about.st_mode);
}

// unknown: a regular file that cannot be read, *error says why. Taken for a plain one, an index
// would be overwritten.
Found look_at(int directory, const char* path, char* text, Index* index, Result* error) {
  const base::HoldsDescriptor held;
  const long fd = base::open_at(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd == -ENOENT) return Found::nothing;
  const long size = base::failed(fd) ? fd : read_text(static_cast<int>(fd), text);
  if (!base::failed(fd)) stack::close_keeping_locks(static_cast<int>(fd));
  if (size == 0) return Found::nothing;
  if (size > 0) {
    return parse({text, static_cast<size_t>(size)}, index) ? Found::index : Found::other;
  }
  *error = size;
  return is_regular(directory, path) ? Found::unknown : Found::other;
}

// Of the index's file: one that is made under the name of a file which was renamed, or is open
// still, has pieces of its own. All ranks that open it at once find the same.
uint64_t identity_of(int fd) {
  struct statx about = {};
  const long failed = base::system_call(SYS_statx, fd, reinterpret_cast<long>(""), AT_EMPTY_PATH,
                                        STATX_INO | STATX_BTIME, reinterpret_cast<long>(&about));
  if (failed < 0) return 0;
  const uint64_t what[] = {about.stx_ino, static_cast<uint64_t>(about.stx_btime.tv_sec),
                           about.stx_btime.tv_nsec};
  return base::hash({reinterpret_cast<const char*>(what), sizeof what}, 0);
}

// Another rank makes the same file, and has its first piece: its index comes at once. False: it
// does not, so the pieces are of an index that another program has emptied.
bool await_index(const Opening& o, char* text, Index* index) {
  constexpr int kTries = 300;
  const timespec pause = {0, 1'000'000};
  for (int i = 0; i < kTries; ++i) {
    Result error = 0;
    if (look_at(o.directory, o.path, text, index, &error) == Found::index) return true;
    base::system_call(SYS_nanosleep, reinterpret_cast<long>(&pause), 0);
  }
  return false;
}

Result make(Layer& layer, const Opening& o, char* text, Index* index, int fd) {
  const uint64_t unit = rules::option_number(*layer.spec, "unit", kDefaultUnit);
  base::Text directories;
  if (!rules::option_text(*layer.spec, "dirs", &directories)) return -EINVAL;
  const auto write_text = [&] {
    return compose(directories, unit, base::text(layer.file->path), identity_of(fd), text,
                   kIndexBytes, index);
  };
  const unsigned mode = o.mode & kPermissions;
  if (!write_text()) return -ENAMETOOLONG;
  Result result = open_pieces(state(layer), *index, o.flags, mode, (o.flags & O_TRUNC) == 0);
  if (result == -EEXIST) {  // ranks that make a file together must not empty what one has written
    if (await_index(o, text, index)) return open_pieces(state(layer), *index, o.flags, mode);
    write_text();
    result = open_pieces(state(layer), *index, o.flags | O_TRUNC, mode);
  }
  if (result < 0) return result;
  const size_t size = strlen(text);
  const long written = base::write_at(fd, text, size, 0);
  return written == static_cast<long>(size) ? 0 : written < 0 ? written : -ENOSPC;
}

// The name holds the index. A new file, or one that is emptied, becomes a striped one; what exists
// stays what it is.
Result open(Layer& layer, Opening& o) {
  State& s = state(layer);
  char text[kIndexBytes];
  Index index;
  const int access = o.flags & O_ACCMODE;
  Result error = 0;
  const Found found = look_at(o.directory, o.path, text, &index, &error);
  if (WEIR_UNLIKELY(found == Found::unknown)) return error;
  const bool empties = (o.flags & O_TRUNC) != 0 && access != O_RDONLY;
  const bool makes =
      access != O_RDONLY && (found == Found::nothing || (found == Found::other && empties));
  Opening below = o;
  if (found == Found::index) below.flags &= ~O_TRUNC;
  const Result fd = open_below(layer, below);
  if (fd < 0 || (found != Found::index && !makes)) return fd;
  const Result result = makes ? make(layer, o, text, &index, static_cast<int>(fd))
                              : open_pieces(s, index, o.flags, o.mode & kPermissions);
  if (result >= 0) return fd;
  close_pieces(s);
  stack::close_keeping_locks(static_cast<int>(fd));
  return result;
}

// Nothing above this layer may believe what the kernel says of the index.
Result ready(Layer& layer) {
  return state(layer).pieces != 0 ? 0 : -EINVAL;
}

// By the layers below, which see the requests, on the piece's own descriptor.
using Call = Result (*)(Layer& layer, const Transfer& t);
Result read_piece(Layer& layer, const Transfer& t) { return read_below(layer, t); }
Result write_piece(Layer& layer, const Transfer& t) { return write_below(layer, t); }

Result size(Layer& layer) {
  State& s = state(layer);
  uint64_t most = 0;
  base::fetch_add(&layer.statistics[kSizeRequests], uint64_t{s.pieces});
  for (uint32_t i = 0; i < s.pieces; ++i) {
    struct stat about;
    const long failed =
        base::system_call(SYS_fstat, s.descriptor[i], reinterpret_cast<long>(&about));
    if (failed < 0) return failed;
    const uint64_t whole = file_bytes(static_cast<uint64_t>(about.st_size), s.unit, s.pieces, i);
    if (whole > most) most = whole;
  }
  base::store(&s.known_bytes, most);
  return static_cast<Result>(most);
}

// A read of more than one round: a request for each piece, whose units lie one after another in it.
// The bytes that have come, up to the first that has not.
uint64_t read_rounds(Layer& layer, uint8_t* memory, uint64_t bytes, uint64_t offset) {
  const State& s = state(layer);
  const uint64_t first = offset / s.unit, end = offset + bytes;
  uint64_t there = bytes;
  for (uint64_t u = first; u < first + s.pieces && u * s.unit < end; ++u) {
    iovec units[kJoined];
    int count = 0;
    uint64_t want = 0;
    for (uint64_t next = u; next * s.unit < end; next += s.pieces) {
      const uint64_t lo = next == first ? offset : next * s.unit;
      const uint64_t hi = (next + 1) * s.unit < end ? (next + 1) * s.unit : end;
      units[count++] = {memory + (lo - offset), hi - lo};
      want += hi - lo;
    }
    const Place at = place_of(u == first ? offset : u * s.unit, s.unit, s.pieces);
    const Transfer part{units, count, want, at.offset, s.descriptor[at.piece]};
    const Result moved = read_below(layer, part);
    base::fetch_add(&layer.statistics[kPieceReads], uint64_t{1});
    if (moved == static_cast<Result>(want)) continue;
    uint64_t rest = moved > 0 ? static_cast<uint64_t>(moved) : 0;
    const iovec* unit = units;
    for (; rest >= unit->iov_len; ++unit) rest -= unit->iov_len;
    const auto* missing = static_cast<uint8_t*>(unit->iov_base) + rest;
    if (missing < memory + there) there = static_cast<uint64_t>(missing - memory);
  }
  return there;
}

// Of a read of `bytes` from `offset` on, what read_rounds() takes at a time; 0: no piece has two
// units of it.
uint64_t in_rounds(const State& s, uint64_t bytes, uint64_t offset) {
  const uint64_t most = uint64_t{kJoined} * s.pieces * s.unit - offset % s.unit;
  if ((offset + bytes - 1) / s.unit - offset / s.unit < s.pieces) return 0;
  return bytes < most ? bytes : most;
}

// Runs of one piece, one after another. A short one ends the transfer, but for a hole while
// reading.
Result transfer(Layer& layer, const Transfer& t, uint64_t bytes, Call call, bool reads,
                uint64_t* requests) {
  const State& s = state(layer);
  uint64_t done = 0;
  // A failed write ends at the first byte that is not in the file: so writes stay in the order of
  // their bytes.
  bool in_parts = !reads;
  for (int i = 0; i < t.count && done < bytes; ++i) {
    auto* memory = static_cast<uint8_t*>(t.pieces[i].iov_base);
    uint64_t left = t.pieces[i].iov_len < bytes - done ? t.pieces[i].iov_len : bytes - done;
    while (left > 0) {
      const uint64_t rounds = in_parts ? 0 : in_rounds(s, left, t.offset + done);
      if (rounds > 0) {
        const uint64_t there = read_rounds(layer, memory, rounds, t.offset + done);
        in_parts = there < rounds;  // a hole, the end or an error: as the single requests find it
        memory += there;
        left -= there;
        done += there;
        continue;
      }
      const Place at = place_of(t.offset + done, s.unit, s.pieces);
      const uint64_t want = left < at.run ? left : at.run;
      const iovec piece{memory, want};
      Result moved = call(layer, Transfer{&piece, 1, want, at.offset, s.descriptor[at.piece]});
      base::fetch_add(requests, uint64_t{1});
      if (moved < 0) return done > 0 ? static_cast<Result>(done) : moved;
      if (reads &&
          moved == 0) {  // the piece is shorter than the file: a hole, or the file has been cut
        const Result end = size(layer);
        if (end < 0 || static_cast<uint64_t>(end) <= t.offset + done)
          return static_cast<Result>(done);
        const uint64_t left_of_file = static_cast<uint64_t>(end) - t.offset - done;
        moved = static_cast<Result>(want < left_of_file ? want : left_of_file);
        memset(memory, 0, static_cast<size_t>(moved));
      }
      if (moved == 0) return static_cast<Result>(done);
      memory += moved;
      left -= static_cast<uint64_t>(moved);
      done += static_cast<uint64_t>(moved);
    }
  }
  return static_cast<Result>(done);
}

Result read(Layer& layer, const Transfer& t) {
  uint64_t end = base::load(&state(layer).known_bytes);
  if (t.offset + t.bytes > end) {
    const Result now = size(layer);
    if (now < 0) return now;
    end = static_cast<uint64_t>(now);
  }
  if (t.offset >= end) return 0;
  const uint64_t there = end - t.offset;
  return transfer(layer, t, t.bytes < there ? t.bytes : there, read_piece, true,
                  &layer.statistics[kPieceReads]);
}

Result write(Layer& layer, const Transfer& t) {
  return transfer(layer, t, t.bytes, write_piece, false, &layer.statistics[kPieceWrites]);
}

Result truncate(Layer& layer, uint64_t bytes) {
  State& s = state(layer);
  base::store(&s.known_bytes, uint64_t{0});
  for (uint32_t i = 0; i < s.pieces; ++i) {
    const long result = base::system_call(
        SYS_ftruncate, s.descriptor[i], static_cast<long>(piece_bytes(bytes, s.unit, s.pieces, i)));
    if (result < 0) return result;
  }
  return 0;
}

Result sync(Layer& layer, bool data_only) {
  const State& s = state(layer);
  for (uint32_t i = 0; i < s.pieces; ++i) {
    const long result = base::system_call(data_only ? SYS_fdatasync : SYS_fsync, s.descriptor[i]);
    if (result < 0) return result;
  }
  return sync_below(layer, data_only);
}

void close(Layer& layer) { close_pieces(state(layer)); }

}  // namespace

const Kind kStripe = {
    .name = kName, .flags = kHolds | kTransforms | kOrdered | kConcurrent,
    .state_bytes = sizeof(State), .statistics_count = kStatistics, .create = create, .open = open,
    .ready = ready, .read = read, .write = write, .size = size, .truncate = truncate,
    .flush = nullptr, .sync = sync, .invalidate = nullptr, .close = close,
};

}  // namespace weir::layers
