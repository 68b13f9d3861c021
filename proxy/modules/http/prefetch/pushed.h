// SPDX-License-Identifier: Apache-2.0
// The objects that far halves have announced and pushed for the clients of a site. Each answers one request
// of one client, within seconds. Bounded per client and in total.
#pragma once
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proxy/modules/http/body.h"
#include "proxy/modules/http/caching.h"
#include "proxy/modules/module.h"

namespace longhaul::http {

// When the connection that brings the objects last received anything.
using Progress = std::shared_ptr<link::TimePoint>;

struct Pushed {
  enum class State : std::uint8_t { coming, whole, gone } state = State::coming;
  RequestHead asked;
  Progress progress;
  Buffer head;      // until it is complete
  Content content;  // until it is complete
  std::uint64_t bytes = 0;
  std::uint64_t erasures = 0;  // ObjectStore::erasures() when it was announced
  Object response;  // when it is complete

 private:
  friend class PushedStore;
  std::string key;
  std::size_t asked_bytes = 0;  // memory of the request, with the key
  link::TimePoint until{};
  std::list<std::shared_ptr<Pushed>>::iterator place;
};
using PushedObject = std::shared_ptr<Pushed>;

class PushedStore {
 public:
  using TimePoint = link::TimePoint;
  static constexpr std::size_t kMostOfClient = 512, kMost = 8192;  // objects
  static constexpr std::uint64_t kMostObjectBytes = 1 << 20;
  static constexpr link::Duration kKept = std::chrono::seconds(10), kMostComing = std::chrono::seconds(30);

  explicit PushedStore(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // `client` and `key` together identify it; an earlier object with both is dropped. Returns null if there
  // are too many, or if there is no memory for its request.
  PushedObject announce(TimePoint now, const modules::Address& client, const std::string& key, RequestHead asked, Progress progress);
  // Returns false if the object exceeds a limit and was dropped.
  bool add(Pushed& object, Bytes content);
  void finish(TimePoint now, const PushedObject& object, Stored response);
  void drop(const PushedObject& object);
  // Drops the client's objects whose keys have this prefix, after it has changed something there.
  void drop_all(const modules::Address& client, const std::string& keys_begin);
  void clear();

  bool has_any(const modules::Address& client) const { return clients_.contains(text_of(client)); }
  // Incomplete or complete; null if there is none.
  PushedObject find(TimePoint now, const modules::Address& client, const std::string& key);
  // As find(), but only if its request equals this one, so that the server's response would be the same.
  PushedObject find_for(TimePoint now, const modules::Address& client, const std::string& key, const RequestHead& request);
  // Removes it after it has answered a request.
  void use(const PushedObject& object);

  std::uint64_t bytes() const { return bytes_; }
  // Objects removed without use since the last call.
  struct Wasted {
    std::uint64_t objects = 0, bytes = 0;
  };
  Wasted take_wasted(TimePoint now);

 private:
  struct Client {
    std::size_t objects = 0;
    std::uint64_t bytes = 0;
  };
  static std::string text_of(const modules::Address& client) {
    return {reinterpret_cast<const char*>(client.data()), client.size()};
  }
  void sweep(TimePoint now);
  void remove(const PushedObject& object);

  std::uint64_t most_bytes_, bytes_ = 0;
  std::map<std::string, PushedObject> objects_;
  std::map<std::string, Client> clients_;
  std::list<PushedObject> coming_, whole_;  // oldest first
  Wasted wasted_;
};

}  // namespace longhaul::http
