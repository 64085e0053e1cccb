// SPDX-License-Identifier: Apache-2.0
#include "output/core/trace.h"

#include <dlfcn.h>

namespace weir::output {

EventSink event_sink() {
  static const EventSink sink =
      reinterpret_cast<EventSink>(dlsym(RTLD_DEFAULT, "weir_output_event"));
  return sink;
}

namespace {

thread_local const Traced* innermost = nullptr;

}  // namespace

void Traced::begin(std::string_view stream, std::string_view what) {
  begun_ = event_sink()(static_cast<int>(event_), 0, "", "", 0, 0);
  if (begun_ == 0) return;
  around_ = innermost;
  innermost = this;
  const bool inherits = stream.empty() && what.empty() && around_ != nullptr;
  stream_ = inherits ? around_->stream_ : stream;
  what_ = inherits ? around_->what_ : what;
}

void Traced::end() {
  innermost = around_;
  event_sink()(static_cast<int>(event_), begun_, stream_.c_str(), what_.c_str(), bytes_, error_);
}

}  // namespace weir::output
