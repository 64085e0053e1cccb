// SPDX-License-Identifier: Apache-2.0
// Both catalogues are written out as lines "field 'u', attribute 'units', value" = "K", and the
// first line that differs is what is reported.
#include "output/model/codec.h"
#include "output/model/describe.h"
#include "output/model/text.h"

namespace weir::output {
namespace {

struct Line {
  std::string what, value;
};

// A name of its own beside the place, for things that have one.
template <typename T>
std::string title(const char* kind, const T& thing, size_t i) {
  if constexpr (requires { thing.name; }) {
    return std::string(kind) + " " + quoted(thing.name);
  } else {
    return std::string(kind) + " " + std::to_string(i + 1);
  }
}

class Lister {
 public:
  std::vector<Line> lines;

  void operator()(const char* name, int& value) { add(name, std::to_string(value)); }
  void operator()(const char* name, int64_t& value) { add(name, std::to_string(value)); }
  void operator()(const char* name, double& value) { add(name, number_text(value)); }
  void operator()(const char* name, std::string& text) { add(name, quoted(text)); }
  void operator()(const char* name, decltype(Attribute::value)& value) {
    std::visit([&](auto& one) { (*this)(name, one); }, value);
  }
  template <typename T>
  void operator()(const char* name, std::vector<T>& values) {
    add((std::string("count of ") + name).c_str(), std::to_string(values.size()));
    for (size_t i = 0; i < values.size(); i++)
      (*this)((std::string(name) + "[" + std::to_string(i) + "]").c_str(), values[i]);
  }
  void operator()(const char* name, std::optional<Number>& value) {
    add(name, !value            ? "none"
              : value->is_whole ? std::to_string(value->whole)
                                : number_text(value->real));
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& value) {
    if (value) {
      describe(*this, *value);
    } else {
      add(name, "not given");
    }
  }
  template <typename E>
  void choice(const char* name, E& value, E) {
    add(name, "number " + std::to_string(static_cast<int>(value)));
  }
  template <typename T>
  void list(const char* kind, std::vector<T>& things) {
    for (size_t i = 0; i < things.size(); i++) {
      const std::string outer = prefix_;
      prefix_ += title(kind, things[i], i) + ", ";
      describe(*this, things[i]);
      prefix_ = outer;
    }
    lines.push_back({prefix_ + "the last " + kind, std::to_string(things.size()) + " in all"});
  }

 private:
  void add(const char* name, std::string value) {
    lines.push_back({prefix_ + name, std::move(value)});
  }

  std::string prefix_;
};

std::vector<Line> lines_of(const Catalogue& catalogue) {
  Lister lister;
  describe(lister, const_cast<Catalogue&>(catalogue));  // only read
  return std::move(lister.lines);
}

}  // namespace

Status compare_catalogues(const Catalogue& of_rank_0, const Catalogue& mine, int my_rank) {
  const std::string here = " on rank " + std::to_string(my_rank);
  if (encode_catalogue(of_rank_0) == encode_catalogue(mine)) return {};
  const std::vector<Line> theirs = lines_of(of_rank_0), ours = lines_of(mine);
  size_t i = 0;
  while (i < theirs.size() && i < ours.size() && theirs[i].what == ours[i].what &&
         theirs[i].value == ours[i].value)
    i++;
  const std::string all =
      "ranks define different things, but all must define the same in the same order: ";
  if (i >= theirs.size() || i >= ours.size())
    return {WEIR_E_ARGUMENT, all + "one of two ranks defines more"};
  if (theirs[i].what == ours[i].what) {
    return {WEIR_E_ARGUMENT, all + ours[i].what + " is " + theirs[i].value + " on rank 0 and " +
                                 ours[i].value + here};
  }
  return {WEIR_E_ARGUMENT, all + "rank 0 has " + theirs[i].what + " (" + theirs[i].value +
                               ") where " + ours[i].what + " (" + ours[i].value + ") is" + here};
}

}  // namespace weir::output
