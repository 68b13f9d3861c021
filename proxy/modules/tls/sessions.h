// SPDX-License-Identifier: Apache-2.0
// TLS sessions that clients of this site may resume at the near half, in memory; each is used once. Bounded,
// and forgotten when the link to the side that made them is lost.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "crypto/secret.h"
#include "proxy/modules/module.h"

namespace longhaul::tls {

class Sessions {
 public:
  static constexpr std::size_t kMost = 4096;       // beyond that, the oldest is forgotten
  static constexpr std::size_t kMostBytes = 4096;  // of one session; libssl's take some hundred
  // Counted from the handshake at the far side from which they derive.
  static constexpr modules::Duration kLifetime = std::chrono::hours(10);

  // The owner of sessions: the far side, in this session of the link with it, and the server's address in
  // flows.
  struct Place {
    std::array<std::byte, 16> far{};
    modules::Address server{};
    std::uint16_t port = 0;
    auto operator<=>(const Place&) const = default;
  };
  struct Session {
    SecretBytes bytes;        // in the format of i2d_SSL_SESSION()
    std::string entry;        // Entry::stamp at the far side
    bool is_private = false;  // Entry::is_private
    modules::TimePoint until;
  };

  void put(const Place& place, const std::string& name, std::string id, Session session);
  // Returns the session and removes it.
  std::optional<Session> take(const Place& place, const std::string& name, std::string id,
                              modules::TimePoint now);
  bool has(const Place& place) const;
  bool has(const Place& place, const std::string& name) const;
  bool has(const Place& place, const std::string& name, const std::string& id) const {
    return kept_.contains({place, name, id});
  }
  // All sessions for this name.
  void forget(const Place& place, const std::string& name);
  void clear() { kept_.clear(), order_.clear(); }

 private:
  struct Key {
    Place place;
    std::string name, id;
    auto operator<=>(const Key&) const = default;
  };
  struct Kept {
    Session session;
    std::uint64_t number;
  };
  using Map = std::map<Key, Kept>;

  Map::iterator erase(Map::iterator at);

  Map kept_;
  std::map<std::uint64_t, Map::iterator> order_;  // the oldest first
  std::uint64_t numbers_ = 0;
};

}  // namespace longhaul::tls
