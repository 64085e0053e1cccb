// SPDX-License-Identifier: Apache-2.0
// The output of a climate model as ECHAM's, by the writers of native/output/writer: ranks that do
// I/O encode records of many variables of unequal size as GRIB and write them into several files
// at once; with --model others compute beside them.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include "job.h"
#include "model.h"
#include "output/writer/distribute.h"
#include "output/writer/phase.h"

using namespace weir::output::writer;
using echam::Clocked;
using echam::Job;
using weir::output::Result;
using weir::output::Status;

namespace echam {

std::vector<std::string> Job::paths() const {
  std::vector<std::string> all;
  for (int64_t f = 0; f < options.files; ++f)
    all.push_back(std::string(options.directory) + "/echam_" + std::to_string(f) + ".grb");
  return all;
}

std::vector<Variable> Job::of_collector(int collector, int collectors) const {
  std::vector<int64_t> weights;
  for (const Variable& v : variables) weights.push_back(v.records * grid.points());
  const std::vector<int> owners = distribute(weights, collectors);
  std::vector<Variable> mine;
  for (size_t v = 0; v < owners.size(); ++v)
    if (owners[v] == collector) mine.push_back(variables[v]);
  return mine;
}

std::unique_ptr<Encoder> Job::encoder_of(const std::vector<Variable>& mine) {
  auto made =
      Encoder::make(options.encoder, {grid, static_cast<int>(options.bits), options.packing}, mine);
  need(made.status());
  return std::move(*made);
}

void Job::need(const Status& status) {
  if (!status.ok()) workload_fail(&w, options.writer, status.message().c_str());
}

void Encoded::encode(Job& job, const std::vector<Variable>& mine) {
  const std::unique_ptr<Encoder> encoder = job.encoder_of(mine);
  std::vector<double> values(static_cast<size_t>(job.grid.points()));
  for (const Variable& v : mine) {
    for (int level = 0; level < v.records; ++level) {
      job.values.fill(0, v.number, level, 0, values);
      auto bytes = encoder->encode(0, v.number, level, values);
      job.need(bytes.status());
      records_.push_back({v.file, {(*bytes).begin(), (*bytes).end()}});
    }
  }
}

std::span<const char> Encoded::next() {
  const Record& record = records_[at_];
  at_ = (at_ + 1) % records_.size();
  return record.bytes;
}

std::vector<char> Encoded::of_file(int file) const {
  std::vector<char> all;
  for (const Record& record : records_)
    if (record.file == file) all.insert(all.end(), record.bytes.begin(), record.bytes.end());
  return all;
}

namespace {

// One process ends itself, or another one, in mid-step. Before it the collectors meet.
struct Killing {
  pid_t victim = 0;
  MPI_Comm meet = MPI_COMM_NULL;
};

// A collector's steps, with the model's callbacks.
class Collector {
 public:
  Collector(Job& job, Writer& writer, Exchange* exchange)
      : job_(job),
        writer_(writer),
        exchange_(exchange),
        mine_(job.of_collector(writer.collector(),
                               static_cast<int>(writer.roles().collectors.size()))) {
    const auto& options = job.options;
    if (options.encoded) encoded_.encode(job, mine_);
    if (!options.encoded) encoder_ = job.encoder_of(mine_);
  }

  void take_part(const Killing& killing) { killing_ = killing; }

  Status run() {
    const Callbacks callbacks = {
        [this](const Variable& v) { return gather(v); },
        [this](const Variable& v, int record, std::span<const double> values) {
          return encode(v, record, values);
        },
        job_.options.encoded ? Lifetime::kTwoSteps : Lifetime::kCall};
    Status first;
    for (step_ = 0; step_ < job_.options.steps; ++step_) {
      // What was finished does not depend on how far the others were behind.
      if (killing_.meet != MPI_COMM_NULL && step_ == job_.options.kill_step)
        MPI_Barrier(killing_.meet);
      Status status = exchange_ ? exchange_->begin_step(step_) : Status();
      if (status.ok()) status = collect(writer_, mine_, callbacks);
      if (status.ok() && exchange_) status = exchange_->end_step();
      if (first.ok()) first = status;
      if (first.code() == WEIR_E_LOST) break;
    }
    return first;
  }

 private:
  Result<std::span<const double>> gather(const Variable& v) {
    const bool is_middle = v.number == mine_[mine_.size() / 2].number;
    if (killing_.victim != 0 && step_ == job_.options.kill_step && is_middle)
      kill(killing_.victim, SIGKILL);
    const Clocked clocked(&job_.times.gather_s);
    if (exchange_ != nullptr) return exchange_->gather(v);
    const auto points = static_cast<size_t>(job_.grid.points());
    const size_t count = points * static_cast<size_t>(v.records);
    if (job_.options.encoded) return std::span<const double>();
    const Phase phase("gather");
    if (whole_.size() < count) whole_.resize(count);
    for (int level = 0; level < v.records; ++level)
      job_.values.fill(step_, v.number, level, 0,
                       std::span(whole_).subspan(static_cast<size_t>(level) * points, points));
    return std::span<const double>(whole_).first(count);
  }

  Result<std::span<const char>> encode(const Variable& v, int record,
                                       std::span<const double> values) {
    const Clocked clocked(&job_.times.encode_s);
    auto bytes = job_.options.encoded ? Result<std::span<const char>>(encoded_.next())
                                      : encoder_->encode(step_, v.number, record, values);
    if (bytes.ok()) job_.w.bytes += (*bytes).size(), ++job_.w.requests;
    return bytes;
  }

  Job& job_;
  Writer& writer_;
  Exchange* const exchange_;
  const std::vector<Variable> mine_;
  std::unique_ptr<Encoder> encoder_;
  Encoded encoded_;
  std::vector<double> whole_;
  int step_ = 0;
  Killing killing_;
};

void do_io(Job& job, Writer& writer, Exchange* exchange, const Killing& killing) {
  std::optional<Collector> collector;
  if (writer.collects()) collector.emplace(job, writer, exchange);
  if (collector) collector->take_part(killing);
  workload_start(&job.w);
  const Phase phase("output");
  const double begun = workload_clock();
  const double before = job.times.encode_s + job.times.gather_s;
  Status status = writer.open();
  if (status.ok()) {
    status = collector ? collector->run() : writer.serve();
    const Status closed = writer.close();
    if (status.ok()) status = closed;
  }
  job.need(status);
  job.w.io_wait_s = workload_clock() - begun - (job.times.encode_s + job.times.gather_s - before);
  workload_stop(&job.w);
}

std::unique_ptr<Writer> make_writer_of(Job& job, MPI_Comm comm) {
  const auto& o = job.options;
  auto io = io_named(o.io);
  job.need(io.status());
  auto writer = make_writer(o.writer, comm,
                            {job.paths(), static_cast<size_t>(o.buffer_kb) << 10, *io,
                             static_cast<int>(o.writers), o.limit_s});
  job.need(writer.status());
  return std::move(*writer);
}

// Who kills whom: a collector itself, the first collector everybody else. Every rank calls this;
// writer: null where the model computes.
Killing killing_of(const Job& job, const Writer* writer) {
  Killing mine;
  if (job.options.kill < 0) return mine;
  std::vector<pid_t> pids(static_cast<size_t>(job.w.ranks));
  const pid_t own = getpid();
  MPI_Allgather(&own, 1, MPI_INT, pids.data(), 1, MPI_INT, MPI_COMM_WORLD);
  const bool collects = writer != nullptr && writer->collects();
  MPI_Comm_split(MPI_COMM_WORLD, collects ? 0 : MPI_UNDEFINED, job.w.rank, &mine.meet);
  const auto victim = static_cast<size_t>(job.options.kill);
  if (!collects || victim >= pids.size()) return mine;
  const auto& collectors = writer->roles().collectors;
  const bool is_collector =
      std::ranges::find(collectors, static_cast<int>(victim)) != collectors.end();
  if (job.w.rank == (is_collector ? static_cast<int>(victim) : collectors.front()))
    mine.victim = pids[victim];
  return mine;
}

std::unique_ptr<Exchange> make_exchange(const Job& job, const Writer* writer) {
  const auto& o = job.options;
  if (o.model == 0) return nullptr;
  std::vector<int> collectors;
  if (writer != nullptr) collectors = writer->roles().collectors;
  int count = static_cast<int>(collectors.size());
  MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
  collectors.resize(static_cast<size_t>(count));
  MPI_Bcast(collectors.data(), count, MPI_INT, 0, MPI_COMM_WORLD);
  return std::make_unique<Exchange>(
      ModelOptions{static_cast<int>(o.model), static_cast<int>(o.windows), o.sweep_mb, o.sweeps,
                   o.steps, o.limit_s},
      job.grid, job.variables, std::move(collectors));
}

// One line for each reason for which ranks write by pwrite though io_uring was to be tried.
// Returns the number of such ranks, on rank 0.
int print_notes(MPI_Comm comm, const Writer& writer) {
  constexpr int kLength = 128;
  char mine[kLength] = {};
  writer.note().copy(mine, kLength - 1);
  int rank = 0, ranks = 0, written = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  std::vector<char> all(rank == 0 ? static_cast<size_t>(ranks) * kLength : 0);
  MPI_Gather(mine, kLength, MPI_CHAR, all.data(), kLength, MPI_CHAR, 0, comm);
  std::map<std::string, int> reasons;
  for (size_t at = 0; at < all.size(); at += kLength) ++reasons[&all[at]];
  for (const auto& [reason, count] : reasons) {
    if (reason.empty()) continue;
    std::fprintf(stderr, "weir-echam: %d of %d ranks write by pwrite instead of io_uring: %s\n",
                 count, ranks, reason.c_str());
    written += count;
  }
  return written;
}

// The first ranks do the I/O, the others compute.
void run_writer(Job& job) {
  const bool is_io = job.w.rank < job.w.ranks - job.options.model;
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, is_io ? 0 : 1, job.w.rank, &comm);
  std::unique_ptr<Writer> writer = is_io ? make_writer_of(job, comm) : nullptr;
  const Killing killing = killing_of(job, writer.get());
  const std::unique_ptr<Exchange> exchange = make_exchange(job, writer.get());
  if (is_io) {
    do_io(job, *writer, exchange.get(), killing);
    job.refused = print_notes(comm, *writer);
  } else {
    workload_start(&job.w);
    job.need(exchange->compute_and_put(job.values, &job.times.compute_s));
    workload_stop(&job.w);
  }
  writer.reset();
  MPI_Comm_free(&comm);
}

// Sums over all ranks beside the line of results.
void print_parts(const Job& job) {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  const double mine[] = {job.times.encode_s, job.times.gather_s, job.times.compute_s,
                         seconds(used.ru_utime) + seconds(used.ru_stime)};
  double all[4] = {};
  MPI_Reduce(mine, all, 4, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (job.w.rank != 0) return;
  int64_t records = 0;
  for (const Variable& v : job.variables) records += v.records;
  std::printf("echam-parts: records=%lld values=%lld encode_s=%.6f gather_s=%.6f compute_s=%.6f "
              "cpu_s=%.6f refused=%d\n",
              static_cast<long long>(records * job.options.steps),
              static_cast<long long>(records * job.options.steps * job.grid.points()), all[0],
              all[1], all[2], all[3], job.refused);
}

void check(const Job& job) {
  const auto& o = job.options;
  if (o.files < 1 || o.files > 1000 || o.variables < 1 || o.variables > 40000 || o.nlat < 2 ||
      o.nlat > 10000 || o.steps < 1 || o.bits < 1 || o.bits > 32 || o.windows < 1 ||
      o.windows > o.variables || o.sweep_mb < 1 || o.sweeps < 0 || o.limit_s <= 0) {
    workload_fail(&job.w, "options",
                  "expected 1 to 1000 files, 1 to 40000 variables, --nlat 2 to 10000, --bits 1 to "
                  "32, --windows 1 to the number of variables, positive steps and sizes");
  }
  if (o.model < 0 || o.model >= job.w.ranks || (o.model > 0 && o.encoded))
    workload_fail(&job.w, "--model", "expected fewer ranks than there are, without --encoded");
}

}  // namespace
}  // namespace echam

int main(int argc, char** argv) {
  Job job;
  auto& o = job.options;
  const workload_option options[] = {
      {"writer", 's', &o.writer,
       "serial, mpi-collective, mpi-shared, offset-sharing, offset-guard, posix, direct; beside "
       "them: eccodes, pwrite (direct)"},
      {"io", 's', &o.io, "calls that write: auto, pwrite, fwrite, aio, uring (auto)"},
      {"dir", 's', &o.directory, "directory of the files (.)"},
      {"files", 'i', &o.files, "files (10)"},
      {"variables", 'i', &o.variables, "variables (40)"},
      {"nlat", 'i', &o.nlat, "latitudes; longitudes are twice as many (96)"},
      {"steps", 'i', &o.steps, "output steps (4)"},
      {"bits", 'i', &o.bits, "bits of a value (16)"},
      {"encoder", 's', &o.encoder, "weir, or eccodes (weir)"},
      {"packing", 's', &o.packing, "as ecCodes names it (grid_simple)"},
      {"encoded", 'f', &o.encoded, "encode before the clock starts, and write these in each step"},
      {"writers", 'i', &o.writers, "processes that write, of posix (1)"},
      {"buffer-kb", 'i', &o.buffer_kb, "KiB of a buffer of a file (4096)"},
      {"model", 'i', &o.model, "ranks that compute; the rest does the I/O (0)"},
      {"windows", 'i', &o.windows, "RMA windows of the model (1)"},
      {"sweep-mb", 'i', &o.sweep_mb, "memory of a rank that computes, MiB (64)"},
      {"sweeps", 'i', &o.sweeps, "passes through it in a step (4)"},
      {"limit", 'd', &o.limit_s, "seconds for which a rank may be silent (60)"},
      {"kill", 'i', &o.kill, "this rank is killed in mid-step"},
      {"kill-step", 'i', &o.kill_step, "in this step (2)"},
      {nullptr, 0, nullptr, nullptr}};
  workload_begin(&job.w, "echam", &argc, &argv, options);
  echam::check(job);
  job.grid = {2 * o.nlat, o.nlat};
  job.variables = echam::variables(static_cast<int>(o.variables), static_cast<int>(o.files));
  const std::string_view writer = o.writer;
  if (writer == "eccodes") {
    o.encoder = "eccodes";
    echam::run_eccodes(job);
  } else if (writer == "pwrite") {
    echam::run_pwrite(job);
  } else {
    echam::run_writer(job);
  }
  echam::print_parts(job);
  return workload_end(&job.w);
}
