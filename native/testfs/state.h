// SPDX-License-Identifier: Apache-2.0
// What one mount shares with whoever asks: its options, which may be changed while it runs, and its
// counters. One file, mapped by the daemon and through api.h by others; it stays when the daemon is
// gone. Decides the layout and how counters are kept; what a request costs is server.h's, how
// counters are printed report.cc's.
//
// All words are atomics, so that a reader in another process sees each of them whole. Adding is
// relaxed: a request is counted before it is answered, and the answer orders it before whatever the
// program asks next.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::testfs {

using Word = std::atomic<uint64_t>;

enum class Kind : unsigned {
#define KIND(name, cost) name,
#include "testfs/kinds.def"
#undef KIND
};
enum class Cost { metadata, data, nothing };
inline constexpr unsigned kKinds = 0
#define KIND(name, cost) +1
#include "testfs/kinds.def"
#undef KIND
    ;
[[nodiscard]] const char* kind_name(Kind kind);
[[nodiscard]] Cost kind_cost(Kind kind);

inline constexpr unsigned kFailRules = 8;
// Class n: sizes up to 2^n bytes; the last one takes what is larger.
inline constexpr unsigned kSizeClasses = 32;
// Files with counters of their own; requests to others are `files_lost`.
inline constexpr unsigned kFiles = 1 << 16;
inline constexpr uint64_t kNameBytes = 32 << 20;
inline constexpr uint64_t kNever = ~0ull;

// Every `rate`-th part of 2^32 of the matching requests fails, chosen by the seed and the number of
// the request.
struct FailRule {
  Word kinds;  // bit mask; 0: the rule is empty
  Word error;
  Word rate;   // of 2^32
  Word seed;
  Word after;  // matching requests that are let through first
  Word times;  // failures left; kNever: no limit
  Word seen;
};

struct Options {
  Word round_trip_ns;
  Word metadata_ns;
  Word data_ns;
  Word bytes_per_s;    // 0: no limit
  Word hang_until_ns;  // CLOCK_MONOTONIC; requests are answered no sooner
  Word space_bytes;    // bytes that may yet be written before ENOSPC; kNever: no limit
  Word direct_io;      // taken at open
  Word attr_timeout_ns;
  Word entry_timeout_ns;
  Word threads;    // fixed at the mount, as is what follows
  Word writeback;
  FailRule fail[kFailRules];
};

struct Transfers {
  Word sizes[kSizeClasses];  // by the size asked for
  Word offsets_4k, offsets_1m;  // requests whose offset is a multiple
  Word aligned_4k, aligned_1m;  // offset and size
};

struct FileEntry {
  uint64_t name_at;  // in State::names
  Word requests[kKinds];
  Word bytes_read, bytes_written;
};

struct State {
  uint64_t magic;  // written last
  uint64_t pid;
  uint64_t
      start_ticks;  // of the daemon, as /proc/<pid>/stat says it: with the pid it names one process
  uint64_t mount_at;     // in names
  uint64_t backing_at;
  Options options;
  Word requests[kKinds], errors[kKinds];
  Word injected;
  Word bytes_read, bytes_written;
  Word in_flight, max_in_flight;
  Word data_in_flight, max_data_in_flight;
  Transfers reads, writes;
  Word files_lost;
  Word names_used;
  Word file_count;
  FileEntry files[kFiles];
  char names[kNameBytes];
};

// A new state in the file of this name, replacing what was there, or one that exists; nullptr and
// errno otherwise.
[[nodiscard]] State* create_state(const char* path);
[[nodiscard]] State* open_state(const char* path);

// Keeps a name for as long as the state lives; 0 when there is no room. Not thread-safe: callers
// hold their lock.
[[nodiscard]] uint64_t keep_name(State& state, std::string_view name);

// The counters of the file of this name, or nullptr when there is no room for more (counted).
// Thread-safe in the daemon.
[[nodiscard]] FileEntry* file_entry(State& state, std::string_view path);

void raise_to(Word& most, uint64_t value);
void count_transfer(Transfers& of, uint64_t offset, uint64_t size);
// Sets all counters to zero; what is in flight stays.
void reset(State& state);

[[nodiscard]] uint64_t now_ns();
// Field 22 of /proc/<pid>/stat; 0 when there is no such process.
[[nodiscard]] uint64_t start_ticks_of(uint64_t pid);
[[nodiscard]] inline bool is_alive(const State& state) {
  return state.start_ticks != 0 && start_ticks_of(state.pid) == state.start_ticks;
}

}  // namespace weir::testfs
