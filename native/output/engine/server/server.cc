// SPDX-License-Identifier: Apache-2.0
#include "output/engine/server/server.h"

#include "output/core/trace.h"
#include "output/engine/server/task.h"
#include "output/engine/writer.h"
#include "output/transport/patience.h"

namespace weir::output {

namespace {

class Server : public Work {
 public:
  Server(World& world, const Settings& settings, const Topology& topology) : world_(world) {
    setup_.settings = settings;
    setup_.topology = topology;
    world.set_time_limit(settings.time_limit_s);
    task_ = std::make_unique<GroupTask>(world, setup_.topology, *this);
  }

  Status run() {
    Patience patience(1e30, Patience::kLong);  // a model may compute for hours between two frames
    while (!task_->ended()) {
      Result<std::optional<Message>> message = world_.receive();
      if (!message.ok()) return message.status();
      if (message->has_value()) {
        task_->hear(**message);
        patience.restart();
      } else {
        task_->look_after_clients();
        patience.wait();
      }
    }
    if (task_->broken().ok()) release_window(world_, &setup_);
    return failed_.ok() ? task_->broken() : failed_;
  }

  bool define() override {
    if (!agree_setup(world_, &setup_).ok()) return false;  // the model's ranks have the same error
    if (setup_.owner >= 0) {
      writer_ = std::make_unique<Writer>(world_, setup_);
      writer_->on_pause([this] { task_->still_alive(); });
    }
    failed_ = world_.team().agree(writer_ != nullptr ? writer_->prepare() : Status());
    return failed_.ok();
  }

  bool owns() const override { return writer_ != nullptr; }
  Status write(const Frame& frame, const Status& refused) override { return writer_->write(frame, refused); }
  Status remark() override { return writer_->take_remark(); }
  Status close(const Status& incomplete) override { return writer_->close_all(incomplete); }

  std::string name(const Frame& frame) const override {
    return "stream '" + setup_.catalogue.streams[static_cast<size_t>(frame.stream)].name + "', step " + std::to_string(frame.step);
  }
  Status refusal(const Frame& frame, const Lack& lack) const override {
    const Column& column = setup_.layout.streams[static_cast<size_t>(frame.stream)].fields.columns[static_cast<size_t>(lack.column)];
    return {WEIR_E_MISSING, name(frame) + ": field '" + setup_.catalogue.fields[static_cast<size_t>(column.field)].name + "' was not put by " +
                                std::to_string(lack.count) + (lack.count == 1 ? " rank" : " ranks") + " of the model (the first: rank " +
                                std::to_string(lack.rank) + "); the frame is not written"};
  }

 private:
  World& world_;
  Setup setup_;
  std::unique_ptr<GroupTask> task_;
  std::unique_ptr<Writer> writer_;
  Status failed_;
};

}  // namespace

Status serve(World& world, const Settings& settings, const Topology& topology) {
  const std::string group = "group " + std::to_string(topology.group_of(world.rank()));
  Traced traced(Event::kServe, {}, 0, group);
  return traced.ended(Server(world, settings, topology).run());
}

}  // namespace weir::output
