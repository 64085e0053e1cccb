// SPDX-License-Identifier: Apache-2.0
// The first rule whose conditions all hold is the one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

#include "layers/machinery/rules/rules.h"

namespace weir::rules {
namespace {

int asked_size, asked_file_system;

class Matcher {
 public:
  explicit Matcher(const std::string& lines) {
    const std::string text = "weir-rules 1\n" + lines;
    const char* mistake = nullptr;
    EXPECT_TRUE(parse({text.data(), text.size()}, &rules_, &mistake)) << mistake;
  }
  ~Matcher() { forget(&rules_); }
  // Index of the rule, or -1.
  int operator()(const Open& what) const {
    const Rule* rule = match(rules_, what);
    const uint32_t index = rule == nullptr ? rules_.rule_count : rule->index;
    if (what.ask_size == nullptr &&
        what.ask_file_system == nullptr) {  // others count how often they are asked
      for (uint32_t i = 0; i < index; ++i) EXPECT_NE(misfits(rules_.rules[i].when, what), 0u) << i;
      EXPECT_TRUE(rule == nullptr || misfits(rule->when, what) == 0);
    }
    return rule == nullptr ? -1 : static_cast<int>(index);
  }
  int hints(const Open& what) const {
    const Hints* found = match_hints(rules_, what);
    return found == nullptr ? -1 : static_cast<int>(found->index);
  }

 private:
  Rules rules_;
};

std::string rule(const char* conditions) {
  return std::string("rule ") + conditions + " stack=bufa:4096:2|system\n";
}

TEST(Match, the_first_that_fits_wins) {
  Matcher m(rule("name=trajgrid*") + rule("name=traj*") + rule(""));
  EXPECT_EQ(m({"/run/trajgrid01"}), 0);
  EXPECT_EQ(m({"/run/traj"}), 1);
  EXPECT_EQ(m({"/trajgrid/x"}), 2) << "name is the last component alone";
}

TEST(Match, without_rules_nothing_fits) {
  Matcher m("");
  EXPECT_EQ(m({"/a"}), -1);
  EXPECT_EQ(m.hints({"/a"}), -1);
}

TEST(Match, a_path_pattern_goes_over_slashes) {
  Matcher m(rule("path=/scratch/*/x.dat"));
  EXPECT_EQ(m({"/scratch/a/b/x.dat"}), 0);
  EXPECT_EQ(m({"/scratch/x.dat"}), -1);
}

TEST(Match, a_directory_is_it_and_below_but_no_namesake) {
  Matcher m(rule("dir=/a/b"));
  EXPECT_EQ(m({"/a/b/c"}), 0);
  EXPECT_EQ(m({"/a/b/c/d"}), 0);
  EXPECT_EQ(m({"/a/bc/d"}), -1);
  EXPECT_EQ(m({"/a/b"}), -1) << "a file is not in itself";
  EXPECT_EQ(Matcher(rule("dir=/"))({"/x"}), 0);
}

TEST(Match, modes_are_those_of_the_open_and_any_one_is_enough) {
  Matcher m(rule("mode=read,append"));
  EXPECT_EQ(m({"/x", O_RDONLY}), 0);
  EXPECT_EQ(m({"/x", O_RDWR}), -1);
  EXPECT_EQ(m({"/x", O_WRONLY | O_APPEND}), 0);
  EXPECT_EQ(Matcher(rule("mode=create"))({"/x", O_WRONLY | O_CREAT}), 0);
  EXPECT_EQ(Matcher(rule("mode=truncate"))({"/x", O_WRONLY | O_CREAT}), -1);
  EXPECT_EQ(Matcher(rule("mode=readwrite"))({"/x", O_RDWR | O_TRUNC}), 0);
  EXPECT_EQ(Matcher(rule("mode=write"))({"/x", O_WRONLY}), 0);
}

TEST(Match, ranks_want_a_rank) {
  Matcher m(rule("ranks=0-3,8"));
  Open what{"/x"};
  EXPECT_EQ(m(what), -1);
  for (const int rank : {0, 3, 8}) {
    what.rank = rank;
    EXPECT_EQ(m(what), 0) << rank;
  }
  for (const int rank : {4, 7, 9}) {
    what.rank = rank;
    EXPECT_EQ(m(what), -1) << rank;
  }
}

TEST(Match, unit_access_and_form_want_a_fortran_open) {
  Open plain{"/x"}, fortran{"/x"}, newunit{"/x"};
  fortran.fortran = newunit.fortran = true;
  fortran.unit = 61;
  fortran.access = newunit.access = Access::kSequential;
  fortran.form = newunit.form = Form::kUnformatted;
  for (const char* conditions :
       {"unit=61", "unit=60-62", "access=sequential", "form=unformatted"}) {
    Matcher m(rule(conditions));
    EXPECT_EQ(m(plain), -1) << conditions;
    EXPECT_EQ(m(fortran), 0) << conditions;
    EXPECT_EQ(m(newunit), strncmp(conditions, "unit", 4) == 0 ? -1 : 0) << conditions;
  }
  for (const char* conditions : {"unit=60", "unit=1-60,62", "access=direct", "form=formatted"}) {
    EXPECT_EQ(Matcher(rule(conditions))(fortran), -1) << conditions;
  }
}

TEST(Match, sizes_have_both_ends_included) {
  Matcher m(rule("min_size=10 max_size=20"));
  Open what{"/x"};
  for (const auto& [size, index] : {std::pair<uint64_t, int>{9, -1}, {10, 0}, {20, 0}, {21, -1}}) {
    what.size = size;
    EXPECT_EQ(m(what), index) << size;
  }
}

TEST(Match, what_costs_a_call_is_asked_once_and_only_when_it_decides) {
  Matcher m(rule("name=big* min_size=10") + rule("name=b* min_size=9 fstype=nfs") +
            rule("name=b* fstype=lustre"));
  asked_size = asked_file_system = 0;
  Open what{"/x"};
  what.ask_size = [](const Open&) { return ++asked_size, uint64_t{9}; };
  what.ask_file_system = [](const Open&) { return ++asked_file_system, base::text("lustre"); };
  EXPECT_EQ(m(what), -1);
  EXPECT_EQ(asked_size + asked_file_system, 0);
  what.path = "/big1";
  EXPECT_EQ(m(what), 2);
  EXPECT_EQ(asked_size, 1);
  EXPECT_EQ(asked_file_system, 1);
}

TEST(Match, fuse_stands_for_every_kind_of_it) {
  Open what{"/x"};
  what.ask_file_system = [](const Open&) { return base::text("fuse.glusterfs"); };
  EXPECT_EQ(Matcher(rule("fstype=nfs,fuse"))(what), 0);
  EXPECT_EQ(Matcher(rule("fstype=fuse.glusterfs"))(what), 0);
  EXPECT_EQ(Matcher(rule("fstype=fuse.weir"))(what), -1);
  EXPECT_EQ(Matcher(rule("fstype=fuse.gluster"))(what), -1);
}

TEST(Match, hints_are_matched_for_themselves) {
  Matcher m("hints name=wrf* info=a=1\n" + rule("name=x*") + "hints info=b=2\n");
  EXPECT_EQ(m.hints({"/wrfout"}), 0);
  EXPECT_EQ(m.hints({"/x"}), 1);
  EXPECT_EQ(m({"/wrfout"}), -1);
}

TEST(Facts, of_files_are_the_kernels) {
  char path[] = "/dev/shm/weir-rules-XXXXXX";
  const int fd = mkstemp(path);
  if (fd < 0) GTEST_SKIP() << "no /dev/shm here";
  ASSERT_EQ(write(fd, "12345", 5), 5);
  Open what{path};
  EXPECT_EQ(size_of(what), 5u);
  what.fd = fd;
  EXPECT_EQ(size_of(what), 5u);
  what.flags = O_RDWR | O_TRUNC;
  EXPECT_EQ(size_of(what), 0u);
  unlink(path);
  EXPECT_TRUE(is(file_system_of(what), "tmpfs"))
      << std::string(file_system_of(what).data, file_system_of(what).size);
  close(fd);
  const std::string made = std::string(path) + ".not-there-yet";
  Open absent{made.c_str()};
  EXPECT_EQ(size_of(absent), 0u);
  EXPECT_TRUE(is(file_system_of(absent), "tmpfs")) << "that of the directory it will be made in";
  EXPECT_TRUE(is(file_system_of({"/proc/self/stat"}), "proc"));
  EXPECT_EQ(file_system_of({"/no/such/directory/x"}).size, 0u);
}

TEST(MakeAbsolute, follows_the_text_alone) {
  const struct {
    const char *directory, *path, *result;
  } kCases[] = {
      {"/a/b", "c", "/a/b/c"},        {"/a/b", "/c", "/c"},       {"/a/b", "../c", "/a/c"},
      {"/a/b", "./c/.", "/a/b/c"},    {"/a", "../../../c", "/c"}, {"/", "c", "/c"},
      {"/a//b/", "c//d", "/a/b/c/d"}, {"/a", "..", "/"},          {"/a", "...", "/a/..."},
      {"/a", "b/..", "/a"},           {"/a", "", "/a"},
  };
  char to[64];
  for (const auto& c : kCases) {
    ASSERT_TRUE(make_absolute(base::text(c.directory), base::text(c.path), to, sizeof to));
    EXPECT_STREQ(to, c.result) << c.directory << " " << c.path;
  }
  EXPECT_TRUE(make_absolute(base::text("/"), base::text("abc"), to, 5));
  EXPECT_FALSE(make_absolute(base::text("/"), base::text("abcd"), to, 5));
}

TEST(IsExact, holds_for_paths_whose_words_decide_which_file_they_are) {
  for (const char* path :
       {"a", "/a", "a/b", "//a//b", "./a/./b", "a...", "..a/b", "a/...", "/.a"}) {
    EXPECT_TRUE(is_exact(base::text(path))) << path;
  }
  for (const char* path :
       {"", "/", "a/", "a//", "a/.", ".", "..", "../a", "a/..", "a/../b", "/a/b/."}) {
    EXPECT_FALSE(is_exact(base::text(path))) << path;
  }
}

}  // namespace
}  // namespace weir::rules
