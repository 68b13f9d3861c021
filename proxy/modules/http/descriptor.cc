// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/descriptor.h"

#include <array>

#include "proxy/modules/http/connect_ahead.h"
#include "proxy/modules/http/either.h"
#include "proxy/modules/http/either_far.h"
#include "proxy/modules/http/h2/early.h"
#include "proxy/modules/http/prefetch/messages.h"
#include "proxy/modules/http/reasons.h"

namespace longhaul::http {
namespace {

constexpr std::array<std::uint16_t, 2> kPorts{80, 8080};
// Prefetch is off by default: with a slow server or a client that already has the objects, a page can take
// longer with it. Connections ahead are off by default: servers that serve one connection at a time would be
// kept waiting.
constexpr std::array<config::ModuleFeature, 3> kFeatures{{
    {.name = "http"},
    {.name = "http.prefetch", .standard = 0, .part_of = "http"},
    {.name = "http.connect_ahead", .standard = 0, .part_of = "http"}}};

// One of the usual methods, or HTTP/2.
modules::Recognised recognise(Bytes first) {
  static constexpr std::array<std::string_view, 8> kBeginnings{"GET ",    "HEAD ",    "POST ",  "PUT ",
                                                             "DELETE ", "OPTIONS ", "PATCH ", h2::kPreface};
  const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  for (const std::string_view begin : kBeginnings) {
    if (text.starts_with(begin)) return modules::Recognised::yes;
    if (begin.starts_with(text)) return modules::Recognised::too_few;
  }
  return modules::Recognised::no;
}

class Installed final : public modules::Instance {
 public:
  explicit Installed(const modules::Resources& resources)
      : site_(std::make_shared<Site>(resources.cache_bytes)), owner_of_(resources.owner_of) {
    site_->wall = resources.wall_seconds;
    if (resources.objects)
      site_->disk = std::make_unique<OnDisk>(*resources.objects, site_->store, [wall = site_->wall, now = resources.now] {
        return Clocks{.now = now(), .wall = wall()};
      });
  }
  std::unique_ptr<modules::Module> make_near(const modules::Ends& ends) override {
    return std::make_unique<Either>(ends, site_);
  }
  std::unique_ptr<modules::Module> make_plaintext_reader(const modules::Ends& ends, std::string_view name) override {
    return std::make_unique<Either>(ends, site_, name);
  }
  std::unique_ptr<modules::Module> make_plaintext_far(const modules::Ends& ends, std::string_view name,
                                                      std::string_view protocol,
                                                      const config::ModuleFeatures& features) override {
    if (protocol != "h2" || features.value("http") == 0 || features.value("http.prefetch") == 0) return nullptr;
    return std::make_unique<h2::Far>(ends, site_, owner_of_(ends.client), name, Pushing::Content::in_messages);
  }
  std::unique_ptr<modules::Module> make_far(const modules::Ends& ends, const modules::Address&) override {
    return std::make_unique<EitherFar>(ends, site_, owner_of_(ends.client));
  }
  std::uint64_t ahead_bytes() const override {
    return site_->store.bytes() + site_->pushed.bytes() + (site_->disk ? site_->disk->memory_bytes() : 0);
  }
  std::uint64_t clear_cache() override {
    site_->pushed.clear();
    site_->known.clear();
    site_->relations.clear();
    return site_->store.clear();
  }

 private:
  std::shared_ptr<Site> site_;
  std::function<std::string(const modules::Address&)> owner_of_;
};

}  // namespace

constexpr modules::Descriptor kDescriptor{
    .name = "http",
    .version = kModuleVersion,
    .ports = kPorts,
    .recognise = recognise,
    .may_be_server = h2::may_be_server,
    .connect_ahead = &kConnectAhead,
    .reads_plaintext = true,
    .features = kFeatures,
    .reasons = reasons::kAll,
    .make = [](const modules::Resources& resources) -> std::unique_ptr<modules::Instance> {
      return std::make_unique<Installed>(resources);
    }};

}  // namespace longhaul::http
