// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/descriptor.h"

#include <array>

#include "proxy/modules/plaintext.h"
#include "proxy/modules/tls/connect_ahead.h"
#include "proxy/modules/tls/far.h"
#include "proxy/modules/tls/near.h"
#include "proxy/modules/tls/reasons.h"

namespace longhaul::tls {
namespace {

constexpr std::array<std::uint16_t, 1> kPorts{443};
constexpr std::array<config::ModuleFeature, 2> kFeatures{{
    {.name = "tls"}, {.name = "tls.connect_ahead", .standard = 0, .part_of = "tls"}}};
constexpr std::array<std::string_view, 1> kSecretFiles{"key"};
constexpr std::array<std::string_view, 1> kHeld{"key"};
constexpr std::array<std::string_view, 2> kPublicFiles{"certificate", "ca"};
constexpr std::array<std::string_view, 1> kSwitches{"dedup"};
constexpr std::array<std::string_view, 2> kModes{"server", "mint"};
constexpr std::array<modules::KeyChoice, 1> kChoices{{{.key = "mode", .values = kModes}}};

// A record with a handshake message of TLS (RFC 8446, sections 5.1 and 4).
modules::Recognised recognise(Bytes first) {
  static constexpr std::array<int, 6> kHead{22, 3, -1, -1, -1, 1};
  for (std::size_t at = 0; at < kHead.size(); ++at) {
    if (at == first.size()) return modules::Recognised::too_few;
    if (kHead[at] >= 0 && std::to_integer<int>(first[at]) != kHead[at]) return modules::Recognised::no;
  }
  return modules::Recognised::yes;
}

class Installed final : public modules::Instance {
 public:
  explicit Installed(const modules::Resources& resources) { site_->memory = resources.memory; }
  std::unique_ptr<modules::Module> make_near(const modules::Ends& ends) override {
    return std::make_unique<Near>(ends, readers_, near_site_);
  }
  void use_plaintext_readers(const modules::PlaintextReaders& readers) override { readers_ = readers; }
  std::unique_ptr<modules::Module> make_far(const modules::Ends& ends, const modules::Address& dialled) override {
    return std::make_unique<Far>(ends, dialled, site_, readers_);
  }
  void use_secrets(std::shared_ptr<const modules::Secrets> secrets) override {
    site_->remembered.clear();
    forget_sessions();
    site_->policy = std::static_pointer_cast<const Policy>(std::move(secrets));
    if (site_->policy) site_->policy->begin();
  }
  void forget_sessions() override { near_site_->sessions.clear(); }

 private:
  std::shared_ptr<Site> site_ = std::make_shared<Site>();
  std::shared_ptr<NearSite> near_site_ = std::make_shared<NearSite>();
  modules::PlaintextReaders readers_;
};

}  // namespace

constexpr modules::Descriptor kDescriptor{
    .name = "tls",
    .version = kModuleVersion,
    .ports = kPorts,
    .recognise = recognise,
    .connect_ahead = &kConnectAhead,
    .decrypts = true,
    .features = kFeatures,
    .reasons = reasons::kAll,
    .servers = {.name = "tls_server",
                .files = kSecretFiles,
                .public_files = kPublicFiles,
                .switches = kSwitches,
                .choices = kChoices,
                .held = kHeld,
                .has_names = true,
                .has_clients = true,
                .read = Policy::read},
    .make = [](const modules::Resources& resources) -> std::unique_ptr<modules::Instance> {
      return std::make_unique<Installed>(resources);
    }};

}  // namespace longhaul::tls
