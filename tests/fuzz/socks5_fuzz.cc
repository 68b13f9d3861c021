// SPDX-License-Identifier: Apache-2.0
// SOCKS5 records from any client, cut anywhere: read as the listener reads them, which must agree with
// reading the whole at once and never ask for bytes beyond a record's end.
#include <cstdint>

#include "fuzz/target.h"
#include "proxy/listeners/socks5_records.h"

namespace longhaul::fuzz::socks5_target {
using namespace longhaul::listeners::socks5;

namespace {

template <class T>
void read(Bytes in, Parsing<T> (*parse)(Bytes), std::size_t (*wanted)(Bytes)) {
  const auto whole = parse(in);
  std::size_t have = 0;
  for (;;) {
    const auto parsed = parse(in.first(have));
    if (!parsed) {
      require(!whole);
      return;
    }
    if (*parsed) {
      require((*parsed)->consumed == have);
      require(whole.has_value() && whole->has_value() && (*whole)->consumed == have);
      return;
    }
    const std::size_t want = wanted(in.first(have));
    require(want > have && want <= 4 + 1 + 255 + 2);
    if (want > in.size()) {
      require(!whole || !*whole);
      return;
    }
    have = want;
  }
}

}  // namespace

FUZZ_TARGET(socks5) {
  const Bytes in = std::as_bytes(std::span(data, size));
  read(in, parse_greeting, greeting_bytes);
  read(in, parse_request, request_bytes);
  const auto request = parse_request(in);
  if (request && *request) require(!(*request)->value.destination.to_text().empty());
  return 0;
}

}  // namespace longhaul::fuzz::socks5_target
