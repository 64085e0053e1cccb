// SPDX-License-Identifier: Apache-2.0
// The owner's way to the clients' data: a slab is brought together from all clients, converted, in the order of the file. Slabs are
// asked for in turn; the next one's pieces from other nodes are under way while one is copied and written.
#pragma once

#include <deque>
#include <functional>

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
  // The memory stays for the life of the process: MPI may still write to it.
  void keep() { data_ = nullptr; }

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

  // Whether what was brought together of this frame was still the frame's: its stamp in the windows of all clients that can be looked at (those
  // that send say it themselves). WEIR_E_LOST: it may have been a later one's. `remote`: also those on other nodes.
  Status check_stamps(const Frame& frame, bool remote);

  // Called now and then during waits and between slabs.
  std::function<void()> on_pause = [] {};

  // Why pieces that have been waited for since then are not to be waited for any longer; fine: they are.
  std::function<Status(double since_s)> late = [this](double since_s) { return now_s() - since_s > world_.time_limit() ? overdue() : Status(); };
  Status overdue() const {
    return {WEIR_E_LOST, "a rank's data did not come within " + std::to_string(static_cast<int>(world_.time_limit())) + " s (time_limit_s)"};
  }

  // Where a section's columns begin in a client's window.
  using Base = std::function<int64_t(const ClientLayout&, int column)>;

  // Begin to bring the slab (remote pieces only); at most two are begun and not ended.
  Status begin(const Section& section, const Part& slab, const Base& base);
  // The slab begun first: wait for its pieces, copy all of it to `to` as `type` in `order`. `faults` gets places in the record.
  Status end(Type type, ByteOrder order, const Filling& filling, void* to, Faults* faults);
  // The slab begun first is not wanted any more; what clients send of it is taken all the same.
  Status drop();

  bool pending() const { return !stages_.empty(); }
  // Whose slabs come now, for the trace.
  void set_stream(const std::string& name) { stream_ = name; }

 private:
  struct Stage {
    const Section* section = nullptr;
    Part slab;
    Base base;
    std::unique_ptr<Flight> flight;
    char* memory = nullptr;
  };

  static const Column& column_of(const Stage& stage) { return stage.section->columns[static_cast<size_t>(stage.slab.column)]; }
  Status wait(Stage& stage);
  Status wait(std::unique_ptr<Flight>& flight);
  void copy(const Stage& stage, Type type, ByteOrder order, const Filling& filling, char* to, Faults* faults) const;

  World& world_;
  const Setup& setup_;
  Buffer staging_[2];
  int next_ = 0;
  std::deque<Stage> stages_;
  bool is_given_up_ = false;  // a slab, some pieces of which may still come
  std::string stream_;
};

}  // namespace weir::output
