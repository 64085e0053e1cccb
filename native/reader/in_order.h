// SPDX-License-Identifier: Apache-2.0
// The records of a process in the order in which they ended, whichever of its threads made them.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "reader/index.h"
#include "reader/record.h"
#include "reader/times.h"

namespace weir::reader {

// The chunks of one thread of a process, record by record.
class ThreadLog {
 public:
  ThreadLog(const Mapping& file, std::vector<const weir_reader_chunk*> chunks)
      : file_(&file), chunks_(std::move(chunks)) {
    skip();
  }

  bool is_over() const { return at_ == nullptr; }
  Words record() const { return Words::load(at_); }

  // So many records behind that one, null where its chunk has none.
  const char* ahead(size_t records) const {
    return size_t(end_ - at_) > records * sizeof(Words) ? at_ + records * sizeof(Words) : nullptr;
  }

  void next() {
    at_ += sizeof(Words);
    if (at_ == end_) {
      file_->done(chunks_[chunk_]->size_bytes);
      ++chunk_;
      skip();
    }
  }

 private:
  void skip() {
    while (chunk_ < chunks_.size() && chunks_[chunk_]->entries == 0) ++chunk_;
    if (chunk_ == chunks_.size()) {
      at_ = nullptr;
      return;
    }
    at_ = file_->records(chunks_[chunk_]->offset);
    end_ = at_ + chunks_[chunk_]->entries * sizeof(Words);
  }

  const Mapping* file_;
  std::vector<const weir_reader_chunk*> chunks_;
  size_t chunk_ = 0;
  const char *at_ = nullptr, *end_ = nullptr;
};

using Chunks = std::vector<const weir_reader_chunk*>;

// Chunks with records of each process, log by log in their order.
inline std::vector<Chunks> chunks_of(const Index& index) {
  std::vector<Chunks> found(index.processes.size());
  for (const auto& chunk : index.chunks) {
    if (has_calls(chunk) && chunk.process < found.size()) found[chunk.process].push_back(&chunk);
  }
  for (Chunks& some : found) {
    std::stable_sort(some.begin(), some.end(), [](const auto* a, const auto* b) {
      return a->log != b->log ? a->log < b->log : a->sequence < b->sequence;
    });
  }
  return found;
}

// Those of one log stay in its order.
class InOrder {
 public:
  InOrder(const Mapping& file, const Chunks& chunks) {
    for (auto begin = chunks.begin(); begin != chunks.end();) {
      const auto end = std::find_if(begin, chunks.end(),
                                    [&](const auto* one) { return one->log != (*begin)->log; });
      logs_.emplace_back(file, Chunks(begin, end));
      begin = end;
    }
    for (size_t i = 0; i < logs_.size(); ++i) {
      if (!logs_[i].is_over()) heads_.push_back({logs_[i].record().end(), i});
    }
    std::make_heap(heads_.begin(), heads_.end(), std::greater<>());
    choose();
  }

  bool is_over() const { return log_ == nullptr; }
  Words record() const { return log_->record(); }
  const char* ahead(size_t records) const { return log_->ahead(records); }

  void next() {
    log_->next();
    if (log_->is_over()) {
      heads_.front() = heads_.back();
      heads_.pop_back();
    } else {
      const uint64_t end = log_->record().end();
      if (heads_.size() == 1 || end < until_) return;
      heads_.front().first = end;
    }
    sift();
    choose();
  }

 private:
  using Head = std::pair<uint64_t, size_t>;  // when its record ends, which log

  // Puts the first head where it belongs.
  void sift() {
    for (size_t at = 0, least = 0;; at = least) {
      for (size_t child : {2 * at + 1, 2 * at + 2}) {
        if (child < heads_.size() && heads_[child] < heads_[least]) least = child;
      }
      if (least == at) return;
      std::swap(heads_[at], heads_[least]);
    }
  }

  void choose() {
    log_ = heads_.empty() ? nullptr : &logs_[heads_[0].second];
    if (heads_.size() > 1) until_ = heads_[1].first;
    if (heads_.size() > 2) until_ = std::min(until_, heads_[2].first);
  }

  std::vector<ThreadLog> logs_;
  std::vector<Head> heads_;  // a heap, that of the record at hand first
  ThreadLog* log_ = nullptr;
  uint64_t until_ = 0;  // the end of the next record of another log, if there is one
};

}  // namespace weir::reader
