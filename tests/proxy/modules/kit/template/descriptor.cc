// SPDX-License-Identifier: Apache-2.0
#include "tests/proxy/modules/kit/template/descriptor.h"

#include <array>

#include "tests/proxy/modules/kit/template/module.h"

namespace longhaul::lines {
namespace {

constexpr std::array<std::uint16_t, 1> kPorts{7};
constexpr std::array<config::ModuleFeature, 1> kFeatures{{{.name = "lines"}}};

class Installed final : public modules::Instance {
 public:
  std::unique_ptr<modules::Module> make_near(const modules::Ends&) override {
    return std::make_unique<Module>(twin::Side::near, Protocol(twin::Side::near));
  }
  std::unique_ptr<modules::Module> make_far(const modules::Ends&, const modules::Address&) override {
    return std::make_unique<Module>(twin::Side::far, Protocol(twin::Side::far));
  }
};

}  // namespace

constexpr modules::Descriptor kDescriptor{
    .name = "lines",
    .version = kModuleVersion,
    .ports = kPorts,
    .features = kFeatures,
    .reasons = reasons::kAll,
    .make = [](const modules::Resources&) -> std::unique_ptr<modules::Instance> {
      return std::make_unique<Installed>();
    }};

}  // namespace longhaul::lines
