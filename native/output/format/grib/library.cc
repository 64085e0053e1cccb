// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/library.h"

#include <charconv>
#include <cmath>
#include <mutex>
#include <optional>

#include "output/model/text.h"

namespace weir::output::grib {
namespace {

Result<const eccodes::Module*> module() {
  std::string why;
  const eccodes::Module* found = eccodes_module(&why);
  return found ? Result<const eccodes::Module*>(found)
               : Result<const eccodes::Module*>(Status(WEIR_E_FORMAT, why));
}

Status refused(const std::string& what, const eccodes::Why& why) {
  return {WEIR_E_FORMAT, what + ": ecCodes: " + why.text};
}

bool is_whole(double value) { return value == std::nearbyint(value) && std::abs(value) < 0x1p53; }

std::optional<int64_t> whole_in(const std::string& text) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace

std::string value_text(const FormatKey& key) {
  if (const auto* text = std::get_if<std::string>(&key.value)) return quoted(*text);
  if (const auto* number = std::get_if<double>(&key.value)) return number_text(*number);
  const auto& list = std::get<std::vector<double>>(key.value);
  return "a list of " + std::to_string(list.size()) + " numbers";
}

Status library_ready() { return module().status(); }

Result<Handle> Handle::from_sample(const std::string& name) {
  Result<const eccodes::Module*> found = module();
  if (!found.ok()) return found.status();
  const std::lock_guard lock(eccodes_mutex());
  eccodes::Why why;
  void* handle = (*found)->from_sample(name.c_str(), why);
  if (!handle) return refused("cannot make a message", why);
  return Handle(*found, handle);
}

Result<Handle> Handle::from_bytes(std::span<const char> message) {
  Result<const eccodes::Module*> found = module();
  if (!found.ok()) return found.status();
  const std::lock_guard lock(eccodes_mutex());
  eccodes::Why why;
  void* handle = (*found)->from_bytes(message.data(), message.size(), why);
  if (!handle) return refused("cannot decode", why);
  return Handle(*found, handle);
}

Handle::~Handle() {
  if (!handle_) return;
  const std::lock_guard lock(eccodes_mutex());
  module_->free(handle_);
}

Status Handle::set(const FormatKey& key) {
  const std::lock_guard lock(eccodes_mutex());
  eccodes::Why why;
  bool done = false;
  const char* name = key.name.c_str();
  if (const auto* text = std::get_if<std::string>(&key.value)) {
    done = module_->set_text(handle_, name, text->c_str(), why);
    // Code tables take their abbreviations as texts, and no number that has none.
    if (const auto number = whole_in(*text); !done && number)
      done = module_->set_whole(handle_, name, *number, why);
  } else if (const auto* number = std::get_if<double>(&key.value)) {
    done = is_whole(*number)
               ? module_->set_whole(handle_, name, static_cast<int64_t>(*number), why)
               : module_->set_number(handle_, name, *number, why);
  } else {
    const auto& list = std::get<std::vector<double>>(key.value);
    bool whole = key.name != "pv" && key.name != "values";
    for (double value : list) whole = whole && is_whole(value);
    if (whole) {
      const std::vector<int64_t> wholes(list.begin(), list.end());
      done = module_->set_wholes(handle_, name, wholes.data(), wholes.size(), why);
    } else {
      done = module_->set_numbers(handle_, name, list.data(), list.size(), why);
    }
  }
  return done ? Status() : refused(key.name + " = " + value_text(key), why);
}

Status Handle::set_values(const double* values, size_t count) {
  const std::lock_guard lock(eccodes_mutex());
  eccodes::Why why;
  return module_->set_numbers(handle_, "values", values, count, why)
             ? Status()
             : refused("its " + std::to_string(count) + " values cannot be encoded", why);
}

Result<int64_t> Handle::whole(const std::string& key) const {
  const std::lock_guard lock(eccodes_mutex());
  eccodes::Why why;
  int64_t value = 0;
  if (!module_->get_whole(handle_, key.c_str(), &value, why)) return refused(key, why);
  return value;
}

Result<std::string> Handle::text(const std::string& key) const {
  const std::lock_guard lock(eccodes_mutex());
  eccodes::Why why;
  char value[1024] = "";
  if (!module_->get_text(handle_, key.c_str(), value, sizeof value, why)) return refused(key, why);
  return std::string(value);
}

Result<std::vector<int64_t>> Handle::wholes(const std::string& key) const {
  const std::lock_guard lock(eccodes_mutex());
  eccodes::Why why;
  size_t n = 0;
  if (!module_->get_wholes(handle_, key.c_str(), nullptr, 0, &n, why)) return refused(key, why);
  std::vector<int64_t> values(n);
  if (!module_->get_wholes(handle_, key.c_str(), values.data(), n, &n, why))
    return refused(key, why);
  return values;
}

Status Handle::values(double* to, size_t count) const {
  const std::lock_guard lock(eccodes_mutex());
  eccodes::Why why;
  size_t n = 0;
  if (!module_->get_numbers(handle_, "values", to, count, &n, why))
    return refused("its values cannot be decoded", why);
  if (n == count) return {};
  return {WEIR_E_FORMAT, "it has " + std::to_string(n) + " values, expected " +
                             std::to_string(count)};
}

int64_t Handle::offset(const std::string& key) const {
  const std::lock_guard lock(eccodes_mutex());
  eccodes::Why why;
  int64_t at = -1;
  return module_->offset(handle_, key.c_str(), &at, why) ? at : -1;
}

Status Handle::append_to(Bytes* to) const {
  const std::lock_guard lock(eccodes_mutex());
  eccodes::Why why;
  const void* data = nullptr;
  size_t n = 0;
  if (!module_->message(handle_, &data, &n, why)) return refused("no message", why);
  const char* begin = static_cast<const char*>(data);
  to->insert(to->end(), begin, begin + n);
  return {};
}

Result<Bytes> Handle::bytes() const {
  Bytes all;
  const Status status = append_to(&all);
  return status.ok() ? Result<Bytes>(std::move(all)) : Result<Bytes>(status);
}

}  // namespace weir::output::grib
