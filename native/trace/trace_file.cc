// SPDX-License-Identifier: Apache-2.0
#include "trace/trace_file.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "base/atomic.h"
#include "base/apart.h"
#include "base/clock.h"
#include "base/credentials.h"
#include "base/syscall.h"
#include "wire/checksum.h"

namespace weir::trace {
namespace {

constexpr uint64_t kCalibrationNs = 1000000;
constexpr uint64_t kLargestReserve = 64u << 20;
constexpr uint64_t kLargestFolio = 2u << 20;
constexpr uint64_t kAlignedFrom = 128u << 10;
constexpr int kMostPieces = 16;
constexpr int kOwnerAlone = 0600;
constexpr int kTries = 3;
constexpr int kPatience = 20000;  // turns of other threads; past them a file system hangs
// Never written: its pages are all the kernel's one page of zeros.
alignas(64) constinit char zeros[64u << 10] = {};

// ns per tick from one millisecond of both clocks; later readings refine it.
double first_rate(const base::ClockReading& from) {
  base::ClockReading to{};
  do to = base::read_clocks();
  while (to.mono_ns - from.mono_ns < kCalibrationNs);
  return static_cast<double>(to.mono_ns - from.mono_ns) /
         static_cast<double>(to.ticks - from.ticks);
}

// What may be had later: descriptors and memory.
bool passes(long error) {
  return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -EAGAIN ||
         error == -EINTR;
}

// Not by the number of a standard stream that is closed: what another thread prints would go into
// the file. Such numbers are taken meanwhile by descriptors that refuse reads and writes as a
// closed one does; by one thread at a time, as another would believe the streams to be open.
constinit uint32_t opening = 0;

long open_here(const char* path) {
  for (int i = 0; i < kPatience && base::exchange(&opening, 1u) != 0; ++i) base::yield();
  pollfd streams[] = {{0, 0, 0}, {1, 0, 0}, {2, 0, 0}};
  timespec at_once{0, 0};
  const bool known = !base::failed(base::system_call(SYS_ppoll, reinterpret_cast<long>(streams), 3,
                                                     reinterpret_cast<long>(&at_once)));
  int fillers[3];
  int filled = 0;
  for (const pollfd& stream : streams) {
    const bool closed = known ? (stream.revents & POLLNVAL) != 0
                              : base::system_call(SYS_fcntl, stream.fd, F_GETFD) == -EBADF;
    if (!closed) continue;
    const long filler = base::open_at(AT_FDCWD, path, O_PATH | O_CLOEXEC);
    if (!base::failed(filler)) fillers[filled++] = static_cast<int>(filler);
  }
  const long fd = base::open_at(AT_FDCWD, path,
                                O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
                                    O_NOCTTY);  // not a link, not a pipe that waits
  while (filled > 0) base::close_fd(fillers[--filled]);
  base::store(&opening, 0u);
  return fd;
}

void* as_pointer(long address) { return reinterpret_cast<void*>(address); }

struct TemporaryPath {
  char text[4096 + 64];
  explicit TemporaryPath(const char* path) {  // containers on a node have equal process ids
    base::Writer(text, sizeof text)
        .add(path)
        .add(".")
        .add_number(static_cast<uint64_t>(base::process_id()))
        .add(".")
        .add_number(base::ticks())
        .add(".new");
  }
};

long make_new(const char* path) {
  return base::open_at(AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kOwnerAlone);
}

// The owner of what this process makes beside the file: on file systems that map users it is
// another than the process's. False: unknown.
bool owner_of_new(const char* path, uint32_t* owner) {
  const TemporaryPath temporary(path);
  const long fd = make_new(temporary.text);
  if (base::failed(fd)) return false;
  struct stat about;
  const bool known = base::system_call(SYS_fstat, fd, reinterpret_cast<long>(&about)) == 0;
  base::close_fd(static_cast<int>(fd));
  base::unlink_path(temporary.text);
  if (known) *owner = about.st_uid;
  return known;
}

// Whoever owns the file can change it under the process that maps it. A stranger may have made it
// where others can write.
long check_owner(int fd, const char* path) {
  struct stat about;
  if (base::system_call(SYS_fstat, fd, reinterpret_cast<long>(&about)) != 0 ||
      !S_ISREG(about.st_mode))
    return -EINVAL;
  const base::Credentials own = base::credentials();
  for (const uint32_t user : own.users) {
    if (user == about.st_uid) return 0;
  }
  uint32_t owner = 0;
  return owner_of_new(path, &owner) && owner == about.st_uid ? 0 : -EPERM;
}

}  // namespace

long TraceFile::create(const Settings& settings) {
  if (base::largest_size() < wire::kPageBytes) return -EFBIG;
  const TemporaryPath path(path_);
  const char* const temporary = path.text;
  const long fd = make_new(temporary);
  if (base::failed(fd)) return fd;
  if (settings.mode > kOwnerAlone)
    base::system_call(SYS_fchmod, fd, settings.mode);  // asked for: whatever the umask

  alignas(8) static char page[wire::kPageBytes];  // zero; two threads would write the same
  auto* header = reinterpret_cast<wire::FileHeader*>(page);
  const base::ClockReading now = base::read_clocks();
  memcpy(header->magic, wire::kMagic, sizeof wire::kMagic);
  header->version = wire::kVersion;
  header->header_bytes = wire::kPageBytes;
  header->record_bytes = sizeof(wire::Record);
  header->clock =
      base::clock_state.counter ? wire::Clock::kTimeStampCounter : wire::Clock::kMonotonic;
  header->budget_bytes = settings.budget_bytes;
  header->end_bytes = wire::kPageBytes;
  header->created_realtime_ns = now.realtime_ns;
  header->created_mono_ns = now.mono_ns;
  header->created_ticks = now.ticks;
  header->ns_per_tick = first_rate(now);
  header->level = settings.level;
  base::Writer(header->node, sizeof header->node).add(settings.node);
  header->launch = launch_;
  header->sum = wire::file_sum(*header);

  long result = base::write_at(static_cast<int>(fd), page, sizeof page, 0);
  if (!base::failed(result) && result != static_cast<long>(sizeof page)) result = -ENOSPC;
  if (!base::failed(result)) result = base::link_path(temporary, path_);
  if (base::failed(result) && result != -EEXIST && result != -ENOSPC)
    result = base::rename_path(temporary, path_);  // no hard links here
  base::close_fd(static_cast<int>(fd));
  base::unlink_path(temporary);
  return base::failed(result) && result != -EEXIST ? result : 0;
}

// launch: the name's part of that; 0: none.
long TraceFile::open_named(const Settings& settings, uint64_t launch) {
  base::Writer path(path_, sizeof path_);
  path.add(settings.directory).add("/").add(settings.node);
  if (launch != 0) path.add(".").add_number(launch);
  path.add(".weir");
  if (path.cut()) return -ENAMETOOLONG;

  const base::HoldsDescriptor held;
  long fd = open_here(path_);
  if (fd == -ENOENT) {
    const long made = create(settings);
    if (base::failed(made)) return made;
    fd = open_here(path_);
  }
  if (base::failed(fd)) return fd;
  char magic[sizeof wire::kMagic];
  const long refused = check_owner(static_cast<int>(fd), path_);
  long result =
      base::failed(refused) ? refused : base::read_fd(static_cast<int>(fd), magic, sizeof magic);
  if (result != static_cast<long>(sizeof magic) || memcmp(magic, wire::kMagic, sizeof magic) != 0) {
    result = base::failed(result) ? result : -EINVAL;
  } else {
    result = base::map(wire::kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(fd));
    if (!base::failed(result)) {
      header_ = static_cast<wire::FileHeader*>(as_pointer(result));
      if (header_->version != wire::kVersion || header_->header_bytes != wire::kPageBytes ||
          header_->record_bytes != sizeof(wire::Record)) {
        result = -EINVAL;
      }
    }
    in_memory_ = base::lies_in_memory(static_cast<int>(fd));
    base::identify(static_cast<int>(fd), &identity_);
  }
  base::close_fd(static_cast<int>(fd));
  return base::failed(result) ? result : 0;
}

// Whether this launch may write into the file that is open; a launcher, and the first rank of a
// job, leave their mark.
bool TraceFile::belongs(const Launch& launch) {
  const uint64_t there = base::load(&header_->launch);
  if (launch.number == 0 || there == 0) return true;
  uint64_t none = 0;
  if (launch.job != 0 && there == launch.number)
    base::compare_exchange(&header_->job, &none, launch.job);
  const bool same_job = launch.job != 0 && base::load(&header_->job) == launch.job;
  if (there != launch.number && !same_job) return false;
  none = 0;
  return launch.own == 0 || base::compare_exchange(&header_->launcher, &none, launch.own) ||
         none == launch.own;
}

long TraceFile::open_for(const Settings& settings, uint64_t launch) {
  const uint64_t parts_of_name[] = {0, launch};
  for (const uint64_t in_name : parts_of_name) {
    launch_ = launch;
    const long opened = open_named(settings, in_name);
    if (base::failed(opened)) return opened;
    Launch wanted = settings.launch;
    wanted.number = launch;
    if (belongs(wanted)) {
      launch_ = base::load(&header_->launch);
      return 0;
    }
    const bool taken = base::load(&header_->launch) == launch;  // by another launcher
    base::unmap(header_, wire::kPageBytes);
    header_ = nullptr;
    if (taken) break;
  }
  return -EEXIST;
}

long TraceFile::open(const Settings& settings) {
  const long opened = open_for(settings, settings.launch.number);
  return opened == -EEXIST && settings.launch.own != 0 ? open_for(settings, settings.launch.own)
                                                       : opened;
}

// A mapped page without storage behind it would kill the program with SIGBUS on a full disk, so
// storage comes first: space by fallocate where there is such a thing, pages by writing zeros,
// which the kernel makes by the hundred. Pages that come to be by being touched cost 3 to 5 times
// as much (docs/reference/cost.md). 0, or -errno.
long TraceFile::back_with_storage(int fd, uint64_t offset, uint64_t size) {
  if (!in_memory_) {
    const long result = base::allocate(fd, offset, size);
    if (base::failed(result) && result != -EOPNOTSUPP && result != -ENOSYS && result != -EINVAL)
      return result;
  }
  iovec pieces[kMostPieces];
  for (uint64_t done = 0; done < size;) {
    uint64_t listed = 0;
    int count = 0;
    for (; count < kMostPieces && done + listed < size; ++count) {
      const uint64_t left = size - done - listed;
      pieces[count] = {zeros, left < sizeof zeros ? left : sizeof zeros};
      listed += pieces[count].iov_len;
    }
    const long put = base::write_vector_at(fd, pieces, count, offset + done);
    if (put <= 0) return put == 0 ? -ENOSPC : put;
    done += static_cast<uint64_t>(put);
  }
  return 0;
}

// Maps a part of the file with all its pages ready to be written. A large piece is put where its
// address and its place in the file are the same to the last 21 bits: the kernel then maps the
// large folios of its cache whole instead of page by page. The address, or -errno.
long TraceFile::map_ready(int fd, uint64_t offset, uint64_t size, void** over) {
  constexpr int kBoth = PROT_READ | PROT_WRITE;
  void* const there = over != nullptr ? base::exchange(over, static_cast<void*>(nullptr)) : nullptr;
  if (in_memory_) {
    const int flags = MAP_SHARED | MAP_POPULATE;
    return there != nullptr ? base::map_at(there, size, kBoth, flags, fd, offset)
                            : base::map(size, kBoth, flags, fd, offset);
  }
  long at = 0;
  if (there != nullptr) {
    at = base::map_at(there, size, kBoth, MAP_SHARED, fd, offset);
  } else if (size < kAlignedFrom) {
    at = base::map(size, kBoth, MAP_SHARED, fd, offset);
  } else {
    const long room =
        base::map(size + kLargestFolio, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    if (base::failed(room)) return room;
    const uint64_t lead = (offset - static_cast<uint64_t>(room)) % kLargestFolio;
    at = base::map_at(as_pointer(room + static_cast<long>(lead)), size, kBoth, MAP_SHARED, fd,
                      offset);
    if (lead != 0) base::unmap(as_pointer(room), lead);
    base::unmap(as_pointer(room + static_cast<long>(lead + size)), kLargestFolio - lead);
    if (base::failed(at)) base::unmap(as_pointer(room + static_cast<long>(lead)), size);
  }
  if (base::failed(at)) return at;
  const long ready = base::advise(as_pointer(at), size, 23 /* MADV_POPULATE_WRITE, Linux 5.14 */);
  if (base::failed(ready) && ready != -EINVAL) {
    base::unmap(as_pointer(at), size);
    return ready;
  }
  return at;
}

// In order of their first appearance, each once; threads may add at a time.
void TraceFile::note_refusal(uint8_t reason) {
  constexpr int kPlaces = sizeof wire::ProcessChunk::refusals;
  if (refusals_ == nullptr) return;
  for (int i = 0; i < kPlaces; ++i) {
    uint8_t before = 0;
    if (base::compare_exchange(&refusals_[i], &before, reason) || before == reason) return;
  }
}

uint64_t TraceFile::limit_for(Use use) const {
  const uint64_t budget = header_->budget_bytes;
  const uint64_t reserve = budget / 8 < kLargestReserve ? budget / 8 : kLargestReserve;
  const uint64_t limit = budget - (use == Use::records ? reserve
                                   : use == Use::files ? reserve / 4
                                                       : 0);
  const uint64_t largest = base::largest_size();
  return limit < largest ? limit : largest;
}

// The address of a part of the file, or -errno: *refusal says whether there may be one later.
long TraceFile::map_chunk(uint64_t offset, uint64_t size, Refusal* refusal, void** over) {
  const base::HoldsDescriptor held;
  const long opened = open_here(path_);
  if (base::failed(opened)) {
    if (passes(opened)) *refusal = Refusal::passing;
    return opened;
  }
  const int fd = static_cast<int>(opened);
  base::Identity found{};  // in a chroot, or when the directory was made anew, the path leads to
                           // another file or to none
  long at = base::identify(fd, &found) && found == identity_ ? back_with_storage(fd, offset, size)
                                                             : -ESTALE;
  if (at == 0) {
    at = map_ready(fd, offset, size, over);
    if (base::failed(at)) *refusal = Refusal::passing;
  }
  base::close_fd(fd);
  return at;
}

long TraceFile::refuse(uint64_t size, Refusal refusal, bool* speaks) {
  const uint64_t end = base::load(&header_->end_bytes), largest = base::largest_size();
  const bool by_memory = refusal == Refusal::passing;
  const bool by_limit = !by_memory && (largest < end || largest - end < size);
  uint32_t before = base::load(&header_->refused);
  uint32_t after = 0;
  do {
    after = before + ((before & wire::kRefusedCount) != wire::kRefusedCount ? 1 : 0);
    after |= (by_limit ? wire::kRefusedBySizeLimit : 0) | (by_memory ? wire::kRefusedByMemory : 0);
    after |= *speaks ? wire::kRefusedSaid : 0;
  } while (!base::compare_exchange(&header_->refused, &before, after));
  *speaks = *speaks && (before & wire::kRefusedSaid) == 0;
  return by_memory ? -ENOMEM : by_limit ? -EFBIG : -ENOSPC;
}

void TraceFile::forked() { base::store(&opening, 0u); }

void* TraceFile::take(uint64_t size, Use use, uint64_t* offset, Refusal* refusal, void** over) {
  struct Mapping {
    TraceFile* file;
    uint64_t offset, size;
    Refusal* refusal;
    void** over;
    long at;
  };
  const uint64_t limit = limit_for(use);
  *refusal = Refusal::final;
  if (base::sealed()) {
    note_refusal(wire::kRefusedByFilter);
    return nullptr;
  }
  uint64_t end = base::load(&header_->end_bytes);
  do {
    if (end > limit || size > limit - end) {
      note_refusal(limit == base::largest_size() ? EFBIG : wire::kRefusedByBudget);
      return nullptr;
    }
  } while (!base::compare_exchange(&header_->end_bytes, &end, end + size));

  // Again: a program that closes numbers which it does not own may have closed this one in between.
  long at = -EBADF;
  for (int tries = 0; tries < kTries && base::failed(at) && *refusal == Refusal::final; ++tries) {
    Mapping mapping{this, end, size, refusal, over, 0};
    base::run_apart([](void* what) {
      auto& m = *static_cast<Mapping*>(what);
      m.at = m.file->map_chunk(m.offset, m.size, m.refusal, m.over);
    }, &mapping);
    at = mapping.at;
  }
  *offset = end;
  if (base::failed(at)) {  // give the space back if nobody took any behind it
    note_refusal(static_cast<uint8_t>(-at));
    uint64_t taken = end + size;
    base::compare_exchange(&header_->end_bytes, &taken, end);
    return nullptr;
  }
  *refusal = Refusal::none;
  return as_pointer(at);
}

void begin_chunk(wire::ChunkHeader* chunk, wire::Kind kind, uint64_t size, uint32_t process,
                 uint32_t thread, uint32_t entry_bytes) {
  chunk->kind = kind;
  chunk->size_bytes = size;
  chunk->process = process;
  chunk->thread = thread;
  chunk->entry_bytes = entry_bytes;
  chunk->taken_ticks = base::ticks();
  chunk->sum = wire::chunk_sum(*chunk);
  base::store(&chunk->magic, wire::kChunkMagic);
}

}  // namespace weir::trace
