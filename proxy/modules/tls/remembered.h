// SPDX-License-Identifier: Apache-2.0
// Connections that could not be terminated, so that similar ones pass unchanged. Bounded; a reload forgets
// them all.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "proxy/modules/module.h"

namespace longhaul::tls {

class Remembered {
 public:
  static constexpr std::size_t kMost = 4096;  // beyond that, the oldest is forgotten

  // An all-zero address stands for every client.
  struct Key {
    modules::Address client{};
    modules::Address server{};
    std::uint16_t port = 0;
    std::string name;
    auto operator<=>(const Key&) const = default;
  };
  static Key of_server(const modules::Ends& ends, std::string name) {
    return {.server = ends.server, .port = ends.server_port, .name = std::move(name)};
  }
  static Key of_client(const modules::Ends& ends, std::string name) {
    return {.client = ends.client, .server = ends.server, .port = ends.server_port, .name = std::move(name)};
  }

  void note(Key key, modules::Reason reason, modules::TimePoint until) {
    const auto [found, is_new] = noted_.insert_or_assign(std::move(key), std::pair(reason, until));
    if (!is_new) return;
    order_.push_back(found->first);
    if (order_.size() <= kMost) return;
    noted_.erase(order_.front());
    order_.pop_front();
  }
  std::optional<modules::Reason> why(const Key& key, modules::TimePoint now) const {
    const auto found = noted_.find(key);
    if (found == noted_.end() || now > found->second.second) return std::nullopt;
    return found->second.first;
  }
  void clear() {
    noted_.clear();
    order_.clear();
  }

 private:
  std::map<Key, std::pair<modules::Reason, modules::TimePoint>> noted_;
  std::deque<Key> order_;
};

}  // namespace longhaul::tls
