// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "output/config/config.h"
#include "output/config/namelist.h"
#include "output/model/sample.h"

namespace weir::output {
namespace {

Result<Config> read(const std::string& text) { return parse_config({"namelist.input", text, {}}); }

std::string reported(const std::string& text) {
  Result<Config> config = read(text);
  return config.ok() ? "fine" : config.status().message();
}

const StreamChoice* stream(const Config& config, const std::string& name) {
  for (const StreamChoice& choice : config.streams) {
    if (choice.name == name) return &choice;
  }
  return nullptr;
}

constexpr const char* kWrf = R"( ! the usual file
 &time_control
 run_days                            = 0,
 start_date                          = '2016-10-06_00:00:00', "2016-10-06_00:00:00",
 history_interval                    = 15, 3*60,   ! minutes
 frames_per_outfile                  = 1, 24,
 history_outname = 'out/wrfout_d<domain>_<date>'
 restart                             = .false.,
 restart_interval_h                  = 6,
 io_form_history                     = 11
 io_form_restart                     = 2
 auxhist2_interval                   = 10, 0, 30
 io_form_auxhist2                    = 13
 /

 &domains
 max_dom = 3,
 e_we    = 1770, 2974, 220,
 /
 &physics
 nonsense(1:3)%part = 1, 2, /
 &namelist_quilt
 nio_tasks_per_group = 2,
 nio_groups = 4,
 /
)";

TEST(wrf, its_namelist_means_what_it_means_to_wrf) {
  Result<Config> config = read(kWrf);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->settings.mode, Mode::kServersParallel);
  EXPECT_EQ(config->settings.groups, 4);
  EXPECT_EQ(config->settings.servers_per_group, 2);
  const StreamChoice* first = stream(*config, "history");
  ASSERT_TRUE(first && stream(*config, "history_d01") && stream(*config, "history_d02") &&
              stream(*config, "history_d03"));
  EXPECT_EQ(stream(*config, "history_d04"), nullptr) << "max_dom is 3, whatever is listed";
  EXPECT_EQ(*first->every_s, 900);
  EXPECT_EQ(*first->rotation, 1);
  EXPECT_EQ(*first->path, "out/wrfout_d01_%Y-%m-%d_%H:%M:%S");
  EXPECT_EQ(*stream(*config, "history_d02")->every_s, 3600);
  EXPECT_EQ(*stream(*config, "history_d02")->rotation, 24);
  EXPECT_FALSE(stream(*config, "history_d03")->rotation.has_value());
  EXPECT_EQ(*stream(*config, "restart")->every_s, 6 * 3600);
  EXPECT_EQ(*stream(*config, "auxhist2")->format, "netcdf4");
  EXPECT_FALSE(stream(*config, "auxhist2_d02")->enabled) << "an interval of 0 switches off";
  EXPECT_EQ(*stream(*config, "auxhist2_d03")->every_s, 1800);
}

TEST(wrf, forms_and_quilting_choose_the_mode) {
  const auto mode = [](const char* text) { return read(text)->settings.mode; };
  EXPECT_EQ(mode("&time_control io_form_history = 2 /"), Mode::kSerial);
  EXPECT_EQ(mode("&time_control io_form_history = 11 /"), Mode::kCollective);
  EXPECT_EQ(mode("&time_control io_form_history = 2 / \n&namelist_quilt nio_tasks_per_group = 1 /"),
            Mode::kServers);
  EXPECT_EQ(
      mode("&time_control io_form_history = 11 / \n&namelist_quilt nio_tasks_per_group = 3 /"),
      Mode::kServersParallel);
  EXPECT_EQ(mode("&namelist_quilt nio_tasks_per_group = 0, nio_groups = 1 /"), Mode::kSerial);
}

TEST(wrf, streams_that_a_program_has_not_are_no_mistake) {
  Catalogue c = small_catalogue();
  Result<Config> config = read(kWrf);
  ASSERT_TRUE(apply_config(*config, c).ok());
  EXPECT_EQ(c.streams[0].every_s, 900);
  EXPECT_EQ(c.streams[0].path, "out/wrfout_d01_%Y-%m-%d_%H:%M:%S");
}

TEST(wrf, each_mistake_is_reported_with_its_place) {
  const std::pair<const char*, const char*> cases[] = {
      {"&namelist_quilt\n nio_group = 2\n/",
       "namelist.input:2:2: nio_group: &namelist_quilt has no such entry; did you mean "
       "'nio_groups'?"},
      {"&namelist_quilt\n nio_groups = 0\n/",
       "namelist.input:2:15: nio_groups is '0'; expected a whole number from 1"},
      {"&namelist_quilt nio_groups = '2' /", "expected a whole number from 1"},
      {"&namelist_quilt nio_groups = 2", "does not end"},
      {"&time_control io_form_history = 5 /",
       "io_form_history is '5'; expected 2 (netCDF, one writer)"},
      {"&time_control history_interval = 1.5 /", "namelist.input:1:34: history_interval is '1.5'"},
      {"&time_control history_outname = 'a_<when>' /", "<when>"},
      {"&time_control history_outname = 'a/' /", "ends in a slash"},
      {"&time_control history_outname = 'a",
       "namelist.input:1:35: text that began with a quote in line 1 does not end"},
      {"&time_control history_interval(1:2) = 3 /", "expected the number of one element"},
      {"&time_control history_interval(0) = 3 /", "element 0"},
      {"&time_control history_interval = 99999*3 /", "repetition count"},
      {"&time_control history_interval 3 /", "expected = and values"},
      {"&time_control = 3 /", "expected a name"},
      {"&domains max_dom = 100 /", "at most 99"},
  };
  for (const auto& [text, says] : cases)
    EXPECT_NE(reported(text).find(says), std::string::npos)
        << text << "\n  but: " << reported(text);
}

TEST(namelist, fortran_forms_are_read) {
  const std::string text =
      "&A i = 1, , 3*7, 2*, 9 s = 'it''s', \"b,/!\" x(3) = 1.5d0 ! c = 4\n I = -2\n l = .true. F / "
      "rest\n&end\n&B k=1&end\n&c k = 2/";
  Result<std::vector<NamelistGroup>> groups = read_namelist("f", text, {"a", "b", "c"});
  ASSERT_TRUE(groups.ok()) << groups.status().message();
  ASSERT_EQ(groups->size(), 3u);
  EXPECT_EQ((*groups)[1].entries[0].values.at(1).text, "1") << "&end ends a value too";
  const auto& entries = (*groups)[0].entries;
  ASSERT_EQ(entries.size(), 5u);
  EXPECT_EQ(entries[0].values.size(), 5u);
  EXPECT_EQ(entries[0].values.count(2), 0u);
  EXPECT_EQ(entries[0].values.at(5).text, "7");
  EXPECT_EQ(entries[0].values.at(8).text, "9");
  EXPECT_EQ(entries[1].values.at(1).text, "it's");
  EXPECT_EQ(entries[1].values.at(2).text, "b,/!");
  EXPECT_EQ(entries[2].values.at(3).text, "1.5d0");
  EXPECT_EQ(entries[3].name, "i");
  EXPECT_EQ(entries[3].values.at(1).text, "-2");
  EXPECT_EQ(entries[4].values.at(2).text, "F");
}

}  // namespace
}  // namespace weir::output
