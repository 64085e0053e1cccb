// SPDX-License-Identifier: Apache-2.0
// Bytes: a magic word with the version, then the parts in the order of describe.h. Numbers are
// eight bytes of the machine (all ranks of a job are of one kind), texts and lists have their
// length first. Only jobs of one library exchange them, but a decoder that believes what it is sent
// turns a torn message into a crash somewhere else: nothing is believed.
#include "output/model/codec.h"

#include <cstring>

#include "output/model/check.h"
#include "output/model/describe.h"

namespace weir::output {
namespace {

constexpr uint64_t kMagic = 0x3474616372696577;  // "weircat4"

class Encoder {
 public:
  std::vector<char> bytes;

  void word(uint64_t value) {
    const char* from = reinterpret_cast<const char*>(&value);
    bytes.insert(bytes.end(), from, from + sizeof value);
  }
  void operator()(const char*, int& value) {
    word(static_cast<uint64_t>(static_cast<int64_t>(value)));
  }
  void operator()(const char*, int64_t& value) { word(static_cast<uint64_t>(value)); }
  void operator()(const char*, double& value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    word(bits);
  }
  void operator()(const char*, std::string& text) {
    word(text.size());
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  void operator()(const char* name, decltype(Attribute::value)& value) {
    word(value.index());
    std::visit([&](auto& one) { (*this)(name, one); }, value);
  }
  template <typename T>
  void operator()(const char* name, std::vector<T>& values) {
    word(values.size());
    for (T& value : values) (*this)(name, value);
  }
  void operator()(const char* name, std::optional<Number>& value) {
    word(value.has_value());
    if (!value) return;
    (*this)(name, value->real);
    (*this)(name, value->whole);
    word(value->is_whole);
  }
  template <typename T>
  void operator()(const char*, std::optional<T>& value) {
    word(value.has_value());
    if (value) describe(*this, *value);
  }
  template <typename E>
  void choice(const char*, E& value, E) {
    word(static_cast<uint64_t>(value));
  }
  template <typename T>
  void list(const char*, std::vector<T>& things) {
    word(things.size());
    for (T& thing : things) describe(*this, thing);
  }
};

class Decoder {
 public:
  explicit Decoder(std::span<const char> bytes) : left_(bytes) {}
  const std::string& problem() const { return problem_; }
  bool at_end() const { return left_.empty(); }

  uint64_t word(const char* name) {
    uint64_t value = 0;
    if (left_.size() < sizeof value) {
      fail(name, "the bytes end");
      return 0;
    }
    std::memcpy(&value, left_.data(), sizeof value);
    left_ = left_.subspan(sizeof value);
    return value;
  }
  void operator()(const char* name, int& value) {
    const int64_t wide = static_cast<int64_t>(word(name));
    value = static_cast<int>(wide);
    if (value != wide) fail(name, "no 32-bit number");
  }
  void operator()(const char* name, int64_t& value) { value = static_cast<int64_t>(word(name)); }
  void operator()(const char* name, double& value) {
    const uint64_t bits = word(name);
    std::memcpy(&value, &bits, sizeof value);
  }
  void operator()(const char* name, std::string& text) {
    const uint64_t size = word(name);
    if (size > left_.size()) return fail(name, "longer than all that is left");
    text.assign(left_.data(), size);
    left_ = left_.subspan(size);
  }
  void operator()(const char* name, decltype(Attribute::value)& value) {
    switch (word(name)) {
      case 0: return (*this)(name, value.emplace<std::string>());
      case 1: return (*this)(name, value.emplace<double>());
      case 2: return (*this)(name, value.emplace<std::vector<double>>());
    }
    fail(name, "neither text nor number");
  }
  template <typename T>
  void operator()(const char* name, std::vector<T>& values) {
    if (!resize(name, values)) return;
    for (T& value : values) (*this)(name, value);
  }
  void operator()(const char* name, std::optional<Number>& value) {
    if (!flag(name)) return;
    (*this)(name, value.emplace().real);
    (*this)(name, value->whole);
    value->is_whole = flag(name);
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& value) {
    if (flag(name)) describe(*this, value.emplace());
  }
  template <typename E>
  void choice(const char* name, E& value, E greatest) {
    const uint64_t number = word(name);
    if (number > static_cast<uint64_t>(greatest)) return fail(name, "no such choice");
    value = static_cast<E>(number);
  }
  template <typename T>
  void list(const char* name, std::vector<T>& things) {
    if (!resize(name, things)) return;
    for (T& thing : things) {
      if (!problem_.empty()) return;
      describe(*this, thing);
    }
  }

 private:
  void fail(const char* name, const char* why) {
    if (problem_.empty()) problem_ = std::string(name) + ": " + why;
    left_ = {};
  }
  bool flag(const char* name) {
    const uint64_t value = word(name);
    if (value > 1) fail(name, "neither there nor not");
    return value == 1;
  }
  // Every element has eight bytes at least, so a count makes no more memory than some thirty times
  // the bytes that are there.
  template <typename T>
  bool resize(const char* name, std::vector<T>& values) {
    const uint64_t count = word(name);
    if (count > left_.size() / sizeof(uint64_t)) {
      fail(name, "more elements than bytes are left");
      return false;
    }
    values.resize(count);
    return true;
  }

  std::span<const char> left_;
  std::string problem_;
};

}  // namespace

std::vector<char> encode_catalogue(const Catalogue& catalogue) {
  Encoder encoder;
  encoder.word(kMagic);
  describe(encoder, const_cast<Catalogue&>(
                        catalogue));  // the encoder only reads; describe serves the decoder too
  return std::move(encoder.bytes);
}

Result<Catalogue> decode_catalogue(std::span<const char> bytes) {
  const auto wrong = [](const std::string& why) {
    return Status(WEIR_E_INTERNAL, "the definitions that rank 0 sent are damaged (" + why + ")");
  };
  Decoder decoder(bytes);
  if (decoder.word("begin") != kMagic) return wrong("begin: not what this version of weir writes");
  Catalogue catalogue;
  describe(decoder, catalogue);
  if (!decoder.problem().empty()) return wrong(decoder.problem());
  if (!decoder.at_end()) return wrong("end: bytes are left over");
  if (Status status = check_structure(catalogue); !status.ok()) return wrong(status.message());
  return catalogue;
}

}  // namespace weir::output
