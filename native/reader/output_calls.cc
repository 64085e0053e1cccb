// SPDX-License-Identifier: Apache-2.0
#include "reader/output_calls.h"

#include <utility>

#include "reader/clock.h"

namespace weir::reader {
namespace {

using wire::Awaited;
using wire::MpiRoutine;
using wire::Op;

constexpr uint32_t kDense = 1 << 20;  // ids are small numbers unless a file is damaged

constexpr Call::Kind kind_of_io(Op op, char op_class) {
  if (op == Op::kUnlink || op == Op::kRmdir) return Call::kForeign;
  switch (op_class) {
    case 'R': return Call::kRead;
    case 'W': return Call::kWrite;
    case 'O': return Call::kOpen;
    case 'C': return Call::kClose;
    default: return Call::kTend;
  }
}

constexpr Call::Kind kind_of_library(Op op) {
  switch (op) {
    case Op::kLibraryOpen: case Op::kMpiFileOpen: return Call::kOpen;
    case Op::kLibraryCreate: return Call::kCreate;
    case Op::kLibraryDefine: return Call::kDefine;
    case Op::kLibraryClose: case Op::kMpiFileClose: return Call::kClose;
    case Op::kLibraryGet: case Op::kLibraryStartGet: return Call::kRead;
    case Op::kLibraryPut: case Op::kLibraryStartPut: return Call::kWrite;
    case Op::kLibrarySync: case Op::kLibraryInquire: case Op::kLibraryWait:
    case Op::kMpiFileSetSize: case Op::kMpiFilePreallocate: case Op::kMpiFileSeek:
    case Op::kMpiFileSync: case Op::kMpiFileSetView: case Op::kMpiFileSetInfo:
      return Call::kTend;
    // On ranks of the model. What its servers do is in their calls to files.
    case Op::kOutputPut: case Op::kOutputLend: case Op::kOutputWait: case Op::kOutputEndStep:
    case Op::kOutputFinalize: case Op::kOutputDefine:
      return Call::kWrite;
    default: break;
  }
  if (op >= Op::kMpiRead && op <= Op::kMpiReadOrderedEnd) return Call::kRead;
  if ((op >= Op::kMpiWrite && op <= Op::kMpiWriteAt) ||
      (op >= Op::kMpiWriteAtAll && op <= Op::kMpiWriteAllEnd) ||
      (op >= Op::kMpiWriteAtAllBegin && op <= Op::kMpiWriteOrderedEnd))
    return Call::kWrite;
  return Call::kNothing;
}

constexpr std::array<Call::Kind, 256> kKinds = [] {
  std::array<Call::Kind, 256> kinds{};
  for (size_t op = 0; op < 256; ++op) {
    kinds[op] = kIsIo[op] ? kind_of_io(Op(op), kOps[op].op_class)
                : kOps[op].treatment == Treatment::silent ? kind_of_library(Op(op))
                                                          : Call::kNothing;
  }
  for (Op op : {Op::kMpiInit, Op::kMpiFinalize, Op::kMpiCollective, Op::kMpiSend})
    kinds[size_t(op)] = Call::kUnrelated;
  kinds[size_t(Op::kMpiStartCollective)] = kinds[size_t(Op::kMpiProbe)] = Call::kNeutral;
  kinds[size_t(Op::kMpiWait)] = Call::kWaits;
  kinds[size_t(Op::kMpiReceive)] = Call::kCollects;
  kinds[size_t(Op::kMpiAwaited)] = Call::kReceived;
  return kinds;
}();

constexpr std::array<Call::Level, 16> kLevels = [] {
  std::array<Call::Level, 16> levels{};  // kSystem: POSIX, stdio
  levels[size_t(wire::Layer::mpi_io)] = Call::kMpiIo;
  for (auto layer : {wire::Layer::fortran, wire::Layer::pnetcdf, wire::Layer::netcdf,
                     wire::Layer::hdf5})
    levels[size_t(layer)] = Call::kLibrary;
  levels[size_t(wire::Layer::output)] = Call::kEngine;
  return levels;
}();

// Routines after which a rank has the data of all, and what part of them the record has.
enum class Part : uint8_t { none, of_each, all, unknown };
struct Collecting {
  bool at_root = false;  // the others only send
  Part part = Part::none;
};
constexpr std::array<Collecting, 256> kCollecting = [] {
  std::array<Collecting, 256> routines{};
  const auto of = [&](MpiRoutine routine) -> Collecting& { return routines[size_t(routine)]; };
  of(MpiRoutine::kReduce) = {true, Part::all};
  of(MpiRoutine::kGather) = of(MpiRoutine::kGatherv) = {true, Part::of_each};
  of(MpiRoutine::kAllgather) = of(MpiRoutine::kAllgatherv) = {false, Part::of_each};
  of(MpiRoutine::kAlltoall) = of(MpiRoutine::kAlltoallv) = {false, Part::all};
  of(MpiRoutine::kAlltoallw) = {false, Part::unknown};
  return routines;
}();

// A record of MPI: what the rank received with it, and from whom.
void understand(const Words& record, uint32_t members, Call& call) {
  const uint64_t routine = record.size() >> 32, bytes = record.size() & 0xffffffff;
  const uint64_t peer = record.offset();
  const Op op = Op(record.op());
  const auto awaits = [&](Awaited what) {
    return op == Op::kMpiAwaited && routine == uint64_t(what);
  };
  call.label = Call::kNone;
  call.bytes = bytes;
  if (op == Op::kMpiReceive || awaits(Awaited::receive)) {
    call.label = peer < Call::kNone ? uint32_t(peer) : Call::kNone;
  } else if (op == Op::kMpiAwaited) {
    call.bytes = awaits(Awaited::collective) ? bytes * members : 0;
  } else if (op == Op::kMpiCollective) {
    const Collecting how = kCollecting[routine & 0xff];
    if (how.part == Part::none || (how.at_root && (record.flags() & wire::kRoot) == 0)) return;
    call.kind = Call::kCollects;
    const bool is_known = how.part != Part::unknown && bytes != 0;
    call.bytes = !is_known ? Call::kUnknown : how.part == Part::all ? bytes : bytes * members;
  }
}

}  // namespace

Meanings::Meanings(const OutputInput& input, uint32_t process) : input_(input) {
  std::vector<bool> is_set[2];
  input.names->each(process, [&](uint32_t id, uint32_t text) {
    const uint32_t half = id >> 31, place = id & kMask;
    if (place >= kDense) return;
    if (place >= of_[half].size()) of_[half].resize(place + 1, kLost);
    is_set[half].resize(of_[half].size());
    if (is_set[half][place]) return;
    is_set[half][place] = true;
    const weir_reader_output& asked = *input.asked;
    of_[half][place] = {asked.label_of[text], asked.members_of[text],
                        uint32_t(asked.first_cut_of[text + 1] - asked.first_cut_of[text]),
                        input.names->texts[text].is_file == 0, asked.first_cut_of[text]};
  });
}

uint32_t Meanings::label_of(const Meaning& name, uint64_t ticks) const {
  uint32_t label = name.label;
  if (name.cuts != 0) {
    const int64_t* const first = input_.asked->cut_at_ns + name.first_cut;
    const auto cut = std::lower_bound(first, first + name.cuts, timestamp_ns(input_.clock, ticks));
    if (cut != first) label = input_.asked->cut_label[cut - input_.asked->cut_at_ns - 1];
  }
  return label < input_.asked->labels ? label : Call::kNone;
}

Log::Log(const OutputInput& input, uint32_t process, std::vector<const weir_reader_chunk*> chunks)
    : input_(&input), process_(process), chunks_(std::move(chunks)) {
  std::sort(chunks_.begin(), chunks_.end(),
            [](const auto* a, const auto* b) { return a->sequence < b->sequence; });
}

int64_t Log::end_of_chunk() const {
  return int64_t(chunks_.back()->last_ticks - input_->index->header.created_ticks);
}

void Log::read() {
  if (!meanings_) meanings_.emplace(*input_, process_);
  const Meanings& meanings = *meanings_;
  const weir_reader_chunk& chunk = *chunks_.back();
  chunks_.pop_back();
  const uint64_t created = input_->index->header.created_ticks;
  const uint32_t wanted = input_->asked->thread_of[process_];
  const bool is_plain = input_->asked->is_plain[process_] != 0;
  const Call::Kind least = is_plain ? Call::kWrite : Call::kForeign;
  bool is_wanted = wanted == 0 || wanted == chunk.thread;
  calls_.reserve(chunk.entries);
  const char* at = input_->file->records(chunk.offset);
  for (uint64_t i = 0; i < chunk.entries; ++i, at += sizeof(Words)) {
    const Words record = Words::load(at);
    if (record.op() == uint8_t(Op::kThread)) is_wanted = wanted == 0 || wanted == record.size();
    const Call::Kind kind = kKinds[record.op()];
    if (kind < least || !is_wanted || record.layer() > uint8_t(wire::Layer::hdf5) ||
        record.layer() == uint8_t(wire::Layer::layers))
      continue;
    const Meanings::Meaning& meaning = meanings.of(record.file());
    const uint32_t label = meanings.label_of(meaning, record.start());
    if (is_plain && label == Call::kNone) continue;
    const auto begin = int64_t(record.start() - created);
    Call call{begin, begin + int64_t(record.duration()), record.has_failed() ? 0 : record.size(),
              label, kind, kLevels[record.layer()],
              record.layer() != uint8_t(wire::Layer::fortran) && !record.has_own_time()};
    if (kind >= Call::kCollects) understand(record, meaning.members, call);
    else if (call.level == Call::kSystem && meaning.is_hidden) continue;
    calls_.push_back(call);
  }
  if (chunk.disordered != 0) {
    std::stable_sort(calls_.begin(), calls_.end(),
                     [](const Call& a, const Call& b) { return a.end < b.end; });
  }
  input_->file->done(chunk.size_bytes);
}

}  // namespace weir::reader
