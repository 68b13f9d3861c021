// SPDX-License-Identifier: Apache-2.0
#include "proxy/reload.h"

#include <catch2/catch.hpp>

#include "proxy/config/read.h"
#include "proxy/identity/keygen.h"
#include "proxy/temporary_folder.h"

using namespace longhaul;

namespace {

class ReloadedSite {
 public:
  ReloadedSite() {
    keygen("a");
    write();
    config::Config config = config::read(file());
    identity::Identity identity = identity::load(config);
    settings_ = std::make_unique<SettingsInForce>(std::move(config), std::move(identity), identity::WebTls{});
  }

  void write(const std::string& more = "", const std::string& name = "a") const {
    folder_.write("a.toml", "site = \"a\"\n[identity]\ncertificate = \"" + name + ".crt\"\nprivate_key = \"" +
                                name + ".key\"\n" + more);
  }
  std::string keygen(const std::string& name) const {
    return identity::keygen(name, folder_.path()).fingerprint;
  }
  auto reload() {
    return reload_settings(*settings_, [this](NewSettings settings) {
      ++applied;
      settings_->replace(std::move(settings.config), std::move(settings.identity), std::move(settings.web));
    });
  }
  std::filesystem::path file() const { return folder_.path() / "a.toml"; }
  const SettingsInForce& settings() const { return *settings_; }

  int applied = 0;

 private:
  TemporaryFolder folder_;
  std::unique_ptr<SettingsInForce> settings_;
};

using Changed = std::vector<std::string>;

Changed changes_by_reload(ReloadedSite& site) {
  const auto done = site.reload();
  return done ? *done : Changed{"refused: " + done.error().sentence};
}

}  // namespace

TEST_CASE("a reload applies what can change, once, and names it") {
  ReloadedSite site;
  CHECK(changes_by_reload(site) == Changed{});
  site.write("[link]\ntotal_rate = \"1gbit\"\n");
  CHECK(changes_by_reload(site) == Changed{"[link] total_rate"});
  CHECK(site.applied == 2);
  CHECK(site.settings().config().link.total_rate_bits == 1'000'000'000);
  CHECK(changes_by_reload(site) == Changed{});  // compared with what is in force now
}

TEST_CASE("a reload of a setting that needs a restart changes nothing") {
  ReloadedSite site;
  site.write("[link]\nlisten = \"127.0.0.1:7600\"\ntotal_rate = \"1gbit\"\n");
  const auto refused = site.reload();
  REQUIRE(refused.has_error());
  CHECK(refused.error().sentence == site.file().string() +
                                        ": [link] listen cannot be changed while the daemon runs; restart "
                                        "it, or undo that change. Nothing was "
                                        "changed.");
  CHECK(site.applied == 0);
  CHECK(site.settings().config().link.total_rate_bits == 0);
}

TEST_CASE("a reload of an invalid file, or of one that is gone, changes nothing") {
  ReloadedSite site;
  site.write("[link]\nnonsense = 1\n");
  const auto refused = site.reload();
  REQUIRE(refused.has_error());
  CHECK(refused.error().sentence.starts_with(site.file().string() + ":"));
  std::filesystem::remove(site.file());
  CHECK(site.reload().has_error());
  site.write("", "no-such-key");
  CHECK(site.reload().has_error());
  CHECK(site.applied == 0);
}

TEST_CASE("a new key in the same files is a change, and is in force after the reload") {
  ReloadedSite site;
  const std::string before = site.settings().identity().fingerprint;
  const std::filesystem::path folder = site.file().parent_path();
  const std::string after = site.keygen("b");
  std::filesystem::rename(folder / "b.key", folder / "a.key");
  CHECK(site.reload().has_error());  // the certificate is of the old key
  CHECK(site.settings().identity().fingerprint == before);
  std::filesystem::rename(folder / "b.crt", folder / "a.crt");
  CHECK(changes_by_reload(site) == Changed{"the key of this site: now " + after});
  CHECK(site.settings().identity().fingerprint == after);
}
