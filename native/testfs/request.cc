// SPDX-License-Identifier: Apache-2.0
#include "testfs/request.h"

namespace weir::testfs {
namespace {

void one_more(Word& in_flight, Word& most) {
  raise_to(most, in_flight.fetch_add(1, std::memory_order_relaxed) + 1);
}

}  // namespace

Request::Request(fuse_req_t request, Kind kind, FileEntry* entry)
    : request_(request),
      kind_(kind),
      cost_(kind_cost(kind)),
      mount_(mount_of(request)),
      entry_(entry),
      arrival_ns_(cost_ == Cost::nothing ? 0 : now_ns()) {
  State& state = mount_.state;
  const unsigned number = static_cast<unsigned>(kind);
  state.requests[number].fetch_add(1, std::memory_order_relaxed);
  if (entry_ != nullptr) entry_->requests[number].fetch_add(1, std::memory_order_relaxed);
  one_more(state.in_flight, state.max_in_flight);
  if (cost_ == Cost::data) one_more(state.data_in_flight, state.max_data_in_flight);
}

Request::Request(fuse_req_t request, Kind kind, const Inode& inode)
    : Request(request, kind, inode.entry.load(std::memory_order_acquire)) {}

Request::~Request() {
  // Only for what was never answered through wait(); nothing is in that case today.
  if (!waited_) wait();
}

void Request::concerns(const Inode& inode) {
  entry_ = inode.entry.load(std::memory_order_acquire);
  if (entry_ != nullptr)
    entry_->requests[static_cast<unsigned>(kind_)].fetch_add(1, std::memory_order_relaxed);
}

bool Request::injected() {
  const int error = injected_error(mount_.state.options, kind_);
  if (error == 0) return false;
  mount_.state.injected.fetch_add(1, std::memory_order_relaxed);
  answer(error);
  return true;
}

void Request::add(Word State::*total, Word FileEntry::*own, uint64_t bytes) {
  if (bytes == 0) return;
  (mount_.state.*total).fetch_add(bytes, std::memory_order_relaxed);
  if (entry_ != nullptr) (entry_->*own).fetch_add(bytes, std::memory_order_relaxed);
}

void Request::wait(uint64_t bytes_read, uint64_t bytes_written) {
  add(&State::bytes_read, &FileEntry::bytes_read, bytes_read);
  add(&State::bytes_written, &FileEntry::bytes_written, bytes_written);
  wait_until(mount_.state.options,
             mount_.server.answer_ns(cost_, arrival_ns_, bytes_read + bytes_written));
  State& state = mount_.state;
  state.in_flight.fetch_sub(1, std::memory_order_relaxed);
  if (cost_ == Cost::data) state.data_in_flight.fetch_sub(1, std::memory_order_relaxed);
  waited_ = true;
}

void Request::answer(int error) {
  if (error != 0)
    mount_.state.errors[static_cast<unsigned>(kind_)].fetch_add(1, std::memory_order_relaxed);
  wait();
  fuse_reply_err(request_, error);
}

}  // namespace weir::testfs
