// SPDX-License-Identifier: Apache-2.0
// Connections to servers that are made before a client needs them: one more for a client that has just
// connected to a distant server. Nothing is sent on a spare connection until a flow takes it; trial.h limits
// what the flow may then send.
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
  // Shorter than the time for which servers wait for a first request (Apache: 20 s, nginx: 60 s).
  static constexpr std::chrono::seconds kLifetime{5};
  // Minimum round trip to the server: below it, a client would not notice the gain.
  static constexpr std::chrono::microseconds kFarAway{2000};
  static constexpr std::size_t kMost = 256, kMostOfClient = 8, kMostOfServer = 16;
  static constexpr std::size_t kMostHabits = 4096;
  static constexpr std::chrono::minutes kHabitsKept{10};

  // The client and server of a connection. The server sees the client's address, so clients never share a
  // connection.
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
    std::uint64_t used = 0;      // of those made: taken by a flow
    std::uint64_t replaced = 0;  // of those used: the flow needed a new connection after all
    std::uint64_t unused = 0;    // of those made: closed after kLifetime
    std::uint64_t lost = 0;      // of those made: the server closed them or sent bytes
  };

  // Both references outlive this object. `memory`: that of all modules, in which connections and habits count;
  // while it is used up, none are added. Null if there is no limit.
  Spares(boost::asio::io_context& io, Dialer& dialer, std::shared_ptr<modules::Memory> memory = nullptr)
      : io_(io), dialer_(dialer), counted_(std::move(memory)), self_(std::make_shared<Spares*>(this)) {}
  ~Spares() { *self_ = nullptr; }
  Spares(const Spares&) = delete;
  Spares& operator=(const Spares&) = delete;

  // A connection to the address that the request would connect to now, or nullopt.
  std::optional<Dialled> take(const Key& key, const DialRequest& request);
  // A flow of that client was connected with this request, at this round trip to the server. Makes a
  // connection for the next flow if it is likely to be used.
  void client_connected(Key key, DialRequest request, std::chrono::microseconds round_trip);
  void replaced() { ++counters_.replaced; }
  // Closes all of them, to free descriptors. Returns false if there were none.
  bool clear();
  // The configuration that they depend on has changed: closes all of them, and forgets the habits of clients.
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
    std::optional<Dialled> dialled;  // nullopt while connecting
    boost::asio::steady_timer timer;
  };
  using Held = std::map<Key, Spare>;
  // How a client used a server so far.
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
