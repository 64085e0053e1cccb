// SPDX-License-Identifier: Apache-2.0
// Whole jobs of threads, one call of whose transport fails, or that and all later ones of the same
// rank: each call of each rank in turn. Every run ends. A file that has its final name has all its
// frames, and the values that were put; where one has not got it, every rank of the model has
// returned an error. WEIR_TEST_FAULTS=1 tries every call, WEIR_TEST_FAULTS=I/N part I of N of them,
// WEIR_TEST_FAULTS=R:K call K of rank R, R:K+ that and all later ones; without it each 29th is
// tried. WEIR_TEST_SEED chooses the order in which ranks go on.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "output/engine/job_of_threads.h"
#include "output/engine/server/server.h"
#include "output/engine/session.h"
#include "output/format/reader.h"
#include "output/format/written.h"
#include "output/model/sample.h"

// Of the C functions, which are not part of this program.
extern "C" const char* weir_status_name(int) { return "a code"; }

namespace weir::output {
namespace {

constexpr int kSteps = 5;
constexpr int64_t kNx = 32, kNy = 24, kLevels = 2, kPoints = kNx * kNy;

double value(int field, int64_t element, int step) {
  return field * 1e6 + static_cast<double>(element) + step * 1e4;
}

// Two streams: field 0 at each step, and field 1 and the means of field 2 over two steps.
Catalogue catalogue_of(int rank, int ranks, int frames_per_file) {
  Catalogue c;
  Grid grid;
  grid.name = "plane";
  grid.kind = GridKind::kPlane;
  grid.nx = kNx;
  grid.ny = kNy;
  for (int64_t i = 0; i < kNx; ++i) grid.x.push_back(static_cast<double>(i));
  for (int64_t j = 0; j < kNy; ++j) grid.y.push_back(static_cast<double>(j));
  c.grids.push_back(grid);
  Decomposition rows;
  rows.name = "rows";
  rows.grid = 0;
  rows.ni = kNx;
  rows.j0 = kNy * rank / ranks;
  rows.nj = kNy * (rank + 1) / ranks - rows.j0;
  c.decompositions.push_back(rows);
  c.axes.push_back({"level", "1", {0, 1}, {}, {}});
  for (const char* name : {"a", "b", "m"}) {
    Field f;
    f.name = name;
    f.type = f.file_type = WEIR_FLOAT64;
    f.decomposition = 0;
    f.axes = {0};
    f.chunk = {1, 4, kNx};
    c.fields.push_back(f);
  }
  Stream each, means;
  each.name = "each";
  means.name = "means";
  each.path = "each{file}";
  means.path = "means{file}";
  each.rotation = means.rotation = frames_per_file;
  each.format = means.format = "zarr";
  means.every_steps = 2;
  each.fields = {{0, WEIR_INSTANT, {}, {}, {}}};
  means.fields = {{1, WEIR_INSTANT, {}, {}, {}}, {2, WEIR_MEAN, {}, {}, {}}};
  c.streams = {each, means};
  return c;
}

struct Case {
  const char* name;
  Mode mode;
  int ranks;
  TransportKind transport;
  int groups = 1, servers_per_group = 1, frames_per_file = 0;
};

// What calls of a rank have returned.
using Errors = std::vector<std::string>;

void compute(int rank, const Settings& settings, const Topology& topology, int frames_per_file,
             std::unique_ptr<ThreadWorld> world, Errors& errors) {
  const auto note = [&](const Status& s) {
    if (!s.ok()) errors.push_back(s.message());
    return s.ok();
  };
  const int client = topology.client_of(rank), clients = static_cast<int>(topology.clients.size());
  Result<std::unique_ptr<Team>> model = world->team().split(0, rank);
  if (!note(model.status())) return;
  const Catalogue catalogue = catalogue_of(client, clients, frames_per_file);
  const Decomposition& d = catalogue.decompositions[0];
  Session session(std::move(world), std::move(*model), settings, topology);
  if (note(session.end_definition(catalogue))) {
    for (int step = 0; step < kSteps; ++step) {
      note(session.step(60.0 * step));
      for (int field = 0; field < 3; ++field) {
        std::vector<double> data;
        for (int64_t l = 0; l < kLevels; ++l) {
          for (int64_t p = 0; p < d.points(); ++p)
            data.push_back(value(field, l * kPoints + d.j0 * kNx + p, step));
        }
        note(session.put(field, data.data()));
      }
      note(session.end_step());
    }
  }
  note(session.finalize());
}

bool has(const std::vector<Errors>& errors, const std::string& words) {
  return std::any_of(errors.begin(), errors.end(), [&](const Errors& of_rank) {
    return std::any_of(of_rank.begin(), of_rank.end(),
                       [&](const std::string& e) { return e.find(words) != std::string::npos; });
  });
}

// Steps of a stream for which weir_put has failed on some rank, because the server that was to
// write the frame before in its place is lost.
std::set<int> left_out_of(const std::string& stream, const std::vector<Errors>& errors) {
  std::set<int> steps;
  const std::string words = "stream '" + stream + "': step ";
  for (const Errors& of_rank : errors) {
    for (const std::string& e : of_rank) {
      if (e.rfind(words, 0) == 0 && e.find(" is lost on this rank") != std::string::npos)
        steps.insert(atoi(e.c_str() + words.size()));
    }
  }
  return steps;
}

// A lost frame is reported by one call of each rank, not by one for each of its fields.
void check_reported_once(const std::vector<Errors>& errors) {
  for (const Errors& of_rank : errors) {
    for (const std::string& e : of_rank) {
      const bool lost = e.find(" is lost on this rank") != std::string::npos;
      EXPECT_TRUE(!lost || std::count(of_rank.begin(), of_rank.end(), e) == 1) << e;
    }
  }
}

// The file has these steps, and what was put in them; a mean that a lost server had begun covers
// what its bounds say, and an error says so. False: it has not got its name.
bool check_file(const std::string& path, bool means, std::vector<int> steps,
                const std::set<int>& left_out, const std::vector<Errors>& errors) {
  if (!std::filesystem::exists(path)) return false;
  Result<std::unique_ptr<Reader>> reader = open_reader(path);
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  if (!reader.ok()) return true;
  const int64_t records = (*(*reader)->find("time")).records;
  std::erase_if(steps, [&](int step) { return left_out.count(step) != 0; });
  EXPECT_EQ(records, static_cast<int64_t>(steps.size()))
      << path << " has its name and lacks frames";
  for (int64_t r = 0; r < std::min<int64_t>(records, static_cast<int64_t>(steps.size())); ++r) {
    const int step = steps[static_cast<size_t>(r)];
    double time_s = 0, bounds[2] = {60.0 * (step - 2), 60.0 * step};
    EXPECT_TRUE((*reader)->read("time", r, 0, 1, &time_s).ok());
    EXPECT_EQ(time_s, 60.0 * step) << path << ", record " << r;
    EXPECT_TRUE(!means || (*reader)->read("time_bnds", r, 0, 2, bounds).ok());
    EXPECT_TRUE(bounds[0] == 60.0 * (step - 2) || has(errors, "('m') cover 1 of 2 steps"))
        << path << ", record " << r;
    for (int field = means ? 1 : 0; field < (means ? 3 : 1); ++field) {
      std::vector<double> data(static_cast<size_t>(kLevels * kPoints));
      EXPECT_TRUE(
          (*reader)->read(std::string(1, "abm"[field]), r, 0, kLevels * kPoints, data.data()).ok());
      int64_t wrong = 0;
      for (int64_t e = 0; e < kLevels * kPoints; ++e) {
        wrong += data[static_cast<size_t>(e)] !=
                 value(field, e, step) - (field == 2 ? 1e4 / 2 * (step - 1 - bounds[0] / 60) : 0);
      }
      EXPECT_EQ(wrong, 0) << path << ", record " << r << ", field " << field;
    }
  }
  return true;
}

// How many files have no name. Those that have one are complete and right.
int check_files(const std::string& directory, int frames_per_file,
                const std::vector<Errors>& errors) {
  int missing_column = 0;
  for (const bool means : {false, true}) {
    std::vector<int> steps;
    const std::string stream = means ? "means" : "each";
    const std::set<int> left_out = left_out_of(stream, errors);
    int number = 0;
    const int last = means ? 4 : kSteps - 1;
    for (int step = means ? 2 : 0; step <= last; step += means ? 2 : 1) {
      steps.push_back(step);
      if (step != last && static_cast<int>(steps.size()) != frames_per_file) continue;
      missing_column += check_file(directory + "/" + stream + std::to_string(number++), means,
                                   steps, left_out, errors)
                            ? 0
                            : 1;
      steps.clear();
    }
  }
  return missing_column;
}

unsigned seed_of_run() {
  const char* text = getenv("WEIR_TEST_SEED");
  return text != nullptr ? static_cast<unsigned>(strtoul(text, nullptr, 10)) : 1;
}

// One processor: the thread that writes behind is not of the schedule, and there is none.
class OneProcessor {
 public:
  OneProcessor() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
      if (CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &one);
    }
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

class Faults : public testing::TestWithParam<Case> {
 protected:
  static Settings settings_of(const Case& c, const Job& job, const Scratch& scratch) {
    Settings settings;
    settings.mode = c.mode;
    settings.transport = c.transport;
    settings.time_limit_s = job.limit_s;
    settings.server_memory_bytes = 256 << 10;
    settings.groups = c.groups;
    settings.servers_per_group = c.servers_per_group;
    settings.directory = scratch / "";
    settings.directory.pop_back();
    settings.run = "test";
    return settings;
  }

  // The job; how many calls of each rank could have failed.
  std::vector<int64_t> run(int fail_rank, int fail_at, bool for_ever) {
    const Case& c = GetParam();
    Scratch scratch;
    Job job(c.ranks, seed_of_run());
    job.fail_rank = fail_rank;
    job.fail_at = fail_at;
    job.for_ever = for_ever;
    const std::string which = "rank " + std::to_string(fail_rank) + ", call " +
                              std::to_string(fail_at) + (for_ever ? " and all later ones" : "");
    job.schedule.set_end(kLongest_s, which);
    const Settings settings = settings_of(c, job, scratch);
    std::vector<Errors> errors(static_cast<size_t>(c.ranks));
    std::vector<bool> computes(static_cast<size_t>(c.ranks));
    job.schedule.run(c.ranks, [&](int rank) {
      auto world = std::make_unique<ThreadWorld>(job, rank);
      const Result<Topology> topology = make_topology(settings, world->sites(), {});
      if ((*topology).client_of(rank) >= 0) {
        computes[static_cast<size_t>(rank)] = true;
        return compute(rank, settings, *topology, c.frames_per_file, std::move(world),
                       errors[static_cast<size_t>(rank)]);
      }
      std::optional<Unended> unended;
      if (world->team().split(-1, rank).ok())
        (void)serve(std::move(world), settings, *topology, &unended);
    });
    const std::string what =
        which + " (" + job.failed + "), WEIR_TEST_SEED=" + std::to_string(seed_of_run());
    EXPECT_EQ(job.broken, "") << what;
    check_reported_once(errors);
    const int missing_column = check_files(settings.directory, c.frames_per_file, errors);
    for (int rank = 0; rank < c.ranks && missing_column > 0; ++rank) {
      EXPECT_TRUE(!computes[static_cast<size_t>(rank)] ||
                  !errors[static_cast<size_t>(rank)].empty())
          << what << ": " << missing_column << " files have no name, and rank " << rank
          << " knows of no error";
    }
    EXPECT_TRUE(fail_rank >= 0 || missing_column == 0);
    if (HasFailure()) {
      printf("%s: %d missing_column\n", what.c_str(), missing_column);
      for (int rank = 0; rank < c.ranks; ++rank) {
        for (const std::string& e : errors[static_cast<size_t>(rank)])
          printf("   %d: %s\n", rank, e.c_str());
      }
    }
    if (HasFailure()) ADD_FAILURE() << what;
    return job.calls;
  }

  // By the schedule's clock: some waits one after the other, each of which ends at the time limit.
  static constexpr double kLongest_s = 200;
  static constexpr int kStride = 29;
  const OneProcessor one_processor_;
};

TEST_P(Faults, each_call_that_fails_is_reported_or_made_up_for_and_what_has_a_name_is_right) {
  const char* wanted = getenv("WEIR_TEST_FAULTS");
  int one_rank = 0, one_call = 0;
  char mark = 0;
  if (wanted != nullptr && sscanf(wanted, "%d:%d%c", &one_rank, &one_call, &mark) >= 2) {
    run(one_rank, one_call, mark == '+');
    return;
  }
  const bool all = wanted != nullptr;
  int part = 1, parts = 1;
  if (all && sscanf(wanted, "%d/%d", &part, &parts) < 2) part = parts = 1;
  ASSERT_TRUE(parts >= 1 && part >= 1 && part <= parts) << wanted;
  const std::vector<int64_t> calls = run(-1, -1, false);
  int runs = 0;
  for (int rank = 0; rank < GetParam().ranks; ++rank) {
    for (int k = 1 + rank; k <= calls[static_cast<size_t>(rank)]; k += all ? 1 : kStride) {
      for (const bool for_ever : {false, true}) {
        if (all ? runs % parts != part - 1 : for_ever != (runs % 2 == 1)) continue;
        run(rank, k, for_ever);
        if (HasFailure()) return;
      }
      ++runs;
    }
  }
  RecordProperty("runs", runs);
}

constexpr Case kCases[] = {
    {"serial_shared", Mode::kSerial, 2, TransportKind::kShared},
    {"serial_rma", Mode::kSerial, 3, TransportKind::kRma},
    {"serial_two_sided", Mode::kSerial, 3, TransportKind::kTwoSided},
    {"collective_rma", Mode::kCollective, 3, TransportKind::kRma},
    {"collective_two_sided", Mode::kCollective, 3, TransportKind::kTwoSided},
    {"servers_shared", Mode::kServers, 3, TransportKind::kShared},
    {"servers_rma", Mode::kServers, 3, TransportKind::kRma},
    {"servers_two_sided", Mode::kServers, 3, TransportKind::kTwoSided},
    {"two_groups_rma", Mode::kServers, 4, TransportKind::kRma, 2, 1, 2},
    {"two_groups_two_sided", Mode::kServers, 4, TransportKind::kTwoSided, 2, 1, 2},
    {"servers_parallel_shared", Mode::kServersParallel, 4, TransportKind::kShared, 1, 2},
    {"servers_parallel_rma", Mode::kServersParallel, 4, TransportKind::kRma, 1, 2},
    {"servers_parallel_two_sided", Mode::kServersParallel, 4, TransportKind::kTwoSided, 1, 2},
};

INSTANTIATE_TEST_SUITE_P(All, Faults, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace weir::output
