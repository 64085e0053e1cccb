// SPDX-License-Identifier: Apache-2.0
#include "output/model/schedule.h"

#include <cmath>

#include "output/model/path.h"

namespace weir::output {

namespace {

constexpr double kTolerance = 1e-6;  // of an interval

double intervals_until(const Stream& stream, double time_s) {
  return std::floor(time_s / stream.every_s + kTolerance);
}

}  // namespace

bool is_due(const Stream& stream, std::optional<double> previous_s, double time_s, int64_t step) {
  if (stream.fields.empty()) return false;
  if (stream.every_s <= 0) return stream.every_steps > 0 && step % stream.every_steps == 0;
  const double intervals = intervals_until(stream, time_s);
  if (previous_s) return intervals > intervals_until(stream, *previous_s);
  return std::abs(time_s / stream.every_s - intervals) < kTolerance;
}

Result<int64_t> period_at(const Catalogue& catalogue, Period period, double time_s) {
  if (period == Period::kNone) return int64_t{0};
  Result<Date> date = date_after(catalogue.reference, catalogue.calendar, time_s);
  if (!date.ok()) return date.status();
  if (period == Period::kYear) return date->year;
  const int64_t month = date->year * 12 + date->month - 1;
  return period == Period::kMonth ? month : month * 31 + date->day - 1;
}

double due_since_s(const Stream& stream, double time_s) {
  return intervals_until(stream, time_s) * stream.every_s;
}

}  // namespace weir::output
