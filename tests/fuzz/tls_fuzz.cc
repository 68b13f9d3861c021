// SPDX-License-Identifier: Apache-2.0
// The halves of TLS before clients, servers and twins that say anything. The first byte of the input chooses
// what the rest is: a ClientHello before the far half, which passes it unchanged or shakes hands with the
// server and does neither by half; records before the near half after the handshake, of which nothing may
// come out; a session from the twin, which a client resumes; what a client and a server say about Encrypted
// Client Hello.
#include <algorithm>
#include <array>
#include <string>

#include "crypto/tls12_records.h"
#include "fuzz/target.h"
#include "proxy/modules/tls/descriptor.h"
#include "proxy/modules/tls/ech.h"
#include "proxy/modules/tls/far.h"
#include "proxy/modules/tls/near.h"
#include "tests/proxy/modules/kit/watched.h"
#include "tests/proxy/modules/tls/certificates.h"

using namespace longhaul;

namespace {

constexpr link::TimePoint kNow{std::chrono::hours(1)};

const modules::Surroundings& told() {
  static const modules::Surroundings all = [] {
    static const config::FeatureTable table{tls::kDescriptor.features};
    modules::Surroundings made;
    made.features.modules = config::ModuleFeatures::standard(table);
    return made;
  }();
  return all;
}

std::string text_of(const std::deque<Slice>& pieces) {
  std::string text;
  for (const Slice& each : pieces) text.append(reinterpret_cast<const char*>(each.bytes().data()), each.size());
  return text;
}

void hello(Bytes said, std::size_t cut) {
  static const auto policy = [] {
    const tls::Issued authority = tls::issue("ca"), shown = tls::issue("a.corp", &authority);
    std::vector<modules::ServerFiles> tables;
    tables.push_back(tls::table("a.corp", shown, authority));
    return std::static_pointer_cast<const tls::Policy>(*tls::Policy::read(tables));
  }();
  const auto site = std::make_shared<tls::Site>();
  site->policy = policy;
  kit::Watched far(std::make_unique<tls::Far>(modules::Ends{}, modules::Address{}, site));
  far.module.on_surroundings(kNow, told()), far.collect();
  std::string sent;
  for (Bytes rest = said; !rest.empty() && !far.aborted; rest = rest.subspan(std::min(cut, rest.size()))) {
    const Bytes piece = rest.first(std::min(cut, rest.size()));
    sent.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    far.module.from_stream(kNow, Slice::copy_of(piece)), far.collect();
  }
  if (far.aborted) return fuzz::require(!far.redialled);
  const std::string to_server = text_of(far.to_lan);
  if (far.steps_aside) return fuzz::require(to_server == sent);
  fuzz::require(to_server.empty() || (to_server[0] == 22 && to_server.find("a.corp") != std::string::npos));
  // The server goes away: the client's bytes are for its next connection.
  far.end(kNow);
  fuzz::require(text_of(far.to_lan) == sent && far.redialled == !to_server.empty());
}

void records(std::uint8_t which, Bytes said) {
  static constexpr std::array<std::uint16_t, 6> kSuites{0x1301, 0x1302, 0x1303, 0xC02B, 0xC02C, 0xCCA8};
  const std::uint16_t number = kSuites[which % kSuites.size()];
  std::size_t size = 0;
  if (const auto suite = RecordSuite::of(number)) size = suite->secret_bytes();
  if (const auto suite = Tls12Suite::of(number)) size = suite->secret_bytes();
  kit::Watched near(std::make_unique<tls::Near>(modules::Ends{}, modules::PlaintextReaders{}, std::make_shared<tls::NearSite>()));
  near.module.on_surroundings(kNow, told());
  const Slice secret = Slice::copy_of(Buffer(size, std::byte{7}));
  const std::string name = "a.corp";
  const bool is_early = which >= 128 && RecordSuite::of(number);
  near.module.from_twin(kNow, twin::encode(tls::Message(tls::Keys{
                                  .suite = number,
                                  .client_secret = secret,
                                  .server_secret = secret,
                                  .name = Slice::copy_of(std::as_bytes(std::span(name))),
                                  .flight = is_early ? Slice::copy_of(as_bytes("flight")) : Slice()})));
  near.collect();
  fuzz::require(!near.aborted);
  near.from_lan(kNow, Slice::copy_of(said));
  // Nobody seals a record by chance: with early keys the same passes, as of a handshake; later nothing does.
  std::string passed;
  for (const modules::Output& each : near.to_twin) {
    if (const auto* bytes = std::get_if<modules::ToStream>(&each)) passed += text_of({bytes->bytes});
    if (const auto* message = std::get_if<modules::ToTwin>(&each); message && is_early)
      fuzz::require(
          !std::holds_alternative<tls::Taken>(*twin::decode<tls::Message>(message->message.bytes())));
  }
  const std::string all = text_of({Slice::copy_of(said)});
  fuzz::require(is_early ? all.starts_with(passed) : passed.empty());
}

// A ClientHello of TLS 1.2 that names a session of 32 bytes 'i'.
Slice old_hello() {
  std::string hello("\x03\x03", 2);
  hello += std::string(32, 'r') + '\x20' + std::string(32, 'i');
  hello += std::string("\x00\x02\xC0\x2B\x01\x00", 6);
  const std::string extensions("\x00\x00\x00\x0B\x00\x09\x00\x00\x06" "a.corp" "\x00\x17\x00\x00", 19);
  hello += std::string{'\0', static_cast<char>(extensions.size())} + extensions;
  const auto size = static_cast<char>(hello.size());
  const std::string record = std::string("\x16\x03\x01\x00", 4) + static_cast<char>(size + 4) + std::string("\x01\x00\x00", 3) + size + hello;
  return Slice::copy_of(std::as_bytes(std::span(record)));
}

void session(Bytes bytes) {
  const auto site = std::make_shared<tls::NearSite>();
  SecretBytes kept(bytes.size());
  std::copy(bytes.begin(), bytes.end(), kept.data());
  site->sessions.put({}, "a.corp", std::string(32, 'i'), {std::move(kept), "entry", false, kNow + tls::Sessions::kLifetime});
  kit::Watched near(std::make_unique<tls::Near>(modules::Ends{}, modules::PlaintextReaders{}, site));
  near.module.on_surroundings(kNow, told());
  const Slice said = old_hello();
  near.from_lan(kNow, said);
  fuzz::require(!near.aborted && !site->sessions.has({}));
  // Resumed, or the same to the far half.
  if (near.to_lan.empty()) {
    const auto* passed = std::get_if<modules::ToStream>(&near.to_twin.front());
    fuzz::require(passed && std::ranges::equal(passed->bytes.bytes(), said.bytes()));
  } else {
    fuzz::require(std::holds_alternative<modules::ToTwin>(near.to_twin.front()));
  }
}

// The second byte of the input is the length of the client's part.
void encrypted_hello(std::size_t of_client, Bytes rest) {
  const Bytes hello = rest.first(std::min(of_client, rest.size())), configs = rest.subspan(hello.size());
  const auto offer = tls::ech_offer(hello);
  if (!offer) return;
  fuzz::require(hello.size() >= 10 && hello[5] == std::byte{offer->config});
  if (tls::has_ech_key(configs, *offer, "public.corp"))
    fuzz::require(std::ranges::find(configs, std::byte{offer->config}) != configs.end());
}

}  // namespace

FUZZ_TARGET(tls) {
  if (size < 3) return 0;
  const Bytes rest = std::as_bytes(std::span(data, size)).subspan(2);
  switch (data[0] % 4) {
    case 0:
      hello(rest, data[1] == 0 ? size : data[1]);
      break;
    case 1:
      records(data[1], rest);
      break;
    case 2:
      session(rest);
      break;
    default:
      encrypted_hello(data[1], rest);
  }
  return 0;
}
