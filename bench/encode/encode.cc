// SPDX-License-Identifier: Apache-2.0
// weir-bench-encode [ROUNDS] [NOISE]: what encoding a field costs, in CPU time of one thread:
// messages of GRIB by weir beside ecCodes alone, chunks of netCDF-4 by each method of compression,
// the estimate of information and the rounding. The kinds take turns in each round; medians are
// printed, in GB/s of float32, with the ratio of bytes in the file to those in memory.
//
// ecCodes alone: one handle for all messages, codes_set_double_array and a copy of the message, as
// a program that knows it does; the conversion to double is in its time.
#include <eccodes.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "output/format/chunks/codec.h"
#include "output/format/grib/encoder.h"
#include "output/reduce/rounding.h"

namespace weir::output {
namespace {

constexpr int64_t kNx = 1440, kNy = 721, kPoints = kNx * kNy, kBytes = kPoints * 4;
constexpr int kMessages = 4;  // of a round

double cpu_s() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Temperatures: waves whose heights fall with their number, and an instrument's noise in K.
std::vector<float> field(double noise, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, 1);
  std::uniform_real_distribution<double> phase(0, 2 * M_PI);
  std::vector<double> along(kNx), across(kNy), values(kPoints);
  for (int wave = 1; wave <= 48; wave++) {
    const double a = phase(random), b = phase(random), height = 12 / std::pow(wave, 1.3);
    for (int64_t i = 0; i < kNx; i++)
      along[i] = std::sin(2 * M_PI * wave * static_cast<double>(i) / kNx + a);
    for (int64_t j = 0; j < kNy; j++)
      across[j] = height * std::sin(M_PI * wave * static_cast<double>(j) / kNy + b);
    for (int64_t j = 0; j < kNy; j++) {
      for (int64_t i = 0; i < kNx; i++) values[j * kNx + i] += along[i] * across[j];
    }
  }
  std::vector<float> out(kPoints);
  for (int64_t i = 0; i < kPoints; i++)
    out[i] = static_cast<float>(270 + values[i] + noise * normal(random));
  return out;
}

FileDescription globe(const FormatKeys& keys, double information) {
  FileDescription d;
  d.dimensions = {{"lat", kNy}, {"lon", kNx}, {"time", 0}};
  d.time = 2;
  Variable lat, lon, t;
  lat.name = "lat";
  lat.dimensions = {0};
  lat.attributes = {{"standard_name", "latitude"}};
  for (int64_t j = 0; j < kNy; j++) lat.values.push_back(90 - 0.25 * static_cast<double>(j));
  lon.name = "lon";
  lon.dimensions = {1};
  lon.attributes = {{"standard_name", "longitude"}};
  for (int64_t i = 0; i < kNx; i++) lon.values.push_back(0.25 * static_cast<double>(i));
  t.name = "t";
  t.type = WEIR_FLOAT32;
  t.dimensions = {0, 1};
  t.over_time = true;
  t.keys = keys;
  t.rounding.information = information;
  d.variables = {lat, lon, t};
  return d;
}

std::unique_ptr<grib::Encoder> encoder(const char* packing, double bits, double information) {
  FormatKeys keys = {{"packingType", std::string(packing), ""}};
  if (bits > 0) keys.push_back({"bitsPerValue", bits, ""});
  Result<grib::Plan> plan = grib::plan_of(globe(keys, information), 2, 2);
  if (plan.ok()) {
    Result<std::unique_ptr<grib::Encoder>> made = grib::Encoder::make(std::move(*plan));
    if (made.ok()) return std::move(*made);
    std::fprintf(stderr, "%s\n", made.status().message().c_str());
  } else {
    std::fprintf(stderr, "%s\n", plan.status().message().c_str());
  }
  std::exit(1);
}

struct Kind {
  std::string name;
  std::function<size_t(const std::vector<float>&)> encode;  // bytes in the file
  std::vector<double> seconds = {};
  size_t bytes = 0;
  double gb_per_s() {
    std::sort(seconds.begin(), seconds.end());
    return 1e-9 * kBytes * kMessages / seconds[seconds.size() / 2];
  }
};

Kind own_grib(const char* packing, double bits, double information) {
  auto made = std::shared_ptr<grib::Encoder>(encoder(packing, bits, information));
  auto scratch = std::make_shared<grib::Scratch>();
  auto to = std::make_shared<grib::Bytes>();
  return {"weir", [=](const std::vector<float>& values) {
            to->clear();
            if (!made->encode(0, values.data(), scratch.get(), to.get()).ok()) std::exit(1);
            return to->size();
          }};
}

Kind eccodes_alone(const char* packing, double bits) {
  // A message of weir's is the begin: grid, parameter and packing are the same.
  const auto made = encoder(packing, bits, 0);
  grib::Scratch scratch;
  grib::Bytes first;
  const std::vector<float> values = field(0.1, 1);
  if (!made->encode(0, values.data(), &scratch, &first).ok()) std::exit(1);
  codes_handle* handle = codes_handle_new_from_message_copy(nullptr, first.data(), first.size());
  auto doubles = std::make_shared<std::vector<double>>(kPoints);
  auto to = std::make_shared<grib::Bytes>();
  return {"ecCodes alone", [=](const std::vector<float>& values) {
            std::copy(values.begin(), values.end(), doubles->begin());
            const void* message = nullptr;
            size_t n = 0;
            if (codes_set_double_array(handle, "values", doubles->data(), doubles->size()) != 0 ||
                codes_get_message(handle, &message, &n) != 0)
              std::exit(1);
            to->assign(static_cast<const char*>(message), static_cast<const char*>(message) + n);
            return n;
          }};
}

Kind chunk(const char* name, Compression compression, int keep_bits) {
  auto shuffled = std::make_shared<std::vector<char>>(kBytes);
  auto rounded = std::make_shared<std::vector<float>>(kPoints);
  auto to = std::make_shared<std::vector<char>>();
  return {name, [=](const std::vector<float>& values) {
            to->clear();
            // A chunk of the usual size: some 1 MiB of whole rows.
            constexpr int64_t kRows = 180;
            for (int64_t j = 0; j < kNy; j += kRows) {
              const int64_t n = std::min(kRows, kNy - j) * kNx;
              const float* from = values.data() + j * kNx;
              if (keep_bits > 0) {
                round_to_bits(keep_bits, WEIR_FLOAT32, std::nullopt, from, n, rounded->data());
                from = rounded->data();
              }
              chunks::shuffle(reinterpret_cast<const char*>(from), static_cast<size_t>(n) * 4, 4,
                              shuffled->data());
              if (!chunks::compress(compression, shuffled->data(), static_cast<size_t>(n) * 4, *to)
                       .ok())
                std::exit(1);
            }
            return to->size();
          }};
}

Kind rounding(const char* name, Rounding wish) {
  auto rounded = std::make_shared<std::vector<float>>(kPoints);
  return {name, [=](const std::vector<float>& values) {
            round_values(wish, WEIR_FLOAT32, std::nullopt, values.data(), kPoints, kNx,
                         rounded->data());
            return static_cast<size_t>(kBytes);
          }};
}

// The kinds take turns: what the machine does meanwhile meets all of them.
void compare(const std::string& what, std::vector<Kind> kinds, int rounds, double noise) {
  std::vector<std::vector<float>> fields;
  for (unsigned i = 0; i < kMessages; i++) fields.push_back(field(noise, i + 1));
  for (int round = 0; round <= rounds; round++) {
    for (Kind& kind : kinds) {
      const double begin = cpu_s();
      kind.bytes = 0;
      for (const std::vector<float>& values : fields) kind.bytes += kind.encode(values);
      if (round > 0) kind.seconds.push_back(cpu_s() - begin);  // the first one warms up
    }
  }
  for (Kind& kind : kinds) {
    std::printf("%-28s %-16s %6.2f GB/s  %5.1f %%", what.c_str(), kind.name.c_str(),
                kind.gb_per_s(), 100.0 * static_cast<double>(kind.bytes) / (kBytes * kMessages));
    if (&kind != &kinds.back())
      std::printf("  %5.2f x %s", kind.gb_per_s() / kinds.back().gb_per_s(),
                  kinds.back().name.c_str());
    std::printf("\n");
  }
  std::fflush(stdout);
}

int run(int rounds, double noise) {
  std::printf("%lld x %lld float32, noise %g K, medians of %d rounds of %d fields\n",
              static_cast<long long>(kNx), static_cast<long long>(kNy), noise, rounds, kMessages);
  for (const char* packing : {"grid_simple", "grid_ccsds"}) {
    for (const double bits : {12.0, 16.0, 24.0}) {
      compare(std::string(packing) + ", " + std::to_string(static_cast<int>(bits)) + " bits",
              {own_grib(packing, bits, 0), eccodes_alone(packing, bits)}, rounds, noise);
    }
    compare(std::string(packing) + ", 99 % information", {own_grib(packing, 0, 0.99)}, rounds,
            noise);
  }
  using enum Compression::Kind;
  for (const int keep : {0, 10}) {
    compare(keep ? "chunks, keep_bits 10" : "chunks",
            {chunk("zstd:1", {kZstd, 1}, keep), chunk("deflate:1", {kDeflate, 1}, keep)}, rounds,
            noise);
  }
  compare("rounding",
          {rounding("keep_bits 10", {10, 0}), rounding("99 % information", {0, 0.99})}, rounds,
          noise);
  return 0;
}

}  // namespace
}  // namespace weir::output

int main(int argc, char** argv) {
  return weir::output::run(argc > 1 ? std::atoi(argv[1]) : 9, argc > 2 ? std::atof(argv[2]) : 0.1);
}
