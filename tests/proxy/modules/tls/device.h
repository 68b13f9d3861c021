// SPDX-License-Identifier: Apache-2.0
// A device that holds a key (proxy/modules/held_key.h), in memory: it signs at once, when the test says so,
// or never.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proxy/modules/held_key.h"
#include "tests/proxy/modules/tls/ends.h"

namespace longhaul::tls {

struct Device final : modules::HeldKey {
  explicit Device(std::shared_ptr<EVP_PKEY> holds) : key(std::move(holds)) {}
  void belongs_to(EVP_PKEY* public_key) override { has_public_key = public_key != nullptr; }
  void begin() override { ++begun; }
  bool run(Work work) override {
    ++asked;
    if (is_full) return false;
    if (answers_later) return later.push_back(std::move(work)), true;
    work(failure.empty() ? key.get() : nullptr, failure);
    return true;
  }
  std::string try_out() override { return failure; }
  void answer() {
    const Work work = std::move(later.front());
    later.pop_front();
    work(failure.empty() ? key.get() : nullptr, failure);
  }

  std::shared_ptr<EVP_PKEY> key;
  std::string failure;
  bool has_public_key = false, is_full = false, answers_later = false;
  int begun = 0, asked = 0;
  std::deque<Work> later;
};

inline modules::ServerFiles held_table(const World& world, const std::shared_ptr<Device>& device) {
  modules::ServerFiles made = table("a.corp", world.shown, world.authority);
  made.files[1] = {.key = "key", .name = "pkcs11:token=t;object=o", .content = {}, .held = device};
  return made;
}

// Of a.corp, whose key is in the device.
inline std::shared_ptr<const modules::Secrets> held_policy(const World& world,
                                                           const std::shared_ptr<Device>& device) {
  std::vector<modules::ServerFiles> tables;
  tables.push_back(held_table(world, device));
  auto read = Policy::read(tables);
  REQUIRE(read.has_value());
  return *std::move(read);
}

}  // namespace longhaul::tls
