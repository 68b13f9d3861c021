// SPDX-License-Identifier: Apache-2.0
// Decides which connections to the link's port may start a handshake: budgets per source, a limit for all,
// and places reserved for addresses of known peers. Decides before a byte is read or a key is generated;
// pure.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <boost/system/result.hpp>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "proxy/link/io/refusal.h"
#include "proxy/link/io/source_table.h"
#include "proxy/link/types.h"

namespace longhaul::link {

// In order of priority.
enum class Standing : std::uint8_t {
  known,     // from the address of a peer
  first,     // from a source without recent handshakes
  repeated,  // from any other source
};

class HandshakeGate {
 public:
  // Budget per source: a burst of handshakes, then a number per second. Their processor time is charged to
  // the same budget: each `kProcessorPerHandshake` costs as much as another handshake.
  static constexpr double kBurst = 16, kPerSecond = 2;
  static constexpr double kKnownBurst = 64, kKnownPerSecond = 8;
  static constexpr Duration kProcessorPerHandshake = std::chrono::milliseconds(1);
  // Limits of handshakes in progress: per source among the shared places, and additional places for each
  // known address.
  static constexpr std::uint32_t kPlacesPerSource = 16, kPlacesPerKnown = 4;
  // Number of sources remembered; a forgotten source starts with a full budget.
  static constexpr std::size_t kMostSources = 8192;

  struct Place {
    std::uint64_t number = 0;
    Standing standing = Standing::repeated;
  };
  // Called when a place was given to another handshake: this handshake must end. Must not call leave().
  using GiveUp = std::function<void()>;

  explicit HandshakeGate(std::uint32_t places) : places_(places), budgets_(kMostSources) {}

  // Applies to later connections.
  void set_places(std::uint32_t places) { places_ = places; }
  // Replaces the addresses of peers.
  void know(const std::vector<boost::asio::ip::address>& addresses);

  // Returns a place until leave(), or the reason for a refusal. If all places are taken, the oldest handshake
  // of a source with several loses its place; if there is none, the oldest first contact loses its place to a
  // newer one.
  boost::system::result<Place, Refusal> admit(const boost::asio::ip::address& from, TimePoint now,
                                              GiveUp give_up);
  void leave(const Place& place);
  // Charges the processor time of a step of the handshake.
  void charge(const Place& place, Duration processor, TimePoint now);

  std::size_t in_progress() const { return held_.size(); }

 private:
  struct Budget {
    double tokens = 0;
    TimePoint at{};  // when it was last refilled; zero: never, so it is full
  };
  struct Held {
    SourceKey source = 0;
    std::optional<boost::asio::ip::address> known;
    std::list<std::uint64_t>* line = nullptr;  // the oldest first
    std::list<std::uint64_t>::iterator in_line;
    GiveUp give_up;
  };
  struct Known {
    Budget budget;
    std::list<std::uint64_t> line;
  };

  static double refill(Budget& budget, double burst, double per_second, TimePoint now);
  Place hold(const boost::asio::ip::address& from, Standing standing, std::list<std::uint64_t>& line,
             GiveUp give_up);
  void free_oldest(std::list<std::uint64_t>& line);

  std::uint32_t places_;
  SourceTable<Budget> budgets_;
  std::map<boost::asio::ip::address, Known> known_;
  std::list<std::uint64_t> first_, repeated_;
  KeyedMap<SourceKey, std::uint32_t> places_of_;  // of unknown sources
  KeyedMap<std::uint64_t, Held> held_;
  std::uint64_t last_number_ = 0;
};

}  // namespace longhaul::link
