// SPDX-License-Identifier: Apache-2.0
// format.h against docs/formats/trace.md: the positions and the example bytes that the page states.
#include "wire/format.h"

#include <gtest/gtest.h>
#include <string.h>

#include <map>
#include <set>
#include <string>

namespace weir::wire {
namespace {

struct Operation {
  int value;
  const char* name;
  const char* layer;
  char cls;
};

constexpr Operation kOperations[] = {
#define WEIR_OP(value, constant, name, layer, cls) {value, name, #layer, #cls[0]},
#include "wire/ops.def"
#undef WEIR_OP
};

TEST(Record, is_the_example_of_the_page_byte_for_byte) {
  const Record record{65536, 1000, 5, 8192, 4096, Op::kWrite, Layer::posix, 0, 0};
  const unsigned char page[32] = {0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0xe8, 0x03, 0x00,
                                  0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00, 0x00,
                                  0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x07, 0x01, 0x00, 0x00};
  EXPECT_EQ(memcmp(&record, page, sizeof page), 0);
}

TEST(Record, bits_are_where_the_page_has_them) {
  Record record{};
  const uint64_t word3 =
      UINT64_C(0x1c) << 56 | UINT64_C(0x05) << 48 | UINT64_C(2) << 40 | UINT64_C(84) << 32 | 7;
  memcpy(reinterpret_cast<char*>(&record) + 24, &word3, sizeof word3);
  EXPECT_EQ(record.size_low, 7u);
  EXPECT_EQ(record.op, Op::kFread);
  EXPECT_EQ(record.layer, Layer::stdio);
  EXPECT_EQ(record.flags, kError | kLong);
  EXPECT_EQ(record.error, 0x1c);
}

TEST(Layout, is_that_of_the_tables) {
  EXPECT_EQ(offsetof(FileHeader, budget_bytes), 24u);
  EXPECT_EQ(offsetof(FileHeader, end_bytes), 32u);
  EXPECT_EQ(offsetof(FileHeader, ns_per_tick), 64u);
  EXPECT_EQ(offsetof(FileHeader, level), 72u);
  EXPECT_EQ(offsetof(ChunkHeader, used), 32u);
  EXPECT_EQ(offsetof(ChunkHeader, sequence), 56u);
  EXPECT_EQ(offsetof(ProcessChunk, pid), 64u);
  EXPECT_EQ(offsetof(ProcessChunk, rank), 72u);
  EXPECT_EQ(offsetof(ProcessChunk, level_now), 88u);
  EXPECT_EQ(offsetof(ProcessChunk, start_ticks), 96u);
  EXPECT_EQ(offsetof(ProcessChunk, end_ticks), 136u);
  EXPECT_EQ(offsetof(ProcessChunk, lost_events), 144u);
  EXPECT_EQ(offsetof(ProcessChunk, io_start), 160u);
  EXPECT_EQ(offsetof(ProcessChunk, parent), 224u);
  EXPECT_EQ(offsetof(ProcessChunk, cwd), 768u);
  EXPECT_EQ(offsetof(Counter, calls), 8u);
  EXPECT_EQ(offsetof(Counter, form), 7u);
  EXPECT_EQ(offsetof(Counter, last_ticks), 48u);
  EXPECT_EQ(offsetof(Histogram, bins.by_size), 64u);
  EXPECT_EQ(offsetof(Histogram, bins.by_duration), 352u);
}

TEST(Operations, have_one_value_and_one_name_each) {
  std::set<int> values;
  std::set<std::string> names;
  for (const Operation& op : kOperations) {
    EXPECT_TRUE(values.insert(op.value).second) << op.value;
    EXPECT_TRUE(names.insert(std::string(op.layer) + ":" + op.name).second) << op.name;
    EXPECT_TRUE(op.value > 0 && op.value < 256) << op.name << ": 0 is a hole";
    EXPECT_NE(strchr("RWOCMX", op.cls), nullptr) << op.name;
  }
}

// Values never change meaning: traces are kept. What is here once is here for good.
TEST(Operations, keep_the_values_of_the_first_version) {
  const std::map<std::string, int> first = {
      {"open", 1},    {"close", 4},           {"read", 6},
      {"write", 7},   {"pread", 8},           {"lseek", 16},
      {"stat", 25},   {"mmap", 45},           {"fopen", 80},
      {"fread", 84},  {"fwrite", 85},         {"fortran_read", 120},
      {"flock", 63},  {"fortran_write", 121}, {"fortran_inquire", 128},
      {"thread", 250}};
  size_t found = 0;
  for (const Operation& op : kOperations) {
    const auto kept = first.find(op.name);
    if (kept == first.end()) continue;
    EXPECT_EQ(kept->second, op.value) << op.name;
    ++found;
  }
  EXPECT_EQ(found, first.size());
}

TEST(Operations, of_the_languages_libraries_and_the_system_alone_are_io) {
  for (const Operation& op : kOperations) {
    const bool of_io = strcmp(op.layer, "posix") == 0 || strcmp(op.layer, "stdio") == 0 ||
                       strcmp(op.layer, "fortran") == 0;
    const bool notes = strcmp(op.name, "naming") == 0;  // stands beside the record of its call
    EXPECT_EQ(op.cls != 'X', of_io && !notes) << op.name;
  }
}

TEST(Histogram, bins_are_powers_of_two_and_the_last_is_open) {
  EXPECT_EQ(bin_of(0), 0u);
  EXPECT_EQ(bin_of(1), 1u);
  EXPECT_EQ(bin_of(2), 2u);
  EXPECT_EQ(bin_of(3), 2u);
  EXPECT_EQ(bin_of(4095), 12u);
  EXPECT_EQ(bin_of(4096), 13u);
  EXPECT_EQ(bin_of((uint64_t{1} << 34) - 1), 34u);
  EXPECT_EQ(bin_of(uint64_t{1} << 34), 35u);
  EXPECT_EQ(bin_of((uint64_t{1} << 35) - 1), 35u);
  EXPECT_EQ(bin_of(uint64_t{1} << 63), 35u);
  EXPECT_EQ(bin_of(UINT64_MAX), kHistogramBins - 1);
}

}  // namespace
}  // namespace weir::wire
