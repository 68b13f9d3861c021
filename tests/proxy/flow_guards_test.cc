// SPDX-License-Identifier: Apache-2.0
#include "proxy/flow_guards.h"

#include <catch2/catch.hpp>

#include "proxy/flows/ends.h"

using namespace longhaul;

namespace {

using boost::asio::ip::make_address;

modules::Ends clients_ends(const std::string& client, const std::string& server) {
  return {.client = flows::bytes_of(make_address(client)), .server = flows::bytes_of(make_address(server))};
}

// Guards what it is given.
class PromisedWrites final : public modules::Losses {
 public:
  explicit PromisedWrites(std::vector<modules::Ends> guarded) : guarded_(std::move(guarded)) {}

  Counts counts() const override { return {}; }
  std::vector<modules::LostFile> files(const modules::Ends&, std::size_t) const override { return {}; }
  std::vector<modules::ToldFile> told(const modules::Ends&, std::size_t) const override { return {}; }
  void set_log(modules::LossLog*) override {}
  std::unique_ptr<modules::Guard> make_guard(const modules::Ends&) override { return nullptr; }
  bool told_by_reset(const modules::Ends&) override { return false; }
  std::shared_ptr<void> unguarded(const modules::Ends&) override { return nullptr; }
  std::vector<modules::Ends> guarded() const override { return guarded_; }
  void on_guarded(std::function<void()>) override {}
  void on_given_up(std::function<void()>) override {}

 private:
  std::vector<modules::Ends> guarded_;
};

class PromisingModule final : public modules::Instance {
 public:
  explicit PromisingModule(std::vector<modules::Ends> guarded) : losses_(std::move(guarded)) {}
  std::unique_ptr<modules::Module> make_near(const modules::Ends&) override { return nullptr; }
  std::unique_ptr<modules::Module> make_far(const modules::Ends&, const modules::Address&) override {
    return nullptr;
  }
  modules::Losses* losses() override { return &losses_; }

 private:
  PromisedWrites losses_;
};

class SilentModule final : public modules::Instance {
 public:
  std::unique_ptr<modules::Module> make_near(const modules::Ends&) override { return nullptr; }
  std::unique_ptr<modules::Module> make_far(const modules::Ends&, const modules::Address&) override {
    return nullptr;
  }
};

constexpr std::uint16_t kFilePorts[] = {445, 139};
constexpr std::uint16_t kWebPorts[] = {80};

std::vector<modules::Listed> listed(std::vector<modules::Ends> guarded) {
  return {{.descriptor = {.name = "web", .ports = kWebPorts}, .instance = std::make_shared<SilentModule>()},
          {.descriptor = {.name = "files", .ports = kFilePorts},
           .instance = std::make_shared<PromisingModule>(std::move(guarded))}};
}

}  // namespace

TEST_CASE("flows to a promising module's ports are guarded, of its clients and of those in doubt") {
  const auto modules = listed({clients_ends("10.0.0.7", "10.1.0.5")});
  const std::vector<intercept::GuardedFlows> expected{
      {make_address("10.0.0.7"), make_address("10.1.0.5"), 445},
      {make_address("10.0.0.7"), make_address("10.1.0.5"), 139},
      {make_address("fd00::7"), make_address("fd01::5"), 445},
      {make_address("fd00::7"), make_address("fd01::5"), 139}};
  CHECK(guarded_flows(modules, {clients_ends("fd00::7", "fd01::5")}) == expected);
}

TEST_CASE("a module that promises nothing guards nobody") {
  const auto modules = listed({});
  CHECK(guarded_flows(modules, {}).empty());
  CHECK(guarded_flows(modules::List(modules).first(1), {clients_ends("10.0.0.7", "10.1.0.5")}).empty());
}
