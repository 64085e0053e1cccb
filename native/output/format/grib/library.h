// SPDX-License-Identifier: Apache-2.0
// Messages as ecCodes has them. Each call takes the lock of the library; an object belongs to one
// thread at a time.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "output/core/status.h"
#include "output/format/grib/bytes.h"
#include "output/format/modules.h"
#include "output/model/catalogue.h"

namespace weir::output::grib {

// fails: WEIR_E_FORMAT, what is missing and what to install.
Status library_ready();

class Handle {
 public:
  // fails: WEIR_E_FORMAT, with what ecCodes said.
  static Result<Handle> from_sample(const std::string& name);
  static Result<Handle> from_bytes(std::span<const char> message);
  Handle(Handle&& other) noexcept
      : module_(other.module_), handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(module_, other.module_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle();

  // A whole number is set as one. fails: WEIR_E_FORMAT "key = value: what ecCodes said".
  Status set(const FormatKey& key);
  Status set(const std::string& key, int64_t value) {
    return set({key, static_cast<double>(value), ""});
  }
  Status set_text(const std::string& key, const std::string& value) {
    return set({key, value, ""});
  }
  Status set_values(const double* values, size_t count);

  Result<int64_t> whole(const std::string& key) const;
  Result<std::string> text(const std::string& key) const;
  Result<std::vector<int64_t>> wholes(const std::string& key) const;
  // Decoded: all points, those without a value too.
  Status values(double* to, size_t count) const;
  // Of a key's first byte; -1: the message has no such key.
  int64_t offset(const std::string& key) const;
  Result<Bytes> bytes() const;
  // Adds the message to what is there.
  Status append_to(Bytes* to) const;

 private:
  Handle(const eccodes::Module* module, void* handle) : module_(module), handle_(handle) {}

  const eccodes::Module* module_;
  void* handle_;
};

std::string value_text(const FormatKey& key);

}  // namespace weir::output::grib
