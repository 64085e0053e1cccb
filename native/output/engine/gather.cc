// SPDX-License-Identifier: Apache-2.0
#include "output/engine/gather.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>

#include "output/core/trace.h"
#include "output/engine/stamp.h"

namespace weir::output {

Buffer::~Buffer() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
}

Status Buffer::allocate(int64_t bytes) {
  if (bytes == 0) return {};
  void* got = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) {
    return {WEIR_E_MEMORY, "no memory for a buffer of " + std::to_string(bytes) + " bytes (" +
                               strerror(errno) + "); lower server_memory"};
  }
  data_ = static_cast<char*>(got);
  bytes_ = bytes;
  madvise(data_, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  for (int64_t at = 0; at < bytes; at += 4096) static_cast<volatile char*>(data_)[at] = 0;
  return {};
}

std::string_view field_name(const Setup& setup, const Column& column) {
  if (column.field < 0) return "lon,lat";
  return setup.catalogue.fields[static_cast<size_t>(column.field)].name;
}

namespace {

// At the end of the process' output: what is under way mostly ends at once.
constexpr double kLastWait_s = 0.5;

}  // namespace

Gather::~Gather() {
  for (Stage& stage : stages_) leave(stage);
  Patience patience(std::min(kLastWait_s, world_.time_limit()));
  for (drop_left(); !left_.empty() && patience.wait(); drop_left()) {
  }
  for (Left& left : left_) {
    (void)left.flight.release();
    new std::shared_ptr<void>(std::move(left.memory));  // MPI may still write to it
  }
}

Status Gather::prepare(int64_t staging_bytes) {
  staging_bytes_ = staging_bytes;
  for (int i = 0; i < 2; ++i) {
    free_.push_back(std::make_shared<Buffer>());
    WEIR_TRY(free_.back()->allocate(staging_bytes));
  }
  return {};
}

// One that was left to a transfer is made up for.
Result<std::shared_ptr<Buffer>> Gather::staging() {
  drop_left();
  if (free_.empty()) {
    free_.push_back(std::make_shared<Buffer>());
    if (Status s = free_.back()->allocate(staging_bytes_); !s.ok()) {
      free_.clear();
      return s;
    }
  }
  std::shared_ptr<Buffer> buffer = std::move(free_.back());
  free_.pop_back();
  return buffer;
}

void Gather::leave(std::unique_ptr<Flight> flight, std::shared_ptr<void> memory) {
  if (flight != nullptr && !flight->idle())
    left_.push_back({std::move(flight), std::move(memory), channel_});
}

void Gather::drop_left() {
  for (Left& left : left_) {
    const Result<bool> done = left.flight->finished();
    if (!done.ok() && left.flight->idle()) doubt(left.channel, done.status());
  }
  std::erase_if(left_, [](const Left& left) { return left.flight->idle(); });
}

// Pieces that could not be received come first, and are forgotten: else the next piece's data would
// be theirs.
Status Gather::pay(int client) {
  const auto owed = owed_.find({channel_, client});
  if (owed == owed_.end()) return {};
  while (!owed->second.empty()) {
    auto memory = std::make_shared<Buffer>();
    WEIR_TRY(memory->allocate(owed->second.front()));
    std::unique_ptr<Flight> flight = world_.flight(channel_);
    WEIR_TRY(flight->receive(client, memory->data(), owed->second.front()));
    leave(std::move(flight), std::move(memory));
    owed->second.pop_front();
  }
  owed_.erase(owed);
  return {};
}

Status Gather::receive(Stage& stage, int client, char* to, int64_t bytes) {
  Status s = to == nullptr ? Status(WEIR_E_MEMORY, "no buffer") : pay(client);
  if (s.ok()) s = stage.flight->receive(client, to, bytes);
  if (!s.ok()) owed_[{channel_, client}].push_back(bytes);
  return s;
}

// After a failure what clients send is received all the same, and nothing more is fetched.
Status Gather::begin_pieces(Stage& stage, Status failed) {
  const Column& column = column_of(stage);
  const auto element = static_cast<int64_t>(size_of(column.type));
  char* at = stage.memory == nullptr ? nullptr : stage.memory->data();
  for (const ClientView& view : setup_.clients) {
    if (view.route == Route::kShared) continue;
    if (stage.flight == nullptr) stage.flight = world_.flight(channel_);
    const Pieces& pieces = view.pieces[static_cast<size_t>(column.decomposition)];
    const int64_t from = stage.base(view.layout, stage.slab.column);
    each_strip(column.shape, stage.slab, [&](const Strip& strip) {
      const auto [lo, hi] = pieces.bounds(strip.first, strip.last);
      const int64_t bytes = strip.levels * (hi - lo) * element;
      if (bytes == 0) return;
      Status s;
      if (view.route == Route::kTwoSided) {
        s = receive(stage, view.rank, at, bytes);
      } else if (failed.ok()) {
        s = stage.flight->fetch(*setup_.rma, view.rank,
                                from + (strip.level * pieces.points() + lo) * element, bytes, at);
      }
      if (failed.ok()) failed = s;
      if (at != nullptr) at += bytes;
    });
  }
  return failed;
}

void Gather::doubt(int channel, const Status& why) {
  const bool ordered = std::any_of(setup_.clients.begin(), setup_.clients.end(),
                                   [](const ClientView& v) { return v.route == Route::kTwoSided; });
  if (ordered)
    doubted_.emplace(channel, Status(why.code(), "data of the model's ranks were lost before: " +
                                                     why.message()));
}

Status Gather::begin(const Section& section, const Part& slab, const Base& base) {
  if (const auto doubted = doubted_.find(channel_); doubted != doubted_.end())
    return doubted->second;
  Result<std::shared_ptr<Buffer>> memory = staging();
  Stage stage{&section, slab, base, nullptr, memory.ok() ? std::move(*memory) : nullptr};
  Status s = begin_pieces(stage, memory.status());
  if (!s.ok()) {
    leave(stage);
    return s;
  }
  stages_.push_back(std::move(stage));
  return {};
}

Status Gather::wait(Stage& stage) {
  if (stage.flight == nullptr) return {};
  const Column& column = column_of(stage);
  const Traced traced(Event::kFetch, stream_,
                      stage.slab.count * static_cast<int64_t>(size_of(column.type)),
                      field_name(setup_, column));
  const Status s = wait(*stage.flight);
  // What has ended is lost; what has not comes to its memory, unless nothing comes.
  if (!s.ok() && (stage.flight->idle() || s.code() == WEIR_E_LOST)) doubt(channel_, s);
  return s;
}

Status Gather::wait(Flight& flight) {
  constexpr double kAskEvery_s = 0.25;
  const double since_s = now_s();
  Patience patience(std::min(kAskEvery_s, world_.time_limit()));
  for (;;) {
    Result<bool> done = flight.finished();
    if (!done.ok()) return done.status();
    if (*done) return {};
    on_pause();
    if (patience.wait()) continue;
    WEIR_TRY(late(since_s));
    patience.restart();
  }
}

Status Gather::drop() {
  Stage stage = std::move(stages_.front());
  stages_.pop_front();
  Status s = wait(stage);
  s.ok() ? free_.push_back(std::move(stage.memory)) : leave(stage);
  return s;
}

Status Gather::end(void* to) {
  const Type type = column_of(stages_.front()).type;
  Faults none;
  return end({type, converter(type, type, ByteOrder::kNative), {}, static_cast<char*>(to)}, &none);
}

Status Gather::end(ByteOrder order, void* to, Faults* faults) {
  const Column& column = column_of(stages_.front());
  return end({column.file_type, column.to_file(column.type, order), column.filling(),
              static_cast<char*>(to)},
             faults);
}

Status Gather::end(const Target& target, Faults* faults) {
  Stage stage = std::move(stages_.front());
  stages_.pop_front();
  if (Status s = wait(stage); !s.ok()) {
    leave(stage);
    return s;
  }
  copy(stage, target, faults);
  free_.push_back(std::move(stage.memory));
  return {};
}

Status Gather::check_stamps(const Frame& frame, bool remote) {
  const auto stamp = [&](const ClientView& view) {
    const ClientStream& stream = view.layout.streams[static_cast<size_t>(frame.stream)];
    return stream.slot(frame.number, setup_.layout.slots) + stream.stamp;
  };
  const auto lost = [&](const ClientView& view) {
    return Status(WEIR_E_LOST, "rank " + std::to_string(view.rank) +
                                   " of the model has given this server up and uses the frame's "
                                   "memory for another one; nothing more is written here");
  };
  std::unique_ptr<Flight> flight;
  auto fetched =
      std::make_shared<std::vector<int64_t>>(setup_.clients.size(), Stamp::of_frame(frame.number));
  Status failed;
  for (size_t c = 0; c < setup_.clients.size() && failed.ok(); ++c) {
    const ClientView& view = setup_.clients[c];
    if (view.route == Route::kShared && !Stamp::is(view.memory->data() + stamp(view), frame.number))
      failed = lost(view);
    if (view.route != Route::kRma || !remote) continue;
    if (flight == nullptr) flight = world_.flight(0);
    failed = flight->fetch(*setup_.rma, view.rank, stamp(view), sizeof(int64_t), &(*fetched)[c]);
  }
  if (failed.ok() && flight != nullptr) failed = wait(*flight);
  leave(std::move(flight), fetched);
  WEIR_TRY(failed);
  for (size_t c = 0; c < setup_.clients.size(); ++c) {
    if ((*fetched)[c] != Stamp::of_frame(frame.number)) return lost(setup_.clients[c]);
  }
  return {};
}

void Gather::copy(const Stage& stage, const Target& file, Faults* faults) const {
  const Column& column = column_of(stage);
  const Traced traced(Event::kTranspose, stream_,
                      stage.slab.count * static_cast<int64_t>(size_of(file.type)),
                      field_name(setup_, column));
  const auto element = static_cast<int64_t>(size_of(column.type)),
             out = static_cast<int64_t>(size_of(file.type));
  const char* staged = stage.memory->data();
  for (const ClientView& view : setup_.clients) {
    const Pieces& pieces = view.pieces[static_cast<size_t>(column.decomposition)];
    const int64_t from = stage.base(view.layout, stage.slab.column);
    each_strip(column.shape, stage.slab, [&](const Strip& strip) {
      int64_t level_points = pieces.points();
      const char* level = view.route == Route::kShared
                              ? view.memory->data() + from + strip.level * level_points * element
                              : staged;
      if (view.route != Route::kShared) {
        const auto [lo, hi] = pieces.bounds(strip.first, strip.last);
        level_points = hi - lo;
        staged += strip.levels * level_points * element;
        level -= lo * element;
      }
      char* target = file.to + (strip.level * column.shape.points - stage.slab.first) * out;
      for (int64_t l = 0; l < strip.levels; ++l) {
        pieces.each(strip.first, strip.last, [&](int64_t global, int64_t local, int64_t count) {
          int64_t at = 0;
          const char* from_here = level + local * element;
          const int64_t lost =
              file.convert(from_here, target + global * out, count, file.filling, &at);
          if (lost > 0)
            faults->add(lost, (strip.level + l) * column.shape.points + global + at,
                        element_at(column.type, from_here, at));
        });
        level += level_points * element;
        target += column.shape.points * out;
      }
    });
  }
}

}  // namespace weir::output
