// SPDX-License-Identifier: Apache-2.0
#include "output/format/reader.h"

#include <sys/stat.h>

#include <map>

#include "output/format/cdf/header.h"
#include "output/format/format.h"
#include "output/format/modules.h"

namespace weir::output {
namespace {

// Every netCDF file, by the library.
class NetcdfReader : public Reader {
 public:
  NetcdfReader(const netcdf::Module* module, void* file, std::string path)
      : module_(module), file_(file), path_(std::move(path)) {}
  ~NetcdfReader() override {
    const std::lock_guard lock(netcdf_mutex());
    module_->close(file_);
  }

  Result<Found> find(const std::string& variable) override { return look_up(variable, 2); }

  Result<Found> find(const FileDescription& description, int variable) override {
    const Variable& v = description.variables[static_cast<size_t>(variable)];
    return look_up(v.name, v.dimensions.size() + 1);
  }

  Status read(const std::string& variable, int64_t record, int64_t first, int64_t count,
              void* to) override {
    const std::lock_guard lock(netcdf_mutex());
    if (const auto fixed = in_fixed_time_.find(variable); fixed != in_fixed_time_.end())
      first += record * fixed->second, record = 0;
    netcdf::Why why;
    if (!module_->read(file_, variable.c_str(), record, first, count, to, why))
      return {WEIR_E_FILE, why.text};
    return {};
  }

 private:
  // A time that is not unlimited is the records where the variable has `least` dimensions with it:
  // with fewer it is an axis of the field (months of a climatology), or a coordinate itself.
  Result<Found> look_up(const std::string& variable, size_t least) {
    const std::lock_guard lock(netcdf_mutex());
    netcdf::Why why;
    netcdf::Shape shape;
    if (!module_->find(file_, variable.c_str(), shape, why)) return Status(WEIR_E_FORMAT, why.text);
    if (!shape.known_type) {
      return Status(WEIR_E_FORMAT, path_ + ": variable " + variable + " is of type " +
                                       shape.type_name +
                                       ", which weir does not read; convert it first (ncap2 -s '" +
                                       variable + "=double(" + variable + ")' IN OUT)");
    }
    Found found{
        shape.type, shape.over_time, shape.records, {shape.lengths, shape.lengths + shape.rank}};
    found.dimensions.assign(shape.dimensions, shape.dimensions + shape.rank);
    in_fixed_time_.erase(variable);
    if (shape.has_fixed_time && found.lengths.size() >= least) {
      found.over_time = true;
      found.records = found.lengths[0];
      found.lengths.erase(found.lengths.begin());
      found.dimensions.erase(found.dimensions.begin());
      in_fixed_time_[variable] = found.elements();
    }
    if (shape.packed) found.packing = Packing{shape.scale, shape.offset};
    found.fills = shape.fills;
    found.is_unsigned = shape.is_unsigned;
    found.units = shape.units;
    found.standard_name = shape.standard_name;
    found.coordinates = shape.coordinates;
    return found;
  }

  const netcdf::Module* module_;
  void* file_;
  std::string path_;
  std::map<std::string, int64_t> in_fixed_time_;  // elements of a record
};

Status check_empty(const std::string& path) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size > 0) return {};
  return {WEIR_E_FORMAT, path + " is empty: it has 0 bytes, expected a file of netCDF or GRIB; "
                                "write it again, or look for the error of the program that did"};
}

}  // namespace

Result<Found> Reader::find(const FileDescription& description, int variable) {
  return find(description.variables[static_cast<size_t>(variable)].name);
}

Result<std::unique_ptr<Reader>> open_reader(const std::string& path) {
  const Format* format = format_of_file(path);
  return (format ? format : formats().front())->reader(path);
}

Result<std::unique_ptr<Reader>> open_whole(const std::string& path) {
  WEIR_TRY(check_empty(path));
  WEIR_TRY(cdf::check_size(path));  // the library reads what is not there as zeros
  Result<std::unique_ptr<Reader>> reader = open_reader(path);
  if (!reader.ok()) return reader;
  WEIR_TRY((*reader)->check_whole());
  return reader;
}

Status check_records(const FileDescription& d, const std::string& path, int64_t records) {
  Result<std::unique_ptr<Reader>> reader = open_reader(path);
  if (!reader.ok()) return reader.status();
  for (size_t i = 0; i < d.variables.size(); i++) {
    const Variable& v = d.variables[i];
    Result<Found> found = (*reader)->find(d, static_cast<int>(i));
    if (!found.ok()) return found.status();
    if (found->type != v.type || found->is_unsigned || found->over_time != v.over_time ||
        found->elements() != d.elements(v)) {
      return {WEIR_E_FORMAT, "cannot go on with " + path + ": variable " + v.name +
                                 " is not what the stream writes now"};
    }
    // A writer that died may have finished the record that is to be written again.
    if (v.over_time && found->records != records && found->records != records + 1) {
      return {WEIR_E_FORMAT, "cannot go on with " + path + ": it has " +
                                 std::to_string(found->records) + " records, not " +
                                 std::to_string(records)};
    }
  }
  return {};
}

Result<std::unique_ptr<Reader>> Format::reader(const std::string& path) const {
  std::string text;
  const netcdf::Module* module = netcdf_module(&text);
  if (!module) return Status(WEIR_E_FORMAT, "cannot read " + path + ": " + text);
  const std::lock_guard lock(netcdf_mutex());
  netcdf::Why why;
  void* file = module->open(path.c_str(), why);
  if (!file) return Status(WEIR_E_FILE, why.text);
  return std::unique_ptr<Reader>(new NetcdfReader(module, file, path));
}

}  // namespace weir::output
