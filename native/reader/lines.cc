// SPDX-License-Identifier: Apache-2.0
#include "reader/weir_lines.h"

#include <limits>
#include <span>

#include "reader/line.h"
#include "reader/members.h"
#include "reader/spill.h"

namespace weir::reader {
namespace {

class Lines {
 public:
  explicit Lines(const weir_reader_lines& lines)
      : lines_(lines), sides_(lines.sides, lines.sides_count) {}

  void run() {
    for (uint64_t line = 0; line < lines_.count; ++line) {
      gather(line);
      if (at_.empty()) continue;
      measure(line);
      for (const weir_reader_side& side : sides_) scatter(side, line);
    }
    leave();
  }

 private:
  void gather(uint64_t line) {
    at_.clear();
    wanted_ = 0;
    for (const weir_reader_side& side : sides_) {
      if (side.first[line] == side.first[line + 1]) continue;
      at_.insert(at_.end(), side.at_ns + side.first[line], side.at_ns + side.first[line + 1]);
      for (uint32_t figure = 0; figure < WEIR_READER_LINE_FIGURES; ++figure) {
        if (side.lengths[figure] != nullptr) wanted_ |= 1u << figure;
      }
    }
    std::sort(at_.begin(), at_.end());
    at_.erase(std::unique(at_.begin(), at_.end()), at_.end());
  }

  void measure(uint64_t line) {
    lengths_.assign(WEIR_READER_LINE_FIGURES * at_.size(), 0);
    const uint64_t member = lines_.first_member[line], caller = lines_.first_caller[line];
    const weir_reader_line asked = {lines_.members + member,
                                    lines_.first_member[line + 1] - member,
                                    lines_.callers + caller,
                                    lines_.first_caller[line + 1] - caller,
                                    at_.data(),
                                    at_.size(),
                                    lines_.room,
                                    wanted_,
                                    0,
                                    std::numeric_limits<int64_t>::min()};
    line_lengths(calls_of(asked.members, asked.members_count), asked, lengths_.data(), nullptr);
  }

  void scatter(const weir_reader_side& side, uint64_t line) const {
    auto near = at_.begin();  // timestamps mostly rise
    for (uint64_t i = side.first[line]; i < side.first[line + 1]; ++i) {
      if (near != at_.end() && *near < side.at_ns[i]) ++near;
      if (near == at_.end() || *near != side.at_ns[i])
        near = std::lower_bound(at_.begin(), at_.end(), side.at_ns[i]);
      const size_t place = size_t(near - at_.begin());
      for (uint32_t figure = 0; figure < WEIR_READER_LINE_FIGURES; ++figure) {
        if (side.lengths[figure] != nullptr)
          side.lengths[figure][i] = lengths_[figure * at_.size() + place];
      }
    }
  }

  // What the kernel has mapped around the chunks of these lines: of many files it adds up.
  void leave() const {
    const weir_reader* last = nullptr;
    for (uint64_t i = 0; i < lines_.first_member[lines_.count]; ++i) {
      const weir_reader* const reader = lines_.members[i].reader;
      if (reader != last) reader->file.leave(0, reader->file.size());
      last = reader;
    }
  }

  const weir_reader_lines& lines_;
  const std::span<const weir_reader_side> sides_;
  SpillVector<int64_t> at_, lengths_;  // of the line at hand
  uint32_t wanted_ = 0;
};

}  // namespace
}  // namespace weir::reader

WEIR_API int weir_reader_lines_lengths(const weir_reader_lines* lines) {
  return weir::reader::guarded([&] { weir::reader::Lines(*lines).run(); });
}
