// SPDX-License-Identifier: Apache-2.0
#include "reader/output_gaps.h"

#include <algorithm>

namespace weir::reader {

bool Gaps::is_new_phase(const Call& call, Label& label, FileState& file) const {
  if (call.kind != Call::kWrite || &label == file.whole) return false;
  const bool is_new = label.phase == file.phase;
  if (is_new) ++file.phase;
  label.phase = file.phase;
  return is_new;
}

void Gaps::add_packing(int64_t begin, int64_t end) {
  const int64_t waited_ns = rank_.waited.between(begin, end);
  rank_.labels.each_of(*label_, *file_, [&](Account&, Sums& sums) {
    sums.packing += end - begin;
    sums.waited_ns += waited_ns;
  });
}

// Calls that run at once have nothing between them.
void Gaps::output(const Call& call, Label& label, FileState& file) {
  const bool is_new = is_new_phase(call, label, file);
  const bool is_library = call.level == Call::kLibrary && level_ == Call::kLibrary;
  const bool is_alone = call.end <= begin_;
  bool follows = false;
  if (file_ == &file && is_alone && stays_.empty()) {
    const bool defines = is_library && call.kind == Call::kCreate && kind_ == Call::kDefine;
    const int64_t most = defines ? int64_t(kDefiningNs * ticks_per_ns_)
                                 : room(first_bytes_, kPackingNsPerByte);
    follows = begin_ - call.end <= most;
    if (follows && is_library && !is_new) add_packing(call.end, begin_);
    follows &= !has_gather_;
  }
  first_bytes_ = call.kind == Call::kWrite ? call.bytes : 0;
  bytes_ = (follows ? bytes_ : 0) + first_bytes_;
  begin_ = std::min(begin_, call.begin);
  file_ = is_alone ? &file : nullptr, label_ = &label, kind_ = call.kind, level_ = call.level;
  packed_ = 0, collected_ = 0, has_gather_ = false;
  if (!stays_.empty()) stays_.clear();
  if (!senders_.empty()) senders_.clear();
  if (!received_.empty()) received_.clear();
}

// Whether it may have brought what is written next; adds what it brought.
bool Gaps::fits(const Call& call) {
  const auto is_first_of = [&](uint32_t sender) {
    return sender == Call::kNone || senders_.insert(sender).second;
  };
  uint64_t bytes = call.bytes == Call::kUnknown ? bytes_ : call.bytes;
  switch (call.kind) {
    case Call::kNeutral: bytes = 0; break;
    case Call::kCollects:
      if (!is_first_of(call.label)) return false;
      break;
    case Call::kWaits:
      bytes = 0;
      for (const auto& [sender, its_bytes] : received_) {
        if (!is_first_of(sender)) return false;
        bytes += its_bytes;
      }
      if (bytes == 0) return false;
      break;
    default: return false;
  }
  collected_ += bytes;
  return bytes / kMostTimes <= bytes_;
}

void Gaps::mpi(const Call& call) {
  if (call.kind == Call::kReceived) {
    if (call.bytes != 0) received_.emplace_back(call.label, call.bytes);
    return;
  }
  if (file_ == nullptr) return received_.clear();
  const int64_t gap = begin_ - call.end;
  const uint64_t least = level_ == Call::kLibrary ? 1 : kLeastBytes;
  if (gap < 0 || bytes_ < least || collected_ >= bytes_ || !fits(call) ||
      packed_ + gap > room(std::max(bytes_, collected_), kGatheredNsPerByte))
    return stop(call.begin);
  stays_.push_back({call.begin, call.end, begin_});
  packed_ += gap;
  begin_ = call.begin;
  received_.clear();
  if (collected_ >= bytes_ / kLeastPart) accept();
}

// Until whom the rank waits for has come, it is not output that takes the time.
void Gaps::accept() {
  for (const Stay& stay : stays_) {
    const int64_t late_ns = rank_.arriving.between(stay.begin, stay.end);
    const int64_t waited_ns = rank_.waited.between(stay.begin, stay.end);
    rank_.labels.each_of(*label_, *file_, [&](Account& account, Sums& sums) {
      sums.gather += stay.end - stay.begin;
      sums.gathering_wait_ns += late_ns;
      sums.waited_ns += waited_ns;
      // What the rank's other programs do meanwhile does not count again.
      for (Cover* cover : {&account.all, &account.inner, &account.system})
        cover->add(stay.begin, stay.next);
    });
    add_packing(stay.end, stay.next);
  }
  stays_.clear();
  has_gather_ = true;
}

}  // namespace weir::reader
