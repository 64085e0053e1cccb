// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/names.h"

namespace weir::output::grib {
namespace {

struct UsualName {
  const char* name;
  const char* standard_name;
};
constexpr UsualName kUsualNames[] = {{"ta", "air_temperature"},
                                     {"ua", "eastward_wind"},
                                     {"va", "northward_wind"},
                                     {"wa", "upward_air_velocity"},
                                     {"cl", "cloud_area_fraction_in_atmosphere_layer"},
                                     {"o3", "mole_fraction_of_ozone_in_air"},
                                     {"ch4", "mole_fraction_of_methane_in_air"},
                                     {"co2", "mole_fraction_of_carbon_dioxide_in_air"},
                                     {"n2o", "mole_fraction_of_nitrous_oxide_in_air"}};

struct NearSurface {
  const char* name;
  const char* standard_name;
  int parameter;
};
constexpr NearSurface kNearSurface[] = {
    {"tas", "air_temperature", 167},    {"tasmax", "air_temperature", 167},
    {"tasmin", "air_temperature", 167}, {"uas", "eastward_wind", 165},
    {"vas", "northward_wind", 166},     {"sfcWind", "wind_speed", 207},
    {"huss", "specific_humidity", 174096}, {"hurs", "relative_humidity", 260242}};

struct Other {
  const char* standard_name;
  const char* parameter;
  const char* why;
};
constexpr Other kOthers[] = {
    {"geopotential_height", "228002",
     "which is the height of the ground; give typeOfLevel and level"},
    {"lwe_thickness_of_surface_snow_amount", "3066",
     "which is a depth of snow and not of its water; put it in kg m-2, with paramId 228141"}};

}  // namespace

std::string usual_name(const std::string& name) {
  for (const UsualName& usual : kUsualNames) {
    if (name == usual.name) return usual.standard_name;
  }
  return "";
}

int near_surface(const std::string& name, const std::string& standard_name) {
  for (const NearSurface& one : kNearSurface) {
    if (name == one.name && (standard_name.empty() || standard_name == one.standard_name))
      return one.parameter;
  }
  return 0;
}

// ecCodes has the uppermost layer of the soil for it; skin temperature is that of the surface.
int parameter_of_standard_name(const std::string& standard_name) {
  return standard_name == "surface_temperature" ? 235 : 0;
}

std::string not_the_same(const std::string& standard_name, const std::string& param_id) {
  for (const Other& other : kOthers) {
    if (standard_name == other.standard_name && param_id == other.parameter) return other.why;
  }
  return "";
}

}  // namespace weir::output::grib
