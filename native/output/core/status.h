// SPDX-License-Identifier: Apache-2.0
// Results between the rooms of the output library: a code of include/weir/status.h and a message
// that says what failed, on what, what was expected, what to do. No exception leaves a room.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <weir/status.h>

namespace weir::output {

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(weir_status code, std::string message) : code_(code), message_(std::move(message)) {}
  bool ok() const { return code_ == WEIR_OK; }
  weir_status code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  weir_status code_ = WEIR_OK;
  std::string message_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

#define WEIR_TRY(expression)                                          \
  do {                                                                \
    if (::weir::output::Status weir_try = (expression); !weir_try.ok()) return weir_try; \
  } while (0)

}  // namespace weir::output
