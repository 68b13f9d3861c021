// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/disk_hooks.h"

#include <xxhash.h>

#include <cstring>

#include "codecs/dedup/sampler.h"

namespace longhaul::reduction {
namespace {

constexpr std::size_t kHookBytes = 32;  // that the fingerprint covers
constexpr std::size_t kStep = 65'536;   // sampled at a time

// One sample in 64, by the window that was sampled: a multiplication for those that are not hooks.
bool is_hook(const std::byte* at) {
  std::uint64_t window;
  std::memcpy(&window, at, sizeof window);
  return window * 0x9e3779b97f4a7c15 >> 58 == 0;
}

}  // namespace

void find_hooks(Bytes content, std::vector<Hook>& hooks) {
  hooks.clear();
  if (content.size() < kHookBytes) return;
  thread_local std::vector<std::uint32_t> samples(dedup::sample_room(kStep));
  const std::size_t positions = content.size() - kHookBytes + 1;
  for (std::size_t begin = 0; begin < positions; begin += kStep) {
    std::size_t count = std::min(kStep, positions - begin);
    std::size_t found = dedup::kernels().sample(content.data() + begin, count, samples.data());
    for (std::size_t i = 0; i < found; ++i) {
      const std::byte* at = content.data() + begin + samples[i];
      if (is_hook(at))
        hooks.push_back({XXH3_64bits(at, kHookBytes), static_cast<std::uint32_t>(begin + samples[i])});
    }
  }
}

}  // namespace longhaul::reduction
