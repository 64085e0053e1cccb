// SPDX-License-Identifier: Apache-2.0
// As much of JSON (RFC 8259) as metadata of Zarr need: a reader into a tree, and pieces of a writer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::output::zarr {

struct Json {
  enum class Kind { kNull, kBool, kNumber, kText, kList, kObject } kind = Kind::kNull;
  bool truth = false;
  double number = 0;
  std::string text;
  std::vector<Json> list;
  std::map<std::string, Json> object;

  // A member of an object; of anything else, or when it is not there: null.
  const Json& at(const std::string& name) const;
  const Json& at(size_t index) const;
  bool is(std::string_view value) const { return kind == Kind::kText && text == value; }
};

// Nothing: it is not JSON. Nesting is limited to 64.
std::optional<Json> parse_json(std::string_view text);

std::string quoted(const std::string& text);
// The shortest that reads back as the same double; "NaN" and "Infinity" as texts, as Zarr has them.
std::string written(double number);
std::string written(const std::vector<int64_t>& list);

}  // namespace weir::output::zarr
