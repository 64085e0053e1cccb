// SPDX-License-Identifier: Apache-2.0
// The whole reader on hostile bytes, for AddressSanitizer. With clang: a libFuzzer target. With
// gcc: reads each file named on the command line, and `--mutate N SEED FILE` reads N damaged copies
// of one (the seed is printed, so a failure can be had again).
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "reader/weir_accesses.h"
#include "reader/weir_output_cost.h"
#include "reader/weir_transfers.h"

namespace {

void read_tiles(weir_reader* reader, const weir_reader_clock& clock) {
  uint64_t processes, texts, entry;
  weir_reader_get(reader, WEIR_READER_PROCESSES, &processes, &entry);
  weir_reader_get(reader, WEIR_READER_TEXTS, &texts, &entry);
  weir_reader_header header;
  weir_reader_get_header(reader, &header);
  const weir_reader_window window = {static_cast<int64_t>(header.created_ticks), 64, 20, 1, 3, 2};
  std::vector<uint32_t> rows(processes);
  std::vector<uint8_t> groups(texts);
  for (size_t i = 0; i < groups.size(); ++i)
    groups[i] = uint8_t(i % 5);  // two of them are none of the window's
  std::vector<weir_reader_tile> by_row(window.bins), by_group(3 * window.bins);
  const uint32_t* rows_of = rows.data();
  const uint8_t* groups_of = groups.data();
  if (weir_reader_tiles(&reader, &clock, &rows_of, &groups_of, 1, 1, &window, by_row.data(),
                        by_group.data()) != 0)
    abort();
}

// A few rows at a time, so that batches end everywhere.
void read_events(const weir_reader* reader, const weir_reader_clock& clock) {
  constexpr uint64_t room = 1000;
  static int64_t longs[4][room];
  static uint32_t words[4][room];
  static uint8_t bytes[4][room];
  const weir_reader_columns out = {longs[0], longs[1], longs[2], longs[3], words[0], words[1],
                                   words[2], words[3], bytes[0], bytes[1], bytes[2], bytes[3]};
  weir_reader_cursor cursor = {0, 0, ~uint64_t{0}, 0, 0};
  while (weir_reader_events(reader, &clock, &cursor, room, nullptr, nullptr, &out) == room) {
  }
}

// Each file of a process is a group, two of them a name; the memory holds few stretches.
void read_reads(weir_reader* reader, const weir_reader_clock& clock) {
  uint64_t count, entry;
  const auto* rows = static_cast<const weir_reader_row*>(
      weir_reader_get(reader, WEIR_READER_ROWS, &count, &entry));
  std::vector<weir_reader_read_of> files;
  std::vector<uint64_t> first_cut = {0};
  std::vector<int64_t> cuts;
  std::vector<uint32_t> name_of;
  for (uint64_t i = 0; i < count; ++i) {
    if (!files.empty() && files.back().process == rows[i].process &&
        files.back().file == rows[i].file)
      continue;
    files.push_back({rows[i].process, rows[i].file, uint32_t(files.size())});
    cuts.push_back(static_cast<int64_t>(rows[i].first_ticks));
    first_cut.push_back(cuts.size());
    name_of.push_back(uint32_t(name_of.size() / 2));
  }
  const weir_reader_read_of* of_file = files.data();
  const uint64_t files_count = files.size();
  const weir_reader_reads reads = {&reader, &clock, &of_file, &files_count, 1, 2};
  std::vector<uint64_t> of_names(files.size());
  std::vector<weir_reader_use> uses(2 * files.size());
  std::vector<weir_reader_extent> of_groups(files.size());
  if (weir_reader_uses_between(&reads, 'R', first_cut.data(), files.size(), cuts.data(),
                               uses.data()) != 0)
    abort();
  if (weir_reader_read_extents(&reads, name_of.data(), files.size(), 1000, of_groups.data(),
                               of_names.data()) != 0)
    abort();
}

// As if each text were an output of its own, and the first process waited for all others.
void read_output(weir_reader* reader, const weir_reader_clock& clock) {
  uint64_t processes, texts, rows, bytes;
  weir_reader_get(reader, WEIR_READER_PROCESSES, &processes, &bytes);
  weir_reader_get(reader, WEIR_READER_TEXTS, &texts, &bytes);
  weir_reader_get(reader, WEIR_READER_ROWS, &rows, &bytes);
  std::vector<uint32_t> rank_of(processes), thread_of(processes), label_of(texts);
  std::iota(rank_of.begin(), rank_of.end(), 0);
  std::iota(label_of.begin(), label_of.end(), 0);
  const std::vector<uint32_t> members_of(texts, 4), file_of(texts);
  std::vector<uint64_t> first_of(processes + 1, 1), first_cut_of(texts + 1, texts != 0);
  first_cut_of[0] = 0;
  first_of[0] = 0;
  const int64_t at = 0, total = 0;
  const int32_t slope = 1;
  const weir_reader_growing growing = {first_of.data(), &at, &total, &slope};
  const weir_reader_output asked = {
      uint32_t(processes), uint32_t(texts), 2, 0, rank_of.data(), thread_of.data(),
      thread_of.data(), label_of.data(), members_of.data(), file_of.data(),
      first_cut_of.data(), &at, rank_of.data(), growing, growing, growing};
  std::vector<weir_reader_output_cost> costs(3 * rows + processes);
  uint64_t count;
  if (weir_reader_output_costs(reader, &clock, &asked, costs.data(), costs.size(), &count) != 0 ||
      count > costs.size())
    abort();
}

void read_transfers(const weir_reader* reader, const weir_reader_clock& clock) {
  constexpr uint64_t kRoom = 7;
  uint64_t processes, texts, bytes, rows = kRoom;
  weir_reader_get(reader, WEIR_READER_PROCESSES, &processes, &bytes);
  weir_reader_get(reader, WEIR_READER_TEXTS, &texts, &bytes);
  const std::vector<uint8_t> wanted(texts, 1), chosen(processes, 1);
  int64_t times[4][kRoom];
  uint32_t process[kRoom], text[kRoom];
  uint8_t way[kRoom];
  const weir_transfer_columns out = {times[0], times[1], times[2], times[3], process, text, way};
  weir_transfers* transfers =
      weir_transfers_create(reader, &clock, wanted.data(), chosen.data());
  while (rows == kRoom) {
    if (weir_transfers_next(transfers, kRoom, &out, &rows) != 0 || rows > kRoom) abort();
    for (uint64_t i = 0; i < rows; ++i) {
      if (text[i] >= texts || process[i] >= processes) abort();
    }
  }
  weir_transfers_destroy(&transfers);
}

// Every lost name is one of the same number.
void read_accesses(weir_reader* reader, const weir_reader_clock& clock, bool by_rank) {
  uint64_t processes, texts, rows, bytes, count;
  weir_reader_get(reader, WEIR_READER_PROCESSES, &processes, &bytes);
  weir_reader_get(reader, WEIR_READER_TEXTS, &texts, &bytes);
  const auto* row = static_cast<const weir_reader_row*>(
      weir_reader_get(reader, WEIR_READER_ROWS, &rows, &bytes));
  std::vector<weir_accesses_lost> lost;
  for (uint64_t i = 0; i < rows; ++i)
    lost.push_back({row[i].process, row[i].file, int32_t(texts), 0});
  std::vector<int32_t> names(texts), ranks(processes);
  std::iota(names.begin(), names.end(), 0);
  std::iota(ranks.begin(), ranks.end(), 0);
  const std::vector<weir_reader_alignment> alignment(texts, {4096, 1 << 20});
  const std::vector<uint8_t> chosen(processes, 1), apart(texts / 2, 1);
  const int32_t loose = 1;
  const weir_accesses_file file = {reader,        clock,         alignment.data(), names.data(),
                                   ranks.data(), chosen.data(), lost.data(),      lost.size()};
  const weir_accesses_choice choice = {
      apart.data(), apart.size(), &loose, 1, 100, 10, {16, 4}, 0, by_rank, 2, 0};
  uint32_t has_lost = 0;
  weir_accesses* found = weir_accesses_create(&file, 1, &choice, &has_lost);
  if (found == nullptr) abort();
  weir_accesses_spread(found, &count);
  weir_accesses_kept(found, &count);
  weir_accesses_rows(found, &rows);
  const weir_accesses_common* common = weir_accesses_commons(found, &count);
  for (uint64_t i = 0; i < count; ++i) {
    if (by_rank && uint64_t(common[i].key) >= rows) abort();
  }
  weir_accesses_destroy(&found);
}

void read_all(const char* path) {
  char message[256];
  uint64_t place = 0;
  weir_reader* reader = weir_reader_create(path, message, sizeof message, &place);
  if (reader == nullptr) return;
  const weir_reader_clock clock = {0, 0, uint64_t{1} << 48};
  const uint8_t* mask = nullptr;
  int64_t total, first, last;
  uint64_t records;
  weir_reader_active(&reader, &clock, &mask, 1, 1, 2, &total, &first, &last,
                     &records);  // before times are known
  weir_reader_scan(reader, 2);
  weir_reader_active(&reader, &clock, &mask, 1, 0, 2, &total, &first, &last, &records);
  read_tiles(reader, clock);
  read_reads(reader, clock);
  read_output(reader, clock);
  read_events(reader, clock);
  read_transfers(reader, clock);
  read_accesses(reader, clock, false);
  read_accesses(reader, clock, true);
  if (weir_reader_exchanges(reader, 2) != 0) abort();
  for (uint32_t array = WEIR_READER_CHUNKS; array <= WEIR_READER_EXCHANGES; ++array) {
    uint64_t count, bytes, sum = 0;
    const auto* from =
        static_cast<const unsigned char*>(weir_reader_get(reader, array, &count, &bytes));
    for (uint64_t i = 0; i < count * bytes; ++i) sum += from[i];
    if (sum == 1) fputs("", stdout);  // the sum must be made
  }
  if (total < 0) abort();
  weir_reader_destroy(&reader);
}

// memfd: no disk, and the reader's own path from a name to a mapping.
void read_bytes(const uint8_t* data, size_t size) {
  const int file = memfd_create("weir-fuzz", MFD_CLOEXEC);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) abort();
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  read_all(path);
  close(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_bytes(data, size);
  return 0;
}

#ifndef WEIR_LIBFUZZER
namespace {

// Few bits, few words of extreme values, or the tail cut: damage that a decoder meets at its edges.
std::vector<char> damaged(std::vector<char> bytes, std::mt19937_64& random) {
  static constexpr uint64_t extremes[] = {
      0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, 0xffffffff, ~uint64_t{0} >> 1, ~uint64_t{0}};
  for (int n = 1 + int(random() % 4); n > 0 && bytes.size() > 8; --n) {
    const size_t place = random() % (bytes.size() - 8);
    switch (random() % 4) {
      case 0: bytes[place] ^= char(1u << random() % 8); break;
      case 1: memcpy(&bytes[place / 8 * 8], &extremes[random() % 9], 8); break;
      case 2: memcpy(&bytes[place / 4 * 4], &extremes[random() % 9], 4); break;
      default: if (random() % 8 == 0) bytes.resize(place);
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && std::string(argv[1]) == "--mutate") {
    const long rounds = atol(argv[2]);
    const unsigned long long seed = strtoull(argv[3], nullptr, 0);
    printf("seed %llu\n", seed);
    fflush(stdout);
    std::mt19937_64 random(seed);
    std::ifstream in(argv[4], std::ios::binary);
    const std::vector<char> whole((std::istreambuf_iterator<char>(in)), {});
    for (long i = 0; i < rounds; ++i) {
      const auto bytes = damaged(whole, random);
      read_bytes(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    }
    return 0;
  }
  for (int i = 1; i < argc; ++i) read_all(argv[i]);
  return 0;
}
#endif
