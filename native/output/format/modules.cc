// SPDX-License-Identifier: Apache-2.0
#include "output/format/modules.h"

#include <dlfcn.h>
#include <unistd.h>

namespace weir::output {
namespace {

template <typename Module>
struct Loaded {
  const Module* module = nullptr;
  std::string why;
};

std::string own_directory() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&netcdf_mutex), &info) == 0 || !info.dli_fname)
    return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

template <typename Module>
Loaded<Module> load(const std::string& file, const char* symbol, int version,
                    const std::string& needs) {
  const std::string directory = own_directory();
  Loaded<Module> loaded;
  // Beside libweir.so and above it; a program of the build tree that has the library within finds
  // lib/ further up.
  for (const char* place : {"/", "/../", "/../../lib/", "/../../../lib/"}) {
    const std::string path = directory + place + file;
    if (access(path.c_str(), F_OK) != 0) continue;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!library) {
      const char* text = dlerror();
      loaded.why = text ? text : path;
      continue;
    }
    using Entry = const Module* (*)();
    Entry entry = reinterpret_cast<Entry>(dlsym(library, symbol));
    const Module* module = entry ? entry() : nullptr;
    if (module && module->version == version) return {module, ""};
    loaded.why = path + " is of another version of weir: build and install both together";
  }
  if (loaded.why.empty())
    loaded.why = file + " is neither in " + directory + " nor above it";
  loaded.why += " (" + needs + ")";
  return loaded;
}

}  // namespace

const netcdf::Module* netcdf_module(std::string* why) {
  static const auto loaded = load<netcdf::Module>(
      "weir-format-netcdf.so", netcdf::kModuleSymbol, netcdf::kModuleVersion,
      "the formats of netCDF need weir built with libnetcdf-dev and libhdf5-dev");
  if (why) *why = loaded.why;
  return loaded.module;
}

const eccodes::Module* eccodes_module(std::string* why) {
  static const auto loaded = load<eccodes::Module>(
      "weir-format-grib.so", eccodes::kModuleSymbol, eccodes::kModuleVersion,
      "the formats of GRIB need weir built with libeccodes-dev");
  if (why) *why = loaded.why;
  return loaded.module;
}

std::mutex& netcdf_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::mutex& eccodes_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace weir::output
