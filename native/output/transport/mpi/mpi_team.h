// SPDX-License-Identifier: Apache-2.0
// Team over a communicator. All operations are nonblocking ones of MPI that are polled until the
// team's time limit; what is still under way then is abandoned with its buffers (MPI may write to
// them any time later), and the team refuses further collectives.
#pragma once

#include <mpi.h>

#include <memory>

#include "base/process.h"
#include "output/transport/team.h"

namespace weir::output {

// Tags on weir's communicators.
enum { kTagGather = 1, kTagExchange = 2, kTagControl = 3, kTagData = 4 };

// MPI counts are int: data go in pieces of this many bytes.
constexpr int64_t kMpiPiece = 1 << 30;

Status mpi_status(int code, const char* call);

// How long a wait may last, and who is looked after meanwhile: processes of this node, by rank of
// the world; 0: on another node. It lives as long as the last team of the world, and then frees
// their communicators if MpiWorld::close has found nothing under way on them: what came later would
// meet the next communicator of the same number. Else they stay to the end of the process.
struct Limit {
  double seconds = 300;
  MPI_Comm world = MPI_COMM_NULL;
  std::vector<base::ProcessIdentity> processes;
  std::vector<MPI_Comm> ended;  // of teams that are no more
  bool doubtful = false;        // a call of MPI has failed, or what it began was abandoned
  bool closed = false;

  ~Limit();
};

class MpiTeam : public Team {
 public:
  // Takes the communicator over, and sets its error handler to return.
  MpiTeam(MPI_Comm comm, std::shared_ptr<Limit> limit);
  ~MpiTeam() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Status barrier() override;
  Status assemble() override;
  Status broadcast(std::vector<char>& bytes, int root) override;
  Result<std::vector<std::vector<char>>> gather(std::span<const char> bytes, int root) override;
  Result<std::vector<std::vector<char>>> exchange(std::vector<std::vector<char>> to) override;
  Result<std::pair<int64_t, int>> maximum(int64_t value) override;
  Status agree(const Status& mine) override { return agree_at(mine, 0, {}); }
  Status agree_at(const Status& mine, int64_t place, const std::string& words) override;
  Result<std::unique_ptr<Team>> split(int colour, int key) override;
  const void* mpi_comm() const override { return &comm_; }
  Status create_file(const std::string& path,
                     const std::vector<std::pair<std::string, std::string>>& hints) override;

  MPI_Comm comm() const { return comm_; }
  // Ranks do not come together here any more: no collective is begun, and the communicator stays,
  // as one may be under way on it.
  void lose() { lost_ = limit_->doubtful = true; }
  bool lost() const { return lost_; }
  // Every rank's bytes, in the order of ranks; all give the same number of bytes.
  Result<std::vector<char>> gather_to_all(std::span<const char> bytes);
  // Every rank gives 3 numbers for each rank: what all have given for this one, added up.
  Result<std::vector<int64_t>> sum_for_each(std::vector<int64_t> three_for_each);

 private:
  // Polls the requests; `keep` holds what they read and write.
  Status finish(std::vector<MPI_Request>& requests, std::shared_ptr<void> keep, const char* what);
  // The same of one request, whatever MPI_Test returns: one that is null has ended.
  Status end(MPI_Request& request, std::shared_ptr<void> keep, const char* what, double limit_s);
  // A process of this team that has been gone for two looks: what it sent before its end has come
  // by then.
  Status look_for_dead(const char* what);
  Status late(const char* what) const;
  Status places_differ(int64_t place, const std::string& words);
  void find_members();
  // A rank as messages name it: that of the world.
  int named(int rank);
  Status give_up(std::shared_ptr<void> keep, Status why);
  // Of the call that begins a collective: the team is lost when it fails, and what was begun of it
  // keeps `keep`.
  Status begun(int code, const char* call, std::shared_ptr<void> keep);
  // The same number of bytes from every rank on root.
  Result<std::vector<int64_t>> gather_sizes(int64_t mine, int root);
  Result<std::vector<int64_t>> exchange_sizes(std::vector<int64_t> to);

  MPI_Comm comm_;
  std::shared_ptr<Limit> limit_;
  int rank_ = 0, size_ = 1;
  bool lost_ = false;
  std::vector<int> members_;  // world ranks; found when first wanted
  double last_look_s_ = 0;
  int gone_ = -1;  // a member that was gone at the last look
};

// Pieces of kMpiPiece bytes at most.
int start_send(MPI_Comm comm, int to, int tag, const void* data, int64_t bytes,
               std::vector<MPI_Request>* requests);
int start_receive(MPI_Comm comm, int from, int tag, void* data, int64_t bytes,
                  std::vector<MPI_Request>* requests);

}  // namespace weir::output
