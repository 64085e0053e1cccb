// SPDX-License-Identifier: Apache-2.0
// The owner's way to the clients' data: a slab is brought together from all clients, converted, in
// the order of the file. Slabs are asked for in turn; the next one's pieces from other nodes are
// under way while one is copied and written.
#pragma once

#include <deque>
#include <functional>
#include <map>

#include "output/engine/convert.h"
#include "output/engine/note.h"
#include "output/engine/setup.h"
#include "output/transport/patience.h"

namespace weir::output {

// Anonymous memory whose pages are there.
class Buffer {
 public:
  Buffer() = default;
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Status allocate(int64_t bytes);
  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

// A column's field as the trace names it; lon and lat belong to none.
std::string_view field_name(const Setup& setup, const Column& column);

class Gather {
 public:
  Gather(World& world, const Setup& setup) : world_(world), setup_(setup) {}
  ~Gather();
  Gather(const Gather&) = delete;
  Gather& operator=(const Gather&) = delete;
  Status prepare(int64_t staging_bytes);

  // Whether what was brought together of this frame was still the frame's: its stamp in the windows
  // of all clients that can be looked at (those that send say it themselves). WEIR_E_LOST: it may
  // have been a later one's. `remote`: also those on other nodes.
  Status check_stamps(const Frame& frame, bool remote);

  // Called now and then during waits and between slabs.
  std::function<void()> on_pause = [] {};

  // Why pieces that have been waited for since then are not to be waited for any longer; fine: they
  // are.
  std::function<Status(double since_s)> late = [this](double since_s) {
    return now_s() - since_s > world_.time_limit() ? overdue() : Status();
  };
  Status overdue() const {
    return {WEIR_E_LOST, "a rank's data did not come within " +
                             std::to_string(static_cast<int>(world_.time_limit())) +
                             " s (time_limit_s)"};
  }

  // Where a section's columns begin in a client's window.
  using Base = std::function<int64_t(const ClientLayout&, int column)>;

  // Begin to bring the slab (remote pieces only); at most two are begun and not ended. After an
  // error it is not begun: there is nothing to end.
  Status begin(const Section& section, const Part& slab, const Base& base);
  // The slab begun first: wait for its pieces, copy all of it to `to`, as it is in memory or as
  // `order` has it in files. `faults` gets places in the record.
  Status end(void* to);
  Status end(ByteOrder order, void* to, Faults* faults);
  // The slab begun first is not wanted any more; what clients send of it is taken all the same.
  Status drop();

  bool pending() const { return !stages_.empty(); }
  // Whose slabs come now, for the trace.
  void set_stream(int number, const std::string& name) { channel_ = number, stream_ = name; }

 private:
  struct Stage {
    const Section* section = nullptr;
    Part slab;
    Base base;
    std::unique_ptr<Flight> flight;
    std::shared_ptr<Buffer> memory;
  };
  // What is still under way of something that was given up, and the memory that it comes to.
  struct Left {
    std::unique_ptr<Flight> flight;
    std::shared_ptr<void> memory;
    int channel;
  };

  static const Column& column_of(const Stage& stage) {
    return stage.section->columns[static_cast<size_t>(stage.slab.column)];
  }
  Status wait(Stage& stage);
  // Of what was sent on the channel some is lost, or not waited for any longer: what comes next on
  // it may be taken for that, and nothing is.
  void doubt(int channel, const Status& why);
  Status wait(Flight& flight);
  Status begin_pieces(Stage& stage, Status failed);
  // A piece that a client sends on the stream's channel.
  Status receive(Stage& stage, int client, char* to, int64_t bytes);
  Status pay(int client);
  // The flight's memory is not used again before all of it has ended.
  void leave(std::unique_ptr<Flight> flight, std::shared_ptr<void> memory);
  void leave(Stage& stage) { leave(std::move(stage.flight), std::move(stage.memory)); }
  void drop_left();
  Result<std::shared_ptr<Buffer>> staging();
  struct Target {
    Type type;
    Convert convert;
    Filling filling;
    char* to;
  };
  Status end(const Target& target, Faults* faults);
  void copy(const Stage& stage, const Target& target, Faults* faults) const;

  World& world_;
  const Setup& setup_;
  int64_t staging_bytes_ = 0;
  std::vector<std::shared_ptr<Buffer>> free_;
  std::deque<Stage> stages_;
  std::vector<Left> left_;
  // By channel and client: bytes of pieces that could not be received, in order.
  std::map<std::pair<int, int>, std::deque<int64_t>> owed_;
  std::map<int, Status> doubted_;  // by channel
  int channel_ = 0;
  std::string stream_;
};

}  // namespace weir::output
