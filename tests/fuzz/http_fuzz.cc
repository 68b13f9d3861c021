// SPDX-License-Identifier: Apache-2.0
// The near half of HTTP between a client and a server that say anything. The input is what they say, in parts that begin
// with 'c' or 's' and end with a zero byte; its first byte is the size in which it is cut. As long as nothing has been
// stored, every byte arrives as it was sent.
#include <string>

#include "fuzz/target.h"
#include "proxy/modules/http/near.h"
#include "tests/proxy/modules/kit/watched.h"

using namespace longhaul;

namespace {

Slice slice_of(std::string_view text) { return Slice::copy_of(std::as_bytes(std::span(text))); }

}  // namespace

FUZZ_TARGET(http) {
  if (size < 2) return 0;
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t cut = data[0] == 0 ? size : data[0];
  link::TimePoint now{std::chrono::hours(1)};
  const auto site = std::make_shared<http::Site>(64 * 1024);
  site->wall = [] { return http::Seconds{1'700'000'000}; };
  kit::Watched near(std::make_unique<http::Near>(modules::Ends{.server_port = 80}, site));
  modules::Surroundings told;
  static constexpr std::array<config::ModuleFeature, 1> kHttp{{{.name = "http"}}};
  static const config::FeatureTable table{kHttp};
  told.features.modules = config::ModuleFeatures::standard(table);
  near.module.on_surroundings(now, told);
  near.collect();

  std::string from_client, from_server;
  while (!rest.empty() && !near.aborted) {
    std::string_view part = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    if (part.empty()) {
      now += std::chrono::seconds(7);
      continue;
    }
    const bool is_client = part.front() == 'c';
    part.remove_prefix(1);
    for (; !part.empty() && !near.aborted && !near.lan_ended; part.remove_prefix(std::min(cut, part.size()))) {
      const std::string_view piece = part.substr(0, cut);
      (is_client ? from_client : from_server) += piece;
      if (is_client) {
        near.from_lan(now, slice_of(piece));
      } else {
        near.module.from_stream(now, slice_of(piece));
        near.collect();
      }
    }
  }
  fuzz::require(site->store.bytes() <= 64 * 1024);
  const bool is_plain = site->store.bytes() == 0 && site->store.erasures() == 0;
  if (near.aborted || !is_plain) return 0;
  near.end(now);
  if (!near.lan_ended) near.module.stream_ended(now, modules::Ending::closed), near.collect();
  std::string at_server, at_client;
  const auto add = [](std::string& text, const Slice& bytes) {
    text.append(reinterpret_cast<const char*>(bytes.bytes().data()), bytes.size());
  };
  for (const modules::Output& each : near.to_twin)
    if (const auto* raw = std::get_if<modules::ToStream>(&each)) add(at_server, raw->bytes);
  for (const Slice& each : near.to_lan) add(at_client, each);
  fuzz::require(at_server == from_client);
  fuzz::require(at_client == from_server);
  fuzz::require(site->pending_bytes == 0);
  return 0;
}
