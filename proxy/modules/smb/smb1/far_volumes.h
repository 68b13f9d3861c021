// SPDX-License-Identifier: Apache-2.0
// The far half's part for queries about a share's volume: repeats the client's queries for a while, and sends
// the near half each response that differs (volume_looks.h, near_questions.h).
#pragma once
#include <string>

#include "proxy/modules/smb/smb1/server_leg.h"
#include "proxy/modules/smb/volume_looks.h"

namespace longhaul::smb::smb1 {

class FarVolumes {
 public:
  FarVolumes(Outputs& out, ServerLeg& leg, Connection& connection, modules::Counters& counters)
      : out_(out),
        leg_(leg),
        connection_(connection),
        counters_(counters),
        looks_(
            [this](const VolumeLooks::Volume& volume, TimePoint, std::uint64_t number) {
              return ask(volume, number);
            },
            [this](const VolumeLooks::Volume& volume, VolumeLooks::Answer answer) { tell(volume, answer); }) {
  }

  void on_surroundings(const Surroundings& surroundings) { features_ = surroundings.features; }
  // A request of the client is about to be sent.
  void request(const Message& message);
  // A promised request was sent, or answered.
  void changed() { looks_.forget(); }
  // An answer to the client was passed on; `is_last`: no more parts of it follow.
  void answered(TimePoint now, const Message& answer, bool is_last);
  void stop() {
    stopped_ = true;
    looks_.forget();
  }
  void on_timeout(TimePoint now) { looks_.on_timeout(now); }
  std::optional<TimePoint> next_timeout() const { return looks_.next_timeout(); }

 private:
  bool ask(const VolumeLooks::Volume& volume, std::uint64_t number);
  void tell(const VolumeLooks::Volume& volume, VolumeLooks::Answer answer);

  static constexpr std::size_t kMostAsked = 256, kMostChanging = 4096;

  Outputs& out_;
  ServerLeg& leg_;
  Connection& connection_;
  modules::Counters& counters_;
  Features features_;
  VolumeLooks looks_;
  KeyedMap<MessageNumber, std::string> asked_;  // the client's queries without an answer
  KeyedSet<MessageNumber> changing_;            // requests that may change the space, without an answer
  std::uint16_t flags2_ = 0;                    // of the client's last query
  bool stopped_ = false;
};

}  // namespace longhaul::smb::smb1
