// SPDX-License-Identifier: Apache-2.0
#include "testfs/inodes.h"

#include "testfs/fuse_api.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace weir::testfs {

ProcPath::ProcPath(const Inode& inode) {
  snprintf(text, sizeof text, "/proc/self/fd/%d", inode.fd);
}

int open_when_there_is_room(int directory, const char* name, int flags, mode_t mode) {
  constexpr int kTries = 1000;
  for (int tries = 1;; ++tries) {
    const int fd = openat(directory, name, flags, mode);
    if (fd >= 0 || errno != EMFILE || tries == kTries) return fd;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool Inodes::open_root(const char* directory) {
  root_.fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root_.fd < 0) return false;
  struct stat status;
  if (fstat(root_.fd, &status) != 0) return false;
  root_.device = status.st_dev;
  root_.number = status.st_ino;
  root_.lookups = 1;
  known_[{root_.device, root_.number}] = &root_;
  root_.entry = file_entry(state_, ".");
  return true;
}

void Inodes::name(Inode& inode, const Inode& parent, const char* name) {
  std::string path = parent.path.empty() ? name : parent.path + "/" + name;
  if (&inode == &root_) return;
  inode.parent = &parent == &root_ ? FUSE_ROOT_ID : reinterpret_cast<uint64_t>(&parent);
  if (path == inode.path) return;
  inode.path = std::move(path);
  inode.entry.store(file_entry(state_, inode.path), std::memory_order_release);
}

Inode* Inodes::find(Inode& parent, const char* file, struct stat* status) {
  const int fd = open_when_there_is_room(parent.fd, file, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return nullptr;
  if (fstatat(fd, "", status, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) {
    const int error = errno;
    close(fd);
    errno = error;
    return nullptr;
  }
  std::unique_lock guard(lock_);
  Inode*& known = known_[{status->st_dev, status->st_ino}];
  if (known != nullptr) {
    close(fd);
  } else {
    known = new Inode;
    known->fd = fd;
    known->device = status->st_dev;
    known->number = status->st_ino;
    known->is_directory = S_ISDIR(status->st_mode);
    known->place = by_lookup_.insert(by_lookup_.end(), known);
    if (known_.size() > std::max(most_, seen_)) grown_.notify_one();
  }
  Inode* const found = known;
  if (found != &root_) by_lookup_.splice(by_lookup_.end(), by_lookup_, found->place);
  ++found->lookups;
  name(*found, parent, file);
  if (found->lookups == 1) give_way(guard);
  return found;
}

// Who asks the kernel to forget a name needs the lock of its directory, which the request in
// service has, and others take it as soon as that is answered: until a thread has waited for it for
// 4 ms (kernel/locking/rwsem.c, RWSEM_WAIT_TIMEOUT), when it is the next one.
void Inodes::give_way(std::unique_lock<std::mutex>& guard) {
  constexpr std::chrono::milliseconds kToAsk{50}, kToBeNext{5};
  if (known_.size() / 3 <= most_ / 2) return;
  if (!asked_.wait_for(guard, kToAsk, [&] { return asking_; })) return;
  guard.unlock();
  std::this_thread::sleep_for(kToBeNext);
}

void Inodes::forget(Inode& inode, uint64_t lookups) {
  std::lock_guard guard(lock_);
  inode.lookups -= lookups;
  if (inode.lookups != 0 || &inode == &root_) return;
  known_.erase({inode.device, inode.number});
  by_lookup_.erase(inode.place);
  seen_ = std::min(seen_, known_.size());  // the next one to come is one more
  close(inode.fd);
  delete &inode;
}

std::vector<IdleName> Inodes::wait_for_idle(size_t most) {
  std::unique_lock guard(lock_);
  most_ = most;
  asking_ = false;
  grown_.wait(guard, [&] { return known_.size() > std::max(most, seen_); });
  seen_ = known_.size();
  std::vector<IdleName> idle;
  size_t left = by_lookup_.size();
  for (auto at = by_lookup_.begin(); left > 0 && idle.size() < most / 8; --left) {
    Inode& one = **at;
    const auto next = std::next(at);
    // One that the kernel does not forget is not taken again before the others. A directory may be
    // where a program is.
    by_lookup_.splice(by_lookup_.end(), by_lookup_, at);
    at = next;
    if (!one.is_directory && one.openings.load() == 0)
      idle.push_back({one.parent, one.path.substr(one.path.rfind('/') + 1)});
  }
  asking_ = true;
  asked_.notify_all();
  return idle;
}

void Inodes::renamed(Inode& parent, const char* file) {
  struct stat status;
  if (fstatat(parent.fd, file, &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  std::lock_guard guard(lock_);
  const auto found = known_.find({status.st_dev, status.st_ino});
  if (found != known_.end()) name(*found->second, parent, file);
}

}  // namespace weir::testfs
