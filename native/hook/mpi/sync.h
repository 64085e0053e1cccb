// SPDX-License-Identifier: Apache-2.0
// What ranks wait for in MPI, as records (docs/formats/trace.md 3.7): collectives with the
// communicator and their number on it, receives and probes with the peer, waits with what they
// brought. weir sends nothing: all of it is known to each rank from its own calls.
#pragma once

#include <stdint.h>

#include "hook/mpi/communicators.h"
#include "hook/mpi/form.h"
#include "hook/mpi/handles.h"
#include "hook/mpi/requests.h"
#include "hook/observe.h"

namespace weir::hook {

extern WEIR_OWN Profiled<Handle(int)> comm_from_fortran, win_from_fortran, request_from_fortran,
    type_from_fortran, message_from_fortran;

// One call: its arguments as the program passed them, with room for the error of Fortran, and the
// real function.
struct MpiCall {
  static constexpr int kMostWords = 13;

  const Form& form;
  bool fortran;
  uintptr_t* words;
  void* real;
  int result = 0;
  bool done = false;  // without error

  void* pointer(int place) const { return reinterpret_cast<void*>(words[place]); }
  int number(int place) const {
    return fortran ? *static_cast<const int*>(pointer(place)) : static_cast<int>(words[place]);
  }
  bool flag() const { return *static_cast<const int*>(pointer(form.flag)) != 0; }
  // A handle that lies at an address, and one that C passes by value.
  Handle handle_at(const void* address, Profiled<Handle(int)>& converter) const;
  Handle handle(int place, Profiled<Handle(int)>& converter) const;
  Handle group() const;         // the communicator or the window
  Handle request(int i) const;  // of those at form.request
  // Calls the real function, with the clock read before and after.
  Span run();
  // The same, when nothing of it is to be recorded.
  void pass();

 private:
  int call_real() const;
};

// Where MPI says how receives went: the program's own statuses, or where it wants none
// (MPI_STATUS_IGNORE) weir's.
class Statuses {
 public:
  static constexpr int kMost = 64;

  // count: of those that the call may fill. Before the call, whose argument it sets.
  Statuses(MpiCall& call, int count);
  Statuses(const Statuses&) = delete;
  Statuses& operator=(const Statuses&) = delete;

  const int* at(int i) const;  // null: there is none

 private:
  alignas(16) int own_[kMost * 6];
  const char* first_;
};

int source_of(const int* status);
// Bytes that a receive brought, or that a probe found.
uint64_t bytes_of(const int* status);
// Of this rank's part in a call that went well.
uint64_t bytes_of(const MpiCall& call, const Bytes& what, const Communicator& on);

// which: the routine, or what was awaited; bytes: for waits, the number of requests.
void record_mpi(Op op, uint8_t flags, uint32_t file, Span span, uint64_t offset, uint32_t which,
                uint64_t bytes);
void record_mpi(Op op, const MpiCall& call, uint32_t file, Span span, uint64_t offset,
                uint64_t bytes);
// A rank as records have it.
inline uint64_t peer_offset(int rank) {
  return rank >= 0 ? static_cast<uint64_t>(rank) : kUnknownOffset;
}

void call_wait(MpiCall& call);  // Kind::wait family
void call_test(MpiCall& call);  // Kind::test family: a record where tests before were in vain

// Loops of tests are waits, from the first test in vain to the one that brings something, unless
// the thread does something else in between. run_test: the call, since such a loop began;
// ends_tests: whether it ends one.
Span run_test(MpiCall& call);
bool ends_tests(Span span, bool brought);

// What every hook does when somebody looks. caller: the code that called it.
int mpi_called(const Form& form, bool fortran, uintptr_t* words, void* real, const void* caller);

}  // namespace weir::hook
