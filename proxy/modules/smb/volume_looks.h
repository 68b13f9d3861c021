// SPDX-License-Identifier: Apache-2.0
// What the far half knows of a share's volume, such as its free space: what the client asked is asked again
// ten times a second for a while, and the near half is told of each other answer. What is asked, and of whom,
// is left to smb1/far_volumes.h and smb2/far_volumes.h.
//
// A server reports no changes of free space. So these looks take the place of a notification, which is no
// earlier: changes are reported at most every 100 ms (far_watch.h), too.
#pragma once
#include <functional>
#include <list>
#include <optional>
#include <utility>

#include "proxy/modules/smb/half.h"

namespace longhaul::smb {

// How often the far half looks at what the near half answers with, and how long after the client's last query
// that reached the server. The near half stops earlier: a report may be on its way for a while.
inline constexpr std::chrono::milliseconds kVolumePeriod{100};
inline constexpr std::chrono::seconds kVolumeWatched{4}, kVolumeAnswers{3};

class VolumeLooks {
 public:
  struct Volume {
    OpenKey open;  // through which it is asked
    Slice question;
    Slice told;  // the near half's answer
  };
  // Sends the question, whose answer is answered(). False: it cannot be sent now.
  using Ask = std::function<bool(const Volume& volume, TimePoint now, std::uint64_t number)>;
  // Tells the near half the answer; `unknown`: that it must not use the one it has.
  enum class Answer : bool { unknown, known };
  using Tell = std::function<void(const Volume& volume, Answer answer)>;
  VolumeLooks(Ask ask, Tell tell) : ask_(std::move(ask)), tell_(std::move(tell)) {}

  // The server has answered the client.
  void begin(TimePoint now, const OpenKey& open, const Slice& question, const Slice& response);
  // And now a look. None: with an error.
  void answered(std::uint64_t number, std::optional<Slice> response);
  void closing(const OpenKey& open);
  void forget() { volumes_.clear(); }
  void on_timeout(TimePoint now);
  std::optional<TimePoint> next_timeout() const;

 private:
  struct Watched {
    std::uint64_t number = 0;  // never used again: answers to earlier looks count for nothing
    Volume volume;
    TimePoint until{}, due{};
    bool is_asked = false;
  };
  bool look(TimePoint now, Watched& watched);

  // Of one connection; other queries go to the server each time.
  static constexpr std::size_t kMostVolumes = 4, kMostAnswerBytes = 4096;

  Ask ask_;
  Tell tell_;
  std::list<Watched> volumes_;
  std::uint64_t last_ = 0;
};

}  // namespace longhaul::smb
