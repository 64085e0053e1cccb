// SPDX-License-Identifier: Apache-2.0
// Which rule an open gets. Conditions are asked in the order of what they cost; what needs a system
// call comes last, and once.
#include <fcntl.h>

#include "layers/machinery/rules/rules.h"

namespace weir::rules {
namespace {

using base::Text;

uint8_t modes_of(int flags) {
  const int how = flags & O_ACCMODE;
  uint8_t modes = how == O_RDONLY   ? kRead
                  : how == O_WRONLY ? kWrite
                  : how == O_RDWR   ? kReadWrite
                                    : 0;
  if (flags & O_APPEND) modes |= kAppend;
  if (flags & O_CREAT) modes |= kCreate;
  if (flags & O_TRUNC) modes |= kTruncate;
  return modes;
}

// A negative value is not known: no range has it.
bool contains(const List& list, int64_t value) {
  if (list.count == 0) return true;
  if (value < 0) return false;
  for (uint32_t i = 0; i < list.count; ++i) {
    if (list.ranges[i].first <= value && value <= list.ranges[i].last) return true;
  }
  return false;
}

bool lies_in(Text path, Text directory) {
  if (directory.size <= 1) return true;  // none, or the root
  return path.size > directory.size && path.data[directory.size] == '/' &&
         memcmp(path.data, directory.data, directory.size) == 0;
}

// `fuse` stands for every fuse.something.
bool is_file_system(Text actual, Text wanted) {
  if (actual.size < wanted.size || memcmp(actual.data, wanted.data, wanted.size) != 0) return false;
  return actual.size == wanted.size || (is(wanted, "fuse") && actual.data[wanted.size] == '.');
}

// One open with what is found out about it on the way.
class Question {
 public:
  explicit Question(const Open& what)
      : what_(what), path_(base::text(what.path)), modes_(modes_of(what.flags)), size_(what.size) {
    const void* slash = path_.size != 0 ? memrchr(path_.data, '/', path_.size) : nullptr;
    const size_t before =
        slash == nullptr ? 0
                         : static_cast<size_t>(static_cast<const char*>(slash) - path_.data) + 1;
    name_ = {path_.data + before, path_.size - before};
  }

  bool fits(const Conditions& when) { return look_at<false>(when, nullptr); }
  uint32_t misfits(const Conditions& when) {
    uint32_t found = 0;
    look_at<true>(when, &found);
    return found;
  }

 private:
  // kAll: every condition is looked at, and those that do not hold are in *found; else whether all
  // hold, and nothing behind the first that does not is looked at.
  template <bool kAll>
  bool look_at(const Conditions& when, uint32_t* found) {
    const auto goes_on = [found](Misfit condition, bool holds) {
      if (kAll && !holds) *found |= condition;
      return kAll || holds;
    };
    if (!goes_on(kWrongName, when.name.matches(name_)) ||
        !goes_on(kWrongPath, when.path.matches(path_)) ||
        !goes_on(kWrongDirectory, lies_in(path_, when.directory)) ||
        !goes_on(kWrongMode, when.modes == 0 || (when.modes & modes_) != 0) ||
        !goes_on(kWrongRank, contains(when.ranks, what_.rank))) {
      return false;
    }
    const bool fortran =
        when.units.count != 0 || when.access != Access::kUnknown || when.form != Form::kUnknown;
    if (!goes_on(kNotFortran, !fortran || what_.fortran)) return false;
    if (fortran && what_.fortran &&
        !(goes_on(kWrongUnit, contains(when.units, what_.unit)) &&
          goes_on(kWrongAccess, when.access == Access::kUnknown || when.access == what_.access) &&
          goes_on(kWrongForm, when.form == Form::kUnknown || when.form == what_.form))) {
      return false;
    }
    return goes_on(kWrongSize, fits_size(when)) &&
           goes_on(kWrongFileSystem, fits_file_system(when));
  }

  bool fits_size(const Conditions& when) {
    if (when.min_bytes == 0 && when.max_bytes == UINT64_MAX) return true;
    if (size_ == kAsk) size_ = what_.ask_size != nullptr ? what_.ask_size(what_) : size_of(what_);
    return when.min_bytes <= size_ && size_ <= when.max_bytes;
  }

  bool fits_file_system(const Conditions& when) {
    if (when.file_system_count == 0) return true;
    if (!asked_)
      file_system_ =
          what_.ask_file_system != nullptr ? what_.ask_file_system(what_) : file_system_of(what_);
    asked_ = true;
    for (uint32_t i = 0; i < when.file_system_count; ++i) {
      if (is_file_system(file_system_, when.file_systems[i])) return true;
    }
    return false;
  }

  const Open& what_;
  Text path_, name_, file_system_;
  uint8_t modes_;
  bool asked_ = false;
  uint64_t size_;
};

}  // namespace

uint32_t misfits(const Conditions& when, const Open& what) { return Question(what).misfits(when); }

const Rule* match(const Rules& rules, const Open& what) {
  if (rules.rule_count == 0) return nullptr;
  Question question(what);
  for (uint32_t i = 0; i < rules.rule_count; ++i) {
    if (question.fits(rules.rules[i].when)) return &rules.rules[i];
  }
  return nullptr;
}

const Hints* match_hints(const Rules& rules, const Open& what) {
  if (rules.hint_count == 0) return nullptr;
  Question question(what);
  for (uint32_t i = 0; i < rules.hint_count; ++i) {
    if (question.fits(rules.hints[i].when)) return &rules.hints[i];
  }
  return nullptr;
}

bool make_absolute(Text directory, Text path, char* to, size_t size) {
  const Text parts[] = {path.size != 0 && path.data[0] == '/' ? Text{} : directory, path};
  size_t n = 0;
  for (const Text& part : parts) {
    for (size_t i = 0; i < part.size;) {
      while (i < part.size && part.data[i] == '/') ++i;
      const size_t begin = i;
      while (i < part.size && part.data[i] != '/') ++i;
      const Text word{part.data + begin, i - begin};
      if (word.size == 0 || is(word, ".")) continue;
      if (is(word, "..")) {
        while (n > 0 && to[--n] != '/') {}
        continue;
      }
      if (n + word.size + 2 > size) return false;
      to[n++] = '/';
      memcpy(to + n, word.data, word.size);
      n += word.size;
    }
  }
  if (size < 2) return false;
  if (n == 0) to[n++] = '/';
  to[n] = 0;
  return true;
}

bool is_exact(Text path) {
  Text last{};
  for (size_t i = 0; i <= path.size; ++i) {
    const size_t begin = i;
    while (i < path.size && path.data[i] != '/') ++i;
    last = {path.data + begin, i - begin};
    if (is(last, "..")) return false;
  }
  return last.size != 0 && !is(last, ".");
}

}  // namespace weir::rules
