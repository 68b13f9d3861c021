// SPDX-License-Identifier: Apache-2.0
// What a client says on a connection made ahead, cut anywhere: if all of it may be repeated, so may every
// beginning, which is what a server may have seen.
#include "fuzz/target.h"
#include "proxy/modules/http/connect_ahead.h"
#include "proxy/modules/tls/connect_ahead.h"

namespace longhaul::fuzz::connect_ahead_target {
namespace {

void check(const modules::ConnectAhead& rule, Bytes said) {
  (void)rule.is_answer(said);
  if (!rule.may_repeat(said)) return;
  for (std::size_t size = 0; size < said.size(); ++size) require(rule.may_repeat(said.first(size)));
}

}  // namespace

FUZZ_TARGET(connect_ahead) {
  const Bytes said = std::as_bytes(std::span(data, std::min<std::size_t>(size, 1024)));
  check(http::kConnectAhead, said);
  check(tls::kConnectAhead, said);
  return 0;
}

}  // namespace longhaul::fuzz::connect_ahead_target
