// SPDX-License-Identifier: Apache-2.0
// WEIR_RULES to Rules. What is wrong with a text is said by a constant and the line; nobody should
// ever see it, since Python checked the rules, but a text from the environment is anybody's.
#include "base/round.h"
#include "base/syscall.h"
#include "layers/machinery/rules/decode.h"
#include "layers/machinery/rules/rules.h"

namespace weir::rules {
namespace {

using base::Text;

// Parts of the mapping, each as large as the text could ever need, so that nothing is checked
// twice.
struct Storage {
  Rule* rules;
  Hints* hints;
  Option* options;
  Range* ranges;
  Text* names;
  char* bytes;
};

struct Counts {
  size_t rules = 0, hints = 0, equals = 0, commas = 0;
};

Counts count(Text text) {
  Counts found;
  for (size_t i = 0; i < text.size; ++i) {
    found.equals += text.data[i] == '=';
    found.commas += text.data[i] == ',';
    if (i != 0 && text.data[i - 1] != '\n') continue;
    found.rules += text.data[i] == 'r';
    found.hints += text.data[i] == 'h';
  }
  return found;
}

constexpr size_t kAlignment = 16;

size_t aligned(size_t n) { return base::round_up(n, kAlignment); }

// Each list has one value more than commas, and an equals sign; each text kept ends where a
// separator was.
bool make_storage(Text text, const Counts& counts, Rules* out, Storage* to) {
  const size_t items = counts.equals + counts.commas;
  const size_t sizes[] = {
      aligned(counts.rules * sizeof(Rule)),    aligned(counts.hints * sizeof(Hints)),
      aligned(counts.equals * sizeof(Option)), aligned(items * sizeof(Range)),
      aligned(items * sizeof(Text)),           aligned(text.size + 1),
  };
  size_t all = 0;
  for (const size_t size : sizes) all += size;
  const long at = base::map(all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (base::failed(at)) return false;
  out->storage = reinterpret_cast<void*>(at);
  out->storage_bytes = all;
  char* p = reinterpret_cast<char*>(at);
  to->rules = reinterpret_cast<Rule*>(p);
  to->hints = reinterpret_cast<Hints*>(p += sizes[0]);
  to->options = reinterpret_cast<Option*>(p += sizes[1]);
  to->ranges = reinterpret_cast<Range*>(p += sizes[2]);
  to->names = reinterpret_cast<Text*>(p += sizes[3]);
  to->bytes = p + sizes[4];
  return true;
}

class Parser {
 public:
  explicit Parser(const Storage& storage) : to_(storage) {}

  const char* mistake() const { return mistake_; }

  // One line without its end.
  void rule_line(Text line, Rules* out) {
    Rule rule;
    rule.index = out->rule_count;
    Text stack;
    for (Text word; next_word(&line, &word);) {
      Text key, value;
      if (!pair(word, &key, &value)) return;
      if (is(key, "stack")) stack = value;
      else if (is(key, "source")) rule.source = keep(value);
      else condition(key, value, &rule.when);
    }
    if (stack.size == 0) return fail("a rule without a stack");
    parse_stack(stack, &rule.stack);
    if (mistake_ == nullptr) to_.rules[out->rule_count++] = rule;
  }

  void hints_line(Text line, Rules* out) {
    Hints hints;
    hints.index = out->hint_count;
    Text info;
    for (Text word; next_word(&line, &word);) {
      Text key, value;
      if (!pair(word, &key, &value)) return;
      if (is(key, "info")) info = value;
      else if (is(key, "source")) hints.source = keep(value);
      else condition(key, value, &hints.when);
    }
    if (info.size == 0) return fail("hints without info");
    hints.pairs = to_.options;
    for (Text one; next_part(&info, ';', &one);) hints.count += add_option(one);
    if (mistake_ == nullptr) to_.hints[out->hint_count++] = hints;
  }

 private:
  void fail(const char* why) {
    if (mistake_ == nullptr) mistake_ = why;
  }

  static bool next_word(Text* rest, Text* word) {
    do {
      if (!next_part(rest, ' ', word)) return false;
    } while (word->size == 0);
    return true;
  }

  bool pair(Text word, Text* key, Text* value) {
    if (split(word, '=', key, value) && key->size != 0 && value->size != 0) return true;
    fail("a word that is not key=value");
    return false;
  }

  // Decoded, kept, with a zero behind it.
  Text keep(Text raw) {
    Text kept{to_.bytes, 0};
    if (!decode(raw, to_.bytes, &kept.size)) fail("a wrong percent code");
    to_.bytes += kept.size;
    *to_.bytes++ = 0;
    return kept;
  }

  void condition(Text key, Text value, Conditions* when) {
    if (is(key, "name")) when->name = prepare(keep(value));
    else if (is(key, "path")) when->path = prepare(keep(value));
    else if (is(key, "dir")) directory(value, when);
    else if (is(key, "fstype")) names(value, when);
    else if (is(key, "unit")) when->units = ranges(value);
    else if (is(key, "ranks")) when->ranks = ranges(value);
    else if (is(key, "access")) access(value, when);
    else if (is(key, "form")) form(value, when);
    else if (is(key, "mode")) modes(value, when);
    else if (is(key, "min_size")) when->min_bytes = number(value);
    else if (is(key, "max_size")) when->max_bytes = number(value);
    else fail("a key that is not known");
  }

  void directory(Text value, Conditions* when) {
    Text kept = keep(value);
    while (kept.size > 1 && kept.data[kept.size - 1] == '/') --kept.size;
    const_cast<char*>(kept.data)[kept.size] = 0;
    if (kept.data[0] != '/') return fail("dir must be absolute");
    when->directory = kept;
  }

  void names(Text value, Conditions* when) {
    when->file_systems = to_.names;
    when->file_system_count = 0;
    for (Text one; next_part(&value, ',', &one); ++when->file_system_count)
      *to_.names++ = keep(one);
  }

  List ranges(Text value) {
    List list{to_.ranges, 0};
    for (Text one; next_part(&value, ',', &one); ++list.count) {
      Text first = one, last = one;
      split(one, '-', &first, &last);
      *to_.ranges++ = {static_cast<int64_t>(number(first)), static_cast<int64_t>(number(last))};
    }
    return list;
  }

  void access(Text value, Conditions* when) {
    if (is(value, "sequential")) when->access = Access::kSequential;
    else if (is(value, "direct")) when->access = Access::kDirect;
    else if (is(value, "stream")) when->access = Access::kStream;
    else fail("access is sequential, direct or stream");
  }

  void form(Text value, Conditions* when) {
    if (is(value, "formatted")) when->form = Form::kFormatted;
    else if (is(value, "unformatted")) when->form = Form::kUnformatted;
    else fail("form is formatted or unformatted");
  }

  void modes(Text value, Conditions* when) {
    when->modes = 0;
    for (Text one; next_part(&value, ',', &one);) {
      if (is(one, "read")) when->modes |= kRead;
      else if (is(one, "write")) when->modes |= kWrite;
      else if (is(one, "readwrite")) when->modes |= kReadWrite;
      else if (is(one, "append")) when->modes |= kAppend;
      else if (is(one, "create")) when->modes |= kCreate;
      else if (is(one, "truncate")) when->modes |= kTruncate;
      else fail("a mode that is not known");
    }
  }

  uint64_t number(Text value) {
    int64_t n = 0;
    if (!base::parse_number(value, &n) || n < 0) fail("a word that is no number");
    return static_cast<uint64_t>(n);
  }

  uint32_t add_option(Text raw) {
    Text key, value;
    if (!pair(raw, &key, &value)) return 0;
    const Text kept = keep(key);
    *to_.options++ = {kept, keep(value)};
    return 1;
  }

  void parse_stack(Text value, Stack* stack) {
    stack->count = 0;
    for (Text one; mistake_ == nullptr && next_part(&value, '|', &one);) {
      if (stack->count == kLayers) return fail("more layers than a stack can have");
      parse_layer(one, &stack->layers[stack->count++]);
    }
    if (mistake_ == nullptr && !is(stack->layers[stack->count - 1].name, "system"))
      fail("a stack that does not end in system");
  }

  void parse_layer(Text value, LayerSpec* layer) {
    Text part;
    *layer = {};
    next_part(&value, ':', &part);
    if (part.size == 0) return fail("a layer without a name");
    layer->name = keep(part);
    layer->options = to_.options;
    while (mistake_ == nullptr && next_part(&value, ':', &part)) {
      if (memchr(part.data, '=', part.size) != nullptr) {
        layer->option_count += add_option(part);
      } else if (layer->option_count != 0 || layer->arg_count == kArguments) {
        fail("arguments that are too many, or behind an option");
      } else {
        layer->args[layer->arg_count++] = number(part);
      }
    }
  }

  Storage to_;
  const char* mistake_ = nullptr;
};

bool begins(Text line, const char* word, Text* rest) {
  const size_t n = strlen(word);
  if (line.size < n || memcmp(line.data, word, n) != 0) return false;
  *rest = {line.data + n, line.size - n};
  return true;
}

const char* parse_lines(Text text, Parser* parser, Rules* out) {
  Text line, rest;
  out->mistake_line = 1;
  if (!next_part(&text, '\n', &line) || !is(line, "weir-rules 1"))
    return "not the rules of this version of weir";
  while (next_part(&text, '\n', &line)) {
    ++out->mistake_line;
    if (line.size == 0) continue;
    if (begins(line, "rule ", &rest)) parser->rule_line(rest, out);
    else if (begins(line, "hints ", &rest)) parser->hints_line(rest, out);
    else return "a line that is neither rule nor hints";
    if (parser->mistake() != nullptr) return parser->mistake();
  }
  out->mistake_line = 0;
  return nullptr;
}

}  // namespace

bool parse(Text text, Rules* out, const char** mistake) {
  *out = {};
  *mistake = nullptr;
  Storage storage;
  if (text.size > kLargestTextBytes) *mistake = "longer than rules may be";
  else if (memchr(text.data, 0, text.size) != nullptr) *mistake = "a zero within the rules";
  else if (!make_storage(text, count(text), out, &storage)) *mistake = "no memory for the rules";
  if (*mistake != nullptr) return false;
  out->rules = storage.rules;
  out->hints = storage.hints;
  Parser parser(storage);
  *mistake = parse_lines(text, &parser, out);
  if (*mistake == nullptr) return true;
  const uint32_t line = out->mistake_line;
  forget(out);
  out->mistake_line = line;
  return false;
}

void forget(Rules* rules) {
  if (rules->storage != nullptr) base::unmap(rules->storage, rules->storage_bytes);
  *rules = {};
}

}  // namespace weir::rules
