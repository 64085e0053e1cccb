// SPDX-License-Identifier: Apache-2.0
#include "reader/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#define WEIR_API extern "C" __attribute__((visibility("default")))

namespace {

constexpr size_t kLarge = 128 << 10;  // bytes of an array that counts
constexpr size_t kUnit = 32 << 10;    // of places in the file
constexpr size_t kHuge = 4 << 20;     // of an array that gets huge pages, as NumPy does
constexpr uint64_t kRange = uint64_t{1} << 40;  // of addresses, and of the file
constexpr uint64_t kSpareBytes = uint64_t{128} << 20;  // kept for the next arrays
constexpr uint64_t kMappedBytes = uint64_t{48} << 20;  // of files in memory between two unmappings
constexpr std::chrono::milliseconds kBetweenLooks(2);  // at how many there are

// Places in the file that nobody has; those side by side are one.
class Places {
 public:
  void give(uint64_t place, uint64_t size) {
    auto next = sizes_.lower_bound(place);
    if (next != sizes_.end() && next->first == place + size) {
      size += next->second;
      next = erase(next);
    }
    if (next != sizes_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == place) {
        place = before->first;
        size += before->second;
        erase(before);
      }
    }
    sizes_.emplace(place, size);
    by_size_.emplace(size, place);
  }

  // The smallest one that fits; what is left of it stays.
  bool take(uint64_t size, uint64_t& place) {
    const auto best = by_size_.lower_bound({size, 0});
    if (best == by_size_.end()) return false;
    const uint64_t found = best->first;
    place = best->second;
    erase(sizes_.find(place));
    if (found != size) give(place + size, found - size);
    return true;
  }

 private:
  using Sizes = std::map<uint64_t, uint64_t>;  // by place

  Sizes::iterator erase(Sizes::iterator one) {
    by_size_.erase({one->second, one->first});
    return sizes_.erase(one);
  }

  Sizes sizes_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
};

// The file: each place lies at the same distance from its beginning and from that of a range of
// addresses.
class File {
 public:
  bool begin(int descriptor) {
    const std::lock_guard lock(mutex_);
    if (base_ != nullptr) return true;
    struct statfs system;
    if (fstatfs(descriptor, &system) != 0) return false;
    if (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC) {
      errno = EOPNOTSUPP;
      return false;
    }
    const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return false;
    void* const range = mmap(nullptr, kRange, PROT_NONE, kNothing, -1, 0);
    if (range == MAP_FAILED) {
      close(copy);
      return false;
    }
    descriptor_ = copy;
    counts_ = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    holes_.give(0, kRange);
    base_ = static_cast<char*>(range);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    begin_watch();
    return true;
  }

  bool has(const void* array) const {
    const char* const base = base_;
    return base != nullptr && array >= base && array < base + kRange;
  }

  // Null: there is no file, or no room in it.
  void* take(size_t bytes) {
    if (base_ == nullptr || is_of_parent_) return nullptr;
    const std::lock_guard lock(mutex_);
    const uint64_t size = (bytes + kUnit - 1) / kUnit * kUnit;
    uint64_t place = 0;
    if (spare_.take(size, place)) spare_bytes_ -= size;
    else if (!store(size, place)) return nullptr;
    taken_.emplace(place, size);
    taken_bytes_ += size;
    end_ = std::max(end_, place + size);
    has_arrays_.notify_one();
    unmap();
    return base_ + place;
  }

  void give(void* array) {
    if (is_of_parent_) return;
    const std::lock_guard lock(mutex_);
    const auto its = taken_.find(place_of(array));
    if (its == taken_.end()) return;
    const auto [place, size] = *its;
    taken_.erase(its);
    taken_bytes_ -= size;
    if (spare_bytes_ + size > kSpareBytes) return discard(place, size);
    spare_bytes_ += size;
    spare_.give(place, size);
  }

  size_t size_of(void* array) {
    const std::lock_guard lock(mutex_);
    const auto its = taken_.find(place_of(array));
    return its == taken_.end() ? 0 : its->second;
  }

  uint64_t bytes() {
    const std::lock_guard lock(mutex_);
    return taken_bytes_;
  }

 private:
  static constexpr int kNothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  static constexpr size_t kWatchStackBytes = 64 << 10;

  // Once the pages of files that this process has mapped are many, those of arrays leave its
  // tables: those that are used come back. The kernel has them as pages of a file, which it may
  // drop once they are written. before: the mutex is locked.
  void unmap() {
    const uint64_t mapped = mapped_bytes();
    unmapped_ = std::min(unmapped_, mapped);
    if (mapped - unmapped_ <= kMappedBytes) return;
    madvise(base_, end_, MADV_DONTNEED);
    unmapped_ = mapped_bytes();
  }

  // For passes over many arrays that make none. Where no thread can be had, pages leave when arrays
  // are made.
  void begin_watch() {
    pthread_attr_t small;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, kWatchStackBytes);
    pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the program's own threads
    pthread_t thread;
    pthread_create(&thread, &small, [](void* self) -> void* {
      static_cast<File*>(self)->watch();
    }, this);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&small);
  }

  [[noreturn]] void watch() {
    for (std::unique_lock lock(mutex_);; lock.lock()) {
      has_arrays_.wait(lock, [&] { return taken_bytes_ != 0; });
      unmap();
      lock.unlock();
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }

  // A child has none of the arrays in the file, and makes its own in private memory.
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();

  uint64_t place_of(const void* array) const {
    return uint64_t(static_cast<const char*>(array) - base_);
  }

  // Storage is taken at once: a disk that is full when the array is written would end the process.
  bool store(uint64_t size, uint64_t& place) {
    if (!holes_.take(size, place)) return false;
    if (fallocate(descriptor_, 0, off_t(place), off_t(size)) == 0 &&
        mmap(base_ + place, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor_,
             off_t(place)) != MAP_FAILED) {
      madvise(base_ + place, size, MADV_DONTFORK);  // a child must not write into its parent's
      return true;
    }
    discard(place, size);
    return false;
  }

  void discard(uint64_t place, uint64_t size) {
    mmap(base_ + place, size, PROT_NONE, kNothing | MAP_FIXED, -1, 0);
    fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(place), off_t(size));
    holes_.give(place, size);
  }

  // Of all files, as the kernel counts them; 0 where it does not say.
  uint64_t mapped_bytes() const {
    char text[128] = "";
    unsigned long long all = 0, resident = 0, shared = 0;
    if (pread(counts_, text, sizeof text - 1, 0) <= 0) return 0;
    return sscanf(text, "%llu %llu %llu", &all, &resident, &shared) == 3 ? shared * page_bytes_ : 0;
  }

  std::mutex mutex_;
  std::condition_variable has_arrays_;
  std::atomic<char*> base_ = nullptr;
  std::atomic<bool> is_of_parent_ = false;
  int descriptor_ = -1, counts_ = -1;  // counts_: /proc/self/statm
  const uint64_t page_bytes_ = uint64_t(sysconf(_SC_PAGESIZE));
  uint64_t taken_bytes_ = 0, spare_bytes_ = 0;
  uint64_t end_ = 0;  // of all places that ever were taken
  // Of files in memory, when no array was.
  uint64_t unmapped_ = std::numeric_limits<uint64_t>::max();
  std::map<uint64_t, uint64_t> taken_;  // by place, sizes
  Places spare_, holes_;                // with storage and pages, and without
};

File& file() {
  static File* const made = new File;  // arrays may outlive whatever ends with the program
  return *made;
}

void File::before_fork() { file().mutex_.lock(); }

void File::after_fork_in_parent() { file().mutex_.unlock(); }

void File::after_fork_in_child() {
  file().is_of_parent_ = true;
  file().mutex_.unlock();
}

std::atomic<uint64_t> kept = 0, limit = std::numeric_limits<uint64_t>::max();

// What malloc() made. As large as it is, not as was asked for: free() must find the same number.
void* counted(void* array) {
  const size_t bytes = malloc_usable_size(array);
  if (bytes >= kLarge) kept += bytes;
  if (bytes >= kHuge) {
    const uintptr_t page = 4096, at = (reinterpret_cast<uintptr_t>(array) + page - 1) & ~(page - 1);
    madvise(reinterpret_cast<void*>(at), bytes - page, MADV_HUGEPAGE);
  }
  return array;
}

void forget(void* array) {
  const size_t bytes = malloc_usable_size(array);
  if (bytes >= kLarge) kept -= bytes;
}

void* from_file(size_t bytes) {
  return bytes >= kLarge && kept + bytes > limit ? file().take(bytes) : nullptr;
}

void* allocate(void*, size_t bytes) {
  if (void* const array = from_file(bytes)) return array;
  return counted(malloc(bytes));
}

void* allocate_zeros(void*, size_t count, size_t bytes) {
  size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) return nullptr;
  if (void* const array = from_file(all)) return memset(array, 0, all);
  return counted(calloc(count, bytes));
}

void release(void*, void* array, size_t) {
  if (array == nullptr) return;
  if (file().has(array)) return file().give(array);
  forget(array);
  free(array);
}

void* resize(void*, void* array, size_t bytes) {
  if (array == nullptr) return allocate(nullptr, bytes);
  if (!file().has(array) && bytes < kLarge) {
    forget(array);
    void* const same = realloc(array, bytes);
    counted(same != nullptr ? same : array);
    return same;
  }
  void* const made = allocate(nullptr, bytes);
  if (made == nullptr) return nullptr;
  const size_t before = file().has(array) ? file().size_of(array) : malloc_usable_size(array);
  memcpy(made, array, std::min(before, bytes));
  release(nullptr, array, before);
  return made;
}

constexpr weir_spill_handler kHandler = {
    "weir_spill", 1, nullptr, allocate, allocate_zeros, resize, release};

}  // namespace

WEIR_API int weir_spill_begin(int descriptor, uint64_t kept_bytes) {
  if (!file().begin(descriptor)) return -1;
  limit = kept_bytes;
  return 0;
}

WEIR_API const weir_spill_handler* weir_spill_get_handler(const char** capsule_name) {
  if (capsule_name != nullptr) *capsule_name = "mem_handler";
  return &kHandler;
}

WEIR_API void weir_spill_bytes(uint64_t* private_bytes, uint64_t* file_bytes) {
  *private_bytes = kept;
  *file_bytes = file().bytes();
}
