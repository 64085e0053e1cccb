// SPDX-License-Identifier: Apache-2.0
// What the arguments of a routine of MPI mean, as mpi_calls.def says it: built at compile time, one
// constant for all spellings.
#pragma once

#include <stdint.h>

#include "wire/format.h"

namespace weir::hook {

enum class Kind : uint8_t {
  collective,
  receive,
  matched,
  probe,
  send,
  post,
  start,
  freeing,
  wait,
  wait_for_one,
  wait_for_some,
  test,
  test_for_one,
  test_for_some
};

using wire::Awaited;

// How all members name a communicator that one collective made without a message: all have its
// parent and its sequence number. one: there is but one; copy: the same, with the parent's ranks;
// color: the split's; first: the rank in MPI_COMM_WORLD of its rank 0; members: the parent takes no
// part, the members alone tell.
enum class Naming : uint8_t { none, one, copy, color, first, members };

// Bytes of this rank's part: count times type's size; own: this rank's entry of the counts; sum:
// all of them; each: for each rank.
struct Bytes {
  enum class How : uint8_t { none, plain, own, sum, each } how = How::none;
  int8_t count = -1, type = -1;
};
constexpr Bytes plain(int8_t count, int8_t type) { return {Bytes::How::plain, count, type}; }
constexpr Bytes own(int8_t counts, int8_t type) { return {Bytes::How::own, counts, type}; }
constexpr Bytes sum(int8_t counts, int8_t type) { return {Bytes::How::sum, counts, type}; }
constexpr Bytes each(int8_t count, int8_t type) { return {Bytes::How::each, count, type}; }

// Places of arguments from 0; -1: there is none.
struct Form {
  wire::MpiRoutine routine{};
  int8_t words = 0;
  Kind kind = Kind::collective;
  int8_t group = -1;  // communicator, or window; of Comm_free and other calls by reference
  bool window = false, ending = false;
  Bytes here, root_has;
  int8_t root = -1;
  int8_t made = -1;
  bool made_window = false;
  Naming naming = Naming::none;
  int8_t request = -1;  // one, or the first of several
  int8_t count = -1;    // of requests
  bool persistent = false;
  Awaited awaited = Awaited::nothing;
  int8_t peer = -1, message = -1, status = -1, flag = -1, index = -1, completed = -1;
  int8_t receiver = -1;  // of a call that also sends

  constexpr Form of(Bytes bytes) const { return with([&](Form& f) { f.here = bytes; }); }
  constexpr Form at_root(int8_t at, Bytes bytes) const {
    return with([&](Form& f) { f.root = at, f.root_has = bytes; });
  }
  constexpr Form makes(int8_t at, Naming how) const {
    return with([&](Form& f) { f.made = at, f.naming = how; });
  }
  constexpr Form makes_window(int8_t at) const {
    return makes(at, Naming::copy).with([](Form& f) { f.made_window = true; });
  }
  constexpr Form on_window() const { return with([](Form& f) { f.window = true; }); }
  constexpr Form ends() const { return with([](Form& f) { f.ending = true; }); }
  constexpr Form begun(int8_t at) const { return with([&](Form& f) { f.request = at; }); }
  constexpr Form again() const { return with([](Form& f) { f.persistent = true; }); }
  constexpr Form matches(int8_t at) const { return with([&](Form& f) { f.message = at; }); }
  constexpr Form when(int8_t at) const { return with([&](Form& f) { f.flag = at; }); }
  constexpr Form status_at(int8_t at) const { return with([&](Form& f) { f.status = at; }); }
  constexpr Form sends_to(int8_t at) const { return with([&](Form& f) { f.receiver = at; }); }
  constexpr Form index_at(int8_t at) const { return with([&](Form& f) { f.index = at; }); }
  constexpr Form number_at(int8_t at) const { return with([&](Form& f) { f.completed = at; }); }

  template <typename Change>
  constexpr Form with(Change change) const {
    Form changed = *this;
    change(changed);
    return changed;
  }
};

constexpr Form collective(int8_t group) {
  return Form{}.with([&](Form& f) {
    f.kind = Kind::collective, f.group = group, f.awaited = Awaited::collective;
  });
}
constexpr Form message(Kind kind, int8_t peer, int8_t group) {
  return Form{}.with([&](Form& f) { f.kind = kind, f.peer = peer, f.group = group; });
}
constexpr Form receive(int8_t peer, int8_t group, int8_t status) {
  return message(Kind::receive, peer, group).status_at(status);
}
constexpr Form probe(int8_t peer, int8_t group, int8_t status) {
  return message(Kind::probe, peer, group).status_at(status);
}
constexpr Form sending(int8_t peer, int8_t group) { return message(Kind::send, peer, group); }
constexpr Form matched(int8_t handle, int8_t status) {
  return message(Kind::matched, -1, -1).matches(handle).status_at(status);
}
constexpr Form posting(Awaited what, int8_t peer, int8_t group) {
  return message(Kind::post, peer, group).with([&](Form& f) { f.awaited = what; });
}
constexpr Form matched_later(int8_t handle) {
  return posting(Awaited::receive, -1, -1).matches(handle);
}
constexpr Form requests(Kind kind, int8_t at, int8_t count = -1) {
  return Form{}.with([&](Form& f) { f.kind = kind, f.request = at, f.count = count; });
}

}  // namespace weir::hook
