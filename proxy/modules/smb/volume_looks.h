// SPDX-License-Identifier: Apache-2.0
// The far half's information about a share's volume, such as its free space: the client's queries are
// repeated ten times a second for a while, and the near half receives each response that differs.
// smb1/far_volumes.h and smb2/far_volumes.h decide what is queried, and from which server.
//
// A server reports no changes of free space. So these looks replace notifications, which are no faster:
// changes are reported at most every 100 ms (far_watch.h), too.
#pragma once
#include <functional>
#include <list>
#include <optional>
#include <utility>

#include "proxy/modules/smb/half.h"

namespace longhaul::smb {

// How often the far half queries what the near half responds with, and how long after the client's last query
// that reached the server. The near half stops earlier: a report may be in transit for a while.
inline constexpr std::chrono::milliseconds kVolumePeriod{100};
inline constexpr std::chrono::seconds kVolumeWatched{4}, kVolumeAnswers{3};

class VolumeLooks {
 public:
  struct Volume {
    OpenKey open;  // through which it is queried
    Slice question;
    Slice told;  // the near half's response
  };
  // Sends the query; its response is passed to answered(). Returns false if it cannot be sent now.
  using Ask = std::function<bool(const Volume& volume, TimePoint now, std::uint64_t number)>;
  // Sends the response to the near half; `unknown`: it must not use the one that it has.
  enum class Answer : bool { unknown, known };
  using Tell = std::function<void(const Volume& volume, Answer answer)>;
  VolumeLooks(Ask ask, Tell tell) : ask_(std::move(ask)), tell_(std::move(tell)) {}

  // The server has answered the client.
  void begin(TimePoint now, const OpenKey& open, const Slice& question, const Slice& response);
  // The server has answered a look; nullopt: with an error.
  void answered(std::uint64_t number, std::optional<Slice> response);
  void closing(const OpenKey& open);
  void forget() { volumes_.clear(); }
  void on_timeout(TimePoint now);
  std::optional<TimePoint> next_timeout() const;

 private:
  struct Watched {
    std::uint64_t number = 0;  // never reused: responses to earlier looks are ignored
    Volume volume;
    TimePoint until{}, due{};
    bool is_asked = false;
  };
  bool look(TimePoint now, Watched& watched);

  // Limits for one connection; other queries are sent to the server each time.
  static constexpr std::size_t kMostVolumes = 4, kMostAnswerBytes = 4096;

  Ask ask_;
  Tell tell_;
  std::list<Watched> volumes_;
  std::uint64_t last_ = 0;
};

}  // namespace longhaul::smb
