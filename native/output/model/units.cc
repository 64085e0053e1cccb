// SPDX-License-Identifier: Apache-2.0
#include "output/model/units.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>

namespace weir::output {
namespace {

constexpr size_t kBases = 5;  // kg, m, s, K, mol

// A product of powers of base units.
struct Unit {
  double factor = 1;
  double zero = 0;  // where its scale begins: of degrees Celsius alone
  std::array<int, kBases> powers = {};

  void times(const Unit& other, int power) {
    factor *= std::pow(other.factor, power);
    zero += other.zero;
    for (size_t i = 0; i < kBases; i++) powers[i] += other.powers[i] * power;
  }
};

struct Word {
  const char* name;
  Unit unit;
};
constexpr double kHour_s = 3600, kDay_s = 86400, kDegree_rad = 0.017453292519943295;
constexpr Unit kKelvin = {1, 0, {0, 0, 0, 1}}, kCelsius = {1, 273.15, {0, 0, 0, 1}},
               kFahrenheit = {5.0 / 9, 459.67 * 5 / 9, {0, 0, 0, 1}}, kKnot = {1852 / kHour_s, 0,
                                                                               {0, 1, -1}};
constexpr Word kWords[] = {
    {"kg", {1, 0, {1}}},
    {"g", {1e-3, 0, {1}}},
    {"mg", {1e-6, 0, {1}}},
    {"ug", {1e-9, 0, {1}}},
    {"m", {1, 0, {0, 1}}},
    {"meter", {1, 0, {0, 1}}},
    {"meters", {1, 0, {0, 1}}},
    {"metre", {1, 0, {0, 1}}},
    {"metres", {1, 0, {0, 1}}},
    {"gpm", {1, 0, {0, 1}}},  // geopotential metres are compared as metres
    {"km", {1e3, 0, {0, 1}}},
    {"cm", {1e-2, 0, {0, 1}}},
    {"mm", {1e-3, 0, {0, 1}}},
    {"s", {1, 0, {0, 0, 1}}},
    {"sec", {1, 0, {0, 0, 1}}},
    {"second", {1, 0, {0, 0, 1}}},
    {"seconds", {1, 0, {0, 0, 1}}},
    {"min", {60, 0, {0, 0, 1}}},
    {"minute", {60, 0, {0, 0, 1}}},
    {"minutes", {60, 0, {0, 0, 1}}},
    {"h", {kHour_s, 0, {0, 0, 1}}},
    {"hr", {kHour_s, 0, {0, 0, 1}}},
    {"hour", {kHour_s, 0, {0, 0, 1}}},
    {"hours", {kHour_s, 0, {0, 0, 1}}},
    {"d", {kDay_s, 0, {0, 0, 1}}},
    {"day", {kDay_s, 0, {0, 0, 1}}},
    {"days", {kDay_s, 0, {0, 0, 1}}},
    {"Hz", {1, 0, {0, 0, -1}}},
    {"K", {1, 0, {0, 0, 0, 1}}},
    {"kelvin", {1, 0, {0, 0, 0, 1}}},
    {"kelvins", kKelvin},
    {"Kelvin", kKelvin},
    {"degK", kKelvin},
    {"deg_K", kKelvin},
    {"degree_K", kKelvin},
    {"°K", kKelvin},
    {"degC", kCelsius},
    {"celsius", kCelsius},
    {"Celsius", kCelsius},
    {"C", kCelsius},
    {"°C", kCelsius},
    {"deg_C", kCelsius},
    {"degree_C", kCelsius},
    {"degrees_C", kCelsius},
    {"degree_Celsius", kCelsius},
    {"degrees_Celsius", kCelsius},
    {"degree_celsius", kCelsius},
    {"degrees_celsius", kCelsius},
    {"F", kFahrenheit},
    {"°F", kFahrenheit},
    {"degF", kFahrenheit},
    {"deg_F", kFahrenheit},
    {"degree_F", kFahrenheit},
    {"degrees_F", kFahrenheit},
    {"fahrenheit", kFahrenheit},
    {"Fahrenheit", kFahrenheit},
    {"degree_Fahrenheit", kFahrenheit},
    {"degrees_Fahrenheit", kFahrenheit},
    {"mol", {1, 0, {0, 0, 0, 0, 1}}},
    {"N", {1, 0, {1, 1, -2}}},
    {"Pa", {1, 0, {1, -1, -2}}},
    {"hPa", {100, 0, {1, -1, -2}}},
    {"kPa", {1e3, 0, {1, -1, -2}}},
    {"dPa", {0.1, 0, {1, -1, -2}}},
    {"mb", {100, 0, {1, -1, -2}}},
    {"atm", {101325, 0, {1, -1, -2}}},
    {"mbar", {100, 0, {1, -1, -2}}},
    {"millibar", {100, 0, {1, -1, -2}}},
    {"bar", {1e5, 0, {1, -1, -2}}},
    {"J", {1, 0, {1, 2, -2}}},
    {"kJ", {1e3, 0, {1, 2, -2}}},
    {"MJ", {1e6, 0, {1, 2, -2}}},
    {"W", {1, 0, {1, 2, -3}}},
    {"kW", {1e3, 0, {1, 2, -3}}},
    {"mW", {1e-3, 0, {1, 2, -3}}},
    {"kt", kKnot},
    {"kts", kKnot},
    {"knot", kKnot},
    {"knots", kKnot},
    {"mph", {1609.344 / kHour_s, 0, {0, 1, -1}}},
    {"1", {}},
    {"dimensionless", {}},
    {"Proportion", {}},
    {"fraction", {}},
    {"Fraction", {}},
    {"rad", {}},
    {"radian", {}},
    {"radians", {}},
    {"degree", {kDegree_rad}},
    {"degrees", {kDegree_rad}},
    {"%", {1e-2}},
    {"percent", {1e-2}},
    {"ppm", {1e-6}},
    {"ppmv", {1e-6}},
    {"ppb", {1e-9}},
    {"ppbv", {1e-9}},
    {"unitless", {}},
    {"none", {}},
    {"level", {}},
    {"layer", {}},
    {"sigma_level", {}},
};

// "m", "m2", "m-2", "m**-2", "m^2", "1e-6".
std::optional<Unit> factor_of(std::string_view text) {
  Unit unit;
  double number = 0;
  const char* const end = text.data() + text.size();
  if (const auto read = std::from_chars(text.data(), end, number);
      read.ec == std::errc() && read.ptr == end) {
    unit.factor = number;
    return unit;
  }
  const size_t letters = std::min(text.find_first_of("0123456789-+*^"), text.size());
  std::string_view power = text.substr(letters);
  while (!power.empty() && (power[0] == '*' || power[0] == '^' || power[0] == '+'))
    power.remove_prefix(1);
  int exponent = 1;
  if (letters < text.size()) {
    const auto read = std::from_chars(power.data(), end, exponent);
    if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  }
  for (const Word& word : kWords) {
    if (text.substr(0, letters) != word.name) continue;
    unit.times(word.unit, exponent);
    return unit;
  }
  return std::nullopt;
}

// Factors stand beside each other, with a dot or star between them, or behind a slash.
std::optional<Unit> unit_of(std::string_view text) {
  constexpr std::string_view kWater = " of water equivalent";
  if (text.ends_with(kWater)) text.remove_suffix(kWater.size());
  if (text == "(0 - 1)" || text == "0-1" || text == "-") return Unit{};
  Unit all;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == ' ' || text[at] == '.' || text[at] == '*') {
      at++;
      continue;
    }
    const bool below = text[at] == '/';
    at += below;
    while (below && at < text.size() && text[at] == ' ') at++;
    size_t end = at;
    while (end < text.size() && std::string_view(" /").find(text[end]) == std::string_view::npos &&
           !(text[end] == '.' && std::isalpha(static_cast<unsigned char>(text[at]))))
      end++;
    const std::optional<Unit> factor = factor_of(text.substr(at, end - at));
    if (!factor) return std::nullopt;
    all.times(*factor, below ? -1 : 1);
    at = end;
  }
  return all;
}

// Without blanks and capitals.
std::string letters_of(const std::string& text) {
  std::string letters;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (!std::isspace(byte)) letters += static_cast<char>(std::tolower(byte));
  }
  return letters;
}

}  // namespace

bool knows_units(const std::string& units) { return unit_of(units).has_value(); }

std::optional<bool> same_units(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const std::optional<Unit> first = unit_of(a), second = unit_of(b);
  if (!first || !second)
    return letters_of(a) == letters_of(b) ? std::optional(true) : std::nullopt;
  return first->powers == second->powers && first->zero == second->zero &&
         std::abs(first->factor - second->factor) <= 1e-9 * std::abs(second->factor);
}

}  // namespace weir::output
