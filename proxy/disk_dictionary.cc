// SPDX-License-Identifier: Apache-2.0
#include "proxy/disk_dictionary.h"

#include <boost/asio/post.hpp>
#include <charconv>
#include <cstdlib>

#include "proxy/config/sharing.h"
#include "proxy/log/log.h"

namespace longhaul {

namespace asio = boost::asio;
using namespace std::chrono_literals;

// See systemd.exec(5), "Credentials".
std::string dictionary_credential() {
  const char* folder = std::getenv("CREDENTIALS_DIRECTORY");
  if (folder == nullptr || *folder == '\0') return {};
  auto file = std::filesystem::path(folder) / "longhaul-dictionary.key";
  std::error_code unknown;
  return std::filesystem::exists(file, unknown) || unknown ? file.string() : std::string();
}

DiskDictionary::DiskDictionary(asio::io_context& io, const config::Config& config, const MemoryPlan& plan,
                               std::function<void()> progressed, std::function<void()> second)
    : io_(io), progressed_(std::move(progressed)), second_(std::move(second)), timer_(io) {
  wait();
  if (plan.disk_bytes == 0) return;
  const auto directory = config.state_dir / config.dictionary.directory;
  try {
    store_ = std::make_unique<cache::DiskStore>(
        cache::DiskStoreOptions{.directory = directory.string(),
                                .key_file = (config.state_dir / "dictionary.key").string(),
                                .credential = dictionary_credential(),
                                .cap_bytes = plan.disk_bytes,
                                .queue_bytes = plan.disk_queue_bytes,
                                .loading_bytes = plan.disk_loading_bytes,
                                .wake = [this] { asio::post(io_, [this] { poll(); }); },
                                .log =
                                    [](const std::string& line) {
                                      log::warn("dictionary", {{"event", line}});
                                    }});
  } catch (const cache::StoreInUse&) {
    throw;
  } catch (const cache::StoreUnusable& error) {
    log::warn("dictionary", {{"event", error.what()}, {"effect", "the dictionary on disk is not used"}});
  }
}

void DiskDictionary::poll() {
  const bool more = store_->poll();
  if (more) asio::post(io_, [this] { poll(); });
  progressed_();
}

void DiskDictionary::wait() {
  timer_.expires_after(1s);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    second_();
    wait();
  });
}

std::uint64_t DiskDictionary::clear() { return store_ ? store_->clear() : 0; }

reduction::SegmentRights rights_of(const config::Config& config, const config::Peer& peer) {
  reduction::SegmentRights rights;
  for (const std::string& key : peer.fingerprints) rights.own.push_back(site_id(key));
  for (const config::Peer& other : config.peers)
    if (other.name != peer.name && config::share_dictionary(config, peer, other))
      for (const std::string& key : other.fingerprints) rights.shared.push_back(site_id(key));
  return rights;
}

reduction::SiteId site_id(const std::string& fingerprint) {
  reduction::SiteId id{};
  const std::size_t digits = fingerprint.find(':') + 1;
  for (std::size_t i = 0; i < id.size() && digits + 2 * i + 2 <= fingerprint.size(); ++i) {
    unsigned value = 0;
    const char* at = fingerprint.data() + digits + 2 * i;
    std::from_chars(at, at + 2, value, 16);
    id[i] = std::byte(value);
  }
  return id;
}

}  // namespace longhaul
