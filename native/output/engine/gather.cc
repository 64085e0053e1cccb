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
  void* got = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) {
    return {WEIR_E_MEMORY, "no memory for a buffer of " + std::to_string(bytes) + " bytes (" + strerror(errno) + "); lower server_memory"};
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

Gather::~Gather() {
  for (Stage& stage : stages_) is_given_up_ = stage.flight.release() != nullptr || is_given_up_;
  if (!is_given_up_) return;
  for (Buffer& b : staging_) b.keep();
}

Status Gather::prepare(int64_t staging_bytes) {
  for (Buffer& b : staging_) WEIR_TRY(b.allocate(staging_bytes));
  return {};
}

Status Gather::begin(const Section& section, const Part& slab, const Base& base) {
  Stage stage{&section, slab, base, nullptr, staging_[next_].data()};
  next_ ^= 1;
  const Column& column = section.columns[static_cast<size_t>(slab.column)];
  const auto element = static_cast<int64_t>(size_of(column.type));
  char* at = stage.memory;
  Status failed;
  for (const ClientView& view : setup_.clients) {
    if (view.route == Route::kShared) continue;
    if (stage.flight == nullptr) stage.flight = world_.flight();
    const Pieces& pieces = view.pieces[static_cast<size_t>(column.decomposition)];
    const int64_t from = base(view.layout, slab.column);
    each_strip(column.shape, slab, [&](const Strip& strip) {
      const auto [lo, hi] = pieces.bounds(strip.first, strip.last);
      const int64_t bytes = strip.levels * (hi - lo) * element;
      if (bytes == 0 || !failed.ok()) return;
      failed = view.route == Route::kTwoSided
                   ? stage.flight->receive(view.rank, at, bytes)
                   : stage.flight->fetch(*setup_.rma, view.rank, from + (strip.level * pieces.points() + lo) * element, bytes, at);
      at += bytes;
    });
  }
  stages_.push_back(std::move(stage));
  return failed;
}

Status Gather::wait(Stage& stage) {
  if (stage.flight == nullptr) return {};
  const Column& column = column_of(stage);
  const Traced traced(Event::kFetch, stream_, stage.slab.count * static_cast<int64_t>(size_of(column.type)), field_name(setup_, column));
  return wait(stage.flight);
}

Status Gather::wait(std::unique_ptr<Flight>& flight) {
  constexpr double kAskEvery_s = 0.25;
  const double since_s = now_s();
  Patience patience(std::min(kAskEvery_s, world_.time_limit()));
  for (;;) {
    Result<bool> done = flight->finished();
    if (!done.ok()) return done.status();
    if (*done) break;
    on_pause();
    if (patience.wait()) continue;
    Status why = late(since_s);
    if (why.ok()) {
      patience.restart();
      continue;
    }
    (void)flight.release();
    is_given_up_ = true;
    return why;
  }
  return {};
}

Status Gather::drop() {
  Stage stage = std::move(stages_.front());
  stages_.pop_front();
  return wait(stage);
}

Status Gather::end(Type type, ByteOrder order, const Filling& filling, void* to, Faults* faults) {
  Stage stage = std::move(stages_.front());
  stages_.pop_front();
  WEIR_TRY(wait(stage));
  copy(stage, type, order, filling, static_cast<char*>(to), faults);
  return {};
}

Status Gather::check_stamps(const Frame& frame, bool remote) {
  const auto stamp = [&](const ClientView& view) {
    const ClientStream& stream = view.layout.streams[static_cast<size_t>(frame.stream)];
    return stream.slot(frame.number, setup_.layout.slots) + stream.stamp;
  };
  const auto lost = [&](const ClientView& view) {
    return Status(WEIR_E_LOST, "rank " + std::to_string(view.rank) + " of the model has given this server up and uses the frame's memory for another one; nothing more is written here");
  };
  std::unique_ptr<Flight> flight;
  auto fetched = std::make_unique<std::vector<int64_t>>(setup_.clients.size(), Stamp::of_frame(frame.number));
  for (size_t c = 0; c < setup_.clients.size(); ++c) {
    const ClientView& view = setup_.clients[c];
    if (view.route == Route::kShared && !Stamp::is(view.memory->data() + stamp(view), frame.number)) return lost(view);
    if (view.route != Route::kRma || !remote) continue;
    if (flight == nullptr) flight = world_.flight();
    WEIR_TRY(flight->fetch(*setup_.rma, view.rank, stamp(view), sizeof(int64_t), &(*fetched)[c]));
  }
  if (Status s = flight == nullptr ? Status() : wait(flight); !s.ok()) {
    (void)fetched.release();  // MPI may still write to it
    return s;
  }
  for (size_t c = 0; c < setup_.clients.size(); ++c) {
    if ((*fetched)[c] != Stamp::of_frame(frame.number)) return lost(setup_.clients[c]);
  }
  return {};
}

void Gather::copy(const Stage& stage, Type type, ByteOrder order, const Filling& filling, char* to, Faults* faults) const {
  const Column& column = column_of(stage);
  const Traced traced(Event::kTranspose, stream_, stage.slab.count * static_cast<int64_t>(size_of(type)), field_name(setup_, column));
  const auto element = static_cast<int64_t>(size_of(column.type)), out = static_cast<int64_t>(size_of(type));
  const Convert convert = converter(column.type, type, order);
  const char* staged = stage.memory;
  for (const ClientView& view : setup_.clients) {
    const Pieces& pieces = view.pieces[static_cast<size_t>(column.decomposition)];
    const int64_t from = stage.base(view.layout, stage.slab.column);
    each_strip(column.shape, stage.slab, [&](const Strip& strip) {
      int64_t level_points = pieces.points();
      const char* level = view.route == Route::kShared ? view.memory->data() + from + strip.level * level_points * element : staged;
      if (view.route != Route::kShared) {
        const auto [lo, hi] = pieces.bounds(strip.first, strip.last);
        level_points = hi - lo;
        staged += strip.levels * level_points * element;
        level -= lo * element;
      }
      char* target = to + (strip.level * column.shape.points - stage.slab.first) * out;
      for (int64_t l = 0; l < strip.levels; ++l) {
        pieces.each(strip.first, strip.last, [&](int64_t global, int64_t local, int64_t count) {
          int64_t at = 0;
          const int64_t lost = convert(level + local * element, target + global * out, count, filling, &at);
          faults->add(lost, (strip.level + l) * column.shape.points + global + at);
        });
        level += level_points * element;
        target += column.shape.points * out;
      }
    });
  }
}

}  // namespace weir::output
