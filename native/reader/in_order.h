// SPDX-License-Identifier: Apache-2.0
// The records of a process in the order in which they ended, whichever of its threads made them.
#pragma once

#include <algorithm>
#include <queue>
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

  bool is_over() const { return chunk_ == chunks_.size(); }
  Words record() const {
    return Words::load(file_->data() + chunks_[chunk_]->offset + sizeof(wire::ChunkHeader) +
                       at_ * sizeof(Words));
  }

  void next() {
    ++at_;
    skip();
  }

 private:
  void skip() {
    while (chunk_ < chunks_.size() && at_ >= chunks_[chunk_]->entries) {
      file_->leave(chunks_[chunk_]->offset, chunks_[chunk_]->size_bytes);
      ++chunk_;
      at_ = 0;
    }
  }

  const Mapping* file_;
  std::vector<const weir_reader_chunk*> chunks_;
  size_t chunk_ = 0;
  uint64_t at_ = 0;
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
      if (!logs_[i].is_over()) heads_.push({logs_[i].record().end(), i});
    }
    choose();
  }

  bool is_over() const { return log_ == nullptr; }
  Words record() const { return log_->record(); }

  void next() {
    log_->next();
    if (!log_->is_over() && (heads_.empty() || log_->record().end() < until_)) return;
    if (!log_->is_over()) heads_.push({log_->record().end(), size_t(log_ - logs_.data())});
    choose();
  }

 private:
  using Head = std::pair<uint64_t, size_t>;  // when its record ends, which log

  void choose() {
    log_ = nullptr;
    if (heads_.empty()) return;
    log_ = &logs_[heads_.top().second];
    heads_.pop();
    until_ = heads_.empty() ? 0 : heads_.top().first;
  }

  std::vector<ThreadLog> logs_;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads_;
  ThreadLog* log_ = nullptr;
  uint64_t until_ = 0;  // the end of the next record of another log, if there is one
};

}  // namespace weir::reader
