// SPDX-License-Identifier: Apache-2.0
#include "hook/mpi/sync.h"

#include <link.h>
#include <string.h>

#include "layers/cache/between.h"
#include "hook/mpi/mpi.h"
#include "layers/machinery/stack/process.h"

namespace weir::hook {

constinit bool mpi_events_wanted = false;
constinit uint32_t mpi_events = 0;
constinit Profiled<Handle(int)> comm_from_fortran{"PMPI_Comm_f2c"},
    win_from_fortran{"PMPI_Win_f2c"}, request_from_fortran{"PMPI_Request_f2c"};
constinit Profiled<Handle(int)> type_from_fortran{"PMPI_Type_f2c"},
    message_from_fortran{"PMPI_Message_f2c"};

namespace {

using wire::MpiKind;
using wire::MpiRoutine;

constinit Profiled<int(const int*, Handle, int*)> get_count{"PMPI_Get_count"};
constinit Handle the_byte = 0;

// Fortran's MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE, of mpif.h and of mpi_f08.
constexpr int kIgnored = 6;
constinit const void* ignored[kIgnored] = {};

// Where libweir lies, whose waits are its own.
struct Code {
  uintptr_t begin, bytes;
};
constinit Code libweir{0, 0};

int look_for_libweir(dl_phdr_info* object, size_t, void*) {
  const char* slash = object->dlpi_name != nullptr ? strrchr(object->dlpi_name, '/') : nullptr;
  if (slash == nullptr || strncmp(slash + 1, "libweir.so", 10) != 0) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    libweir = {object->dlpi_addr + segment.p_vaddr, segment.p_memsz};
  }
  return 1;
}

bool is_libweir(const void* caller) {
  return reinterpret_cast<uintptr_t>(caller) - libweir.begin < libweir.bytes;
}

void find_ignored() {
  int n = 0;
  constexpr const char* kObjects[] = {"mpi_fortran_status_ignore_", "mpi_fortran_statuses_ignore_",
                                      "MPIR_F08_MPI_STATUS_IGNORE_OBJ",
                                      "MPIR_F08_MPI_STATUSES_IGNORE_OBJ"};
  constexpr const char* kPointers[] = {"MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE"};
  for (const char* object : kObjects) {
    ignored[n++] = reinterpret_cast<const void*>(open_mpi_object(object));
  }
  for (const char* pointer : kPointers) {
    const auto* const at = reinterpret_cast<const void* const*>(open_mpi_object(pointer));
    ignored[n++] = at != nullptr ? *at : nullptr;
  }
}

bool is_ignored(const MpiCall& call, const void* status) {
  if (!call.fortran) return reinterpret_cast<uintptr_t>(status) <= 1;  // Open MPI's is 0, MPICH's 1
  for (const void* one : ignored) {
    if (status == one) return true;
  }
  return false;
}

// Ints of a status, in all of an implementation's languages.
int status_ints() { return mpi_kind() == MpiKind::kMpich ? 5 : 6; }

Handle of_c(uintptr_t word) {
  return mpi_kind() == MpiKind::kMpich ? static_cast<uint32_t>(word) : word;
}

uint64_t type_bytes(Handle type) {
  const int64_t bytes = bytes_of_type(type);
  return bytes > 0 ? static_cast<uint64_t>(bytes) : 0;
}

uint64_t counted(int count) { return count > 0 ? static_cast<uint64_t>(count) : 0; }

// The color of a split, the tag of a creation by members.
int mark_of(const MpiCall& call) {
  if (call.form.naming == Naming::color) return call.number(1);
  return call.form.naming == Naming::members ? call.number(2) : 0;
}

Communicator* adopt(const MpiCall& call, const Communicator* parent, uint64_t sequence) {
  const Form& f = call.form;
  if (parent == nullptr || f.made < 0) return nullptr;
  auto& converter = f.made_window ? win_from_fortran : comm_from_fortran;
  const Handle made = call.handle_at(call.pointer(f.made), converter);
  return add_communicator(made, {parent, sequence, mark_of(call), f.naming, f.made_window});
}

void remember_collective(const MpiCall& call, Communicator& on, Handle group, uint64_t sequence) {
  const void* const made = call.form.made >= 0 ? call.pointer(call.form.made) : nullptr;
  remember({call.request(0), Awaited::collective, false, true, on.name, &on, group, sequence, 0,
            made, call.fortran});
}

void call_collective(MpiCall& call, bool quiet) {
  const Form& f = call.form;
  const Handle group = call.group();
  Communicator* on = find_communicator(group);
  const Span span = call.run();
  const Op op = f.request >= 0 ? Op::kMpiStartCollective : Op::kMpiCollective;
  if (!call.done) {
    if (!quiet) record_mpi(op, call, on != nullptr ? on->name : 0, span, kUnknownOffset, 0);
    return;
  }
  if (on == nullptr && !f.ending) on = meet_communicator(group, f.window);
  if (f.naming == Naming::members) on = adopt(call, on, 0);  // its members' first
  const uint64_t sequence = on != nullptr ? next_sequence(*on) : kUnknownOffset;
  const uint32_t name = on != nullptr ? on->name : 0;
  if (!quiet) {
    const bool at_root =
        on != nullptr && f.root >= 0 && !on->between && call.number(f.root) == on->rank;
    const uint64_t bytes = on != nullptr ? bytes_of(call, at_root ? f.root_has : f.here, *on) : 0;
    record_mpi(op, at_root ? uint8_t{wire::kRoot} : uint8_t{0}, name, span, sequence,
               static_cast<uint32_t>(f.routine), bytes);
  }
  if (on == nullptr) return;
  if (f.request >= 0) {
    if (!quiet) remember_collective(call, *on, group, sequence);
    return;
  }
  if (f.made >= 0 && f.naming != Naming::members) adopt(call, on, sequence);
  if (f.ending) forget_communicator(group);
}

// Barriers of files that ranks on several nodes share: what a rank wrote before one is in the file,
// and what it reads after it is looked at anew.
void call_barrier(MpiCall& call, bool quiet) {
  const bool shared = base::load_relaxed(&cache::shared_between_nodes) != 0;
  if (shared) stack::flush_shared();
  if (base::load_relaxed(&mpi_events) != 0 && recording()) call_collective(call, quiet);
  else call.pass();
  if (shared) base::fetch_add(&cache::barriers, 1u);
}

void record_receive(MpiCall& call, Handle group, const int* status, Span span) {
  Communicator* const on = meet_communicator(group, false);
  const uint64_t peer =
      on != nullptr ? peer_offset(world_rank(*on, group, source_of(status))) : kUnknownOffset;
  const Op op = call.form.kind == Kind::probe ? Op::kMpiProbe : Op::kMpiReceive;
  record_mpi(op, call, on != nullptr ? on->name : 0, span, peer, bytes_of(status));
}

// The send of MPI_Sendrecv.
void record_send_within(const MpiCall& call, Handle group, Span span) {
  Communicator* const on = meet_communicator(group, false);
  if (on == nullptr || trace::process().level() != wire::Level::kTrace) return;
  const int receiver = world_rank(*on, group, call.number(call.form.receiver));
  record_mpi(Op::kMpiAwaited, wire::kNested, on->name, span, peer_offset(receiver),
             static_cast<uint32_t>(Awaited::send), bytes_of(call, call.form.here, *on));
}

void call_receive(MpiCall& call) {
  const Handle group = call.group();
  Statuses status(call, 1);
  const Span span = call.run();
  if (!call.done) return record_mpi(Op::kMpiReceive, call, 0, span, kUnknownOffset, 0);
  record_receive(call, group, status.at(0), span);
  if (call.form.receiver >= 0) record_send_within(call, group, span);
}

// A probe that does not wait: a record where those before were in vain.
void test_probe(MpiCall& call) {
  const Handle group = call.group();
  Statuses status(call, 1);
  const Span span = run_test(call);
  if (ends_tests(span, call.done && call.flag()))
    record_receive(call, group, status.at(0), span);
}

// A probe; one that matches a message says on which communicator it came.
void call_probe(MpiCall& call) {
  const Form& f = call.form;
  if (f.flag < 0) call_receive(call);
  else test_probe(call);
  if (f.message < 0 || !call.done || (f.flag >= 0 && !call.flag())) return;
  const Handle group = call.group();
  Communicator* const on = meet_communicator(group, false);
  if (on == nullptr) return;
  const Handle message = call.handle_at(call.pointer(f.message), message_from_fortran);
  remember({message, Awaited::message, false, true, on->name, on, group, kUnknownOffset, 0, nullptr,
            call.fortran});
}

void call_matched(MpiCall& call) {
  const Request message =
      take_request(call.handle_at(call.pointer(call.form.message), message_from_fortran));
  Statuses status(call, 1);
  const Span span = call.run();
  if (!call.done) return record_mpi(Op::kMpiReceive, call, message.name, span, kUnknownOffset, 0);
  const int peer =
      is_alive(message) ? world_rank(*message.on, message.group, source_of(status.at(0))) : -1;
  record_mpi(Op::kMpiReceive, call, message.name, span, peer_offset(peer), bytes_of(status.at(0)));
}

void call_send(MpiCall& call) {
  const Form& f = call.form;
  const Handle group = call.group();
  const Span span = call.run();
  if (!call.done) return record_mpi(Op::kMpiSend, call, 0, span, kUnknownOffset, 0);
  Communicator* const on = meet_communicator(group, false);
  if (on == nullptr) return record_mpi(Op::kMpiSend, call, 0, span, kUnknownOffset, 0);
  const int peer = world_rank(*on, group, call.number(f.peer));
  record_mpi(Op::kMpiSend, call, on->name, span, peer_offset(peer), bytes_of(call, f.here, *on));
}

// The MPI_Isend family: no record, the wait for it has one. Where nobody is the peer
// (MPI_PROC_NULL) nothing is waited for.
void call_post(MpiCall& call) {
  const Form& f = call.form;
  Request message{};
  if (f.message >= 0)
    message = take_request(call.handle_at(call.pointer(f.message), message_from_fortran));
  call.pass();
  if (!call.done) return;
  const Handle group = f.group >= 0 ? call.group() : message.group;
  Communicator* const on = f.group >= 0        ? meet_communicator(group, false)
                           : is_alive(message) ? message.on
                                               : nullptr;
  if (on == nullptr) return;
  constexpr int kOpenMpiNobody = -2, kMpichNobody = -1;
  const int rank = f.peer >= 0 ? call.number(f.peer) : 0;
  if (rank == (mpi_kind() == MpiKind::kMpich ? kMpichNobody : kOpenMpiNobody)) return;
  const uint64_t peer = f.peer >= 0 ? peer_offset(world_rank(*on, group, rank)) : kUnknownOffset;
  remember({call.request(0), f.awaited, f.persistent, !f.persistent, on->name, on, group, peer,
            bytes_of(call, f.here, *on), nullptr, call.fortran});
}

void call_start(MpiCall& call) {
  const int count = call.form.count >= 0 ? call.number(call.form.count) : 1;
  for (int i = 0; i < count; ++i)
    start_request(call.request(i));  // before: another thread may wait for it at once
  call.pass();
}

void call_freeing(MpiCall& call) {
  const Handle request = call.request(0);
  call.pass();
  if (call.done) forget_request(request);
}

void look_at(MpiCall& call, bool quiet) {
  const Kind kind = call.form.kind;
  if (call.form.routine == MpiRoutine::kBarrier) return call_barrier(call, quiet);
  if (kind == Kind::collective) return call_collective(call, quiet);
  if (quiet) return call.pass();
  switch (kind) {
    case Kind::receive: return call_receive(call);
    case Kind::matched: return call_matched(call);
    case Kind::probe: return call_probe(call);
    case Kind::send: return call_send(call);
    case Kind::post: return call_post(call);
    case Kind::start: return call_start(call);
    case Kind::freeing: return call_freeing(call);
    case Kind::test: case Kind::test_for_one: case Kind::test_for_some: return call_test(call);
    default: return call_wait(call);
  }
}

}  // namespace

Handle MpiCall::handle_at(const void* address, Profiled<Handle(int)>& converter) const {
  if (fortran) return from_fortran(converter, *static_cast<const int*>(address));
  return mpi_kind() == MpiKind::kMpich ? *static_cast<const uint32_t*>(address)
                                       : *static_cast<const Handle*>(address);
}

Handle MpiCall::handle(int place, Profiled<Handle(int)>& converter) const {
  return fortran ? handle_at(pointer(place), converter) : of_c(words[place]);
}

Handle MpiCall::group() const {
  auto& converter = form.window ? win_from_fortran : comm_from_fortran;
  return form.ending ? handle_at(pointer(form.group), converter) : handle(form.group, converter);
}

Handle MpiCall::request(int i) const {
  const auto* const first = static_cast<const char*>(pointer(form.request));
  const size_t bytes = fortran || mpi_kind() == MpiKind::kMpich ? sizeof(int) : sizeof(Handle);
  return handle_at(first + static_cast<size_t>(i) * bytes, request_from_fortran);
}

// Words that a function does not take are no concern of it, in registers or on the stack: the
// caller cleans up.
int MpiCall::call_real() const {
  using Word = uintptr_t;
  using Function =
      int (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);
  const uintptr_t* w = words;
  return reinterpret_cast<Function>(real)(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8],
                                          w[9], w[10], w[11], w[12]);
}

// In Fortran an error that is not asked for (mpi_f08) ends the program.
void MpiCall::pass() {
  ++mpi_depth;
  result = call_real();
  --mpi_depth;
  const auto* const error = fortran ? static_cast<const int*>(pointer(form.words)) : &result;
  done = error == nullptr || *error == 0;
}

Span MpiCall::run() {
  const uint64_t start = base::ticks();
  pass();
  return {start, base::ticks()};
}

Statuses::Statuses(MpiCall& call, int count)
    : first_(static_cast<const char*>(call.pointer(call.form.status))) {
  if (!is_ignored(call, first_)) return;
  first_ = nullptr;
  if (count > kMost) return;
  first_ = reinterpret_cast<const char*>(own_);
  call.words[call.form.status] = reinterpret_cast<uintptr_t>(own_);
}

const int* Statuses::at(int i) const {
  return first_ != nullptr ? reinterpret_cast<const int*>(first_) + i * status_ints() : nullptr;
}

int source_of(const int* status) { return status[mpi_kind() == MpiKind::kMpich ? 2 : 0]; }

uint64_t bytes_of(const int* status) {
  int count = 0;
  const auto ask = get_count.get();
  return ask != nullptr && ask(status, the_byte, &count) == 0 ? counted(count) : 0;
}

uint64_t bytes_of(const MpiCall& call, const Bytes& what, const Communicator& on) {
  if (what.how == Bytes::How::none || (on.between && call.form.kind == Kind::collective)) return 0;
  const uint64_t size = type_bytes(call.handle(what.type, type_from_fortran));
  if (what.how == Bytes::How::plain) return counted(call.number(what.count)) * size;
  if (what.how == Bytes::How::each)
    return counted(call.number(what.count)) * size * static_cast<uint64_t>(on.size);
  const auto* const counts = static_cast<const int*>(call.pointer(what.count));
  if (what.how == Bytes::How::own) return counted(counts[on.rank]) * size;
  uint64_t sum = 0;
  for (int i = 0; i < on.size; ++i) sum += counted(counts[i]);
  return sum * size;
}

// Counters have bytes alone: what is counted there has no routine.
void record_mpi(Op op, uint8_t flags, uint32_t file, Span span, uint64_t offset, uint32_t which,
                uint64_t bytes) {
  const uint64_t low = bytes < UINT32_MAX ? bytes : UINT32_MAX;
  const uint64_t high = trace::process().level() == wire::Level::kTrace ? uint64_t{which} << 32 : 0;
  trace::record_wide_call(
      {op, Layer::mpi, flags, 0, file, span.start, span.end, offset, high | low});
}

void record_mpi(Op op, const MpiCall& call, uint32_t file, Span span, uint64_t offset,
                uint64_t bytes) {
  const uint8_t flags = call.done ? uint8_t{0} : uint8_t{wire::kError};
  record_mpi(op, flags, file, span, offset, static_cast<uint32_t>(call.form.routine), bytes);
}

int mpi_called(const Form& form, bool fortran, uintptr_t* words, void* real, const void* caller) {
  MpiCall call{form, fortran, words, real};
  const bool known = mpi_kind() != MpiKind::kOther;
  if (mpi_depth != 0 || (form.routine != MpiRoutine::kBarrier && (!known || !recording()))) {
    call.pass();
    return call.result;
  }
  if (form.made >= 0 && libweir.bytes == 0)
    dl_iterate_phdr(look_for_libweir, nullptr);  // it may be loaded late, and makes its own first
  look_at(call, is_libweir(caller));
  return call.result;
}

void begin_mpi_events(uintptr_t world, int rank, int ranks) {
  if (!mpi_events_wanted) return;
  the_byte = mpi_kind() == MpiKind::kMpich ? kMpichByte : open_mpi_object("ompi_mpi_byte");
  find_ignored();
  dl_iterate_phdr(look_for_libweir, nullptr);
  begin_communicators(world, rank, ranks);
  base::store(&mpi_events, 1u);
}

bool end_mpi_events() {
  const bool were = base::load(&mpi_events) != 0;
  base::store(&mpi_events, 0u);
  return were;
}

void record_finalize(uintptr_t world, uint64_t came, uint64_t met) {
  Communicator* const on = find_communicator(world);
  if (on == nullptr || !recording()) return;
  record_mpi(Op::kMpiCollective, 0, on->name, {came, met}, next_sequence(*on),
             static_cast<uint32_t>(MpiRoutine::kFinalize), 0);
}

}  // namespace weir::hook
