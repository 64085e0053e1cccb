// SPDX-License-Identifier: Apache-2.0
#include "output/engine/writer.h"

#include <stdio.h>

#include <algorithm>
#include <cmath>

#include "output/core/file_size.h"
#include "output/core/trace.h"
#include "output/engine/follow.h"
#include "output/engine/inherit.h"
#include "output/engine/memory.h"
#include "output/engine/savings.h"
#include "output/engine/target.h"
#include "output/format/publish.h"
#include "output/model/path.h"

namespace weir::output {

Writer::Writer(World& world, Setup& setup) : world_(world), setup_(setup), gather_(world, setup) {
  bool polls = false;  // others wait for what this rank does within MPI
  for (const ClientView& view : setup.clients) {
    drains_ |= view.route == Route::kTwoSided;
    polls |= view.route != Route::kShared;
  }
  for (const auto& [rank, route] : setup.owner_routes) polls |= route != Route::kShared;
  if (polls) behind_.pause_us = 200;
  behind_.limit_s = world.time_limit();
}

Writer::~Writer() = default;

int Writer::owners(int stream) const {
  return setup_.layout.streams[static_cast<size_t>(stream)].owners(
      setup_.topology.owners[static_cast<size_t>(setup_.group)]);
}

// Said by one rank for all: launchers bind those of a job alike.
void Writer::warn_of_threads() const {
  const int64_t threads = setup_.settings.encode_threads;
  const bool encodes = std::ranges::any_of(setup_.layout.streams,
                                           [](const StreamLayout& s) { return s.facts.threads; });
  if (threads <= processors() || !encodes || setup_.group != 0 || setup_.owner != 0) return;
  fprintf(stderr,
          "weir: encode_threads is %lld, and rank %d, which writes, may use %d of the node's "
          "processors: threads that share one are no faster. Bind ranks to more (Open MPI: "
          "--map-by slot:PE=%lld or --bind-to none; Slurm: -c), or lower it\n",
          static_cast<long long>(threads), world_.rank(), processors(),
          static_cast<long long>(threads));
}

Status Writer::prepare() {
  warn_of_threads();
  const BufferSizes sizes = buffer_sizes(setup_);
  behind_.start(processors() > 1);
  WEIR_TRY(slabs_[0].allocate(sizes.slab));
  if (behind_.threaded()) WEIR_TRY(slabs_[1].allocate(sizes.slab));
  WEIR_TRY(result_.allocate(sizes.accumulators > 0 ? sizes.slab : 0));
  return gather_.prepare(sizes.staging);
}

Status Writer::explain(const Status& cause, int stream, const std::string& path) const {
  // Who of several owners it was, its team has said.
  const std::string& text = cause.message();
  const size_t at = text.rfind(" (rank ");
  const bool named = at != std::string::npos && text.back() == ')' &&
                     text.find_first_not_of("0123456789", at + 7) == text.size() - 1;
  const std::string rank =
      named ? text.substr(at + 7, text.size() - at - 8) : std::to_string(world_.rank());
  return {WEIR_E_REMOTE,
          "stream '" + setup_.catalogue.streams[static_cast<size_t>(stream)].name + "', file " +
              (path.empty() ? setup_.catalogue.streams[static_cast<size_t>(stream)].path : path) +
              ", written by rank " + rank + ": " + (named ? text.substr(0, at) : text) + " (" +
              weir_status_name(cause.code()) + ")"};
}

Status Writer::open(const Frame& frame, Open* open) {
  const Stream& stream = setup_.catalogue.streams[static_cast<size_t>(frame.stream)];
  Result<Date> date =
      date_after(setup_.catalogue.reference, setup_.catalogue.calendar, frame.file_time_s);
  if (!date.ok()) return date.status();
  open->generation = frame.generation;
  open->path = expand_path(stream.path, {*date, frame.file_step, frame.file, stream.name});
  open->target = absolute_path(setup_.settings.directory, open->path);
  Team& owners = team(frame.stream);
  Status ready;
  if (owners.rank() == 0) {
    const std::string owner = setup_.settings.run + "-" + std::to_string(frame.stream);
    ready = prepare_target(open->target, owner, stream.existing,
                           frame.written == 0 ? frame.generation : -1, &open->lock);
    if (ready.ok() && stream.existing == Existing::kAppend) ready = look_before(frame, open);
  }
  WEIR_TRY(owners.agree(ready));
  Result<std::pair<int64_t, int>> before = owners.maximum(open->before);
  if (!before.ok()) return before.status();
  open->before = before->first;
  open->written = open->before + frame.written;
  FileOptions options{stream.hints, setup_.settings.sync, open->before == 0 ? stream.rotation : 0,
                      setup_.settings.encode_threads, behind_.threaded()};
  const FileDescription& description =
      setup_.layout.streams[static_cast<size_t>(frame.stream)].file.file;
  Format* format = setup_.formats[static_cast<size_t>(frame.stream)];
  const std::string path = temporary_path(open->target, frame.generation);
  if (open->written > 0 && (frame.written == 0 || frame.source != frame.generation)) {
    Status inherited;
    const std::string from =
        frame.written == 0 ? open->target : temporary_path(open->target, frame.source);
    if (owners.rank() == 0) inherited = inherit_file(from, path, gather_.on_pause);
    WEIR_TRY(owners.agree(inherited));
  }
  Result<std::unique_ptr<File>> file =
      open->written == 0 ? format->create(description, path, options, owners)
                         : format->open(description, path, options, owners, open->written);
  WEIR_TRY(owners.agree(file.status()));
  open->file = std::move(*file);
  return {};
}

Status Writer::look_before(const Frame& frame, Open* open) const {
  const StreamFile& stream = setup_.layout.streams[static_cast<size_t>(frame.stream)].file;
  const std::optional<double> time_s =
      frame.written == 0 ? std::optional<double>(frame.time_s) : std::nullopt;
  Result<int64_t> records = records_to_follow(*setup_.formats[static_cast<size_t>(frame.stream)],
                                              stream, open->target, time_s);
  if (!records.ok()) return records.status();
  open->before = *records;
  const std::string has = open->target + " has " + std::to_string(*records) + " records";
  const Stream& defined = setup_.catalogue.streams[static_cast<size_t>(frame.stream)];
  if (frame.resumed_records >= 0 && frame.resumed_records != *records) {
    return {WEIR_E_FILE, "cannot go on with " + open->target + ": " + has + ", and " +
                             std::to_string(frame.resumed_records) + " when " +
                             state_path(setup_.settings.directory, defined) +
                             " was saved; they are not of one run"};
  }
  if (frame.resumed == 0 && frame.interval == 0 && *records > 0 && keeps_state(defined)) {
    return {WEIR_E_FILE, "cannot go on with " + open->target + ": " +
                             state_path(setup_.settings.directory, defined) +
                             " is not there, with what the means, sums and extremes have of the "
                             "steps before; bring it, or write to another path"};
  }
  return {};
}

Status Writer::put(const Frame& frame, const Column& column, int64_t record, const Part& slab,
                   File& file) {
  const char* name = setup_.catalogue.streams[static_cast<size_t>(frame.stream)].name.c_str();
  const char* data = this->slab();
  if (behind_.threaded()) turn_ ^= 1;
  const std::string_view field = field_name(setup_, column);
  return behind_.hand([name, field, data, record, slab, &column, &file] {
    Traced traced(Event::kWrite, name, slab.count * static_cast<int64_t>(size_of(column.file_type)),
                  field);
    return traced.ended(file.write(column.variable, record, slab.first, slab.count, data));
  });
}

Status Writer::accumulate(const Frame& frame, const Column& column, size_t index, const Part& slab,
                          File* file, int64_t record) {
  const auto key = std::pair<int, size_t>{frame.stream, index};
  const auto at =
      accumulators_.try_emplace(key, column.operation, column.type, column.missing, slab.count)
          .first;
  Accumulator& sum = at->second;
  WEIR_TRY(gather_.end(this->slab()));
  if (setup_.topology.has_servers()) WEIR_TRY(gather_.check_stamps(frame, false));
  sum.add(this->slab(), 0, slab.count);
  sum.end_step();
  if (!frame.due) return {};
  const StreamLayout& layout = setup_.layout.streams[static_cast<size_t>(frame.stream)];
  const Type type = Accumulator::result_type(column.operation, column.type);
  // In integers NaN becomes the missing value, which a float64 may not be able to say.
  const bool whole = column.file_type != WEIR_FLOAT32 && column.file_type != WEIR_FLOAT64;
  sum.result(0, slab.count, whole ? NAN : column.missing.value_or(0).real, result_.data());
  sum.restart();
  int64_t at_first = 0;
  Filling filling = column.filling();
  if (type != column.type)
    filling.in_memory.reset();  // a sum or mean of this value is not missing: it is what they are
  const int64_t lost = column.to_file(type, layout.facts.order)(result_.data(), this->slab(),
                                                                slab.count, filling, &at_first);
  if (lost > 0)
    lost_[static_cast<size_t>(slab.column)].add(lost, slab.first + at_first,
                                                element_at(type, result_.data(), at_first));
  return put(frame, column, record, slab, *file);
}

Status Writer::write_slab(const Frame& frame, const Section& section, size_t index,
                          const Part& slab, File* file, int64_t record) {
  const Column& column = section.columns[static_cast<size_t>(slab.column)];
  if (column.operation != WEIR_INSTANT) return accumulate(frame, column, index, slab, file, record);
  const StreamLayout& layout = setup_.layout.streams[static_cast<size_t>(frame.stream)];
  Faults none;
  Faults* lost = column.field < 0 ? &none : &lost_[static_cast<size_t>(slab.column)];
  WEIR_TRY(gather_.end(layout.facts.order, this->slab(), lost));
  if (column.field >= 0 && setup_.topology.has_servers())
    WEIR_TRY(gather_.check_stamps(frame, false));
  return put(frame, column, column.field < 0 ? 0 : record, slab, *file);
}

Status Writer::walk(const Frame& frame, const Section& section, bool lonlat, File* file,
                    const Status& before) {
  const Status walked = walk_slabs(frame, section, lonlat, file, before);
  const Status written = behind_.finish();
  return walked.ok() ? written : walked;
}

Status Writer::walk_slabs(const Frame& frame, const Section& section, bool lonlat, File* file,
                          const Status& before) {
  const std::vector<Part>& all = section.of(owners(frame.stream), setup_.owner);
  const auto stream = static_cast<size_t>(frame.stream);
  const Gather::Base base = [stream, lonlat, &frame, this](const ClientLayout& layout, int column) {
    const ClientStream& s = layout.streams[stream];
    const auto c = static_cast<size_t>(column);
    return lonlat ? s.lonlat[c] : s.slot(frame.number, setup_.layout.slots) + s.fields[c];
  };
  std::vector<size_t> wanted;
  for (size_t i = 0; i < all.size(); ++i) {
    if (frame.due || section.columns[static_cast<size_t>(all[i].column)].operation != WEIR_INSTANT)
      wanted.push_back(i);
  }
  Status result = before;
  size_t begun = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!result.ok() || (file == nullptr && frame.due)) break;
    for (; begun < wanted.size() && begun < i + 2 && result.ok(); ++begun)
      result = gather_.begin(section, all[wanted[begun]], base);
    if (!result.ok()) break;
    Status s =
        write_slab(frame, section, wanted[i], all[wanted[i]], file, files_[frame.stream].written);
    if (result.ok()) result = s;
    gather_.on_pause();
  }
  // After a failure nothing stays begun, and what clients send is taken all the same.
  while (gather_.pending()) {
    Status s = gather_.drop();
    if (result.ok()) result = s;
  }
  for (; drains_ && begun < wanted.size(); ++begun) {
    Status s = gather_.begin(section, all[wanted[begun]], base);
    if (s.ok()) s = gather_.drop();
    if (result.ok()) result = s;
    gather_.on_pause();
  }
  return result;
}

Status Writer::write_times(const Frame& frame, Open& open) {
  const StreamLayout& layout = setup_.layout.streams[static_cast<size_t>(frame.stream)];
  if (setup_.owner != 0) return {};
  const auto put = [&](int variable, const double* values, int64_t count) -> Status {
    if (variable < 0) return {};
    double bytes[2];
    int64_t none = 0;
    converter(WEIR_FLOAT64, WEIR_FLOAT64, layout.facts.order)(values, bytes, count, {}, &none);
    return open.file->write(variable, open.written, 0, count, bytes);
  };
  const auto interval = intervals_.find(frame.stream);
  const bool cut = interval != intervals_.end() && interval->second.lacks(frame.number);
  const double bounds[2] = {
      cut ? std::max(interval->second.since_s(), frame.begin_s) : frame.begin_s, frame.time_s};
  WEIR_TRY(put(layout.file.time, &frame.time_s, 1));
  return put(layout.file.time_bounds, bounds, 2);
}

// Sums of steps that belong to another interval, whose due frame never came here, are given up.
Status Writer::begin_interval(const Frame& frame) {
  if (!intervals_[frame.stream].enter(frame.interval)) return {};
  for (auto at = accumulators_.lower_bound({frame.stream, 0});
       at != accumulators_.end() && at->first.first == frame.stream; ++at) {
    at->second.restart();
  }
  // What a group that is lost had read of the saved state is lost with what it had added.
  const bool resumes =
      frame.resumed != 0 && frame.interval == 0 && frame.number == 0 && frame.resumed_steps > 0;
  return resumes ? restore(frame) : Status();
}

// The frame is accumulated; a due one is in the file as well.
void Writer::end_interval(const Frame& frame, const Open& open) {
  const Interval& interval = intervals_[frame.stream];
  if (!frame.due || !interval.lacks(frame.number)) return;
  std::string fields;
  for (const Column& c : setup_.layout.streams[static_cast<size_t>(frame.stream)].fields.columns) {
    if (c.operation != WEIR_INSTANT)
      fields += (fields.empty() ? "'" : ", '") +
                setup_.catalogue.fields[static_cast<size_t>(c.field)].name + "'";
  }
  remark({WEIR_E_LOST,
          "stream '" + setup_.catalogue.streams[static_cast<size_t>(frame.stream)].name +
              "', step " + std::to_string(frame.step) + ", file " + open.path +
              ": means, sums and extremes (" + fields + ") " + interval.in_words(frame.number)});
}

// [collective over the stream's owners] No rank of the model has given its memory to a later frame
// while this one was brought together.
Status Writer::still_ours(const Frame& frame, const Status& before) {
  if (!setup_.topology.has_servers()) return {};
  Status mine = gather_.check_stamps(frame, true);
  if (mine.ok() && before.ok()) mine = kept(frame);
  return agree_on_stamps(frame, mine);
}

Status Writer::agree_on_stamps(const Frame& frame, const Status& mine) {
  Status all = team(frame.stream).agree(mine);
  if (all.code() == WEIR_E_LOST) given_up_ = all;
  return all;
}

Status Writer::write_frame(const Frame& frame, const Status& refused, Open& open) {
  const StreamLayout& layout = setup_.layout.streams[static_cast<size_t>(frame.stream)];
  Team& owners = team(frame.stream);
  Status s = open.failed;
  // Left out is what the model has not put. What a failure of MPI keeps back is missing in the
  // file.
  if (s.ok() && refused.code() == WEIR_E_MPI) s = refused;
  const bool reduces = setup_.catalogue.streams[static_cast<size_t>(frame.stream)].reduces();
  if (reduces && s.ok()) s = begin_interval(frame);
  if (reduces && frame.resumed != 0 && frame.number == 0) s = owners.agree(s);
  lost_.assign(layout.fields.columns.size(), {});
  // Who was given up leaves no new file either.
  const bool begins =
      frame.due && refused.ok() && open.file == nullptr && setup_.topology.has_servers();
  const Status begun =
      begins ? agree_on_stamps(frame, gather_.check_stamps(frame, true)) : Status();
  WEIR_TRY(given_up_);
  if (s.ok()) s = begun;
  if (frame.due && s.ok() && open.file == nullptr) s = this->open(frame, &open);
  // First, for files whose messages have the time; that of an interval is known at its end.
  if (frame.due && !reduces && s.ok() && refused.ok()) s = write_times(frame, open);
  if (frame.lonlat) s = walk(frame, layout.lonlat, true, open.file.get(), s);
  const Status walked = walk(frame, layout.fields, false, open.file.get(), s.ok() ? refused : s);
  if (s.ok() && refused.ok()) s = walked;
  if (refused.ok()) {
    const Status ours = still_ours(frame, s);
    WEIR_TRY(given_up_);
    if (s.ok()) s = ours;
  }
  if (reduces && s.ok() && refused.ok())
    intervals_[frame.stream].add(frame.number, frame.previous_s);
  if (!frame.due || !refused.ok()) return owners.agree(s);
  if (reduces && s.ok()) s = write_times(frame, open);
  WEIR_TRY(owners.agree(s));
  WEIR_TRY(owners.agree(tell_faults(frame, open)));
  WEIR_TRY(owners.agree(open.file->end_record(open.written)));
  ++open.written;
  if (reduces) end_interval(frame, open);
  return {};
}

Status Writer::write(const Frame& frame, const Status& refused) {
  const FileSizeSignalBlocked blocked;
  if (setup_.owner >= owners(frame.stream)) return setup_.owners->agree({});
  if (!given_up_.ok()) return setup_.owners->agree(given_up_);
  const std::string& stream = setup_.catalogue.streams[static_cast<size_t>(frame.stream)].name;
  Traced traced(!frame.due          ? Event::kAccumulate
                : setup_.owner == 0 ? Event::kFrame
                                    : Event::kPart,
                stream);
  gather_.set_stream(frame.stream, stream);
  Open& open = files_[frame.stream];
  if (open.number != frame.file) {
    // A step longer than every_s has left out the frame that would have been the last of the
    // period.
    const bool ended =
        setup_.catalogue.streams[static_cast<size_t>(frame.stream)].period != Period::kNone &&
        open.number < frame.file;
    if (ended && open.file != nullptr && open.failed.ok() && given_up_.ok())
      remark_ = publish(open, frame.stream);
    open = Open{};
  }
  open.number = frame.file;
  if (frame.save != 0) {
    const Status saved = open.failed.ok() ? save(frame) : team(frame.stream).agree({});
    return traced.ended(setup_.owners->agree(saved));
  }
  Status s = write_frame(frame, refused, open);
  if (!s.ok()) open.failed = s;
  if (!s.ok() && given_up_.ok()) s = explain(s, frame.stream, open.path);
  traced.about(open.path);
  if (s.ok() && frame.due && frame.last) s = publish(open, frame.stream);
  return traced.ended(setup_.owners->agree(s.ok() ? refused : s));
}

Status Writer::publish(Open& open, int stream) {
  Team& owners = team(stream);
  Status s = owners.agree(open.file->close());
  const auto at = static_cast<size_t>(stream);
  trace_savings(*open.file, setup_.layout.streams[at].file, setup_.catalogue.streams[at].name);
  if (s.ok() && setup_.settings.verbose) {
    s = report_savings(owners, *open.file, setup_.layout.streams[at].file,
                       "stream '" + setup_.catalogue.streams[at].name + "', file " + open.path);
  }
  open.file.reset();
  if (s.ok()) {
    // A file all of whose frames were left out does not appear.
    const std::string temporary = temporary_path(open.target, open.generation);
    const bool replace =
        setup_.catalogue.streams[static_cast<size_t>(stream)].existing != Existing::kRefuse;
    if (owners.rank() == 0)
      s = open.written > open.before ? publish_file(temporary, open.target, replace)
                                     : discard_file(temporary);
    if (owners.rank() == 0 && s.ok()) s = discard_before(open.target, open.generation);
    open.lock.release();
    s = owners.agree(s);
  }
  if (s.ok()) return s;
  open.failed = s;
  return explain(s, stream, open.path);
}

Status Writer::close_all(const Status& incomplete) {
  const FileSizeSignalBlocked blocked;
  const Traced traced(Event::kClose);
  Status result = setup_.owners->agree(incomplete.ok() ? given_up_ : incomplete);
  if (!result.ok()) return result;
  for (auto& [stream, open] : files_) {
    if (setup_.owner >= owners(stream) || open.file == nullptr) continue;
    Status s = open.failed.ok() ? publish(open, stream) : Status();
    if (result.ok()) result = s;
  }
  files_.clear();
  return setup_.owners->agree(result);
}

}  // namespace weir::output
