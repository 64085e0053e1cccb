// SPDX-License-Identifier: Apache-2.0
// A compiled text becomes what it says, and any other text a mistake.
#include <errno.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <random>
#include <string>
#include <vector>

#include "layers/machinery/rules/rules.h"

namespace weir::rules {
namespace {

std::string str(base::Text t) { return {t.data, t.size}; }

class Parsed {
 public:
  explicit Parsed(const std::string& lines) : text_("weir-rules 1\n" + lines) {
    ok = parse({text_.data(), text_.size()}, &rules, &mistake);
    text_.assign(text_.size(), '#');  // nothing may point into it
  }
  ~Parsed() { forget(&rules); }
  bool ok;
  Rules rules;
  const char* mistake;

 private:
  std::string text_;
};

TEST(Parse, keeps_each_part_of_a_rule) {
  Parsed p(
      "rule source=r.toml:3:1 name=traj* path=/s/*/x%20y dir=/a/b/ fstype=lustre,fuse "
      "unit=61,70-79 access=sequential "
      "form=unformatted mode=read,create min_size=1 max_size=65536 ranks=0-3,8 "
      "stack=event|bufa:1048576:2:direct=1|system\n");
  ASSERT_TRUE(p.ok) << p.mistake;
  ASSERT_EQ(p.rules.rule_count, 1u);
  const Rule& r = p.rules.rules[0];
  EXPECT_EQ(str(r.source), "r.toml:3:1");
  EXPECT_EQ(str(r.when.name.text), "traj*");
  EXPECT_STREQ(r.when.path.text.data, "/s/*/x y");
  EXPECT_STREQ(r.when.directory.data, "/a/b");
  ASSERT_EQ(r.when.file_system_count, 2u);
  EXPECT_EQ(str(r.when.file_systems[1]), "fuse");
  ASSERT_EQ(r.when.units.count, 2u);
  EXPECT_EQ(r.when.units.ranges[0].last, 61);
  EXPECT_EQ(r.when.units.ranges[1].last, 79);
  EXPECT_EQ(r.when.access, Access::kSequential);
  EXPECT_EQ(r.when.form, Form::kUnformatted);
  EXPECT_EQ(r.when.modes, kRead | kCreate);
  EXPECT_EQ(r.when.min_bytes, 1u);
  EXPECT_EQ(r.when.max_bytes, 65536u);
  ASSERT_EQ(r.when.ranks.count, 2u);
  EXPECT_EQ(r.when.ranks.ranges[1].first, 8);
  ASSERT_EQ(r.stack.count, 3u);
  const LayerSpec& bufa = r.stack.layers[1];
  EXPECT_TRUE(is(bufa.name, "bufa"));
  EXPECT_EQ(argument(bufa, 0, 0), 1048576u);
  EXPECT_EQ(argument(bufa, 1, 0), 2u);
  EXPECT_EQ(argument(bufa, 2, 77), 77u);
  EXPECT_EQ(option_number(bufa, "direct", 0), 1u);
  EXPECT_EQ(option_number(bufa, "absent", 5), 5u);
  EXPECT_TRUE(has_layer(r.stack, "event"));
  EXPECT_FALSE(r.stack.plain());
}

TEST(Parse, separators_within_a_value_are_encoded) {
  Parsed p("rule stack=stripe:dirs=/a%3Ab%7Cc,/d%25:unit=5|system\n");
  ASSERT_TRUE(p.ok) << p.mistake;
  base::Text dirs;
  ASSERT_TRUE(option_text(p.rules.rules[0].stack.layers[0], "dirs", &dirs));
  EXPECT_STREQ(dirs.data, "/a:b|c,/d%");
}

TEST(Parse, hints_are_pairs) {
  Parsed p(
      "hints source=f:1 name=wrfout* info=striping_factor=16;cb_nodes=1%3B6\nrule stack=system\n");
  ASSERT_TRUE(p.ok) << p.mistake;
  ASSERT_EQ(p.rules.hint_count, 1u);
  const Hints& h = p.rules.hints[0];
  ASSERT_EQ(h.count, 2u);
  EXPECT_STREQ(h.pairs[0].key.data, "striping_factor");
  EXPECT_STREQ(h.pairs[0].value.data, "16");
  EXPECT_STREQ(h.pairs[1].value.data, "1;6");
  EXPECT_TRUE(p.rules.rules[0].stack.plain());
}

TEST(Parse, options_that_are_no_numbers_give_the_default) {
  Parsed p("rule stack=error:op=write:errno=ENOSPC:rate=0.25:seed=x:first=9|system\n");
  ASSERT_TRUE(p.ok) << p.mistake;
  const LayerSpec& error = p.rules.rules[0].stack.layers[0];
  EXPECT_DOUBLE_EQ(option_fraction(error, "rate", 1), 0.25);
  EXPECT_DOUBLE_EQ(option_fraction(error, "seed", 0.5), 0.5);
  EXPECT_DOUBLE_EQ(option_fraction(error, "absent", 0.125), 0.125);
  EXPECT_EQ(option_number(error, "seed", 3), 3u);
  base::Text name;
  ASSERT_TRUE(option_text(error, "errno", &name));
  EXPECT_EQ(errno_number(name), ENOSPC);
  EXPECT_EQ(errno_number(base::text("5")), 5);
  EXPECT_EQ(errno_number(base::text("ENONSENSE")), 0);
}

TEST(Parse, says_what_is_wrong_and_where) {
  const struct {
    const char* line;
    const char* why;
  } kWrong[] = {
      {"rule name=x\n", "without a stack"},
      {"rule stack=event\n", "does not end in system"},
      {"rule stack=event||system\n", "without a name"},
      {"rule stack=bufa:1:2:3:4:5|system\n", "too many"},
      {"rule stack=bufa:direct=1:5|system\n", "behind an option"},
      {"rule stack=bufa:1M|system\n", "no number"},
      {"rule nonsense=1 stack=system\n", "not known"},
      {"rule name stack=system\n", "key=value"},
      {"rule name=%4 stack=system\n", "percent"},
      {"rule name=%00 stack=system\n", "percent"},
      {"rule dir=a stack=system\n", "absolute"},
      {"rule access=fast stack=system\n", "access"},
      {"rule form=fast stack=system\n", "form"},
      {"rule mode=read,fast stack=system\n", "mode"},
      {"rule unit=-1 stack=system\n", "number"},
      {"rule ranks=1- stack=system\n", "number"},
      {"rule stack=a|a|a|a|a|a|a|a|a|a|a|a|system\n", "more layers"},
      {"hints name=x\n", "without info"},
      {"hints info=a\n", "key=value"},
      {"rule\n", "neither rule nor hints"},
  };
  for (const auto& wrong : kWrong) {
    Parsed p(std::string("rule stack=system\n") + wrong.line);
    EXPECT_FALSE(p.ok) << wrong.line;
    ASSERT_NE(p.mistake, nullptr) << wrong.line;
    EXPECT_NE(std::string(p.mistake).find(wrong.why), std::string::npos) << wrong.line << p.mistake;
    EXPECT_EQ(p.rules.mistake_line, 3u) << wrong.line;
    EXPECT_EQ(p.rules.storage, nullptr);
  }
}

TEST(Parse, another_version_is_refused) {
  Rules rules;
  const char* mistake = nullptr;
  for (const char* text : {"", "weir-rules 2\n", "weir-rules 1 \n", "rule stack=system\n"}) {
    EXPECT_FALSE(parse(base::text(text), &rules, &mistake)) << text;
    EXPECT_NE(mistake, nullptr);
  }
}

TEST(Parse, as_many_rules_as_a_text_can_hold) {
  std::string lines;
  while (lines.size() + 40 < kLargestTextBytes) lines += "rule stack=system\n";
  Parsed p(lines);
  ASSERT_TRUE(p.ok) << p.mistake;
  EXPECT_EQ(p.rules.rule_count, lines.size() / 18);
  EXPECT_EQ(p.rules.rules[p.rules.rule_count - 1].index, p.rules.rule_count - 1);
  Parsed larger(lines + lines);
  EXPECT_FALSE(larger.ok);
}

TEST(Environment, without_rules_there_are_none) {
  Rules rules;
  const char* mistake = nullptr;
  unsetenv("WEIR_RULES");
  EXPECT_TRUE(parse_environment(&rules, &mistake));
  EXPECT_EQ(rules.rule_count, 0u);
  setenv("WEIR_RULES", "weir-rules 1\nrule stack=system\n", 1);
  EXPECT_TRUE(parse_environment(&rules, &mistake));
  EXPECT_EQ(rules.rule_count, 1u);
  forget(&rules);
  setenv("WEIR_RULES", "x", 1);
  EXPECT_FALSE(parse_environment(&rules, &mistake));
  unsetenv("WEIR_RULES");
}

// Everything that was parsed is read once, so that a wrong pointer or length shows (best with
// -fsanitize=address).
uint64_t touch(const Rules& rules) {
  uint64_t sum = 0;
  auto read = [&](base::Text t) {
    for (size_t i = 0; i < t.size; ++i) sum += static_cast<unsigned char>(t.data[i]);
    if (t.data != nullptr) {
      EXPECT_EQ(t.data[t.size], 0);
    }
  };
  for (uint32_t i = 0; i < rules.rule_count; ++i) {
    const Rule& rule = rules.rules[i];
    read(rule.source), read(rule.when.name.text), read(rule.when.path.text),
        read(rule.when.directory);
    for (uint32_t j = 0; j < rule.when.units.count; ++j)
      sum += static_cast<uint64_t>(rule.when.units.ranges[j].last);
    for (uint32_t j = 0; j < rule.when.file_system_count; ++j) read(rule.when.file_systems[j]);
    for (uint32_t j = 0; j < rule.stack.count; ++j) {
      const LayerSpec& layer = rule.stack.layers[j];
      read(layer.name);
      for (uint32_t k = 0; k < layer.option_count; ++k)
        read(layer.options[k].key), read(layer.options[k].value);
    }
  }
  for (uint32_t i = 0; i < rules.hint_count; ++i) {
    for (uint32_t k = 0; k < rules.hints[i].count; ++k)
      read(rules.hints[i].pairs[k].key), read(rules.hints[i].pairs[k].value);
  }
  return sum;
}

TEST(Parse, survives_any_text) {
  const char* given = getenv("WEIR_TEST_SEED");
  const auto seed = given != nullptr ? static_cast<uint32_t>(strtoul(given, nullptr, 10))
                                     : std::random_device()();
  printf("WEIR_TEST_SEED=%u\n", seed);
  std::mt19937 random(seed);
  const std::string valid =
      "rule source=r:1:1 name=a%20*[b-c] path=/x* dir=/a fstype=nfs,fuse unit=1-2,5 access=direct "
      "form=formatted mode=read,append "
      "min_size=5 max_size=9 ranks=1,2-3 stack=event|stripe:5:6:dirs=/a,/b:unit=7|system\nhints "
      "name=w* info=a=1;b=2\n";
  const std::vector<std::string> words = {
      "rule ", "hints ", "stack=", "info=", "=",     ",",
      "|",     ":",      ";",      "%",     "%41",   "-",
      "\n",    " ",      "system", "name=", "unit=", "9999999999999999999999",
      "\xff",  "a=1",    "[",      "[[:",   ":]]",   "*"};
  int good = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = random() % 2 != 0 ? valid : "";
    for (uint32_t edits = 1 + random() % 12; edits > 0; --edits) {
      const size_t at = random() % (text.size() + 1);
      switch (random() % 4) {
        case 0: text.insert(at, words[random() % words.size()]); break;
        case 1: text.erase(at, random() % 4); break;
        case 2: text.insert(at, 1, static_cast<char>(random() % 256)); break;
        default: text += words[random() % words.size()];
      }
    }
    Parsed p(text);
    if (!p.ok) {
      ASSERT_NE(p.mistake, nullptr);
      continue;
    }
    ++good;
    touch(p.rules);
    Open what{"/a/b c/trajgrid1"};
    what.fortran = true;
    what.size = 7;
    what.ask_file_system = [](const Open&) { return base::text("nfs"); };
    const Rule* rule = match(p.rules, what);
    ASSERT_TRUE(rule == nullptr || rule < p.rules.rules + p.rules.rule_count);
    match_hints(p.rules, what);
  }
  EXPECT_GT(good, 100) << "hardly any text was right: the test says little";
}

}  // namespace
}  // namespace weir::rules
