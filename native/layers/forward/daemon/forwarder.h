// SPDX-License-Identifier: Apache-2.0
// One forwarding process: what ranks handed over, in the order of files and offsets, one request at
// a time. A second thread takes descriptors and sees which ranks have ended.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "layers/cache/forwarding.h"
#include "layers/forward/daemon/copies.h"
#include "layers/writeback/watch/watch.h"
#include "layers/writeback/format.h"

namespace weir::forward {

struct Name {
  cache::Shape shape;
  uint32_t number;
  std::string text;  // of the socket, behind "forward-"
};

class Forwarder {
 public:
  Forwarder(cache::Cache& cache, const Name& name);
  ~Forwarder();
  // Becomes the forwarder of that number. False: there is one, or it cannot be.
  bool begin();
  // Until no process takes part in the cache.
  void serve();

 private:
  struct Job {
    uint64_t tag;
    cache::Slot* slot;
  };
  bool open_socket();
  void receive();
  void handle(const writeback::Message& message, int descriptor, daemon::Watch& watch);
  bool work();
  std::vector<cache::Request*> take_posted();
  void answer_loads();
  void answer(cache::Request& request);
  std::vector<Job> handed_over();
  std::vector<Job> dirty_of(uint32_t file);
  void write(const Job& job, bool last);
  bool read_ahead();
  bool is_needed() const;
  void count_served();

  cache::Cache& cache_;
  cache::Service& service_;
  const std::string name_;
  node::RobustList robust_{};
  Copies copies_;
  int socket_ = -1;
  volatile bool ending_ = false;
  std::thread receiver_;
  std::vector<cache::Request*> others_;  // taken, and not loads
};

}  // namespace weir::forward
