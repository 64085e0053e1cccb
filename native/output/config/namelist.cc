// SPDX-License-Identifier: Apache-2.0
#include "output/config/namelist.h"

#include <algorithm>

#include "output/model/text.h"

namespace weir::output {
namespace {

// Of one name: a repetition count is a number in a file, and needs a limit.
constexpr int64_t kMostElements = 10000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '%';
}
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}

class Scanner {
 public:
  Scanner(const std::string& file, const std::string& text) : file_(file), text_(text) {}

  Result<std::vector<NamelistGroup>> groups(const std::vector<std::string>& wanted) {
    std::vector<NamelistGroup> out;
    while (to_next_group()) {
      NamelistGroup group;
      mark(&group.line, &group.column);
      step();
      group.name = lower(word());
      if (std::find(wanted.begin(), wanted.end(), group.name) == wanted.end()) {
        skip_group();
        continue;
      }
      WEIR_TRY(entries(&group));
      out.push_back(std::move(group));
    }
    return out;
  }

 private:
  bool end() const { return at_ >= text_.size(); }
  char now() const { return end() ? '\0' : text_[at_]; }
  void step() {
    if (end()) return;
    if (text_[at_] == '\n') {
      line_++;
      column_ = 0;
    }
    at_++;
    column_++;
  }
  void mark(int* line, int* column) const {
    *line = line_;
    *column = column_;
  }
  Status wrong(const std::string& why) const {
    return {WEIR_E_CONFIG,
            file_ + ":" + std::to_string(line_) + ":" + std::to_string(column_) + ": " + why};
  }

  void skip_line() {
    while (!end() && now() != '\n') step();
  }
  // Blanks and comments.
  void skip_blanks() {
    while (!end() && (is_blank(now()) || now() == '!')) {
      if (now() == '!') {
        skip_line();
      } else {
        step();
      }
    }
  }
  std::string word() {
    const size_t from = at_;
    while (!end() && is_word(now())) step();
    return text_.substr(from, at_ - from);
  }

  // A group begins with & as the first character of a line; Fortran passes over all that is between
  // groups.
  bool to_next_group() {
    while (!end()) {
      while (!end() && is_blank(now())) step();
      if (now() == '&' && lower(text_.substr(at_ + 1, 3)) != "end") return true;
      skip_line();
    }
    return false;
  }

  void skip_text() {
    const char quote = now();
    step();
    while (!end() && now() != quote) step();
    step();
  }
  void skip_group() {
    while (!end() && !at_group_end()) {
      if (now() == '!') {
        skip_line();
      } else if (now() == '\'' || now() == '"') {
        skip_text();
      } else {
        step();
      }
    }
    skip_line();
  }
  // A slash, or the &end of old programs.
  bool at_group_end() const {
    return now() == '/' || (now() == '&' && lower(text_.substr(at_, 4)) == "&end");
  }

  Status entries(NamelistGroup* group) {
    while (true) {
      while (skip_blanks(), now() == ',') step();
      if (end()) return wrong("group &" + group->name + " does not end; expected a /");
      if (at_group_end()) {
        skip_line();
        return {};
      }
      NamelistEntry entry;
      mark(&entry.line, &entry.column);
      entry.name = lower(word());
      if (entry.name.empty())
        return wrong("group &" + group->name + ": expected a name, not " +
                     quoted(std::string(1, now())));
      int64_t element = 1;
      WEIR_TRY(subscript(&element));
      skip_blanks();
      if (now() != '=') return wrong(entry.name + ": expected = and values");
      step();
      WEIR_TRY(values(&entry, element));
      group->entries.push_back(std::move(entry));
    }
  }

  Status subscript(int64_t* element) {
    skip_blanks();
    if (now() != '(') return {};
    step();
    skip_blanks();
    const std::string digits = word();
    skip_blanks();
    if (digits.empty() || digits.size() > 5 ||
        !std::all_of(digits.begin(), digits.end(), is_digit) || now() != ')') {
      return wrong("expected the number of one element in parentheses, such as (2)");
    }
    step();
    *element = std::stoll(digits);
    return *element >= 1 && *element <= kMostElements
               ? Status()
               : wrong("element " + digits + "; expected 1 to 10000");
  }

  // Whether what follows is the next "name =" or "name(n) =", and no value.
  bool at_next_name() const {
    size_t i = at_;
    while (i < text_.size() && is_word(text_[i])) i++;
    if (i == at_ || is_digit(text_[at_])) return false;
    const auto pass_blanks = [&] {
      while (i < text_.size() && is_blank(text_[i])) i++;
    };
    pass_blanks();
    if (i < text_.size() && text_[i] == '(') {
      while (i < text_.size() && text_[i] != ')' && text_[i] != '\n') i++;
      i++;
      pass_blanks();
    }
    return i < text_.size() && text_[i] == '=';
  }

  Status values(NamelistEntry* entry, int64_t element) {
    bool separated = true;  // a comma behind a comma, or behind =, is a null value
    while (true) {
      skip_blanks();
      if (end() || at_group_end() || at_next_name()) return {};
      if (now() == ',') {
        step();
        element += separated;
        separated = true;
        continue;
      }
      int64_t times = 1;
      NamelistValue value;
      mark(&value.line, &value.column);
      WEIR_TRY(repetition(&times));
      if (element + times - 1 > kMostElements)
        return wrong(entry->name + " has more than 10000 values");
      const bool is_null = end() || is_blank(now()) || now() == ',' || at_group_end();  // 3* alone
      if (!is_null) WEIR_TRY(one_value(&value));
      for (; times > 0; times--, element++) {
        if (!is_null) entry->values[element] = value;
      }
      separated = false;
    }
  }

  Status repetition(int64_t* times) {
    size_t i = at_;
    while (i < text_.size() && is_digit(text_[i])) i++;
    if (i == at_ || i >= text_.size() || text_[i] != '*') return {};
    if (i - at_ > 5) return wrong("a repetition count above 10000");
    *times = std::stoll(text_.substr(at_, i - at_));
    if (*times < 1 || *times > kMostElements)
      return wrong("a repetition count is a number from 1 to 10000");
    while (at_ <= i) step();
    return {};
  }

  Status one_value(NamelistValue* value) {
    if (now() != '\'' && now() != '"') {
      while (!end() && !is_blank(now()) && now() != ',' && now() != '!' && !at_group_end()) {
        value->text += now();
        step();
      }
      return value->text.empty() ? wrong("expected a value") : Status();
    }
    const char quote = now();
    value->quoted = true;
    for (step(); !end(); step()) {
      if (now() == quote) {
        step();
        if (now() != quote) return {};
      }
      value->text += now();
    }
    return wrong("text that began with a quote in line " + std::to_string(value->line) +
                 " does not end");
  }

  const std::string& file_;
  const std::string& text_;
  size_t at_ = 0;
  int line_ = 1, column_ = 1;
};

}  // namespace

Result<std::vector<NamelistGroup>> read_namelist(const std::string& file, const std::string& text,
                                                 const std::vector<std::string>& groups) {
  return Scanner(file, text).groups(groups);
}

}  // namespace weir::output
