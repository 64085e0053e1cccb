// SPDX-License-Identifier: Apache-2.0
// TOML by toml++, without its exceptions. Every value is asked for with what it should be; what
// nobody asks for is a mistake.
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "output/config/settings.h"
#include "output/format/format.h"
#include "output/model/check.h"
#include "output/model/path.h"
#include "output/model/text.h"

namespace weir::output {
namespace {

Value value_of(const toml::node& node) {
  if (auto text = node.as_string()) return text->get();
  if (auto whole = node.as_integer()) return whole->get();
  if (auto number = node.as_floating_point()) return number->get();
  if (auto flag = node.as_boolean()) return flag->get();
  return std::string();
}

class TomlReader {
 public:
  explicit TomlReader(std::string file) : file_(std::move(file)) {}

  Place place(const toml::source_region& region) const {
    return file_ + ":" + std::to_string(region.begin.line) + ":" +
           std::to_string(region.begin.column);
  }
  Status wrong(const toml::node& node, const std::string& why) const {
    return {WEIR_E_CONFIG, place(node.source()) + ": " + why};
  }
  Status expected(const std::string& key, const toml::node& node, const std::string& what) const {
    std::string is = node.is_table()   ? "a table"
                     : node.is_array() ? "a list"
                                       : quoted(value_text(value_of(node)));
    return wrong(node, key + " is " + is + "; expected " + what);
  }

  std::vector<std::pair<std::string, Place>> places(const toml::table& table) const {
    std::vector<std::pair<std::string, Place>> all;
    for (const auto& [key, node] : table)
      all.emplace_back(std::string(key.str()), place(node.source()));
    return all;
  }

  // Keys of a table that are none of these.
  Status known(const toml::table& table, const std::string& name,
               const std::vector<std::string>& keys) const {
    for (const auto& [key, node] : table) {
      const std::string word(key.str());
      if (std::find(keys.begin(), keys.end(), word) != keys.end()) continue;
      return {WEIR_E_CONFIG, place(key.source()) + ": " + name + " has no key " + quoted(word) +
                                 (did_you_mean(word, keys).empty() ? "; expected " + one_of(keys)
                                                                   : did_you_mean(word, keys))};
    }
    return {};
  }

  template <typename T>
  Status read(const toml::table& table, const char* key, const char* what,
              std::optional<T>* to) const {
    const toml::node* node = table.get(key);
    if (!node) return {};
    if constexpr (std::is_same_v<T, double>) {
      if (!node->is_number()) return expected(key, *node, what);
    }
    auto value = node->value<T>();
    if (!value || (!std::is_same_v<T, bool> && node->is_boolean()))
      return expected(key, *node, what);
    *to = std::move(*value);
    return {};
  }

  Status settings(const toml::node& node, Settings* to) const {
    const toml::table* table = node.as_table();
    if (!table) return expected("output", node, "a table [output]");
    std::vector<std::string> keys;
    for (const SettingKey& key : setting_keys()) keys.push_back(key.key);
    WEIR_TRY(known(*table, "[output]", keys));
    for (const SettingKey& key : setting_keys()) {
      const toml::node* value = table->get(key.key);
      if (value && (!value->is_value() || value->is_date() || value->is_time() ||
                    value->is_date_time() || !key.set(*to, value_of(*value)).ok())) {
        return expected(key.key, *value, key.expected);
      }
    }
    return {};
  }

  Status compression(const toml::table& table, std::optional<Compression>* to) const {
    std::optional<std::string> text;
    WEIR_TRY(read(table, "compression", "\"none\", \"deflate:4\", \"zstd:3\" or the like", &text));
    if (!text) return {};
    Result<Compression> parsed = parse_compression(*text);
    if (!parsed.ok()) return wrong(*table.get("compression"), parsed.status().message());
    *to = *parsed;
    return {};
  }

  Status rounding(const toml::table& table, std::optional<Rounding>* to) const {
    constexpr int64_t kMostBits = 52;
    const char* bits_are = "bits of the mantissa that stay, 1 to 52";
    const char* share_is = "the share of the information that stays, above 0 and up to 1";
    std::optional<int64_t> bits;
    std::optional<double> share;
    WEIR_TRY(read(table, "keep_bits", bits_are, &bits));
    WEIR_TRY(read(table, "keep_information", share_is, &share));
    if (bits && (*bits < 1 || *bits > kMostBits))
      return expected("keep_bits", *table.get("keep_bits"), bits_are);
    if (share && !(*share > 0 && *share <= 1))
      return expected("keep_information", *table.get("keep_information"), share_is);
    if (bits && share)
      return wrong(*table.get("keep_information"),
                   "keep_bits and keep_information are both given; expected one of them");
    if (bits || share) *to = Rounding{static_cast<int>(bits.value_or(0)), share.value_or(0)};
    return {};
  }

  Status chunk(const toml::table& table, std::vector<int64_t>* to) const {
    const toml::node* node = table.get("chunk");
    if (!node) return {};
    const std::string what =
        "a list of numbers from 1, one for each dimension but time, such as [1, 100, 100]";
    const toml::array* list = node->as_array();
    if (!list || list->empty()) return expected("chunk", *node, what);
    for (const toml::node& element : *list) {
      const auto* number = element.as_integer();
      if (!number || number->get() < 1) return expected("chunk", element, what);
      to->push_back(number->get());
    }
    return {};
  }

  Status hints(const toml::table& table,
               std::vector<std::pair<std::string, std::string>>* to) const {
    const toml::node* node = table.get("hints");
    if (!node) return {};
    const toml::table* hints = node->as_table();
    if (!hints) return expected("hints", *node, "a table of MPI_Info keys and values");
    for (const auto& [key, value] : *hints) {
      if (!value.is_value())
        return expected(std::string(key.str()), value,
                        "the text of an MPI_Info value, such as \"16\"");
      to->emplace_back(std::string(key.str()), value_text(value_of(value)));
    }
    return {};
  }

  // Keys of ecCodes: which there are, and what they may be, is its to say.
  Status keys(const toml::table& table, FormatKeys* to) const {
    const toml::node* node = table.get("grib");
    if (!node) return {};
    const char* what = "a table of keys of GRIB, such as { paramId = 130, bitsPerValue = 16 }";
    const toml::table* keys = node->as_table();
    if (!keys) return expected("grib", *node, what);
    for (const auto& [key, value] : *keys) {
      FormatKey one{std::string(key.str()), {}, place(value.source())};
      const auto number = [](const toml::node& n) { return n.value<double>(); };
      if (const toml::array* list = value.as_array()) {
        std::vector<double> numbers;
        for (const toml::node& element : *list) {
          if (!element.is_number())
            return expected(one.name, element, "numbers in the list of a key of GRIB");
          numbers.push_back(*number(element));
        }
        one.value = std::move(numbers);
      } else if (value.is_number()) {
        one.value = *number(value);
      } else if (const auto* text = value.as_string()) {
        one.value = text->get();
      } else if (const auto* flag = value.as_boolean()) {
        one.value = flag->get() ? 1.0 : 0.0;
      } else {
        return expected(one.name, value, "a text, a number or a list of numbers");
      }
      to->push_back(std::move(one));
    }
    return {};
  }

  // Keys of GRIB where the configuration says another format.
  Status keys_fit(const toml::table& table, const StreamChoice& choice) const {
    bool has = !choice.keys.empty();
    for (const FieldChoice& field : choice.fields.value_or(std::vector<FieldChoice>()))
      has |= !field.keys.empty();
    if (!has || !choice.format || takes_keys(*choice.format)) return {};
    return wrong(*table.get("format"), "format " + quoted(*choice.format) +
                                           " has no keys of GRIB, which the stream gives; use "
                                           "grib2 or grib1, or leave out grib");
  }

  Status field(const toml::node& node, FieldChoice* to) const {
    const toml::table* table = node.as_table();
    if (!table) return expected("field", node, "tables [[stream.<name>.field]]");
    WEIR_TRY(known(*table, "a field of a stream",
                   {"name", "as", "operation", "compression", "keep_bits", "keep_information", "chunk",
                    "grib"}));
    std::optional<std::string> name, operation;
    WEIR_TRY(read(*table, "name", "the name of a field", &name));
    if (!name) return wrong(node, "a field of a stream has no name; expected name = \"...\"");
    if (Status status = check_name("field", *name); !status.ok())
      return wrong(*table->get("name"), status.message());
    to->name = *name;
    to->place = place(node.source());
    to->places = places(*table);
    WEIR_TRY(read(*table, "as", "its name in the files", &to->as));
    if (to->as) {
      if (Status status = check_name("field", *to->as); !status.ok())
        return wrong(*table->get("as"), status.message());
    }
    WEIR_TRY(read(*table, "operation", "one of the words for it", &operation));
    if (operation) {
      const std::vector<std::string> words = {"instant", "mean", "minimum", "maximum",
                                              "accumulate"};
      const auto found = std::find(words.begin(), words.end(), *operation);
      if (found == words.end())
        return expected("operation", *table->get("operation"), one_of(words));
      to->operation = static_cast<weir_operation>(found - words.begin());
    }
    WEIR_TRY(compression(*table, &to->compression));
    WEIR_TRY(rounding(*table, &to->rounding));
    WEIR_TRY(keys(*table, &to->keys));
    return chunk(*table, &to->chunk);
  }

  Status fields(const toml::table& table, StreamChoice* to) const {
    const toml::node* node = table.get("field");
    if (!node) return {};
    const toml::array* list = node->as_array();
    if (!list) return expected("field", *node, "tables [[stream.<name>.field]], with two brackets");
    to->fields.emplace();
    std::set<std::tuple<std::string, std::string, std::optional<weir_operation>>> seen;
    for (const toml::node& element : *list) {
      WEIR_TRY(field(element, &to->fields->emplace_back()));
      const FieldChoice& added = to->fields->back();
      if (!seen.insert({added.name, added.as.value_or(""), added.operation}).second)
        return wrong(element, "field " + quoted(added.name) + " is in the stream twice");
    }
    return {};
  }

  Status rotation(const toml::table& table, StreamChoice* to) const {
    const char* what = "a number of frames, 0 for one file, or \"day\", \"month\" or \"year\"";
    const toml::node* node = table.get("rotation");
    if (node && node->is_string()) {
      const Result<Period> period = parse_period(node->as_string()->get());
      if (!period.ok()) return expected("rotation", *node, what);
      to->rotation = 0;
      to->period = *period;
      return {};
    }
    WEIR_TRY(read(table, "rotation", what, &to->rotation));
    if (to->rotation && *to->rotation < 0) return expected("rotation", *node, what);
    return {};
  }

  Status existing(const toml::table& table, StreamChoice* to) const {
    const char* what = "\"replace\", \"refuse\" or \"append\"";
    std::optional<std::string> word;
    WEIR_TRY(read(table, "existing", what, &word));
    if (!word) return {};
    const Result<Existing> parsed = parse_existing(*word);
    if (!parsed.ok()) return expected("existing", *table.get("existing"), what);
    to->existing = *parsed;
    return {};
  }

  // What no calendar and no program can make good; the rest is known at the end of definitions, or
  // at the step.
  Status names(const toml::table& table, const StreamChoice& choice) const {
    Stream stream;
    stream.name = choice.name;
    stream.path = choice.path.value_or("");
    stream.every_s = choice.every_s.value_or(0);
    stream.rotation = choice.rotation.value_or(0);
    stream.period = choice.period.value_or(Period::kNone);
    if (!choice.path || !choice.enabled) return {};
    const Status status = check_file_names(stream, "360_day");
    return status.ok() ? status : wrong(*table.get("path"), status.message());
  }

  Status frequency(const toml::table& table, StreamChoice* to) const {
    WEIR_TRY(read(table, "every_s", "seconds above 0", &to->every_s));
    WEIR_TRY(read(table, "every_steps", "a number of steps from 1", &to->every_steps));
    WEIR_TRY(rotation(table, to));
    if (to->every_steps == 0) to->every_steps.reset();  // 0: every_s decides
    if (to->every_s && !(*to->every_s > 0 && std::isfinite(*to->every_s)))
      return expected("every_s", *table.get("every_s"), "seconds above 0");
    if (to->every_steps && *to->every_steps < 1)
      return expected("every_steps", *table.get("every_steps"), "a number of steps from 1");
    if (to->every_s && to->every_steps)
      return wrong(*table.get("every_steps"),
                   "every_s and every_steps are both given; expected one of them");
    return {};
  }

  Status format(const toml::table& table, StreamChoice* to) const {
    std::vector<std::string> names = format_names();
    for (std::string& name : names) name = '"' + name + '"';
    WEIR_TRY(read(table, "format", one_of(names).c_str(), &to->format));
    return to->format && !find_format(*to->format, nullptr)
               ? expected("format", *table.get("format"), one_of(names))
               : Status();
  }

  Status compressible(const toml::table& table, const StreamChoice& choice) const {
    bool asked = choice.compression && choice.compression->kind != Compression::Kind::kNone;
    for (const FieldChoice& field : choice.fields.value_or(std::vector<FieldChoice>())) {
      asked |= field.compression && field.compression->kind != Compression::Kind::kNone;
    }
    if (!asked || !choice.format || format_row(*choice.format).compresses) return {};
    return wrong(*table.get("format"), "format " + quoted(*choice.format) +
                                           " has no compression, which the stream asks for; use " +
                                           one_of(format_names(true)));
  }

  // Whatever the type of the field is: an element has one byte at least.
  Status chunks(const toml::table& table, const StreamChoice& choice) const {
    const double most =
        choice.format ? static_cast<double>(format_row(*choice.format).most_chunk_bytes) : 0;
    if (most == 0) return {};
    for (const FieldChoice& field : choice.fields.value_or(std::vector<FieldChoice>())) {
      double elements = 1;
      for (const int64_t n : field.chunk) elements *= static_cast<double>(n);
      if (elements <= most) continue;
      return wrong(*table.get("format"),
                   "field " + quoted(field.name) + ": a chunk of " + number_text(elements) +
                       " elements is more than 4 GiB, the limit of a chunk in format " +
                       *choice.format);
    }
    return {};
  }

  Status stream(const std::string& name, const toml::node& node, StreamChoice* to) const {
    const toml::table* table = node.as_table();
    if (!table) return expected(name, node, "a table [stream." + name + "]");
    to->name = name;
    to->place = place(node.source());
    to->places = places(*table);
    WEIR_TRY(known(*table, "[stream." + name + "]",
                   {"path", "format", "every_s", "every_steps", "rotation", "existing",
                    "compression", "keep_bits", "keep_information", "enabled", "hints", "grib",
                    "field"}));
    std::optional<bool> enabled;
    WEIR_TRY(read(*table, "enabled", "true or false", &enabled));
    to->enabled = enabled.value_or(true);
    WEIR_TRY(read(*table, "path", "the template of a path", &to->path));
    if (to->path) {
      if (Status status = check_path_template(*to->path); !status.ok())
        return wrong(*table->get("path"), status.message());
    }
    WEIR_TRY(format(*table, to));
    WEIR_TRY(frequency(*table, to));
    WEIR_TRY(existing(*table, to));
    WEIR_TRY(names(*table, *to));
    WEIR_TRY(compression(*table, &to->compression));
    WEIR_TRY(rounding(*table, &to->rounding));
    WEIR_TRY(hints(*table, &to->hints));
    WEIR_TRY(keys(*table, &to->keys));
    WEIR_TRY(fields(*table, to));
    WEIR_TRY(keys_fit(*table, *to));
    WEIR_TRY(chunks(*table, *to));
    return compressible(*table, *to);
  }

  Status everything(const toml::table& table, Config* config) const {
    WEIR_TRY(known(table, "the file", {"output", "stream"}));
    if (const toml::node* node = table.get("output")) WEIR_TRY(settings(*node, &config->settings));
    const toml::node* node = table.get("stream");
    if (!node) return {};
    const toml::table* streams = node->as_table();
    if (!streams) return expected("stream", *node, "tables [stream.<name>]");
    for (const auto& [key, value] : *streams) {
      if (Status status = check_name("stream", std::string(key.str())); !status.ok())
        return wrong(value, status.message());
    }
    for (const auto& [key, value] : *streams)
      WEIR_TRY(stream(std::string(key.str()), value, &config->streams.emplace_back()));
    return {};
  }

 private:
  std::string file_;
};

}  // namespace

Result<Config> parse_toml(const Source& source) {
  const TomlReader reader(source.path);
  toml::parse_result parsed =
      toml::parse(std::string_view(source.text), std::string_view(source.path));
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return Status(WEIR_E_CONFIG,
                  reader.place(error.source()) + ": no TOML: " + std::string(error.description()));
  }
  Config config;
  WEIR_TRY(reader.everything(parsed.table(), &config));
  return config;
}

}  // namespace weir::output
