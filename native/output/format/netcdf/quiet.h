// SPDX-License-Identifier: Apache-2.0
// While it lives, HDF5 prints nothing of its errors on this thread; the cause of the last one that
// came from the system is kept, which netCDF's own codes do not tell ("HDF error" for a full disk).
#pragma once

#include <hdf5.h>

#include <string>

namespace weir::output::netcdf {

class Quiet {
 public:
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
  // What the system said ("No space left on device"), or `other` when it was nothing of the system.
  const char* cause(const char* other) const { return system_.empty() ? other : system_.c_str(); }
  // The innermost reason that HDF5 noted, or what the system said.
  const char* reason() const {
    return cause(innermost_.empty() ? "HDF5 gives no reason" : innermost_.c_str());
  }

 private:
  static herr_t failed(hid_t stack, void* self);
  static herr_t note(unsigned depth, const H5E_error2_t* error, void* self);
  H5E_auto2_t before_ = nullptr;
  void* data_before_ = nullptr;
  std::string system_, innermost_;
};

}  // namespace weir::output::netcdf
