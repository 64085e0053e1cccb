// SPDX-License-Identifier: Apache-2.0
// The trace file's layout, as docs/formats/trace.md specifies it. Decides sizes and positions; who
// writes and reads them, and in which order, is left to trace/ and reader/.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace weir::wire {

inline constexpr char kMagic[8] = {'W', 'E', 'I', 'R', 'T', 'R', 'C', '1'};
inline constexpr uint32_t kVersion = 3;        // what is written
inline constexpr uint32_t kChecked = 3;        // from here on with checksums (checksum.h)
inline constexpr uint32_t kOldestVersion = 1;  // what is read
inline constexpr uint32_t kChunkMagic = 0x4b484357;
inline constexpr uint64_t kPageBytes = 4096;
inline constexpr uint64_t kMaxChunkBytes = 1u << 20;
inline constexpr uint64_t kUnknownOffset = (uint64_t{1} << 48) - 1;
inline constexpr uint32_t kHistogramBins = 36;
inline constexpr uint32_t kLongShift = 12;
// Ids from here on are of what is no file (paths.h).
inline constexpr uint32_t kOtherNames = 1u << 31;

enum class Level : uint32_t { kOff = 0, kSummary = 1, kDetail = 2, kTrace = 3 };
enum class Clock : uint32_t { kTimeStampCounter = 1, kMonotonic = 2 };
enum class Kind : uint32_t { kProcess = 1, kNames = 2, kEvents = 3, kCounters = 4 };
enum class RankSource : uint32_t { kNone = 0, kEnvironment = 1, kMpi = 2 };
enum class MpiKind : uint32_t { kNone = 0, kOpenMpi = 1, kMpich = 2, kOther = 3 };
enum class End : uint32_t { kNone = 0, kExit = 1, kQuickExit = 2, kExec = 3, kSignal = 4 };
enum class Form : uint8_t { kCounter = 0, kHistogram = 1 };  // of an entry of a counters chunk
enum class NameSource : uint16_t { kGiven = 1, kDescriptor = 2, kNote = 3 };
// Who made the record. Above these: kEvents + p, an event layer at position p of its file's stack,
// and kNotes + k, a note about a layer with number k (native/layers/*/layer.toml). From output on:
// no I/O of its own, the calls to the system below it are.
enum class Layer : uint8_t {
  marker = 0,
  posix = 1,
  stdio = 2,
  fortran = 3,
  mpi = 4,
  layers = 5,
  output = 6,
  mpi_io = 7,
  pnetcdf = 8,
  netcdf = 9,
  hdf5 = 10
};
inline constexpr uint8_t kEvents = 16;
inline constexpr uint8_t kNotes = 32;
inline constexpr uint8_t kLayersEnd = 64;

constexpr Layer event_at(uint8_t position) { return static_cast<Layer>(kEvents + position); }

enum Flag : uint8_t {
  kError = 1,
  kShort = 2,
  kLong = 4,
  kBelow = 8,
  kNested = 16,
  kOutput = 32,
  kRoot = 64
};
inline constexpr uint8_t kKeyFlags = kBelow | kNested | kOutput;  // those that tell counters apart

enum class Op : uint8_t {
  kNone = 0,
#define WEIR_OP(value, constant, name, layer, cls) constant = value,
#include "wire/ops.def"
#undef WEIR_OP
};

// In records of MPI, above 32 bits of bytes.
enum class MpiRoutine : uint32_t {
  kNone = 0,
#define WEIR_MPI_ROUTINE(value, name) k##name = value,
#include "wire/mpi.def"
#undef WEIR_MPI_ROUTINE
};
// In the place of the routine in records of MPI_awaited: what a request stood for. message: of a
// matched probe, which no record has.
enum class Awaited : uint8_t { nothing = 0, receive = 1, collective = 2, send = 3, message = 4 };

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint32_t record_bytes;
  Clock clock;
  uint64_t budget_bytes;
  uint64_t end_bytes;
  uint64_t created_realtime_ns;
  uint64_t created_mono_ns;
  uint64_t created_ticks;
  double ns_per_tick;
  Level level;
  uint32_t refused;  // programs that found no room for themselves, kRefusedSaid,
                     // kRefusedBySizeLimit, kRefusedByMemory
  char node[64];
  uint64_t launch;  // whose trace it is, of programs that were started without `weir trace`; 0: of
                    // anybody
  uint64_t launcher;  // the mpirun (srun, ...) that has this file, or 0
  uint64_t job;       // of MPI, the same on all nodes, or 0
  uint32_t sum;       // checksum (checksum.h)
  uint32_t reserved;
};
static_assert(offsetof(FileHeader, node) == 80 && offsetof(FileHeader, launch) == 144 &&
              sizeof(FileHeader) <= kPageBytes);

constexpr uint32_t kRefusedBySizeLimit = 1u << 31;  // one of them at least: RLIMIT_FSIZE
constexpr uint32_t kRefusedSaid = 1u << 30;         // one has said it on stderr
constexpr uint32_t kRefusedByMemory = 1u << 29;    // one of them at least: no memory (RLIMIT_AS)
constexpr uint32_t kRefusedCount = kRefusedByMemory - 1;

struct ChunkHeader {
  uint32_t magic;
  Kind kind;
  uint64_t size_bytes;
  uint32_t process;
  uint32_t thread;
  uint32_t entry_bytes;
  uint32_t sum;  // checksum of the header; 0 before version 3
  uint64_t used;
  uint64_t taken_ticks;
  uint64_t log;
  uint64_t sequence;
};
static_assert(sizeof(ChunkHeader) == 64);

struct IoFigures {
  uint64_t rchar, wchar, syscr, syscw;
};

struct StorageFigures {
  uint64_t read_bytes, write_bytes;
};
enum IoKnown : uint32_t { kIoRead = 1, kIoOwn = 2, kIoOtherUser = 4 };

// In ProcessChunk::refusals, beside errnos.
constexpr uint8_t kRefusedByBudget = 255, kRefusedByFilter = 254;

struct ProcessChunk {
  ChunkHeader header;
  uint32_t pid, ppid;
  int32_t rank, ranks;
  RankSource rank_source;
  MpiKind mpi;
  Level level_now;
  End end_kind;
  uint64_t start_ticks, start_mono_ns, start_realtime_ns;
  uint64_t last_ticks, last_mono_ns;
  uint64_t end_ticks;
  uint64_t lost_events;
  uint64_t failures;
  IoFigures io_start, io_last;
  uint32_t parent;
  uint32_t io_known;
  char reserved[24];
  char exe[512];
  char cwd[1024];
  char command[2176];
  uint64_t own_read, own_written;
  int64_t passed_over;
  StorageFigures storage_start, storage_last;
  uint8_t refusals[8];
  uint64_t world;
  uint32_t sum, rank_sum;  // checksums
  char reserved_end[48];
};
static_assert(offsetof(ProcessChunk, io_last) == 192 && offsetof(ProcessChunk, exe) == 256);
static_assert(offsetof(ProcessChunk, refusals) == 4024 &&
              offsetof(ProcessChunk, world) == 4032);
static_assert(offsetof(ProcessChunk, own_read) == 3968 &&
              offsetof(ProcessChunk, storage_last) == 4008);
static_assert(offsetof(ProcessChunk, command) == 1792 && sizeof(ProcessChunk) == kPageBytes);

struct NameEntry {
  uint32_t id;
  uint16_t length_bytes;
  NameSource source;  // with a checksum in its upper bits
  char text[];
};
static_assert(sizeof(NameEntry) == 8);

struct Record {
  uint64_t start;
  uint32_t duration;
  uint32_t file;
  uint64_t offset_and_size_high;
  uint32_t size_low;
  Op op;
  Layer layer;
  uint8_t flags;
  uint8_t error;  // errno of a failed call, else a checksum
};
static_assert(sizeof(Record) == 32);

struct Counter {
  uint32_t file;
  Op op;
  Layer layer;
  uint8_t flags;
  Form form;
  uint64_t calls, bytes, ticks, errors, first_ticks, last_ticks;
  uint64_t histogram;  // its address in the process that counts
};
static_assert(sizeof(Counter) == 64);

struct Bins {
  uint64_t by_size[kHistogramBins];
  uint64_t by_duration[kHistogramBins];
};

// Of all calls of the log that are alike in operation, layer and flags, and in whether they are on
// a file. Takes ten entries.
struct Histogram {
  uint32_t of_others;  // 0: of calls on files, 1: on what is no file
  Op op;
  Layer layer;
  uint8_t flags;
  Form form;
  uint64_t reserved[7];
  Bins bins;
};
inline constexpr uint64_t kHistogramEntries = sizeof(Histogram) / sizeof(Counter);
static_assert(sizeof(Histogram) == 640 && kHistogramEntries * sizeof(Counter) == sizeof(Histogram));
static_assert(offsetof(Counter, form) == offsetof(Histogram, form) &&
              offsetof(Histogram, bins) == 64);

// Of version 1.
struct WideCounter {
  Counter counter;
  Bins bins;
};
static_assert(sizeof(WideCounter) == 640);

// Bin of a histogram: 0 for 0, k for [2^(k-1), 2^k), the last one open.
constexpr uint32_t bin_of(uint64_t value) {
  constexpr uint64_t kLargest = (uint64_t{1} << (kHistogramBins - 1)) - 1;
  return 63 - static_cast<uint32_t>(__builtin_clzll(2 * (value < kLargest ? value : kLargest) + 1));
}

}  // namespace weir::wire
