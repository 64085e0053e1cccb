// SPDX-License-Identifier: Apache-2.0
// For Python's tests: answers questions of the matcher, a line each; every word is percent-encoded, "-" stands for none.
//   rules TEXT                                                    -> ok RULES HINTS | mistake LINE WHY
//   open PATH FLAGS RANK FORTRAN UNIT ACCESS FORM SIZE FSTYPE     -> index of the rule, of the hints; -1: none
//   absolute DIRECTORY PATH                                       -> the path
#include <stdio.h>
#include <stdlib.h>

#include <iostream>
#include <sstream>
#include <string>

#include "layers/machinery/rules/decode.h"
#include "layers/machinery/rules/rules.h"

namespace {

using namespace weir;

std::string file_system;

std::string word(std::istringstream& line) {
  std::string raw;
  line >> raw;
  if (raw == "-") return "";
  std::string text(raw.size(), 0);
  size_t n = 0;
  if (!rules::decode({raw.data(), raw.size()}, text.data(), &n)) exit(2);
  text.resize(n);
  return text;
}

base::Text view(const std::string& s) { return {s.data(), s.size()}; }

long number(std::istringstream& line) { return strtol(word(line).c_str(), nullptr, 10); }

void answer_open(std::istringstream& line, const rules::Rules& known) {
  const std::string path = word(line);
  rules::Open what{path.c_str()};
  what.flags = static_cast<int>(number(line));
  what.rank = static_cast<int>(number(line));
  what.fortran = number(line) != 0;
  what.unit = static_cast<int>(number(line));
  what.access = static_cast<rules::Access>(number(line));
  what.form = static_cast<rules::Form>(number(line));
  what.size = static_cast<uint64_t>(number(line));
  file_system = word(line);
  what.ask_file_system = [](const rules::Open&) { return view(file_system); };
  const rules::Rule* rule = rules::match(known, what);
  const rules::Hints* hints = rules::match_hints(known, what);
  printf("%d %d\n", rule == nullptr ? -1 : static_cast<int>(rule->index), hints == nullptr ? -1 : static_cast<int>(hints->index));
}

}  // namespace

int main() {
  rules::Rules known;
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream line(text);
    const std::string verb = word(line);
    if (verb == "rules") {
      const std::string compiled = word(line);
      const char* mistake = nullptr;
      rules::forget(&known);
      if (rules::parse(view(compiled), &known, &mistake)) printf("ok %u %u\n", known.rule_count, known.hint_count);
      else printf("mistake %u %s\n", known.mistake_line, mistake);
    } else if (verb == "open") {
      answer_open(line, known);
    } else if (verb == "absolute") {
      const std::string directory = word(line), path = word(line);
      char to[8192];
      printf("%s\n", rules::make_absolute(view(directory), view(path), to, sizeof to) ? to : "");
    } else {
      return 2;
    }
    fflush(stdout);
  }
  return 0;
}
