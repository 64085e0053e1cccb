// SPDX-License-Identifier: Apache-2.0
// Calls on names, as hooks make them: put to the layers that keep files elsewhere than under
// their names (layers/machinery/stack/names_of_layers.h) before the kernel has them. Without such
// a layer each costs one load beside the call.
//
// real(directory, path) is the kernel's call with that path; real() where no layer gives another.
// Results and errno are as of the call.
#pragma once

#include <errno.h>
#include <fcntl.h>

#include "base/scratch.h"
#include "layers/machinery/stack/names_of_layers.h"

namespace weir::hook {

template <typename Returned>
bool has_failed(Returned result) {
  if constexpr (requires { *result; }) return result == nullptr;
  else return result < 0;
}

// A layer's result as that of the call.
template <typename Returned>
Returned returned(stack::Result r) {
  if (r < 0) errno = static_cast<int>(-r);
  if constexpr (requires(Returned p) { *p; }) return nullptr;
  else return r < 0 ? -1 : static_cast<Returned>(r);
}

// The result of a call of the kernel's, which does not know that what the last name stands below
// is a layer's file.
template <typename Returned>
Returned checked_above(int directory, const char* path, Returned result) {
  if (WEIR_UNLIKELY(has_failed(result)) && errno == ENOENT && stack::any_layer_has_names() &&
      stack::is_below_file(directory, path))
    errno = ENOTDIR;
  return result;
}

// A call that reads. answer(layer, path, to): what a layer that answers gives.
template <typename Answer, typename Real>
auto by_name(int directory, const char* path, bool follow, Answer answer, Real real)
    -> decltype(real(directory, path)) {
  using Returned = decltype(real(directory, path));
  if (WEIR_LIKELY(!stack::any_layer_has_names())) return real(directory, path);
  const auto ask = [&](const stack::NamesOfLayer& layer, const stack::GivenPath& name, char* to) {
    if (layer.find != nullptr && layer.find(name, to)) return stack::kDirected;
    return answer(layer, name, to);
  };
  const int before = errno;
  {
    const base::Scratch room;
    const stack::Result r = stack::ask_layers(directory, path, follow, ask, room.data());
    if (r == stack::kDirected) {
      const Returned result = real(AT_FDCWD, static_cast<const char*>(room.data()));
      if (!has_failed(result) || errno != ENOENT) return result;  // else it went to its place
    } else if (r != stack::kPass) {
      return returned<Returned>(r);
    }
  }
  errno = before;
  const Returned result = checked_above(directory, path, real(directory, path));
  if (!has_failed(result) || errno != ENOENT || !follow) return result;
  const base::Scratch room;
  const stack::Result r = stack::ask_of_target(directory, path, ask, room.data());
  if (r == stack::kDirected) return real(AT_FDCWD, static_cast<const char*>(room.data()));
  return r == stack::kPass ? result : returned<Returned>(r);
}

// A call that changes the file; its name stays.
template <typename Answer, typename Real>
auto changing_by_name(int directory, const char* path, bool follow, Answer answer, Real real)
    -> decltype(real(directory, path)) {
  using Returned = decltype(real(directory, path));
  if (WEIR_LIKELY(!stack::any_layer_has_names())) return real(directory, path);
  struct Within {
    Real* real;
    Returned result;
    int error;
  } within{&real, {}, 0};
  const auto call = [](void* with, const char* there) {
    auto* const w = static_cast<Within*>(with);
    w->result = (*w->real)(AT_FDCWD, there);
    w->error = errno;
  };
  const auto ask = [&](const stack::NamesOfLayer& layer, const stack::GivenPath& name, char* to) {
    if (layer.change_within == nullptr) return answer(layer, name, to);
    return layer.change_within(name, call, &within) ? stack::kDirected : stack::kPass;
  };
  const auto result_of = [&](stack::Result r) {
    if (r != stack::kDirected) return returned<Returned>(r);
    errno = within.error;
    return within.result;
  };
  if (const stack::Result r = stack::ask_layers(directory, path, follow, ask); r != stack::kPass)
    return result_of(r);
  const Returned result = checked_above(directory, path, real(directory, path));
  if (!has_failed(result) || errno != ENOENT || !follow) return result;
  const base::Scratch room;
  const stack::Result r = stack::ask_of_target(directory, path, ask, room.data());
  return r == stack::kPass ? result : result_of(r);
}

inline constexpr auto pass = [](const stack::NamesOfLayer&, const stack::GivenPath&, char*) {
  return stack::kPass;
};

inline stack::Result stat_of(const stack::NamesOfLayer& layer, const stack::GivenPath& path,
                             struct stat* to) {
  return layer.stat != nullptr ? layer.stat(path, to) : stack::kPass;
}

inline stack::Result stat_any_of(const stack::NamesOfLayer& layer, const stack::GivenPath& path,
                                 struct stat* to) {
  return layer.stat_any != nullptr ? layer.stat_any(path, to) : stat_of(layer, path, to);
}

// What a call gives of any file that a layer answers for.
inline auto same_for_all(stack::Result result) {
  return [result](const stack::NamesOfLayer& layer, const stack::GivenPath& path, char*) {
    struct stat about;
    const stack::Result r = stat_of(layer, path, &about);
    return r == 0 ? result : r;
  };
}

// The file becomes real first, where a layer answers for it.
inline constexpr auto bring = [](const stack::NamesOfLayer& layer, const stack::GivenPath& path,
                                 char*) {
  const stack::Result r = layer.bring != nullptr ? layer.bring(path) : stack::kPass;
  return r == 0 ? stack::kPass : r;
};

// An open in which no layer takes part.
template <typename Real>
auto opening_by_name(int directory, const char* path, int flags, Real real) {
  const bool follow =
      (flags & O_NOFOLLOW) == 0 && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
  const bool changes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
  if (WEIR_UNLIKELY((flags & (O_DIRECTORY | O_CREAT)) == O_DIRECTORY))
    return by_name(directory, path, follow, same_for_all(-ENOTDIR), real);
  if (WEIR_UNLIKELY((flags & O_PATH) != 0))  // what it is used for is not known
    return by_name(directory, path, follow, bring, real);
  if (WEIR_LIKELY(!stack::any_layer_directs())) return real(directory, path);
  return changes ? changing_by_name(directory, path, follow, pass, real)
                 : by_name(directory, path, follow, pass, real);
}

// An open, in which layers take part or not. open(directory, path) is made once more for the file
// that a symbolic link leads to, where the kernel has none.
template <typename Open>
auto opening_target_too(int directory, const char* path, int flags, Open open) {
  const auto result = checked_above(directory, path, open(directory, path));
  if (WEIR_LIKELY(!stack::any_layer_has_names() || !has_failed(result)) || errno != ENOENT ||
      (flags & (O_CREAT | O_NOFOLLOW)) != 0 || path == nullptr)
    return result;
  const base::Scratch room;
  return stack::find_target(directory, path, room.data())
             ? open(AT_FDCWD, static_cast<const char*>(room.data()))
             : result;
}

// A directory, a link or the like is made under a name.
template <typename Real>
int making(int directory, const char* path, Real real) {
  if (WEIR_LIKELY(!stack::any_layer_has_names())) return real();
  const stack::Result r = stack::ask_layers(
      directory, path, false,
      [](const stack::NamesOfLayer& layer, const stack::GivenPath& name, char*) {
        return layer.make != nullptr ? layer.make(name) : stack::kPass;
      });
  if (r != stack::kPass) return returned<int>(r);
  if (stack::is_below_file(directory, path, true)) return returned<int>(-EEXIST);
  const int result = checked_above(directory, path, real());
  if (result == 0) stack::name_made(directory, path);
  return result;
}

// For calls that know a file by its name alone. 0, or -1: it cannot be brought under its name.
inline int bring_file(int directory, const char* path, int error_if_busy) {
  if (WEIR_LIKELY(!stack::any_layer_has_names())) return 0;
  const int before = errno;
  const stack::Result r = stack::ask_layers(directory, path, true, bring);
  errno = before;
  return r == stack::kPass ? 0 : returned<int>(r == -EBUSY ? -error_if_busy : r);
}
template <typename Real>
int with_real_file(int directory, const char* path, int error_if_busy, Real real) {
  return bring_file(directory, path, error_if_busy) == 0
             ? checked_above(directory, path, real())
             : -1;
}

// unlink (file), rmdir (of_directory); remove is both.
template <typename Real>
int removing_by_name(int directory, const char* path, bool file, bool of_directory, Real real) {
  if (WEIR_LIKELY(!stack::any_layer_has_names())) return real();
  const stack::Result r = stack::ask_layers(
      directory, path, false,
      [&](const stack::NamesOfLayer& layer, const stack::GivenPath& name, char*) {
        stack::Result done = stack::kPass;
        if (file && layer.remove != nullptr) done = layer.remove(name);
        if (done == stack::kPass && of_directory && layer.remove_directory != nullptr)
          done = layer.remove_directory(name);
        return done;
      });
  if (r != stack::kPass) return returned<int>(r);
  const int result = checked_above(directory, path, real());
  if (result == 0) stack::name_removed(directory, path);
  return result;
}

template <typename Real>
int renaming_by_name(int directory, const char* path, int to_directory, const char* to,
                     unsigned flags, Real real) {
  if (WEIR_LIKELY(!stack::any_layer_has_names())) return real();
  const stack::Result r = stack::ask_to_rename(directory, path, to_directory, to, flags);
  if (r != stack::kPass) return returned<int>(r);
  int result = real();
  // A directory that is replaced may have what a layer keeps in it, and no more.
  if (WEIR_UNLIKELY(result != 0 && (errno == ENOTEMPTY || errno == EEXIST)) && flags == 0 &&
      stack::cleared_away(to_directory, to))
    result = real();
  checked_above(to_directory, to, checked_above(directory, path, result));
  if (result == 0) stack::names_renamed(directory, path, to_directory, to);
  return result;
}

}  // namespace weir::hook
