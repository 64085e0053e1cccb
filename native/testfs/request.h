// SPDX-License-Identifier: Apache-2.0
// One request in service: counted when it arrives, answered when the server would answer it. Every
// operation makes one of these first and ends by one of its answers; what it answers is counted
// before the kernel sees the answer.
#pragma once

#include "testfs/fuse_api.h"
#include "testfs/inodes.h"
#include "testfs/server.h"
#include "testfs/state.h"

namespace weir::testfs {

// What all operations of the mount work on; reached by fuse_req_userdata.
struct Mount {
  State& state;
  Server server;
  Inodes inodes;
  bool writeback = false;
};

class Request {
 public:
  // entry: the counters of the file, or nullptr where no file is concerned.
  Request(fuse_req_t request, Kind kind, FileEntry* entry);
  Request(fuse_req_t request, Kind kind, const Inode& inode);
  Request(const Request&) = delete;
  ~Request();

  // The file of a request that names it only; it is counted for that file too.
  void concerns(const Inode& inode);

  // True when a rule made the request fail: it has been answered.
  [[nodiscard]] bool injected();

  // Waits for the answer's time. The caller answers by a fuse_reply_ function right after it.
  void wait(uint64_t bytes_read = 0, uint64_t bytes_written = 0);
  // Waits and answers: 0 for success, or an errno.
  void answer(int error);

  Mount& mount() { return mount_; }

 private:
  void add(Word State::*total, Word FileEntry::*own, uint64_t bytes);

  fuse_req_t request_;
  Kind kind_;
  Cost cost_;
  Mount& mount_;
  FileEntry* entry_;
  uint64_t arrival_ns_;
  bool waited_ = false;
};

inline Mount& mount_of(fuse_req_t request) {
  return *static_cast<Mount*>(fuse_req_userdata(request));
}

inline Inode& inode_of(fuse_req_t request, fuse_ino_t number) {
  return number == FUSE_ROOT_ID ? mount_of(request).inodes.root()
                                : *reinterpret_cast<Inode*>(number);
}

}  // namespace weir::testfs
