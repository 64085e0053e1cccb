// SPDX-License-Identifier: Apache-2.0
// Words of messages.
#pragma once

#include <string>
#include <vector>

namespace weir::output {

// 'name', for messages; what is not printable is shown as \x.., long text is cut.
std::string quoted(const std::string& text);
// "a, b or c".
std::string one_of(const std::vector<std::string>& words);
// The shortest form that reads back as the same number: "3600", "0.1", "1e+20".
std::string number_text(double value);
// "; did you mean 'groups'?" when one of the words is near, else "".
std::string did_you_mean(const std::string& word, const std::vector<std::string>& words);

}  // namespace weir::output
