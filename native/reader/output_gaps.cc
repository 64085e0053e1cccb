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

void Gaps::output(const Call& call, Label& label, FileState& file) {
  const bool is_new = is_new_phase(call, label, file);
  const bool is_library = call.level == Call::kLibrary && level_ == Call::kLibrary;
  bool follows = false;
  if (file_ == &file && call.end <= begin_ && stays_.empty()) {
    const int64_t gap = begin_ - call.end;
    const bool defines = is_library && call.kind == Call::kCreate && kind_ == Call::kDefine;
    const int64_t most = defines ? int64_t(kDefiningNs * ticks_per_ns_)
                                 : room(first_bytes_, kPackingNsPerByte);
    follows = gap <= most;
    if (follows && is_library && !is_new) {
      label_->sums().packing += gap;
      label_->sums().waited_ns += waited_.between(call.end, begin_);
    }
    follows &= !has_gather_;
  }
  first_bytes_ = call.kind == Call::kWrite ? call.bytes : 0;
  bytes_ = (follows ? bytes_ : 0) + first_bytes_;
  file_ = &file, label_ = &label, kind_ = call.kind, level_ = call.level, begin_ = call.begin;
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
    return stop();
  stays_.push_back({call.begin, call.end, begin_});
  packed_ += gap;
  begin_ = call.begin;
  received_.clear();
  if (collected_ >= bytes_ / kLeastPart) accept();
}

// Until whom the rank waits for has come, it is not output that takes the time.
void Gaps::accept() {
  Sums& sums = label_->sums();
  for (const Stay& stay : stays_) {
    sums.gather += stay.end - stay.begin;
    sums.gathering_wait_ns += waiting_.between(stay.begin, stay.end);
    sums.packing += stay.next - stay.end;
    sums.waited_ns += waited_.between(stay.begin, stay.next);
  }
  stays_.clear();
  has_gather_ = true;
}

}  // namespace weir::reader
