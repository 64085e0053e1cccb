// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "job.h"

namespace echam {
namespace {

using weir::output::writer::Variable;

constexpr size_t kRequest = 4 << 20;

void write_step(Job& job, Encoder& encoder, int step, const std::vector<FILE*>& files) {
  std::vector<double> values(static_cast<size_t>(job.grid.points()));
  for (const Variable& v : job.variables) {
    for (int level = 0; level < v.records; ++level) {
      job.values.fill(step, v.number, level, 0, values);
      const Clocked clocked(&job.times.encode_s);
      auto bytes = encoder.encode(step, v.number, level, values);
      job.need(bytes.status());
      FILE* const file = files[static_cast<size_t>(v.file)];
      if (std::fwrite((*bytes).data(), 1, (*bytes).size(), file) != (*bytes).size())
        workload_fail(&job.w, "a file of ecCodes", std::strerror(errno));
      job.w.bytes += (*bytes).size();
    }
  }
}

void pwrite_all(Job& job, int fd, const std::vector<char>& bytes, int64_t offset) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t count = std::min(kRequest, bytes.size() - at);
    const ssize_t wrote = pwrite(fd, bytes.data() + at, count, offset + static_cast<int64_t>(at));
    if (wrote <= 0) workload_fail(&job.w, "a file of pwrite", std::strerror(errno));
    at += static_cast<size_t>(wrote);
  }
  job.w.bytes += bytes.size();
}

}  // namespace

void run_eccodes(Job& job) {
  const std::unique_ptr<Encoder> encoder = job.encoder_of(job.variables);
  workload_start(&job.w);
  if (job.w.rank == 0) {
    std::vector<FILE*> files;
    for (const std::string& path : job.paths()) {
      files.push_back(std::fopen(path.c_str(), "w"));
      if (files.back() == nullptr) workload_fail(&job.w, path.c_str(), std::strerror(errno));
    }
    for (int step = 0; step < job.options.steps; ++step) write_step(job, *encoder, step, files);
    for (FILE* file : files) {
      if (std::fclose(file) != 0) workload_fail(&job.w, "a file of ecCodes", std::strerror(errno));
    }
  }
  workload_stop(&job.w);
}

void run_pwrite(Job& job) {
  Encoded encoded;
  encoded.encode(job, job.of_collector(job.w.rank, job.w.ranks));
  const auto files = static_cast<size_t>(job.options.files);
  std::vector<std::vector<char>> parts;
  std::vector<int64_t> sizes(files), before(files), sums(files);
  for (size_t f = 0; f < files; ++f) {
    parts.push_back(encoded.of_file(static_cast<int>(f)));
    sizes[f] = static_cast<int64_t>(parts[f].size());
  }
  const int count = static_cast<int>(files);
  MPI_Exscan(sizes.data(), before.data(), count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(sizes.data(), sums.data(), count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  workload_start(&job.w);
  std::vector<int> fds;
  for (const std::string& path : job.paths()) {
    fds.push_back(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
    if (fds.back() < 0) workload_fail(&job.w, path.c_str(), std::strerror(errno));
  }
  const Clocked clocked(&job.w.io_wait_s);
  for (int64_t step = 0; step < job.options.steps; ++step) {
    for (size_t f = 0; f < files; ++f)
      pwrite_all(job, fds[f], parts[f], step * sums[f] + before[f]);
  }
  for (const int fd : fds) {
    if (close(fd) != 0) workload_fail(&job.w, "a file of pwrite", std::strerror(errno));
  }
  workload_stop(&job.w);
}

}  // namespace echam
