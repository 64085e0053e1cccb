// SPDX-License-Identifier: Apache-2.0
// Times in messages of GRIB: a header is made once, and each record's times are put into a copy of
// it. ecCodes says where the octets are.
#pragma once

#include <string>

#include "output/format/format.h"
#include "output/format/grib/library.h"

namespace weir::output::grib {

// The reference and calendar of a description's coordinate time.
class Clock {
 public:
  // fails: WEIR_E_FORMAT a calendar that GRIB has not.
  static Result<Clock> of(const FileDescription& description);
  const std::string& reference() const { return reference_; }
  const std::string& calendar() const { return calendar_; }

 private:
  std::string reference_, calendar_;
};

// A record's time, or interval, in seconds since the reference.
struct Moment {
  double time_s = 0, begin_s = 0;
  bool interval = false;
};

// Octets of a message's times, -1 where it has none.
struct TimePlaces {
  int edition = 2;
  int64_t reference = -1;          // year, month, day, hour, minute, second (edition 1: no second)
  int64_t unit = -1, step = -1;    // of the time since the reference; edition 1: P1
  int64_t end = -1;                // the end of an interval
  int64_t length_unit = -1, length = -1;  // of an interval; edition 1: P2
  int64_t indicator = -1, century = -1;   // edition 1

  static TimePlaces in(const Handle& handle, int edition);
};

// Writes the times into the message. from_start: steps are counted from the reference of the run.
// fails: WEIR_E_VALUE a time that GRIB cannot say.
Status put_times(char* message, const TimePlaces& places, const Clock& clock, const Moment& moment,
                 bool from_start);

// The time of a message (of an interval its end) in seconds since the reference, and the begin.
Result<Moment> take_times(const char* message, const TimePlaces& places, const Clock& clock);

}  // namespace weir::output::grib
