// SPDX-License-Identifier: Apache-2.0
// Segments for tests, made from a number so that anybody can tell what must be in them, and a listener that
// writes down what it is told.
#pragma once
#include <map>
#include <set>

#include "codecs/reduction/segments.h"

namespace longhaul::cache::test {

using reduction::Hook;
using reduction::HookHit;
using reduction::LoadId;
using reduction::SegmentName;

// SplitMix64: a number for each number.
inline std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

struct Random {
  std::uint64_t state;
  std::uint64_t next() { return mixed(state++); }
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }
  bool once_in(std::uint64_t times) { return below(times) == 0; }
};

inline Buffer content_of(std::uint64_t seed, std::uint32_t length) {
  Buffer bytes((length + 7) / 8 * 8);
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    std::uint64_t word = mixed(seed * 0x100000001b3 + i);
    std::memcpy(&bytes[i], &word, 8);
  }
  bytes.resize(length);
  return bytes;
}

// Whose segments they are, unless a test says otherwise.
inline reduction::SiteId site(int number) {
  reduction::SiteId id;
  id.fill(std::byte(number));
  return id;
}
inline const std::array kLink{reduction::SitePair(site(7), site(8))};

struct Made {
  SegmentName name;
  std::vector<Slice> parts;
  std::vector<Hook> hooks;
};

// `part_bytes`: how it is cut, 0: not at all. `first` of its name is the seed.
inline Made segment(std::uint64_t seed, std::uint32_t length, std::size_t part_bytes = 0) {
  Made made;
  Buffer bytes = content_of(seed, length);
  for (std::size_t at = 0; at < length;) {
    std::size_t size = part_bytes ? std::min(part_bytes, length - at) : length;
    made.parts.push_back(Slice::copy_of(Bytes(bytes).subspan(at, size)));
    at += size;
  }
  made.name.writer = site(7);
  made.name.reader = site(8);
  made.name.epoch = 42;
  made.name.first = seed;
  made.name.length = length;
  made.name.digest = reduction::segment_digest(made.parts);
  for (std::uint32_t at = 100; at < length; at += 4096) made.hooks.push_back({mixed(seed << 20 | at), at});
  return made;
}

inline std::uint64_t seed_of(const SegmentName& name) { return name.first; }

// Whether these bytes are what the segment has from `offset` on.
inline bool right(const SegmentName& name, std::uint32_t offset, Bytes bytes) {
  Buffer whole = content_of(seed_of(name), name.length);
  return offset <= whole.size() && bytes.size() <= whole.size() - offset &&
         as_text(Bytes(whole).subspan(offset, bytes.size())) == as_text(bytes);
}

class Recorder final : public reduction::SegmentListener {
 public:
  void on_stored(const SegmentName& name) override { stored.push_back(name); }
  void on_dropped(const SegmentName& name) override { dropped.push_back(name); }
  void on_loaded(LoadId load, std::optional<Slice> bytes) override { loaded[load] = std::move(bytes); }

  std::vector<SegmentName> stored, dropped;
  std::map<LoadId, std::optional<Slice>> loaded;
};

inline std::set<SegmentName> as_set(const std::vector<SegmentName>& names) {
  return {names.begin(), names.end()};
}

}  // namespace longhaul::cache::test
