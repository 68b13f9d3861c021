// SPDX-License-Identifier: Apache-2.0
// Connections to servers that are made before their clients ask for them: one for a client that has just
// connected to a server that takes long to reach. Nothing is said on a spare connection until a flow takes
// it; trial.h says what the flow may then say.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "proxy/flows/dialer.h"
#include "proxy/modules/memory.h"

namespace longhaul::flows {

class Spares {
 public:
  using Clock = std::chrono::steady_clock;
  // Less than servers wait for a first request (Apache: 20 s, nginx: 60 s).
  static constexpr std::chrono::seconds kLifetime{5};
  // A server that is nearer than this gains nothing that a client would notice.
  static constexpr std::chrono::microseconds kFarAway{2000};
  static constexpr std::size_t kMost = 256, kMostOfClient = 8, kMostOfServer = 16;
  static constexpr std::size_t kMostHabits = 4096;
  static constexpr std::chrono::minutes kHabitsKept{10};

  // Who connects to what. The server sees the client's address, so no two clients share a connection.
  struct Key {
    std::string peer;
    boost::asio::ip::address client;
    std::string destination;  // as the client named it, with its port
    bool operator<(const Key& other) const {
      return std::tie(peer, client, destination) < std::tie(other.peer, other.client, other.destination);
    }
  };

  struct Counters {
    std::uint64_t made = 0;      // connected
    std::uint64_t used = 0;      // of these: taken by a flow
    std::uint64_t replaced = 0;  // of these: the flow needed a connection of its own after all
    std::uint64_t unused = 0;    // of those made: closed after kLifetime
    std::uint64_t lost = 0;      // of those made: the server closed them, or spoke
  };

  // Both outlive this object. `memory`: of all modules, in which connections and habits count; while it is
  // used up, none are added. Null: there is no limit.
  Spares(boost::asio::io_context& io, Dialer& dialer, std::shared_ptr<modules::Memory> memory = nullptr)
      : io_(io), dialer_(dialer), counted_(std::move(memory)), self_(std::make_shared<Spares*>(this)) {}
  ~Spares() { *self_ = nullptr; }
  Spares(const Spares&) = delete;
  Spares& operator=(const Spares&) = delete;

  // A connection to where the request would go now, or nothing.
  std::optional<Dialled> take(const Key& key, const DialRequest& request);
  // A flow of that client has a connection that was made with this request, at this distance from the server.
  // Makes one for the next flow if that is likely to be used.
  void client_connected(Key key, DialRequest request, std::chrono::microseconds round_trip);
  void replaced() { ++counters_.replaced; }
  // Closes all of them, for the descriptors. False: there were none.
  bool clear();
  // What they depend on has changed: closes all of them, and forgets the habits of clients, too.
  void start_anew() {
    habits_.clear();
    clear();
  }

  std::size_t size() const { return spares_.size(); }
  const Counters& counters() const { return counters_; }

 private:
  struct Spare {
    explicit Spare(boost::asio::io_context& io) : timer(io) {}
    std::uint64_t number = 0;
    std::optional<Dialled> dialled;  // none: being connected
    boost::asio::steady_timer timer;
  };
  using Held = std::map<Key, Spare>;
  // What is known of a client and a server.
  struct Habit {
    Clock::time_point last_connected{};
    bool left_one_unused = false;
  };

  bool is_likely_used(const Key& key);
  void count();
  bool has_room(const Key& key) const;
  static boost::asio::awaitable<void> make(std::shared_ptr<Spares*> self, Key key, std::uint64_t number,
                                           DialRequest request);
  void keep(Held::iterator at, Dialled dialled);
  Held::iterator find(const Key& key, std::uint64_t number);

  boost::asio::io_context& io_;
  Dialer& dialer_;
  Held spares_;
  std::map<Key, Habit> habits_;
  Clock::time_point swept_at_{};
  modules::MemoryShare counted_;
  std::uint64_t next_number_ = 1;
  Counters counters_;
  std::shared_ptr<Spares*> self_;
};

}  // namespace longhaul::flows
