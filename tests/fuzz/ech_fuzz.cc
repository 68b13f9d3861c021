// SPDX-License-Identifier: Apache-2.0
// Fuzzes what a client and a server say about Encrypted Client Hello: the first two bytes are the length of the client's
// part. Nothing has the key of a number that it does not contain.
#include <algorithm>

#include "fuzz/target.h"
#include "proxy/modules/tls/ech.h"

namespace longhaul::fuzz::ech_target {

FUZZ_TARGET(ech) {
  const Bytes all = std::as_bytes(std::span(data, size));
  if (size < 2) return 0;
  const Bytes rest = all.subspan(2);
  const std::size_t of_client = std::min<std::size_t>(data[0] << 8 | data[1], rest.size());
  const Bytes hello = rest.first(of_client), configs = rest.subspan(of_client);
  const auto offer = tls::ech_offer(hello);
  if (!offer) return 0;
  require(hello.size() >= 10 && hello[5] == std::byte{offer->config});
  if (tls::has_ech_key(configs, *offer, "public.corp"))
    require(std::ranges::find(configs, std::byte{offer->config}) != configs.end());
  return 0;
}

}  // namespace longhaul::fuzz::ech_target
