// SPDX-License-Identifier: Apache-2.0
#include "layers/pack/zip.h"

#include <string.h>

#include "layers/pack/crc32.h"

namespace weir::layers::pack {
namespace {

constexpr uint16_t kTimeField = 0x5455, kOwnField = 0x6577, kZip64Field = 0x0001;
constexpr uint16_t kOwnBytes = 36, kUtf8 = 0x0800;
constexpr uint8_t kVersion = 1;
constexpr uint32_t kAll32 = 0xffffffffu;
constexpr uint16_t kRegular = 0100000;

// Numbers are little-endian, as on all platforms that weir knows.
class Out {
 public:
  explicit Out(char* at) : at_(at) {}
  template <typename T>
  Out& add(T value) {
    memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
    return *this;
  }
  Out& add_bytes(const char* from, uint32_t n) {
    memcpy(at_, from, n);
    at_ += n;
    return *this;
  }
  char* at() const { return at_; }

 private:
  char* at_;
};

template <typename T>
T get(const char* from) {
  T value;
  memcpy(&value, from, sizeof value);
  return value;
}

// Seconds since 1970 as DOS has them (UTC; two seconds' steps, 1980 to 2107): date and time.
uint32_t dos_time(int64_t seconds) {
  if (seconds < 315532800) return 0x00210000;  // 1980-01-01
  const int64_t days = seconds / 86400, rest = seconds % 86400;
  const int64_t z = days + 719468, era = z / 146097, doe = z % 146097;  // Hinnant, civil_from_days
  const int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
  const int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
  const int64_t day = doy - (153 * mp + 2) / 5 + 1, month = mp < 10 ? mp + 3 : mp - 9;
  const int64_t year = yoe + era * 400 + (month <= 2 ? 1 : 0);
  if (year > 2107) return 0xff9fbf7d;
  return static_cast<uint32_t>((year - 1980) << 25 | month << 21 | day << 16 | rest / 3600 << 11 |
                               rest / 60 % 60 << 5 | rest % 60 / 2);
}

int64_t seconds_of(uint32_t dos) {
  const int64_t year = (dos >> 25) + 1980, month = dos >> 21 & 15, day = dos >> 16 & 31;
  const int64_t y = month <= 2 ? year - 1 : year, era = y / 400, yoe = y - era * 400;
  const int64_t doy = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const int64_t days = era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
  return days * 86400 + (dos >> 11 & 31) * 3600 + (dos >> 5 & 63) * 60 + (dos & 31) * 2;
}

bool is_ascii(const char* s, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    if ((s[i] & 0x80) != 0) return false;
  }
  return true;
}

// Of what the name, the lengths and weir's field say, but for the state, which changes in place.
uint32_t check_of(const Entry& e) {
  char room[kLongestName + 64];
  const uint32_t n = e.name_bytes <= kLongestName ? e.name_bytes : kLongestName;
  Out out(room);
  out.add(e.crc).add(e.bytes).add(e.offset).add(e.sequence).add(e.mode).add(e.user).add(e.group);
  out.add(static_cast<int64_t>(e.modified.tv_sec)).add(static_cast<uint32_t>(e.modified.tv_nsec));
  out.add_bytes(e.name, n);
  return crc32(0, room, static_cast<size_t>(out.at() - room));
}

Out& add_extra(Out& out, const Entry& e) {
  const int64_t seconds = e.modified.tv_sec;
  out.add(kTimeField).add(uint16_t{5}).add(uint8_t{1}).add(static_cast<int32_t>(seconds));
  out.add(kOwnField).add(kOwnBytes).add(kVersion).add(static_cast<uint8_t>(e.state)).add(e.mode);
  out.add(e.user).add(e.group).add(static_cast<uint32_t>(e.modified.tv_nsec)).add(seconds);
  return out.add(e.sequence).add(check_of(e));
}

uint32_t size32(uint64_t bytes) { return bytes < kAll32 ? static_cast<uint32_t>(bytes) : kAll32; }

struct Extra {
  bool own = false, time = false;
  uint8_t state = 0;
  uint16_t mode = 0;
  uint32_t user = 0, group = 0, nanoseconds = 0, check = 0;
  int64_t seconds = 0;
  uint64_t sequence = 0;
};

void read_own(const char* f, Extra* x) {
  x->own = true;
  x->state = get<uint8_t>(f + 1);
  x->mode = get<uint16_t>(f + 2);
  x->user = get<uint32_t>(f + 4);
  x->group = get<uint32_t>(f + 8);
  x->nanoseconds = get<uint32_t>(f + 12);
  x->seconds = get<int64_t>(f + 16);
  x->sequence = get<uint64_t>(f + 24);
  x->check = get<uint32_t>(f + 32);
}

// The numbers that did not fit in 32 bits, in the order of the standard (APPNOTE 4.5.3).
bool read_zip64(const char* f, uint16_t n, Entry* e) {
  uint16_t at = 0;
  for (int which = 0; which < 3; ++which) {
    uint64_t packed = 0;
    uint64_t* const to = which == 0 ? &e->bytes : which == 1 ? &packed : &e->offset;
    if (which != 1 && *to != kAll32) continue;
    if (which == 1 && e->bytes < kAll32) continue;
    if (at + 8 > n) return false;
    *to = get<uint64_t>(f + at);
    at = static_cast<uint16_t>(at + 8);
  }
  return true;
}

bool read_extra(const char* from, uint32_t n, Entry* e, Extra* x) {
  for (uint32_t at = 0; at + 4 <= n;) {
    const uint16_t id = get<uint16_t>(from + at), bytes = get<uint16_t>(from + at + 2);
    const char* const field = from + at + 4;
    if (at + 4 + bytes > n) return false;
    if (id == kOwnField && bytes == kOwnBytes && get<uint8_t>(field) == kVersion)
      read_own(field, x);
    if (id == kTimeField && bytes >= 5 && (field[0] & 1) != 0 && !x->own) {
      x->time = true;
      x->seconds = get<int32_t>(field + 1);
    }
    if (id == kZip64Field && !read_zip64(field, bytes, e)) return false;
    at += 4u + bytes;
  }
  return true;
}

// Fills in what the extra fields say, and whether weir's check is right.
void take(const Extra& x, uint32_t dos, Entry* e) {
  e->modified = {x.own || x.time ? x.seconds : seconds_of(dos), x.own ? x.nanoseconds : 0};
  e->user = x.user;
  e->group = x.group;
  e->sequence = x.sequence;
  e->state = static_cast<RecordState>(x.state);
  if (x.own) e->mode = x.mode;
  e->ours = x.own && check_of(*e) == x.check;
}

Found passed_over(const char* from, uint64_t n, uint32_t fixed, uint32_t* lengths, int count,
                  uint64_t* used) {
  uint64_t bytes = fixed;
  for (int i = 0; i < count; ++i) bytes += get<uint16_t>(from + lengths[i]);
  *used = bytes;
  return bytes <= n ? Found::kOther : Found::kShort;
}

Found parse_local(const char* from, uint64_t n, Entry* e, uint64_t* used) {
  if (n < kLocalBytes) return Found::kShort;
  const uint16_t name = get<uint16_t>(from + 26), extra = get<uint16_t>(from + 28);
  if (name == 0 || name > kLongestName || extra != kExtraBytes) return Found::kNothing;
  if (n < kLocalBytes + uint64_t{name} + extra) return Found::kShort;
  const uint64_t offset = e->offset;
  *e = {};
  e->name = from + kLocalBytes;
  e->name_bytes = name;
  e->crc = get<uint32_t>(from + 14);
  e->bytes = get<uint32_t>(from + 22);
  e->offset = offset;
  Extra x;
  if (!read_extra(from + kLocalBytes + name, extra, e, &x)) return Found::kNothing;
  take(x, 0, e);
  if (!e->ours) return Found::kNothing;
  *used = kLocalBytes + uint64_t{name} + extra;
  return Found::kFile;
}

}  // namespace

void encode_local(const Entry& e, char* to) {
  Out out(to);
  out.add(kLocal).add(uint16_t{20});
  out.add(is_ascii(e.name, e.name_bytes) ? uint16_t{0} : kUtf8).add(uint16_t{0});
  out.add(dos_time(e.modified.tv_sec)).add(e.crc).add(size32(e.bytes)).add(size32(e.bytes));
  out.add(static_cast<uint16_t>(e.name_bytes)).add(uint16_t{kExtraBytes});
  out.add_bytes(e.name, e.name_bytes);
  add_extra(out, e);
}

uint32_t encode_central(const Entry& e, char* to) {
  const bool far = e.offset >= kAll32;
  const auto extra = static_cast<uint16_t>(kExtraBytes + (far ? 12 : 0));
  Out out(to);
  out.add(kCentral).add(uint16_t{3 << 8 | 45}).add(far ? uint16_t{45} : uint16_t{20});
  out.add(is_ascii(e.name, e.name_bytes) ? uint16_t{0} : kUtf8).add(uint16_t{0});
  out.add(dos_time(e.modified.tv_sec)).add(e.crc).add(size32(e.bytes)).add(size32(e.bytes));
  out.add(static_cast<uint16_t>(e.name_bytes)).add(extra).add(uint16_t{0}).add(uint16_t{0});
  out.add(uint16_t{0}).add(static_cast<uint32_t>(kRegular | e.mode) << 16).add(size32(e.offset));
  out.add_bytes(e.name, e.name_bytes);
  if (far) out.add(kZip64Field).add(uint16_t{8}).add(e.offset);
  add_extra(out, e);
  return static_cast<uint32_t>(out.at() - to);
}

void encode_end(const Directory& d, char* to) {
  constexpr uint16_t kAll16 = 0xffff;
  const auto count = d.count < kAll16 ? static_cast<uint16_t>(d.count) : kAll16;
  Out out(to);
  out.add(kEnd64).add(uint64_t{kEnd64Bytes - 12}).add(uint16_t{3 << 8 | 45}).add(uint16_t{45});
  out.add(uint32_t{0}).add(uint32_t{0}).add(d.count).add(d.count).add(d.bytes).add(d.at);
  out.add(kLocator).add(uint32_t{0}).add(d.at + d.bytes).add(uint32_t{1});
  out.add(kEnd).add(uint16_t{0}).add(uint16_t{0}).add(count).add(count);
  out.add(size32(d.bytes)).add(size32(d.at)).add(uint16_t{0});
}

Found parse_record(const char* from, uint64_t n, Entry* e, uint64_t* used) {
  if (n < 4) return Found::kShort;
  switch (get<uint32_t>(from)) {
    case kLocal: return parse_local(from, n, e, used);
    case kCentral: {
      uint32_t lengths[] = {28, 30, 32};
      return n < kCentralBytes ? Found::kShort
                               : passed_over(from, n, kCentralBytes, lengths, 3, used);
    }
    case kEnd64: *used = kEnd64Bytes; return n < kEnd64Bytes ? Found::kShort : Found::kOther;
    case kLocator: *used = kLocatorBytes; return n < kLocatorBytes ? Found::kShort : Found::kOther;
    case kEnd: {
      uint32_t lengths[] = {20};
      return n < kEndBytes ? Found::kShort : passed_over(from, n, kEndBytes, lengths, 1, used);
    }
  }
  return Found::kNothing;
}

bool parse_central(const char* from, uint64_t n, Entry* e, uint32_t* used) {
  *used = 0;
  if (n < kCentralBytes || get<uint32_t>(from) != kCentral) return false;
  const uint16_t name = get<uint16_t>(from + 28), extra = get<uint16_t>(from + 30);
  const uint32_t whole = kCentralBytes + uint32_t{name} + extra + get<uint16_t>(from + 32);
  if (n < whole) return false;
  *used = whole;
  *e = {};
  e->name = from + kCentralBytes;
  e->name_bytes = name;
  e->crc = get<uint32_t>(from + 16);
  e->bytes = get<uint32_t>(from + 24);
  e->offset = get<uint32_t>(from + 42);
  e->mode = static_cast<uint16_t>(get<uint32_t>(from + 38) >> 16 & 07777);
  Extra x;
  const bool plain = get<uint16_t>(from + 10) == 0 && (get<uint16_t>(from + 8) & 1) == 0;
  if (!plain || name == 0 || name > kLongestName) return false;
  if (!read_extra(from + kCentralBytes + name, extra, e, &x)) return false;
  take(x, get<uint32_t>(from + 12), e);
  return memchr(e->name, '/', name) == nullptr && memchr(e->name, 0, name) == nullptr;
}

bool parse_end(const char* from, uint64_t file_bytes, Directory* d) {
  if (file_bytes < kTailBytes || get<uint32_t>(from) != kEnd64) return false;
  const char* const end = from + kEnd64Bytes + kLocatorBytes;
  if (get<uint32_t>(from + kEnd64Bytes) != kLocator || get<uint32_t>(end) != kEnd) return false;
  d->count = get<uint64_t>(from + 32);
  d->bytes = get<uint64_t>(from + 40);
  d->at = get<uint64_t>(from + 48);
  return d->at <= file_bytes && d->bytes <= file_bytes - d->at &&
         d->at + d->bytes == file_bytes - kTailBytes && d->count <= d->bytes / kCentralBytes;
}

}  // namespace weir::layers::pack
