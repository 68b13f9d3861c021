// SPDX-License-Identifier: Apache-2.0
// The near half of HTTP/2 between a client and a server that say anything. The input is what they say, in
// parts of one byte that says who and how ('c', 's': frames; 'C', 'S': the beginning that both need before),
// two bytes of size, and the part. With an odd first byte the server has heard the client's first part
// already. Whatever comes, the half keeps to its contract and its bounds.
#include <string>
#include <utility>

#include "fuzz/target.h"
#include "proxy/modules/http/descriptor.h"
#include "proxy/modules/http/h2/early.h"
#include "proxy/modules/http/h2/near.h"
#include "tests/proxy/modules/kit/watched.h"

using namespace longhaul;

namespace {

Slice h2_slice(std::string_view text) { return Slice::copy_of(std::as_bytes(std::span(text))); }

}  // namespace

FUZZ_TARGET(http2) {
  if (size < 4) return 0;
  const bool is_late = (data[0] & 1) != 0;
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  link::TimePoint now{std::chrono::hours(1)};
  const auto site = std::make_shared<http::Site>(1 << 20);
  site->wall = [] { return http::Seconds{1'700'000'000}; };
  {
    kit::Watched near(std::make_unique<http::h2::Near>(modules::Ends{.server_port = 80}, site));
    modules::Surroundings told;
    static constexpr std::array<config::ModuleFeature, 1> kHttp{{{.name = "http"}}};
    static const config::FeatureTable table{kHttp};
    told.features.modules = config::ModuleFeatures::standard(table);
    near.module.on_surroundings(now, told);
    near.collect();
    if (is_late) {
      const std::string_view first = rest.substr(0, std::min<std::size_t>(rest.size(), 64 + data[0]));
      near.module.from_lan_seen_late(now, h2_slice(std::string(http::h2::kPreface) + std::string(first)));
      rest.remove_prefix(first.size());
      near.module.seen_late_is_over(now);
      near.collect();
    } else {
      near.from_lan(now, h2_slice(http::h2::kPreface));
    }
    static constexpr char kSettings[] = "\0\0\0\4\0\0\0\0\0";
    while (rest.size() > 3 && !near.aborted && !near.lan_ended) {
      const char who = rest[0];
      const std::size_t length =
          static_cast<unsigned char>(rest[1]) + 256u * (static_cast<unsigned char>(rest[2]) % 64u);
      const std::string_view part = rest.substr(3, length);
      rest.remove_prefix(3 + part.size());
      std::string text(part);
      if (who == 'C' || who == 'S') text.insert(0, kSettings, 9);
      if (who == 'c' || who == 'C') {
        near.from_lan(now, h2_slice(text));
      } else if (who == 't') {
        now += std::chrono::seconds(7);
      } else if (!near.passes_to_lan) {
        near.module.from_stream(now, h2_slice(text));
        near.collect();
      }
      if (near.steps_aside && !near.twin_steps_aside) {
        near.twin_steps_aside = true;
        near.module.twin_stepped_aside(now);
        near.collect();
      }
      if (!near.done()) near.module.on_room(now, {.lan = true, .stream = true}), near.collect();
      // One that is continued has the windows that the client itself has given.
      fuzz::require(is_late || near.module.queued_bytes() <= http::h2::Streams::kMostDown.together);
      fuzz::require(near.module.state_bytes() <= (32u << 20));
    }
    if (!near.done()) near.end(now);
    if (!near.done() && !near.lan_ended)
      near.module.stream_ended(now, modules::Ending::closed), near.collect();
  }
  fuzz::require(site->store.bytes() <= 1 << 20);
  fuzz::require(site->pending_bytes == 0);
  return 0;
}
