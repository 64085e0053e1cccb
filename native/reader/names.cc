// SPDX-License-Identifier: Apache-2.0
#include "reader/names.h"

#include <algorithm>
#include <tuple>

#include "wire/checksum.h"
#include "wire/paths.h"

namespace weir::reader {
namespace {

constexpr uint32_t kMaxNameBytes = 8192;

class Collector {
 public:
  Collector(const Mapping& file, bool has_sums, Names& names, Problems& problems)
      : file_(file), has_sums_(has_sums), names_(names), problems_(problems) {}

  void read(const weir_reader_chunk& chunk) {
    const uint64_t begin = chunk.offset + sizeof(wire::ChunkHeader);
    uint64_t at = 0;
    while (at + sizeof(wire::NameEntry) <= chunk.entries) {
      const auto entry = file_.copy<wire::NameEntry>(begin + at);
      if (entry.id == 0 && source_of(entry) != wire::NameSource::kNote) {
        if (entry.length_bytes != 0) problems_.add(Reason::name_entry, begin + at, sizeof entry);
        at += sizeof entry;
        continue;
      }
      const uint64_t text = at + sizeof entry;
      if (entry.length_bytes > kMaxNameBytes || entry.length_bytes > chunk.entries - text) {
        problems_.add(Reason::name_entry, begin + at);
        return;
      }
      take(chunk.process, entry, begin + text);
      at = text + (entry.length_bytes + 7u) / 8 * 8;
    }
  }

 private:
  static wire::NameSource source_of(const wire::NameEntry& entry) {
    return wire::NameSource(uint16_t(entry.source) & wire::kNameSourceMask);
  }

  // Where the writer was killed before it stored the checksum, no record has the name.
  bool is_sound(const wire::NameEntry& entry, uint64_t offset) {
    const uint16_t stored = uint16_t(entry.source) & uint16_t(~wire::kNameSourceMask);
    if (!has_sums_) return true;
    if (stored == wire::name_sum(entry.id, entry.source, file_.data() + offset, entry.length_bytes))
      return true;
    if (stored != 0) problems_.add(Reason::name_sum, offset - sizeof entry);
    return false;
  }

  void take(uint32_t process, const wire::NameEntry& entry, uint64_t offset) {
    const std::string_view text(file_.data() + offset, entry.length_bytes);
    // No path holds a zero: the writer was killed between the entry's head and its text.
    if (!is_sound(entry, offset) || text.empty() || text.find('\0') != text.npos) return;
    const auto [found, is_new] = at_.emplace(text, uint32_t(names_.texts.size()));
    if (is_new) names_.texts.push_back({offset, entry.length_bytes, wire::names_a_file(text)});
    if (entry.id != 0)
      names_.ids.push_back({process, entry.id, found->second, uint32_t(source_of(entry))});
  }

  const Mapping& file_;
  const bool has_sums_;
  Names& names_;
  Problems& problems_;
  std::unordered_map<std::string_view, uint32_t> at_;
};

bool before(const weir_reader_name& a, const weir_reader_name& b) {
  return std::tie(a.process, a.id) < std::tie(b.process, b.id);
}

void drop_second_names(Names& names, Problems& problems) {
  std::stable_sort(names.ids.begin(), names.ids.end(), before);
  auto same = [&](const weir_reader_name& a, const weir_reader_name& b) {
    if (a.process != b.process || a.id != b.id) return false;
    if (a.text != b.text) problems.add(Reason::name_twice, names.texts[b.text].offset);
    return true;
  };
  names.ids.erase(std::unique(names.ids.begin(), names.ids.end(), same), names.ids.end());
}

}  // namespace

uint32_t Names::text_of(uint32_t process, uint32_t id) const {
  while (true) {
    const auto begin = ids.begin() + first_of[process], end = ids.begin() + first_of[process + 1];
    // Ids count up without gaps unless names were lost, so the place is almost always this one.
    const auto guess =
        begin + (begin != end && id >= begin->id && id - begin->id < uint64_t(end - begin)
                     ? id - begin->id
                     : 0);
    if (guess != end && guess->id == id) return guess->text;
    const auto found = std::lower_bound(
        begin, end, id, [](const auto& name, uint32_t key) { return name.id < key; });
    if (found != end && found->id == id) return found->text;
    if (parent_of[process] == process) return kLost;
    process = parent_of[process];
  }
}

std::array<uint32_t, 2> Names::most_ids_of(uint32_t process) const {
  std::array<uint32_t, 2> most{};
  each(process, [&](uint32_t id, uint32_t) {
    uint32_t& its = most[id >> 31];
    its = std::max(its, id & (wire::kOtherNames - 1));
  });
  return most;
}

// Parents were there before their children, so their chunks come first: no circle can be drawn.
// Longer lines of forks without exec than this are no program's: a hostile file must not make each
// look-up long.
constexpr uint32_t kMostGenerations = 64;

static void find_parents(const Mapping& file, const Index& index, Names& names) {
  std::unordered_map<uint32_t, uint32_t> at;
  std::vector<uint32_t> generation(index.processes.size(), 0);
  for (uint32_t p = 0; p < index.processes.size(); ++p) {
    const auto& process = index.processes[p];
    names.parent_of.push_back(p);
    if (process.whole == 0) continue;
    at.emplace(process.page, p);
    const auto parent = file.copy<uint32_t>(process.offset + offsetof(wire::ProcessChunk, parent));
    const auto found = at.find(parent);
    if (parent == 0 || parent >= process.page || found == at.end()) continue;
    if (generation[found->second] == kMostGenerations) continue;
    generation[p] = generation[found->second] + 1;
    names.parent_of[p] = found->second;
  }
}

Names read_names(const Mapping& file, const Index& index, Problems& problems) {
  Names names;
  Collector collector(file, index.version >= wire::kChecked, names, problems);
  for (const auto& chunk : index.chunks) {
    if (chunk.kind == uint32_t(wire::Kind::kNames)) collector.read(chunk);
  }
  drop_second_names(names, problems);
  names.first_of.assign(index.processes.size() + 1, 0);
  for (const auto& name : names.ids) ++names.first_of[name.process + 1];
  for (size_t i = 1; i < names.first_of.size(); ++i) names.first_of[i] += names.first_of[i - 1];
  find_parents(file, index, names);
  return names;
}

}  // namespace weir::reader
