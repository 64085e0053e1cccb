// SPDX-License-Identifier: Apache-2.0
#include "output/format/netcdf/image.h"

#include <fcntl.h>
#include <hdf5.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "output/format/netcdf/journal.h"

namespace weir::output::netcdf {
namespace {

constexpr size_t kVersionAt = 8, kChecksumAt = 44;  // of a superblock with addresses of eight bytes

// HDF5's checksum (Jenkins, lookup3) of a superblock's first 44 bytes.
uint32_t checksum(const char* bytes) {
  uint32_t words[11];
  std::memcpy(words, bytes, sizeof words);
  uint32_t a = 0xdeadbeef + sizeof words, b = a, c = a;
  const auto turn = [](uint32_t& x, uint32_t& y, uint32_t& z, int bits) {
    x = (x - z) ^ std::rotl(z, bits);
    z += y;
  };
  for (int i = 0; i < 9; i += 3) {
    a += words[i], b += words[i + 1], c += words[i + 2];
    turn(a, b, c, 4), turn(b, c, a, 6), turn(c, a, b, 8);
    turn(a, b, c, 16), turn(b, c, a, 19), turn(c, a, b, 4);
  }
  a += words[9], b += words[10];
  const auto last = [](uint32_t& x, uint32_t y, int bits) { x = (x ^ y) - std::rotl(y, bits); };
  last(c, b, 14), last(a, c, 11), last(b, a, 25), last(c, b, 16), last(a, c, 4), last(b, a, 14),
      last(c, b, 24);
  return c;
}

}  // namespace

hid_t file_in_memory() {
  const ssize_t count = H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_FILE);
  std::vector<hid_t> files(count > 0 ? static_cast<size_t>(count) : 0);
  if (!files.empty()) H5Fget_obj_ids(H5F_OBJ_ALL, H5F_OBJ_FILE, files.size(), files.data());
  for (hid_t file : files) {
    char name[64] = "";
    if (H5Fget_name(file, name, sizeof name) > 0 && std::strcmp(name, kInMemory) == 0) return file;
  }
  return H5I_INVALID_HID;
}

std::vector<char> image_bytes() {
  const hid_t file = file_in_memory();
  if (file < 0 || H5Fflush(file, H5F_SCOPE_GLOBAL) < 0) return {};
  const ssize_t size = H5Fget_file_image(file, nullptr, 0);
  if (size < static_cast<ssize_t>(kChecksumAt + sizeof(uint32_t))) return {};
  std::vector<char> bytes(static_cast<size_t>(size));
  if (H5Fget_file_image(file, bytes.data(), bytes.size()) != size) return {};
  // It takes the mark of an open file away, and leaves the checksum with it.
  if (bytes[kVersionAt] >= 2) {
    const uint32_t right = checksum(bytes.data());
    std::memcpy(bytes.data() + kChecksumAt, &right, sizeof right);
  }
  return bytes;
}

int write_image(const std::vector<char>& bytes, const char* path) {
  const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return errno;
  int error = write_extents(file, {{0, bytes}});
  if (error != 0)
    (void)!::ftruncate(file,
                       0);  // a part of a header is of no use, and what it takes others may need
  if (::close(file) != 0 && error == 0 && errno != EINTR) error = errno;
  return error;
}

}  // namespace weir::output::netcdf
