// SPDX-License-Identifier: Apache-2.0
#include "cache/link_hooks.h"

#include <xxhash.h>

#include "codecs/keyed_hash.h"

namespace longhaul::cache {

std::uint64_t LinkHooks::salt_of(const reduction::SitePair& link) {
  static_assert(sizeof link == 2 * sizeof(reduction::SiteId));
  return XXH3_64bits(&link, sizeof link);
}

std::uint64_t LinkHooks::key_of(std::uint64_t fingerprint, std::uint64_t salt) {
  return KeyedHash{}(fingerprint ^ salt);
}

void LinkHooks::insert(const reduction::SitePair& link, Slot slot, std::span<const reduction::Hook> hooks) {
  const std::uint64_t salt = salt_of(link);
  for (const reduction::Hook& hook : hooks) index_.insert(key_of(hook.fingerprint, salt), slot, hook.offset);
}

}  // namespace longhaul::cache
