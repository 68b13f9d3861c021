// SPDX-License-Identifier: Apache-2.0
// A part of far_watch.h, for servers that report no changes: queries once a second the time and the size of
// each file of which data may be cached, through the client's handle, and reports which have changed.
//
// smbd 4.17 reports the times of an open file as they were at its open to every other query.
// QUERY_INFORMATION2 counts in units of two seconds: a second change within one unit does not show. So a file
// that was written recently, by the server's clock, counts as changed at each look until one was made after
// its unit.
#pragma once
#include <functional>
#include <unordered_map>
#include <utility>

#include "proxy/modules/smb/smb1/server_leg.h"

namespace longhaul::smb::smb1 {

class FarTimes {
 public:
  using OnChange = std::function<void(const OpenKey& open)>;
  FarTimes(ServerLeg& leg, Connection& connection, modules::Counters& counters, OnChange changed)
      : leg_(leg), connection_(connection), counters_(counters), changed_(std::move(changed)) {}

  // The server has reported its time.
  void negotiated(TimePoint now) { negotiated_ = now; }
  // The first look is made at once: data requested from the server after it is newer.
  void add(TimePoint now, const Open& open);
  void remove(const OpenKey& open) { files_.erase(open); }
  void stop() { files_.clear(); }
  void on_timeout(TimePoint now);
  std::optional<TimePoint> next_timeout() const;

 private:
  struct Shown {
    std::uint32_t written = 0, bytes = 0;
    bool operator==(const Shown&) const = default;
  };
  struct File {
    TimePoint due{};      // the next look; ignored while one is in progress
    TimePoint looked{};   // when the last look was sent
    TimePoint settled{};  // a look sent earlier does not exclude a later change with the same result
    std::optional<Shown> shown;
    bool is_asked = false;
    bool is_unsure = false;  // it may have changed since the last look, although the result is the same
    bool is_late = false;    // the server could not be queried in time, which counts as a change once
  };
  using Files = std::unordered_map<OpenKey, File, OpenKeyHash>;

  bool look(TimePoint now, Files::iterator file);
  void answered(const OpenKey& open, const Message& answer);
  bool is_recent(const Shown& shown) const;

  static constexpr std::chrono::seconds kPeriod{1}, kUnit{2};
  // A unit, and the time of a look in transit.
  static constexpr std::chrono::seconds kSettles{3};
  // A server allows only a few requests at a time. A look that was not made in this time may be too late.
  static constexpr std::chrono::milliseconds kAgain{20}, kLate{200};

  ServerLeg& leg_;
  Connection& connection_;
  modules::Counters& counters_;
  OnChange changed_;
  Files files_;
  TimePoint now_{};  // as of the last call
  TimePoint negotiated_{};
};

}  // namespace longhaul::smb::smb1
