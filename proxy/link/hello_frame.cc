// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/hello_frame.h"

#include <algorithm>

#include "proxy/config/module_features.h"

namespace longhaul::link {
namespace {

constexpr std::size_t kMaxSiteBytes = 64;
constexpr std::uint64_t kMaxModules = 64;

std::optional<Token> read_token(ByteReader& in) {
  auto bytes = in.bytes(sizeof(Token));
  if (!bytes) return std::nullopt;
  Token token;
  std::copy(bytes->begin(), bytes->end(), token.begin());
  return token;
}

}  // namespace

std::optional<HelloFrame> read_hello(ByteReader& in) {
  auto version = in.varint();
  if (!version) return std::nullopt;
  HelloFrame hello{.version = *version};
  // An unknown version may have any layout; the caller refuses it by its number.
  if (*version != kProtocolVersion) {
    in.bytes(in.remaining());
    return hello;
  }
  auto session = read_token(in), nonce = read_token(in);
  auto site = in.text();
  if (!session || !nonce || !site || site->size() > kMaxSiteBytes) return std::nullopt;
  hello.session = *session;
  hello.nonce = *nonce;
  hello.site = *site;
  if (in.remaining() > 0) {  // an older release ends here
    auto udp_port = in.fixed16();
    auto epoch = in.varint();
    auto ciphers = in.u8();
    if (!udp_port || !epoch || *epoch > kMaxEpoch || !ciphers) return std::nullopt;
    hello.udp_port = *udp_port;
    hello.epoch = *epoch;
    hello.ciphers = *ciphers;
  }
  if (in.remaining() > 0) {
    auto blocks = in.varint();
    if (!blocks) return std::nullopt;
    hello.blocks = *blocks;
  }
  if (in.remaining() > 0) {
    auto count = in.varint();
    if (!count || *count > kMaxModules) return std::nullopt;
    for (std::uint64_t i = 0; i < *count; ++i) {
      auto name = in.text();
      auto module_version = in.varint();
      if (!name || name->size() > kMaxModuleNameBytes || !module_version) return std::nullopt;
      hello.modules.push_back({std::string(*name), *module_version});
    }
  }
  if (in.remaining() > 0) {
    auto count = in.varint();
    if (!count || *count > kMaxFeatureNames) return std::nullopt;
    for (std::uint64_t i = 0; i < *count; ++i) {
      auto name = in.text();
      if (!name || name->size() > config::kMaxFeatureNameBytes) return std::nullopt;
      hello.features.emplace_back(*name);
    }
  }
  if (in.remaining() > 0) {
    auto count = in.varint();
    if (!count || *count > kMaxPaths) return std::nullopt;
    for (std::uint64_t i = 0; i < *count; ++i) {
      auto name = in.text();
      // Keys are derived by a path's index, so one name must have one index.
      if (!name || name->empty() || name->size() > kMaxPathNameBytes ||
          std::ranges::find(hello.paths, *name) != hello.paths.end())
        return std::nullopt;
      hello.paths.emplace_back(*name);
    }
  }
  in.bytes(in.remaining());  // fields of later releases are skipped
  return hello;
}

void write_hello(const HelloFrame& hello, ByteWriter& body) {
  body.varint(hello.version);
  body.bytes(hello.session);
  body.bytes(hello.nonce);
  body.text(std::string_view(hello.site).substr(0, kMaxSiteBytes));
  body.fixed16(hello.udp_port);
  body.varint(hello.epoch);
  body.u8(hello.ciphers);
  // Empty fields at the end are omitted.
  const bool has_paths = !hello.paths.empty();
  const bool has_features = has_paths || !hello.features.empty();
  const bool has_modules = has_features || !hello.modules.empty();
  if (has_modules || hello.blocks != 0) body.varint(hello.blocks);
  if (!has_modules) return;
  body.varint(hello.modules.size());
  for (const ModuleName& module : hello.modules) {
    body.text(module.name);
    body.varint(module.version);
  }
  if (!has_features) return;
  body.varint(hello.features.size());
  for (const std::string& name : hello.features) body.text(name);
  if (!has_paths) return;
  body.varint(hello.paths.size());
  for (const std::string& name : hello.paths) body.text(name);
}

}  // namespace longhaul::link
