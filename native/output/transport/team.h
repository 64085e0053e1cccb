// SPDX-License-Identifier: Apache-2.0
// A group of ranks that act together, without MPI's names: transport/mpi implements it over a
// communicator of weir's own. Every wait is bounded by the team's time limit and ends in
// WEIR_E_LOST instead of a hang, naming the ranks that were waited for where that is known. A rank
// on which a collective has failed takes part in no later one: it would be matched with what others
// have not finished.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "output/core/status.h"

namespace weir::output {

class Team {
 public:
  virtual ~Team() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual Status barrier() = 0;
  // [collective] All ranks are here and go on, or none does: before a call of MPI that waits for
  // all of them without limit. After a barrier a rank whose time was over as the last one came is
  // not there.
  virtual Status assemble() { return barrier(); }
  // [collective] The same bytes on all ranks; others' vector is resized.
  virtual Status broadcast(std::vector<char>& bytes, int root) = 0;
  // [collective] Every rank's bytes on root, one vector a rank; empty elsewhere.
  virtual Result<std::vector<std::vector<char>>> gather(std::span<const char> bytes, int root) = 0;
  // [collective] 64-bit counts: to[r] goes to rank r; the result's [r] came from rank r.
  virtual Result<std::vector<std::vector<char>>> exchange(std::vector<std::vector<char>> to) = 0;
  // [collective] The greatest of all ranks' values, and the lowest rank that has it.
  virtual Result<std::pair<int64_t, int>> maximum(int64_t value) = 0;
  // [collective] The first failed rank's status on all ranks, with the rank named, or fine on all.
  virtual Status agree(const Status& mine) = 0;
  // [collective] agree; and all ranks have the same `place`, else WEIR_E_ORDER on all, with the
  // words of two ranks that differ. agree itself is at place 0.
  virtual Status agree_at(const Status& mine, int64_t place, const std::string& words) {
    (void)place, (void)words;  // a team of one
    return agree(mine);
  }
  // [collective] Ranks with the same colour; null for a negative one.
  virtual Result<std::unique_ptr<Team>> split(int colour, int key) = 0;
  // The MPI communicator for libraries that want one (parallel HDF5, PnetCDF): a pointer to an
  // MPI_Comm. Null: a team of one without MPI.
  virtual const void* mpi_comm() const = 0;
  // Create or empty a file with hints for MPI-IO (striping_factor, ...), on the calling rank alone.
  // Without MPI nothing is done: whoever writes the file creates it.
  virtual Status create_file(const std::string& path,
                             const std::vector<std::pair<std::string, std::string>>& hints) {
    (void)path, (void)hints;
    return {};
  }
};

// A team of one, for tests and tools: no MPI.
std::unique_ptr<Team> lone_team();

}  // namespace weir::output
