// SPDX-License-Identifier: Apache-2.0
// Tests when a flow uses the module that it is offered, and what its record says otherwise.
#include "proxy/flows/module_agreement.h"

#include <catch2/catch.hpp>

#include "probe_module.h"

using namespace longhaul;
using namespace longhaul::flows;

namespace {

struct AgreementBench {
  AgreementBench() { off.modules.set("probe", 0); }

  config::Features on = config::standard_features(modules::probe_table()), off = on;
  modules::Listed probe{.descriptor = {.name = "probe", .features = modules::kProbeFeatures},
                        .instance = nullptr,
                        .memory = std::make_shared<modules::Memory>(100)};
};

}  // namespace

TEST_CASE("a module runs if both sides have it and want it") {
  AgreementBench bench;
  const auto agreed = agree_on(&bench.probe, AtPeer::present, bench.on, bench.on);
  CHECK(agreed.module == &bench.probe);
  CHECK_FALSE(agreed.why_none);
}

TEST_CASE("a module that one side has switched off does not run, without a reason") {
  AgreementBench bench;
  for (const auto& agreed : {agree_on(nullptr, AtPeer::absent, bench.on, bench.on),
                             agree_on(&bench.probe, AtPeer::present, bench.off, bench.off),
                             agree_on(&bench.probe, AtPeer::absent, bench.off, bench.off),
                             agree_on(&bench.probe, AtPeer::present, bench.on, bench.off)}) {
    CHECK(agreed.module == nullptr);
    CHECK_FALSE(agreed.why_none);
  }
}

TEST_CASE("a module that the peer lacks is the reason even though the peer allows no feature of it") {
  AgreementBench bench;
  const auto agreed = agree_on(&bench.probe, AtPeer::absent, bench.on, bench.off);
  CHECK(agreed.module == nullptr);
  CHECK(agreed.why_none == reasons::module_not_at_peer);
}

TEST_CASE("a module whose memory is used up gets no new flow") {
  AgreementBench bench;
  bench.probe.memory->add(100);
  const auto agreed = agree_on(&bench.probe, AtPeer::present, bench.on, bench.on);
  CHECK(agreed.module == nullptr);
  CHECK(agreed.why_none == reasons::memory_limit);
}
