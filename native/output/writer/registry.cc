// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "output/writer/writers.h"

namespace weir::output::writer {
namespace {

enum class Kind { kFirst, kAll, kGuard, kWriters };

struct Entry {
  std::string_view name;
  Maker* make;
  Kind kind;
};

constexpr Entry kWriters[] = {
#define WEIR_WRITER(name, make, kind) {name, make, Kind::kind},
#include "output/writer/writers.def"
#undef WEIR_WRITER
};

// Writers evenly among the ranks: on nodes that ranks fill one after the other, they lie on
// different ones.
Roles roles_of(Kind kind, int ranks, int writers) {
  Roles roles;
  for (int i = 0; kind == Kind::kWriters && i < writers; ++i)
    roles.writers.push_back(static_cast<int>(int64_t{ranks} * i / writers));
  for (int rank = 0; rank < ranks; ++rank) {
    const bool is_apart = kind == Kind::kWriters
                              ? std::ranges::count(roles.writers, rank) != 0
                              : (kind == Kind::kFirst ? rank != 0
                                                      : kind == Kind::kGuard && rank == ranks - 1);
    if (!is_apart) roles.collectors.push_back(rank);
  }
  if (kind != Kind::kWriters) roles.writers = roles.collectors;
  return roles;
}

Status check(const Entry& entry, int ranks, const Options& options) {
  const std::string name(entry.name);
  if (options.files.empty()) return {WEIR_E_ARGUMENT, "a writer needs at least one file"};
  if (options.buffer_bytes < 4096 || options.buffer_bytes > (1u << 30))
    return {WEIR_E_ARGUMENT, "a buffer has 4 KiB to 1 GiB"};
  const int apart = entry.kind == Kind::kWriters ? options.writers : entry.kind == Kind::kGuard;
  if (entry.kind == Kind::kWriters && options.writers < 1)
    return {WEIR_E_ARGUMENT, "writer posix: expected at least one process that writes"};
  if (apart >= ranks)
    return {WEIR_E_ARGUMENT, "writer " + name + ": " + std::to_string(ranks) + " ranks, of which " +
                                 std::to_string(apart) +
                                 " do not collect: start it with more ranks"};
  return {};
}

}  // namespace

Result<std::unique_ptr<Writer>> make_writer(std::string_view name, MPI_Comm comm,
                                            Options options) {
  const auto* entry = std::ranges::find(kWriters, name, &Entry::name);
  if (entry == std::end(kWriters)) {
    return Status{WEIR_E_ARGUMENT, "there is no writer " + std::string(name) +
                                       "; expected one of " + writer_names()};
  }
  int ranks = 0;
  MPI_Comm_size(comm, &ranks);
  if (Status wrong = check(*entry, ranks, options); !wrong.ok()) return wrong;
  return entry->make(comm, options, roles_of(entry->kind, ranks, options.writers));
}

std::string writer_names() {
  std::string all;
  for (const Entry& entry : kWriters) all += (all.empty() ? "" : ", ") + std::string(entry.name);
  return all;
}

}  // namespace weir::output::writer
