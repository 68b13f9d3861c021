// SPDX-License-Identifier: Apache-2.0
// The near half of HTTP between a client and a server that say anything. The input is what they say, in parts that begin
// with 'c' or 's' and end with a zero byte; its first byte is the size in which it is cut. As long as nothing has been
// stored, every byte arrives as it was sent; also where the half reads what another module decrypts.
#include <string>
#include <utility>
#include <vector>

#include "fuzz/target.h"
#include "proxy/modules/http/descriptor.h"
#include "proxy/modules/http/near.h"
#include "proxy/modules/plaintext.h"
#include "tests/proxy/modules/kit/watched.h"

using namespace longhaul;

namespace {

Slice slice_of(std::string_view text) { return Slice::copy_of(std::as_bytes(std::span(text))); }

void add(std::string& text, const Slice& bytes) {
  text.append(reinterpret_cast<const char*>(bytes.bytes().data()), bytes.size());
}

// What was said, through modules::Plaintext: client's pieces and server's, in their order.
void require_passes(const std::vector<std::pair<bool, std::string>>& said, const modules::Surroundings& told) {
  const std::shared_ptr<modules::Instance> http = http::kDescriptor.make(
      {.ahead_bytes = 1, .cache_bytes = 64 * 1024, .daemon_number = 1, .wall_seconds = [] { return std::int64_t{1'700'000'000}; }});
  modules::Plaintext plaintext({{.recognise = http::kDescriptor.recognise, .instance = http}}, {}, "x");
  link::TimePoint now{std::chrono::hours(1)};
  plaintext.on_surroundings(now, told);
  std::string wanted[2], got[2];
  bool ended_lan = false, ended_stream = false;
  const auto collect = [&] {
    while (auto output = plaintext.poll_output()) {
      if (const auto* client = std::get_if<modules::ToStream>(&*output)) add(got[1], client->bytes);
      if (const auto* server = std::get_if<modules::ToLan>(&*output)) add(got[0], server->bytes);
      ended_lan |= std::holds_alternative<modules::EndLan>(*output);
      ended_stream |= std::holds_alternative<modules::EndStream>(*output);
      fuzz::require(!std::holds_alternative<modules::Abort>(*output));
    }
  };
  for (bool is_first = true; const auto& [is_client, text] : said) {
    const bool is_late = std::exchange(is_first, false) && is_client;
    if (!is_late) wanted[is_client] += text;
    if (is_late)
      plaintext.server_has(now, slice_of(text));
    else
      is_client ? plaintext.from_client(now, slice_of(text)) : plaintext.from_server(now, slice_of(text));
    collect();
  }
  plaintext.client_closed(now), collect();
  plaintext.server_closed(now), collect();
  fuzz::require(ended_lan && ended_stream);
  fuzz::require(got[0] == wanted[0] && got[1] == wanted[1]);
  fuzz::require(plaintext.held_bytes() == 0);
}

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
  std::vector<std::pair<bool, std::string>> said;
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
      said.emplace_back(is_client, piece);
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
  for (const modules::Output& each : near.to_twin)
    if (const auto* raw = std::get_if<modules::ToStream>(&each)) add(at_server, raw->bytes);
  for (const Slice& each : near.to_lan) add(at_client, each);
  fuzz::require(at_server == from_client);
  fuzz::require(at_client == from_server);
  fuzz::require(site->pending_bytes == 0);
  require_passes(said, told);
  return 0;
}
