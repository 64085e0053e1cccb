// SPDX-License-Identifier: Apache-2.0
// The bytes of a container: a ZIP64 archive without compression (docs/formats/pack.md). Decides
// what each record looks like and what of a hostile one is believed; where records lie in the file
// is container.h's. All functions: any thread, no allocation, no system call.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

namespace weir::layers::pack {

inline constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                          kEnd64 = 0x06064b50, kLocator = 0x07064b50;
inline constexpr uint32_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                          kLocatorBytes = 20;
inline constexpr uint32_t kExtraBytes = 9 + 40;  // time stamp, weir's own
inline constexpr uint32_t kLongestName = 255;    // a file name; there are no directories within

// Of a record in weir's own field.
enum RecordState : uint8_t {
  kLive = 0,   // a file, closed
  kDead = 1,   // was replaced, removed or renamed
  kOwner = 2,  // the first record: which node appends to this container. No file
};

// What a record says of a file. `name` points into the caller's memory.
struct Entry {
  const char* name;
  uint32_t name_bytes;
  uint32_t crc;
  uint64_t bytes;
  uint64_t offset;    // of the local header in the container
  uint64_t sequence;  // of two records with one name the higher one counts
  timespec modified;
  uint32_t user, group;
  uint16_t mode;      // permissions
  RecordState state;
  bool ours;          // has weir's field; without it, mode and times are those of plain ZIP
};

// Header and name; the file's bytes follow.
inline uint32_t local_bytes(uint32_t name_bytes) { return kLocalBytes + name_bytes + kExtraBytes; }
// Where the file's bytes lie.
inline uint64_t data_offset(const Entry& e) { return e.offset + local_bytes(e.name_bytes); }
// Of the state byte, from the beginning of the local header.
inline uint32_t state_offset(uint32_t name_bytes) { return kLocalBytes + name_bytes + 9 + 5; }

// Writes local_bytes() bytes.
void encode_local(const Entry& e, char* to);
// Writes at most kCentralBytes + name + kExtraBytes + 12 bytes; how many.
uint32_t encode_central(const Entry& e, char* to);
inline uint32_t most_central(uint32_t name_bytes) {
  return kCentralBytes + name_bytes + kExtraBytes + 12;
}
inline constexpr uint32_t kMostCentral = kCentralBytes + kLongestName + kExtraBytes + 12;

// The end of an archive: directory of `count` records and `bytes` bytes at `at`.
struct Directory {
  uint64_t count, bytes, at;
};
inline constexpr uint32_t kTailBytes = kEnd64Bytes + kLocatorBytes + kEndBytes;
void encode_end(const Directory& d, char* to);  // kTailBytes bytes

// What a record at the beginning of `from` is; `n` bytes can be read.
enum class Found : uint8_t {
  kNothing,  // no record, or one whose check is wrong
  kFile,     // *e is filled; *used: the header's bytes without the file's
  kOther,    // a central record or the end of an archive: *used bytes to be passed over
  kShort,    // more bytes are needed
};
// Local headers and what an older directory left between them. Only headers with weir's field and
// its check are files: a file that is packed may itself be an archive.
Found parse_record(const char* from, uint64_t n, Entry* e, uint64_t* used);
// A record of the central directory, of any writer. False: it is none, it does not fit, or it is
// compressed or encrypted (*used is then set all the same, else 0).
bool parse_central(const char* from, uint64_t n, Entry* e, uint32_t* used);
// The last kTailBytes of a file as weir writes it. `file_bytes` bounds what is believed.
bool parse_end(const char* from, uint64_t file_bytes, Directory* d);

}  // namespace weir::layers::pack
