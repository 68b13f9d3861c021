// SPDX-License-Identifier: Apache-2.0
#include "examples/modules/redis/descriptor.h"

#include <array>

#include "examples/modules/redis/module.h"

namespace longhaul::redis {
namespace {

constexpr std::array<std::uint16_t, 1> kPorts{6379};
constexpr std::array<config::ModuleFeature, 1> kFeatures{{{.name = "redis"}}};

// An array of bulk strings, which is what every client sends.
modules::Recognised recognise(Bytes first) {
  std::size_t at = 0;
  const auto byte = [&] { return at < first.size() ? std::to_integer<char>(first[at++]) : '\0'; };
  if (byte() != '*') return first.empty() ? modules::Recognised::too_few : modules::Recognised::no;
  char next = byte();
  if (next < '1' || next > '9') return first.size() < 2 ? modules::Recognised::too_few : modules::Recognised::no;
  while (next >= '0' && next <= '9' && at < 8) next = byte();
  for (const char wanted : {'\r', '\n', '$'}) {
    if (next == '\0' && at == first.size()) return modules::Recognised::too_few;
    if (next != wanted) return modules::Recognised::no;
    if (wanted != '$') next = byte();
  }
  return modules::Recognised::yes;
}

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
    .name = "redis",
    .version = kModuleVersion,
    .ports = kPorts,
    .recognise = recognise,
    .features = kFeatures,
    .reasons = reasons::kAll,
    .make = [](const modules::Resources&) -> std::unique_ptr<modules::Instance> {
      return std::make_unique<Installed>();
    }};

}  // namespace longhaul::redis
