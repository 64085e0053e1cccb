// SPDX-License-Identifier: Apache-2.0
#include "trace/process.h"

#include <string.h>
#include <sys/auxv.h>

#include "base/apart.h"
#include "base/clock.h"
#include "base/scratch.h"
#include "base/section.h"
#include "trace/log.h"

namespace weir::trace {
namespace {

constexpr uint64_t kFirstNamesBytes = 8192;
constexpr uint64_t kAmpleSpaceBytes = 1u << 30;  // in it weir finds room beside most programs
constexpr uint64_t kFirstBytes = wire::kPageBytes + kFirstNamesBytes;
constinit Process the_process{};

// The value behind a key in /proc/self/io, e.g. "rchar: 123".
uint64_t io_value(const char* text, const char* key) {
  const char* at = strstr(text, key);
  if (at == nullptr) return 0;
  uint64_t value = 0;
  for (at += strlen(key); *at == ' ' || (*at >= '0' && *at <= '9'); ++at) {
    if (*at != ' ') value = value * 10 + static_cast<uint64_t>(*at - '0');
  }
  return value;
}

}  // namespace

constinit Pulse pulse{};
constinit uint32_t wanted = kUndecided;
Process& process() { return the_process; }

long Process::begin(const Settings& settings, bool* speaks) {
  const long opened = file_.open(settings);
  if (base::failed(opened)) return opened;
  wiped_by_kernel_ =
      !base::failed(base::advise(&pulse, sizeof pulse, 18 /* MADV_WIPEONFORK, Linux 4.14 */));
  // What needs most of the address space comes first: without it there is no process in the trace.
  Refusal refusal = Refusal::passing;
  if (!names_.reserve_table() || !take_first_chunks(0, &refusal)) {
    return file_.refuse(kFirstBytes, refusal, speaks);
  }
  user_ = static_cast<uint32_t>(getauxval(AT_EUID));
  names_.set_working_directory();
  wanted = 1;
  base::store(&pulse.alive, 1u);
  return 0;
}

// One allocation for the two chunks that every process needs: short-lived children are many.
bool Process::take_first_chunks(uint32_t parent, Refusal* refusal) {
  uint64_t offset = 0;
  auto* at = static_cast<char*>(file_.take(kFirstBytes, Use::files, &offset, refusal));
  if (at == nullptr) return false;
  number_ = static_cast<uint32_t>(offset / wire::kPageBytes);
  chunk_ = reinterpret_cast<wire::ProcessChunk*>(at);
  file_.set_refusals(chunk_->refusals);
  fill_process_chunk(parent);
  auto* names = reinterpret_cast<wire::ChunkHeader*>(at + wire::kPageBytes);
  begin_chunk(names, wire::Kind::kNames, kFirstNamesBytes, number_, 0, 0);
  if (parent != 0) {
    names_.begin_after_fork(names);
  } else {
    names_.begin(names);
  }
  return true;
}

void Process::fill_process_chunk(uint32_t parent) {
  wire::ProcessChunk& p = *chunk_;
  p.header.used = 1;
  p.pid = static_cast<uint32_t>(base::process_id());
  p.ppid = static_cast<uint32_t>(base::parent_id());
  p.rank = -1;
  p.level_now = file_.header().level;
  p.parent = parent;
  const base::ClockReading now = base::read_clocks();
  p.start_ticks = p.last_ticks = now.ticks;
  p.start_mono_ns = p.last_mono_ns = now.mono_ns;
  p.start_realtime_ns = now.realtime_ns;
  last_io_read_ = 0;
  base::store(&base::own_bytes_read, uint64_t{0});  // before this, or of the process that forked
  base::store(&base::own_bytes_written, uint64_t{0});
  read_io(&p.io_start, &p.storage_start);
  p.io_last = p.io_start;
  p.storage_last = p.storage_start;
  const long exe = base::read_link("/proc/self/exe", p.exe, sizeof p.exe - 1);
  if (base::failed(exe)) p.exe[0] = 0;
  const long cwd = base::working_directory(p.cwd, sizeof p.cwd - 1);
  if (base::failed(cwd)) p.cwd[0] = 0;
  const long words = base::read_file("/proc/self/cmdline", p.command, sizeof p.command - 1);
  if (words > 0) p.own_read += static_cast<uint64_t>(words);
  p.sum = wire::process_sum(p);
  p.rank_sum = wire::rank_sum(p);
  begin_chunk(&p.header, wire::Kind::kProcess, wire::kPageBytes, number_, 0, 0);
}

wire::ChunkHeader* Process::take_chunk(wire::Kind kind, Use use, uint64_t size,
                                       uint32_t entry_bytes, Refusal* refusal, void** over) {
  uint64_t offset = 0;
  auto* chunk = static_cast<wire::ChunkHeader*>(file_.take(size, use, &offset, refusal, over));
  if (chunk == nullptr) return nullptr;
  base::fetch_add(&chunk_->own_written, size);  // zeros, which give it storage
  calibrate();
  const uint32_t thread = kind == wire::Kind::kNames ? 0 : static_cast<uint32_t>(base::thread_id());
  begin_chunk(chunk, kind, size, number_, thread, entry_bytes);
  return chunk;
}

void Process::give_back(wire::ChunkHeader* chunk) { base::unmap(chunk, chunk->size_bytes); }

void Process::calibrate() {
  const base::ClockReading now = base::read_clocks();
  chunk_->last_mono_ns = now.mono_ns;
  chunk_->last_ticks = now.ticks;
}

namespace {

bool find_figures(Figures* to) {
  const base::SignalsBlocked
      blocked;  // a handler would find, or leave for ever, a file that is open
  char text[512];
  const long size = base::read_file("/proc/self/io", text, sizeof text);
  if (size <= 0) return false;
  to->io = {io_value(text, "rchar:"), io_value(text, "wchar:"), io_value(text, "syscr:"),
            io_value(text, "syscw:")};
  to->storage = {io_value(text, "\nread_bytes:"), io_value(text, "\nwrite_bytes:")};
  to->text_bytes = static_cast<uint64_t>(size);
  return true;
}

}  // namespace

bool Process::read_io(wire::IoFigures* to, wire::StorageFigures* storage) {
  count_own_read(base::exchange(&base::own_bytes_read, uint64_t{0}));
  base::fetch_add(&chunk_->own_written, base::exchange(&base::own_bytes_written, uint64_t{0}));
  Figures now{};
  if (!find_figures(&now)) return false;
  *to = now.io;
  *storage = now.storage;
  chunk_->io_known = wire::kIoRead | wire::kIoOwn;
  base::fetch_add(&chunk_->own_read, last_io_read_);
  last_io_read_ = now.text_bytes;
  return true;
}

bool Process::read_figures(Figures* to) {
  if (!find_figures(to)) return false;
  count_own_read(to->text_bytes);
  return true;
}

void Process::set_rank(int rank, int ranks, wire::RankSource source, wire::MpiKind mpi) {
  chunk_->rank = rank;
  chunk_->ranks = ranks;
  chunk_->rank_source = source;
  if (mpi != wire::MpiKind::kNone) chunk_->mpi = mpi;
  chunk_->rank_sum = wire::rank_sum(*chunk_);
}

void Process::set_world(uint64_t world) {
  chunk_->world = world;
  chunk_->rank_sum = wire::rank_sum(*chunk_);
}

void Process::end(wire::End how) {
  calibrate();
  // The kernel refuses the figures after a change of user, but not only then (chroot without
  // /proc).
  if (!base::sealed() && !read_io(&chunk_->io_last, &chunk_->storage_last)) {
    const bool is_other = static_cast<uint32_t>(base::system_call(SYS_geteuid)) != user_;
    if (is_other && chunk_->io_known != 0) chunk_->io_known |= wire::kIoOtherUser;
  }
  chunk_->end_ticks = base::ticks();
  if (chunk_->end_kind != wire::End::kSignal)
    chunk_->end_kind = how;  // MPI_Abort ends in exit or _exit
}

void Process::before_exec() {
  calibrate();
  if (!base::sealed()) read_io(&chunk_->io_last, &chunk_->storage_last);
}

base::Text Process::why_unseen(char* const* environment, char* to, size_t size) const {
  const char* preload = "";
  bool has_directory = false;
  for (char* const* one = environment; one != nullptr && *one != nullptr; ++one) {
    if (strncmp(*one, "LD_PRELOAD=", 11) == 0) preload = *one + 11;
    if (strncmp(*one, "WEIR_TRACE_DIR=", 15) == 0) has_directory = (*one)[15] != 0;
  }
  const size_t line = strcspn(preload, "\n");
  if (!has_directory || line == 0) return base::text("environment");
  if (strstr(preload, "libweir-preload") == nullptr)
    return base::Writer(to, size).add("preload ").add({preload, line}).view();
  return why_refused(to, size);
}

base::Text Process::why_refused(char* to, size_t size) const {
  const auto user = static_cast<uint64_t>(base::system_call(SYS_geteuid));
  if (user != user_) return base::Writer(to, size).add("user ").add_number(user).view();
  const uint64_t space = base::address_space();
  if (space >= kAmpleSpaceBytes) return {};
  return base::Writer(to, size).add("memory ").add_number(space).view();
}

void Process::note_start(uint64_t pid, uint64_t ticks, base::Text why, base::Text program) {
  const base::Scratch room;
  if (room.data() == nullptr) return;
  base::Writer text(room.data(), base::Scratch::kBytes);
  text.add("start\n").add_number(pid).add("\n").add_number(number_).add("\n").add_number(ticks).add(
      "\n");
  text.add(why).add("\n").add(program);
  names_.note(text.view());
}

void Process::note_end(uint64_t pid, uint64_t ticks, uint64_t signal, const Figures* figures) {
  char room[192];
  base::Writer text(room, sizeof room);
  text.add("end\n").add_number(pid).add("\n").add_number(ticks).add("\n").add_number(signal);
  if (figures != nullptr) {
    const uint64_t all[] = {figures->io.rchar, figures->io.wchar, figures->storage.read_bytes,
                            figures->storage.write_bytes};
    for (const uint64_t one : all) text.add("\n").add_number(one);
  }
  names_.note(text.view());
}

void Process::forked() {
  if (!wiped_by_kernel_) pulse = {};
}

void Process::stop() {
  calibrate();
  count_failure();
  wanted = 0;
  base::store(&pulse.alive, 0u);
}

void Process::step_down(wire::Level to) {
  if (to < level()) base::store(&chunk_->level_now, to);
}

// By the names of the process that this one was forked from: it has none of its own.
void Process::note_unrecorded(const wire::ProcessChunk& before) {
  char room[32];
  const auto pid = static_cast<uint64_t>(base::process_id());
  note_start(pid, base::ticks(), why_refused(room, sizeof room), base::text(before.exe));
}

bool Process::revive() {
  if (wanted == kUndecided) {
    if (decide_early != nullptr) decide_early();
    return wanted == 1;
  }
  if (wanted == 0 || base::load(&pulse.alive) != 0) return wanted != 0;
  if (base::sealed()) {
    wanted = 0;
    return false;
  }
  const base::SignalsBlocked
      blocked;  // a handler that jumps away would leave the revival half done
  const uint32_t me = static_cast<uint32_t>(base::thread_id());
  uint32_t nobody = 0;
  if (!base::compare_exchange(&pulse.reviving, &nobody, me)) {
    while (base::load(&pulse.alive) == 0 && base::load(&pulse.reviving) == nobody && wanted != 0)
      base::yield();
    return base::load(&pulse.alive) != 0;
  }
  const wire::ProcessChunk& before = *chunk_;  // the parent's, still mapped
  forget_logs();
  base::Scratch::free_all();
  base::forget_held();
  base::forget_sections();
  TraceFile::forked();
  Refusal refusal = Refusal::none;
  if (!take_first_chunks(before.header.process, &refusal)) {  // the parent's report shows it
    if (refusal == Refusal::passing) {
      count_lost(1);
      base::store(&pulse.reviving, 0u);
    } else {
      count_failure();
      note_unrecorded(before);
      wanted = 0;
    }
    return false;
  }
  set_rank(before.rank, before.ranks, before.rank_source, before.mpi);
  set_world(before.world);
  base::store(&pulse.alive, 1u);
  return true;
}

}  // namespace weir::trace
