// SPDX-License-Identifier: Apache-2.0
// Which names are names of files: the recorder counts the calls on files apart from those on all
// else, and the reader shows them apart.
#pragma once

#include <stddef.h>

#include <string_view>

namespace weir::wire {

// Absolute names are files, but for what the kernel makes up: /dev (where /dev/shm holds files),
// /proc and /sys. Pipes and sockets have no absolute names. at(i) is character i of the name.
template <class At>
constexpr bool names_a_file(size_t size, At at) {
  size_t begin = 0;
  while (begin + 1 < size && at(begin) == '/' && at(begin + 1) == '/') ++begin;
  const auto starts_with = [&](std::string_view text) {
    if (size - begin < text.size()) return false;
    for (size_t i = 0; i < text.size(); ++i) {
      if (at(begin + i) != text[i]) return false;
    }
    return true;
  };
  if (!starts_with("/")) return false;
  for (const std::string_view tree : {"/dev", "/proc", "/sys"}) {
    const size_t end = begin + tree.size();
    if (starts_with(tree) && (size == end || at(end) == '/')) return starts_with("/dev/shm/");
  }
  return true;
}

constexpr bool names_a_file(std::string_view text) {
  return names_a_file(text.size(), [text](size_t i) { return text[i]; });
}

}  // namespace weir::wire
