// SPDX-License-Identifier: Apache-2.0
#include "proxy/identity/server_secrets.h"

#include <boost/asio/ip/address_v6.hpp>
#include <cstring>
#include <fstream>
#include <iterator>

#include "proxy/config/read.h"
#include "proxy/identity/secret_file.h"
#include "proxy/identity/token_key.h"
#include "proxy/modules/modules.h"

namespace longhaul::identity {
namespace {

// Enough for the keytab of a whole domain with 50,000 accounts.
constexpr SecretKind kServerSecret{
    .name = "secret", .remedy = "docs/configuration.md says how to make one", .most_bytes = 16 << 20};

modules::AddressRange range_of(const config::Network& network) {
  namespace ip = boost::asio::ip;
  const bool v4 = network.address.is_v4();
  const auto bytes = v4 ? ip::make_address_v6(ip::v4_mapped, network.address.to_v4()).to_bytes()
                        : network.address.to_v6().to_bytes();
  modules::AddressRange range{.prefix_length = network.prefix_length + (v4 ? 96 : 0)};
  std::memcpy(range.address.data(), bytes.data(), bytes.size());
  return range;
}

modules::ServerFile read_public_file(const std::string& key, const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.good() && !in.eof())
    throw config::ConfigError(file.string() + ": it cannot be read: " + std::strerror(errno) + '.');
  if (text.size() > kServerSecret.most_bytes)
    throw config::ConfigError(file.string() + ": it is larger than 16 MiB, too large for a certificate.");
  SecretBytes content(text.size());
  std::memcpy(content.data(), text.data(), text.size());
  return {.key = key, .name = file.string(), .content = std::move(content)};
}

constexpr SecretKind kPin{.name = "PIN", .remedy = "write it into that file", .most_bytes = 257};

// Reads the PIN from its file, removes trailing line breaks, and appends the zero byte that PKCS#11 libraries
// expect.
SecretBytes read_pin(const std::filesystem::path& file) {
  const SecretBytes content = read_secret(file, kPin);
  const Bytes bytes = content;
  std::size_t size = bytes.size();
  while (size > 0 && (bytes[size - 1] == std::byte{'\n'} || bytes[size - 1] == std::byte{'\r'})) --size;
  if (size == 0 || size == kPin.most_bytes)
    throw config::ConfigError(file.string() +
                              ": it must contain the PIN, of 1 to 256 bytes, and nothing else.");
  SecretBytes pin(size + 1);
  std::memcpy(pin.data(), bytes.data(), size);
  return pin;
}

modules::ServerFile held_key(const std::string& key, const std::string& uri) {
  auto parsed = TokenUri::parse(uri);
  // Omit the query, which may contain a PIN.
  if (!parsed)
    throw config::ConfigError(key + " = \"" + uri.substr(0, uri.find('?')) + "\" " + parsed.error().message +
                              '.');
  SecretBytes pin = parsed->pin_file().empty() ? SecretBytes() : read_pin(parsed->pin_file());
  std::string name = parsed->text();
  return {.key = key,
          .name = std::move(name),
          .content = {},
          .held = std::make_shared<TokenKey>(*std::move(parsed), std::move(pin))};
}

modules::ServerFiles read_files(const config::ServerTable& table) {
  modules::ServerFiles server;
  for (const config::Network& network : table.addresses) {
    (server.name += server.name.empty() ? "" : ", ") += config::to_text(network);
    server.addresses.push_back(range_of(network));
  }
  server.names = table.names;
  for (const config::Network& network : table.clients) server.clients.push_back(range_of(network));
  server.off = table.off;
  server.chosen = table.chosen;
  for (const auto& [key, file] : table.files) server.files.push_back(read_server_file(key, file));
  for (const auto& [key, uri] : table.held) server.files.push_back(held_key(key, uri));
  for (const auto& [key, file] : table.public_files) server.files.push_back(read_public_file(key, file));
  return server;
}

}  // namespace

modules::ServerFile read_server_file(const std::string& key, const std::filesystem::path& file) {
  SecretBytes content = read_secret(file, kServerSecret);
  if (content.size() == kServerSecret.most_bytes)
    throw config::ConfigError(file.string() +
                              ": it is larger than 16 MiB; export only the keys of the servers.");
  return {.key = key, .name = file.string(), .content = std::move(content)};
}

ServerSecrets load_server_secrets(const config::Config& config) {
  ServerSecrets secrets;
  for (const modules::Descriptor* module : modules::descriptors()) {
    std::vector<modules::ServerFiles> servers;
    for (const config::ServerTable& table : config.servers)
      if (table.name == module->servers.name) servers.push_back(read_files(table));
    if (servers.empty()) continue;
    auto read = module->servers.read(servers);
    if (!read) throw config::ConfigError(read.error().message);
    secrets.emplace(module->name, *std::move(read));
  }
  return secrets;
}

}  // namespace longhaul::identity
