// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/disk_hooks.h"

#include <xxhash.h>

#include <cstring>

#include "codecs/dedup/sampler.h"

namespace longhaul::reduction {
namespace {

constexpr std::size_t kHookBytes = 32;  // covered by the fingerprint
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
  (void)find_hooks(content, 0, true, hooks);
}

std::size_t find_hooks(Bytes content, std::size_t from, bool last, std::vector<Hook>& hooks) {
  if (content.size() < kHookBytes) return from;
  thread_local std::vector<std::uint32_t> samples(dedup::sample_room(kStep));
  const std::size_t positions = content.size() - kHookBytes + 1;
  while (from < positions) {
    const std::size_t count = std::min(kStep, positions - from);
    // Samples depend on those just before them: the steps are the same however the content is split.
    if (count < kStep && !last) break;
    const std::size_t found = dedup::kernels().sample(content.data() + from, count, samples.data());
    for (std::size_t i = 0; i < found; ++i) {
      const std::byte* at = content.data() + from + samples[i];
      if (is_hook(at))
        hooks.push_back({XXH3_64bits(at, kHookBytes), static_cast<std::uint32_t>(from + samples[i])});
    }
    from += count;
  }
  return from;
}

}  // namespace longhaul::reduction
