// SPDX-License-Identifier: Apache-2.0
// Contents on their way into the container. A process takes a range of the container
// (space.cc), collects records for it in a block of an arena that outlives the process, and writes
// the range by one request. What is larger than a quarter of a block has a range of its own.
#include <errno.h>
#include <string.h>

#include "base/round.h"
#include "layers/pack/container.h"
#include "layers/pack/crc32.h"
#include "layers/pack/transfer.h"
#include "layers/writeback/client.h"

namespace weir::layers::pack {

Entry entry_of(const Name* n, const Version& v, RecordState state) {
  Entry e{};
  e.state = state;
  e.name = n->text;
  e.name_bytes = n->bytes;
  e.crc = v.crc;
  e.bytes = v.bytes;
  e.offset = v.offset;
  e.sequence = v.sequence;
  e.modified = {static_cast<time_t>(v.seconds), v.nanoseconds};
  e.user = v.user;
  e.group = v.group;
  e.mode = v.mode;
  return e;
}

constinit Counts counts{};

bool is_drained(const Process& p) {
  return p.arena[0] != 0 && base::system_call(SYS_faccessat, AT_FDCWD,
                                              reinterpret_cast<long>(p.arena), 0) == -ENOENT;
}

namespace {

constexpr uint32_t kLargestCollected = kBlockBytes / 4;
// Rows of the directory that are reserved with a range: of files of 2 KiB they take a twentieth.
constexpr uint32_t kBytesPerRowByte = 16;
constexpr int kApart = -1;  // a record has a range of its own

Process& self(const Container& c) { return c.segment.shared->processes[c.process]; }

char* block_data(const Container& c) {
  return static_cast<char*>(writeback::data(c.arena, c.block));
}

int write_all(int fd, iovec* pieces, int count, uint64_t offset) {
  while (count > 0) {
    const long done = write_vector_at(fd, pieces, count, offset);
    if (done == -EINTR) continue;
    if (done <= 0) return done < 0 ? static_cast<int>(-done) : EIO;
    ++counts.writes;
    offset += static_cast<uint64_t>(done);
    auto left = static_cast<size_t>(done);
    for (; count > 0 && left >= pieces->iov_len; --count, ++pieces) left -= pieces->iov_len;
    if (count == 0) break;
    pieces->iov_base = static_cast<char*>(pieces->iov_base) + left;
    pieces->iov_len -= left;
  }
  return 0;
}

// A block for what waits, whose owner's death loses nothing. False: write at once.
bool have_arena(Container& c) {
  if (c.arena == nullptr) {
    c.arena = writeback::create_arena(1, kBlockBytes, 1);
    if (c.arena == nullptr) return false;
    const base::Identity file = c.segment.shared->file;
    c.slot = writeback::register_file(c.arena, {&c.file, file.device, file.number, c.path, false});
    note_arena(c);
  }
  return c.slot >= 0 && writeback::held(c.arena, c.slot) &&
         (writeback::protected_now() || writeback::ensure());
}

bool is_full(int error) { return error == ENOSPC || error == EDQUOT; }

// What is left of a range that a process which was killed had reserved. False: there is none.
bool take_over_chunk(Container& c, uint32_t bytes, uint32_t row) {
  for (Process& p : c.segment.shared->processes) {
    const uint64_t who = base::load(&p.identity);
    uint64_t at = base::load(&p.chunk_offset);
    const uint32_t filled = base::load(&p.chunk_bytes), all = base::load(&p.chunk_all);
    if (who == 0 || at == kNoChunk || all < filled || all - filled < bytes ||
        base::load(&p.chunk_rows) < row || node::alive(unpacked_identity(who)) || !is_drained(p))
      continue;
    const uint32_t rows = base::load(&p.chunk_rows);
    if (!base::compare_exchange(&p.chunk_offset, &at, kNoChunk)) continue;
    c.chunk_at = at + filled;
    c.chunk_bytes = all - filled;
    c.chunk_rows = rows;
    return true;
  }
  return false;
}

// A new range for the block; on a disk that is nearly full a smaller one. 0 or an errno.
int take_chunk(Container& c, uint32_t bytes, uint32_t row) {
  if (c.next_chunk < bytes) c.next_chunk = static_cast<uint32_t>(base::round_up(bytes, 4096));
  uint32_t size = c.next_chunk < kBlockBytes ? c.next_chunk : kBlockBytes;
  for (;;) {
    const uint32_t rows = size / kBytesPerRowByte > row ? size / kBytesPerRowByte : row;
    const int error = reserve(c, size, rows, &c.chunk_at);
    c.chunk_bytes = size;
    c.chunk_rows = rows;
    if (error == 0) break;
    if (is_full(error) && take_over_chunk(c, bytes, row)) break;
    if (!is_full(error) || size == bytes) return error;
    size = size / 2 > bytes ? size / 2 : bytes;
  }
  c.next_chunk = c.chunk_bytes < kBlockBytes / 2 ? c.chunk_bytes * 2 : kBlockBytes;
  c.chunk_filled = 0;
  return 0;
}

// Room for a record, and for its row (0: it has none), in the range at hand or in a new one. 0, an
// errno or kApart.
int have_room(Container& c, uint32_t bytes, uint32_t row) {
  if (bytes > kLargestCollected) return kApart;
  if (c.block >= 0 && c.chunk_filled + bytes <= c.chunk_bytes && row <= c.chunk_rows)
    return writeback::protected_now() ? 0 : kApart;
  if (flush(c) != 0 || !have_arena(c)) return kApart;
  if (c.block < 0 && (c.block = writeback::take_block(c.arena)) < 0) return kApart;
  if (const int error = take_chunk(c, bytes, row); error != 0) {
    writeback::give_block(c.arena, c.block);
    c.block = -1;
    return error;
  }
  writeback::assign(c.arena, c.block, c.slot, c.chunk_at);
  base::store(&self(c).chunk_bytes, 0u);
  base::store(&self(c).chunk_all, c.chunk_bytes);
  base::store(&self(c).chunk_rows, c.chunk_rows);
  base::store(&self(c).chunk_offset, c.chunk_at);
  return 0;
}

// Into the block: contents first, then the header, then the mark that makes them count.
int collect(Container& c, const Name* n, int from, Version* v, RecordState state) {
  char* const at = block_data(c) + c.chunk_filled;
  const uint32_t header = local_bytes(n->bytes);
  if (from != kDrafted && !read_whole(from, at + header, v->bytes, 0)) return EAGAIN;
  v->crc = crc32(0, at + header, v->bytes);
  v->offset = c.chunk_at + c.chunk_filled;
  v->process = c.process;
  encode_local(entry_of(n, *v, state), at);
  const uint32_t end = c.chunk_filled + header + static_cast<uint32_t>(v->bytes);
  if (!writeback::mark_dirty(c.arena, c.block, c.chunk_filled, end)) return ENOMEM;
  c.chunk_filled = end;
  base::store(&self(c).chunk_bytes, end);
  return 0;
}

// The header comes with the piece where there is one, else last: it states the CRC-32 of all.
int write_pieces(Container& c, const Name* n, int from, Version* v, RecordState state, char* room) {
  const uint32_t header = local_bytes(n->bytes);
  const bool is_one = header + v->bytes <= kPieceBytes;
  const uint64_t most = is_one ? v->bytes : kPieceBytes;
  char* const data = is_one ? room + header : room;
  v->crc = 0;
  for (uint64_t done = 0; done < v->bytes;) {
    const uint64_t bytes = v->bytes - done < most ? v->bytes - done : most;
    if (!read_whole(from, data, bytes, done)) return EAGAIN;
    v->crc = crc32(v->crc, data, bytes);
    if (is_one) break;
    iovec piece{data, bytes};
    if (const int error = write_all(c.file, &piece, 1, v->offset + header + done); error != 0)
      return error;
    done += bytes;
  }
  encode_local(entry_of(n, *v, state), room);
  iovec piece{room, is_one ? header + v->bytes : header};
  return write_all(c.file, &piece, 1, v->offset);
}

int write_apart(Container& c, const Name* n, int from, Version* v, RecordState state,
                uint32_t row) {
  char* const room = piece_room();
  if (room == nullptr) return ENOMEM;
  const uint64_t whole = local_bytes(n->bytes) + v->bytes;
  v->process = kProcesses;
  if (const int error = reserve(c, whole, row, &v->offset); error != 0) return error;
  const int error = write_pieces(c, n, from, v, state, room);
  if (error != 0) give_back(c, v->offset + whole, v->offset, row);
  return error;
}

void note_end(Shared* s, uint64_t end) {
  uint64_t before = base::load(&s->records_end);
  while (before < end && !base::compare_exchange(&s->records_end, &before, end)) {
  }
}

// A record of whatever size. The name is what it was; the record's row is counted.
int add_record(Container& c, const Name* n, int from, Version* v, RecordState state) {
  if (const int error = open_file(c, true); error != 0) return error;
  const uint64_t whole = local_bytes(n->bytes) + v->bytes;
  const uint32_t row = state == kLive ? most_central(n->bytes) : 0;
  int error = whole <= kLargestCollected ? have_room(c, static_cast<uint32_t>(whole), row) : kApart;
  if (error == 0 && collect(c, n, from, v, state) == 0)
    base::store(&self(c).chunk_rows, c.chunk_rows -= row);
  else if (from == kDrafted) return EAGAIN;
  else if (error == 0 || error == kApart) error = write_apart(c, n, from, v, state, row);
  if (error != 0) return error;
  base::store(&c.segment.shared->changed, 1u);
  note_end(c.segment.shared, v->offset + whole);
  return 0;
}

// A header that lies in the container already.
int rewrite(Container& c, const Name* n, const Version& v, RecordState state) {
  if (const int error = open_file(c, true); error != 0) return error;
  base::store(&c.segment.shared->changed, 1u);
  char header[kLocalBytes + kLongestName + kExtraBytes];
  encode_local(entry_of(n, v, state), header);
  const uint32_t bytes = local_bytes(n->bytes);
  if (c.block >= 0 && v.offset >= c.chunk_at && v.offset < c.chunk_at + c.chunk_filled) {
    memcpy(block_data(c) + (v.offset - c.chunk_at), header, bytes);
    return 0;
  }
  iovec piece{header, bytes};
  return write_all(c.file, &piece, 1, v.offset);
}

uint32_t record_bytes(const Name* n, uint64_t bytes) {
  return local_bytes(n->bytes) + static_cast<uint32_t>(bytes);
}

}  // namespace

bool draft(Container& c, const Name* n, uint64_t memory, const iovec* pieces, int count,
           uint64_t bytes) {
  if (bytes > kLargestCollected || c.block < 0 ||
      c.chunk_filled + record_bytes(n, bytes) > c.chunk_bytes)
    return false;
  char* to = block_data(c) + c.chunk_filled + local_bytes(n->bytes);
  for (int i = 0; i < count; to += pieces[i++].iov_len)
    memcpy(to, pieces[i].iov_base, pieces[i].iov_len);
  c.draft_of = memory;
  c.draft_at = c.chunk_filled;
  return true;
}

bool is_drafted(const Container& c, const Name* n, uint64_t memory, uint64_t bytes) {
  return c.block >= 0 && c.draft_of == memory && c.draft_at == c.chunk_filled &&
         c.chunk_filled + record_bytes(n, bytes) <= c.chunk_bytes &&
         most_central(n->bytes) <= c.chunk_rows && writeback::protected_now();
}

const char* drafted(const Container& c, const Name* n) {
  return block_data(c) + c.draft_at + local_bytes(n->bytes);
}

Version version_of(const Container& c, const struct stat& about) {
  Version v{};
  v.bytes = static_cast<uint64_t>(about.st_size);
  v.sequence = base::fetch_add(&c.segment.shared->sequence, uint64_t{1});
  v.seconds = about.st_mtim.tv_sec;
  v.nanoseconds = static_cast<uint32_t>(about.st_mtim.tv_nsec);
  v.user = about.st_uid;
  v.group = about.st_gid;
  v.mode = static_cast<uint16_t>(about.st_mode & 07777);
  v.state = kPacked;
  return v;
}

int append(Container& c, Name* n, int from, const struct stat& about) {
  Version v = version_of(c, about);
  // Whoever has changed the contents by the file's name has said so before its record got a number.
  if (from == kDrafted && base::load(&n->live_shared) != 0) return EAGAIN;
  if (const int error = add_record(c, n, from, &v, kLive); error != 0) return error;
  const LockedName locked(n);
  if (n->unsettled == kUnfilled) settle_live(c, n);  // a reader has the version that goes
  const Version before = current(n);
  if (before.state == kReal) {
    rewrite(c, n, v, kDead);
    give_back_rows(c, most_central(n->bytes));
    return ESTALE;
  }
  v.birth = before.birth;
  if (before.state == kPacked && before.container == 0) {
    give_back_rows(c, most_central(n->bytes));  // one of the two has none
    // Another process may have closed a later one meanwhile, which then counts.
    if (before.sequence > v.sequence) return 0;
  }
  publish(n, v);
  return 0;
}

int mark_gone(Container& c, Name* n, uint8_t state, const Seen* seen) {
  const LockedName locked(n);
  const Version before = current(n);
  if (seen != nullptr && see(n) != *seen) return EAGAIN;
  if (before.state == kPacked && before.container != 0) return EROFS;
  // Nobody finds the memory any more.
  if (const int error = settle_live(c, n); error != 0) return error;
  if (before.state == kPacked) {
    Version v = before;
    v.bytes = 0;
    v.sequence = base::fetch_add(&c.segment.shared->sequence, uint64_t{1});
    int error = add_record(c, n, -1, &v, kDead);
    if (is_full(error)) error = rewrite(c, n, before, kDead);  // a removal needs no space
    if (error != 0) return error;
    give_back_rows(c, most_central(n->bytes));
  }
  Version gone{};
  gone.state = state;
  if (state == kReal) gone.birth = before.birth;  // the same file, in another place
  base::store(&n->live, uint64_t{0});
  n->unsettled = 0;
  publish(n, gone);
  if (state == kAbsent && before.state != kAbsent) note_names_changed(c);
  return 0;
}

int rewrite_record(Container& c, const Name* n, const Version& v) {
  if (v.container != 0) return EROFS;
  return rewrite(c, n, v, kLive);
}

int flush(Container& c) {
  if (c.block < 0) return 0;
  if (c.chunk_filled != 0) {
    iovec piece{block_data(c), c.chunk_filled};
    if (const int error = write_all(c.file, &piece, 1, c.chunk_at); error != 0) return error;
    writeback::mark_clean(c.arena, c.block);
  }
  base::store(&self(c).chunk_offset, kNoChunk);
  give_back(c, c.chunk_at + c.chunk_bytes, c.chunk_at + c.chunk_filled, c.chunk_rows);
  writeback::give_block(c.arena, c.block);
  c.block = -1;
  c.draft_of = 0;
  return 0;
}

}  // namespace weir::layers::pack
