// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/descriptor.h"

#include <algorithm>
#include <array>

#include "proxy/modules/promises/lost_book.h"
#include "proxy/modules/promises/marks.h"
#include "proxy/modules/smb/features.h"
#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/loss_reports.h"
#include "proxy/modules/smb/module.h"
#include "proxy/modules/smb/reasons.h"
#include "proxy/modules/smb/seal/login.h"

namespace longhaul::smb {
namespace {

constexpr std::array<std::uint16_t, 2> kPorts{445, 139};
constexpr std::array<std::string_view, 2> kSecretFiles{"keytab", "ntlm_hashes"};
constexpr std::array<std::string_view, 2> kKept{"sign", "encrypt"};

// A frame with a message of SMB 1, 2 or 3; a client's first one is never encrypted. A NetBIOS session
// request, which precedes it on port 139, names no protocol.
modules::Recognised recognise(Bytes first) {
  static constexpr std::array<std::uint8_t, 4> kSmb1{0xff, 'S', 'M', 'B'}, kSmb2{0xfe, 'S', 'M', 'B'};
  for (std::size_t at = 0; at < kFrameHeadBytes + kSmb1.size(); ++at) {
    if (at == first.size()) return modules::Recognised::too_few;
    const auto byte = std::to_integer<std::uint8_t>(first[at]);
    const std::size_t in_magic = at - kFrameHeadBytes;
    const bool fits = at == 0                ? byte == 0
                      : at < kFrameHeadBytes || byte == kSmb1[in_magic] || byte == kSmb2[in_magic];
    if (!fits) return modules::Recognised::no;
  }
  return modules::Recognised::yes;
}

Site site_with(const modules::Resources& resources) {
  Site site;
  site.lost = std::make_shared<LostWrites>(resources.daemon_number, resources.owner_of);
  site.lost->set_clock(resources.now);
  site.ahead->most_bytes = std::min(site.ahead->most_bytes, resources.ahead_bytes);
  return site;
}

class Installed final : public modules::Instance {
 public:
  explicit Installed(const modules::Resources& resources)
      : site_(site_with(resources)), reports_(loss_reports(site_.lost, resources.wall_seconds)) {}
  std::unique_ptr<modules::Module> make_near(const modules::Ends& ends) override {
    return std::make_unique<SmbModule>(Side::near, ends, site_);
  }
  std::unique_ptr<modules::Module> make_far(const modules::Ends& ends, const modules::Address& dialled) override {
    return std::make_unique<SmbModule>(Side::far, ends, site_, dialled);
  }
  std::uint64_t ahead_bytes() const override { return site_.ahead->held_bytes; }
  modules::Losses* losses() override { return &reports_; }
  modules::State* state() override { return &reports_; }
  modules::Journal* journal() override { return &site_.lost->marks(); }
  void use_secrets(std::shared_ptr<const modules::Secrets> secrets) override {
    site_.unopened->clear();
    site_.keys->replace(std::static_pointer_cast<const seal::KeyRing>(std::move(secrets)));
  }

 private:
  Site site_;
  LossReports reports_;
};

}  // namespace

constexpr modules::Descriptor kDescriptor{
    .name = "smb",
    .version = kModuleVersion,
    .ports = kPorts,
    .recognise = recognise,
    .features = kFeatures,
    .reasons = reasons::kAll,
    .state = {.name = "lost-writes",
              .most_bytes = kMostLostBookBytes,
              .event = "lost_writes",
              .not_read = "acknowledged writes that were lost before this start are not reported to clients",
              .not_written = "after a restart, lost acknowledged writes are not reported to clients"},
    .journal = {.name = "promised-files",
                .most_bytes = promises::Marks::kMostFileBytes,
                .event = "promised_files",
                .not_read = "writes that were acknowledged early before a failure of this host may be lost "
                            "without a report to clients",
                .not_written = "writes wait for the server: none is acknowledged early"},
    .servers = {.name = "smb_server", .files = kSecretFiles, .kept = kKept, .read = seal::KeyRing::read,
                .service = "cifs",
                .opens = seal::test_keytab},
    .make = [](const modules::Resources& resources) -> std::unique_ptr<modules::Instance> {
      return std::make_unique<Installed>(resources);
    }};

}  // namespace longhaul::smb
