// SPDX-License-Identifier: Apache-2.0
// A rank of the model after weir_init: definitions end, steps go by, fields are put into windows,
// frames handed to those who write. In the modes without servers some of these ranks are the
// writers themselves, within end_step.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "output/engine/flow.h"
#include "output/engine/names.h"
#include "output/engine/setup.h"
#include "output/transport/reliable.h"

namespace weir::output {

class Writer;
struct PlaceVariable;

struct Costs {
  double put_s = 0, wait_s = 0, end_step_s = 0, final_s = 0;
  int64_t put_bytes = 0, frames = 0;
};

// Threads: the one that called weir_init. Data of the model stay the model's: put() copies them.
// Once the model's ranks do not come together any more (broken_), later calls return that code, and
// nothing more is written.
class Session {
 public:
  // `model`: the team of the ranks that compute.
  Session(std::unique_ptr<World> world, std::unique_ptr<Team> model, const Settings& settings,
          Topology topology);
  ~Session();

  Team& model() { return *model_; }
  const Costs& costs() const { return costs_; }
  int is_due(int stream) const;

  // The functions of include/weir.
  Status end_definition(const Catalogue& catalogue);
  // Local: no message. That all ranks have the same times is found out by the next end_step().
  Status step(double time_s);
  // Local: one copy for each stream that is due. Waits while the stream's slots are all in use, and
  // takes part meanwhile in what others want of this rank (poll).
  Status put(int field, const void* data);
  Status lend(int field, void** data);
  // [collective over the model] With servers: hands the frames over and returns; else writes them.
  Status end_step();
  Status get(const Catalogue& catalogue, int field, const std::string& path, int64_t record,
             void* data);
  // [collective over the model] Returns when all files have their names, or with what failed.
  Status finalize();
  // The program ends without finalize: servers are let go, files that are not complete keep their
  // temporary names. how: of this rank, for what the servers report.
  void abandon(const char* how);
  // After either: what could not be ended yet. Nothing else is called after it.
  std::optional<Unended> take_unended();

 private:
  struct Use {  // of a field by a stream
    int stream, column;
  };

  struct Getting;

  void choose_leaders(Getting* g) const;
  Status open_get(const Catalogue& catalogue, const std::string& path, int64_t record,
                  Getting* g) const;
  // [collective] The longitudes and latitudes of points that the file has, against the grid's.
  Status check_places(const Catalogue& catalogue, const std::string& path, const Getting& g);
  Status compare_places(const Catalogue& catalogue, const Getting& g, const PlaceVariable& place,
                        const std::string& what);
  Status share_get(Getting* g);
  Status scatter(const Getting& g, char* into);
  Status bring(const Catalogue& catalogue, int field, const std::string& path, int64_t record,
               void* data);
  Status read_slab(const Getting& g, const Part& slab, std::vector<std::vector<char>>* to) const;
  void put_inside_halo(const Catalogue& catalogue, int field, const char* inner, void* data);
  Status define(const Catalogue& catalogue);
  std::string choices() const;
  char* place(const Use& use);
  Status wait_for_slot(Flow& flow);
  Status take_slot(Flow& flow);
  Status free_slot(Flow& flow);
  void store(const Use& use, const void* data);
  // Why what this rank has of the frame is not to be written; fine: it is.
  Status missing_of(const Flow& flow) const;
  void push(Flow& flow, Flow::Held& held);
  void send_pieces(Flow::Held& held);
  void drive(Flow& flow);
  Status sync_window();
  // Saved states of streams: of the run before, and for the next.
  Status resume();
  void save_states();
  Status poll();
  // What calls after the one that reported broken_ have as their error.
  Status stopped() const;

  // Modes without servers.
  Status end_step_together();
  int64_t place_in_time() const;
  std::string words_of_step() const;
  // Modes with servers.
  Status end_step_handing_over();
  void hand_over(Flow& flow);
  void announce(Flow& flow, Flow::Held& held);
  void say_kept(const Flow::Held& held, const Status& lost);
  Status settle(bool last);
  Status begin_agreement(int64_t place, const std::string& words);
  Result<bool> settled();
  Status arrive();
  Status resolve();
  // apart: see Note.
  Status wait_for_servers(const Status& incomplete, bool apart);
  void on_message(const Message& message);
  void blame(const Status& trouble);
  void look_for_dead(int group);
  Status look_for_dead_clients();
  void take_over(const std::vector<int>& dead);
  void tell_given_up(int group);
  // To owners that this rank sends pieces to: others, which they wait for, are behind.
  void say_waiting();
  std::string frames_at(int group) const;

  std::unique_ptr<ReliableWorld> world_;
  std::unique_ptr<Team> model_;
  Setup setup_;
  bool defined_ = false, in_step_ = false;
  double time_s_ = 0;
  int64_t steps_ = 0;
  std::vector<Flow> flows_;                // by stream
  Names names_;
  Status repeated_;                        // of this step: a name that the run has had
  std::vector<std::vector<Use>> uses_;     // by field
  std::unique_ptr<Writer> writer_;         // of an owner in a mode without servers
  std::unique_ptr<Agreement> agreement_;
  bool agreeing_ = false;
  int64_t place_ = 0;  // of the agreement that is under way
  std::string place_words_;
  Status trouble_;                         // not reported yet
  Status broken_;                          // the model's ranks do not come together any more
  std::vector<std::string> reported_;
  std::vector<int> alive_;                 // groups
  std::vector<bool> gone_;                 // by group: this rank knows that it is lost
  std::vector<bool> finished_;             // by group
  bool ended_ = false;                     // with all other ranks
  double last_heard_s_ = 0, last_look_s_ = 0, last_waiting_s_ = 0;
  int gone_client_ = -1;  // at the last look
  std::set<std::string> same_places_;  // compared already: file, variable and grid; on rank 0
  Costs costs_;
};

}  // namespace weir::output
