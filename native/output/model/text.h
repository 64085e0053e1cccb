// SPDX-License-Identifier: Apache-2.0
// Words of messages.
#pragma once

#include <string>
#include <vector>

namespace weir::output {

// The bytes of the longest beginning of a text that has at most `most` of them and no character of
// UTF-8 cut in two.
size_t whole_characters(const std::string& text, size_t most);
// 'name', for messages; what is not printable is shown as \x.., long text is cut.
std::string quoted(const std::string& text);
// "a, b or c".
std::string one_of(const std::vector<std::string>& words);
// The shortest form that reads back as the same number: "3600", "0.1", "1e+20".
std::string number_text(double value);
// A list of numbers in a text, as attributes have it, up to the first word that is none; *all says
// whether there is no such word.
std::vector<double> numbers_in(const std::string& text, bool* all = nullptr);
// "; did you mean 'groups'?" when one of the words is near, else "".
std::string did_you_mean(const std::string& word, const std::vector<std::string>& words);

}  // namespace weir::output
