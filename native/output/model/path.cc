// SPDX-License-Identifier: Apache-2.0
// One scanner for both users of a template: pieces are literal text, a code of strftime, or a word
// in braces with a width.
#include "output/model/path.h"

#include <cstdio>
#include <vector>

#include "output/model/text.h"

namespace weir::output {
namespace {

struct Piece {
  enum class Kind { kText, kCode, kWord } kind = Kind::kText;
  std::string text;  // or the code's letter, or the word
  int width = 0;
};

constexpr const char* kCodes = "YmdHMSj%";
constexpr int kWidest = 18;

// The word between braces, from behind the opening one; at moves behind the closing one.
Result<Piece> scan_word(const std::string& path, size_t* at) {
  const size_t end = path.find('}', *at);
  if (end == std::string::npos)
    return Status(WEIR_E_ARGUMENT, "a { without its }; write {{ for a brace itself");
  std::string word = path.substr(*at, end - *at);
  *at = end + 1;
  Piece piece{Piece::Kind::kWord, word, 0};
  if (const size_t colon = word.find(':'); colon != std::string::npos) {
    piece.text = word.substr(0, colon);
    const std::string digits = word.substr(colon + 1);
    if (digits.empty() || digits.size() > 2 ||
        digits.find_first_not_of("0123456789") != std::string::npos ||
        std::stoi(digits) > kWidest || piece.text == "stream") {
      return Status(WEIR_E_ARGUMENT,
                    quoted("{" + word + "}") +
                        ": expected a width from 1 to 18 as in {step:06}, for step and file only");
    }
    piece.width = std::stoi(digits);
  }
  const std::vector<std::string> words = {"step", "file", "stream"};
  for (const std::string& known : words) {
    if (piece.text == known) return piece;
  }
  return Status(WEIR_E_ARGUMENT, quoted("{" + word + "}") +
                                     ": expected {step}, {file} or {stream}" +
                                     did_you_mean(piece.text, words));
}

Result<std::vector<Piece>> scan(const std::string& path) {
  std::vector<Piece> pieces;
  std::string text;
  const auto flush = [&] {
    if (!text.empty()) pieces.push_back({Piece::Kind::kText, text, 0});
    text.clear();
  };
  for (size_t at = 0; at < path.size();) {
    const char c = path[at++];
    const bool doubled = at < path.size() && path[at] == c;
    if ((c == '{' || c == '}') && doubled) {
      text += c;
      at++;
    } else if (c == '{') {
      flush();
      Result<Piece> word = scan_word(path, &at);
      if (!word.ok()) return word.status();
      pieces.push_back(*word);
    } else if (c == '%') {
      if (at == path.size() || std::string(kCodes).find(path[at]) == std::string::npos) {
        return Status(WEIR_E_ARGUMENT,
                      quoted(path.substr(at - 1, 2)) +
                          ": expected one of %Y %m %d %H %M %S %j, or %% for the sign itself");
      }
      flush();
      pieces.push_back({Piece::Kind::kCode, std::string(1, path[at++]), 0});
    } else {
      text += c;
    }
  }
  flush();
  return pieces;
}

std::string digits(int64_t value, int width) {
  char text[48];
  std::snprintf(text, sizeof text, "%0*lld", width, static_cast<long long>(value));
  return text;
}

std::string code_text(char code, const Date& date) {
  switch (code) {
    case 'Y': return digits(date.year, date.year < 0 ? 5 : 4);  // the sign is one more
    case 'm': return digits(date.month, 2);
    case 'd': return digits(date.day, 2);
    case 'H': return digits(date.hour, 2);
    case 'M': return digits(date.minute, 2);
    case 'S': return digits(date.second, 2);
    case 'j': return digits(date.day_of_year, 3);
    default: return "%";
  }
}

}  // namespace

Status check_path_template(const std::string& path) {
  if (path.empty())
    return {WEIR_E_ARGUMENT,
            "the path is empty; expected something like out/history_%Y-%m-%d_%H.nc"};
  if (path.find('\0') != std::string::npos)
    return {WEIR_E_ARGUMENT, "the path has a zero byte in it"};
  if (path.back() == '/')
    return {WEIR_E_ARGUMENT,
            "path " + quoted(path) + " ends in a slash; expected the name of a file"};
  if (const std::string name = path.substr(path.rfind('/') + 1); name == "." || name == "..") {
    return {WEIR_E_ARGUMENT,
            "path " + quoted(path) + " is a directory; expected the name of a file"};
  }
  Result<std::vector<Piece>> pieces = scan(path);
  if (!pieces.ok())
    return {WEIR_E_ARGUMENT, "path " + quoted(path) + ": " + pieces.status().message()};
  return {};
}

std::string expand_path(const std::string& path, const PathValues& values) {
  Result<std::vector<Piece>> pieces = scan(path);
  if (!pieces.ok()) return path;  // checked at definition
  std::string out;
  for (const Piece& piece : *pieces) {
    if (piece.kind == Piece::Kind::kText) {
      out += piece.text;
    } else if (piece.kind == Piece::Kind::kCode) {
      out += code_text(piece.text[0], values.date);
    } else if (piece.text == "stream") {
      out += values.stream;
    } else {
      out += digits(piece.text == "step" ? values.step : values.file, piece.width);
    }
  }
  return out;
}

bool path_has(const std::string& path, PathPart part) {
  Result<std::vector<Piece>> pieces = scan(path);
  if (!pieces.ok()) return false;
  constexpr const char* kText[] = {"YmdHMSj", "Y", "m", "d", "j", "step", "file", "stream"};
  const std::string wanted = kText[static_cast<int>(part)];
  for (const Piece& piece : *pieces) {
    if (piece.kind == Piece::Kind::kWord && piece.text == wanted) return true;
    if (piece.kind == Piece::Kind::kCode && part < PathPart::kStep &&
        wanted.find(piece.text) != std::string::npos)
      return true;
  }
  return false;
}

double path_resolution_s(const std::string& path, const std::string& calendar) {
  const bool equal = calendar == "360_day", no_leap = calendar == "noleap" || calendar == "365_day";
  const double month_s = (equal ? 30 : 31) * 86400.0, year_s = (equal     ? 360
                                                                : no_leap ? 365
                                                                          : 366) *
                                                               86400.0;
  Result<std::vector<Piece>> pieces = scan(path);
  double finest = 0;
  if (!pieces.ok()) return finest;
  for (const Piece& piece : *pieces) {
    if (piece.kind == Piece::Kind::kWord && piece.text != "stream") return -1;
    if (piece.kind != Piece::Kind::kCode) continue;
    const char code = piece.text[0];
    const double unit = code == 'S'                  ? 1
                        : code == 'M'                ? 60
                        : code == 'H'                ? 3600
                        : code == 'd' || code == 'j' ? 86400
                        : code == 'm'                ? month_s
                        : code == 'Y'                ? year_s
                                                     : 0;
    if (unit > 0 && (finest == 0 || unit < finest)) finest = unit;
  }
  return finest;
}

}  // namespace weir::output
