// SPDX-License-Identifier: Apache-2.0
// A part of far_watch.h, for servers that report no changes: looks at the times and the size of each watched
// file, and at the times of each folder that is being listed, once a second, and says which are not what they
// were. Which are watched is decided there. A folder's times change with the names in it, not with its files.
//
// A look is a CREATE for nothing but attributes, which breaks no oplock, and its CLOSE, which asks for the
// attributes: smbd 4.17 shows the times of an open file as they were at its open to every query, and in the
// answer to a CREATE, but not in the answer to a CLOSE.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class FarTimes {
 public:
  using Call = std::function<void(TimePoint now, const OpenKey& open)>;
  // `changed`: it is not as it was. `gone`: nothing has its name any more.
  FarTimes(FarSide& side, Call changed, Call gone)
      : side_(side), changed_(std::move(changed)), gone_(std::move(gone)) {}

  // No effect on one that is looked at already.
  void add(TimePoint now, const Open& open);
  void remove(const OpenKey& open) { files_.erase(open); }
  void on_ids_freed(TimePoint now);
  void on_timeout(TimePoint now);
  std::optional<TimePoint> next_timeout() const;

  // Each file is looked at this long after the last time, unless there are so many of one connection that the
  // looks would be more than kMostLooks in that time.
  static constexpr std::chrono::seconds kPeriod{1};
  static constexpr std::size_t kMostLooks = 64;

 private:
  using Number = std::uint64_t;
  // Other than those of far_opens.h and far_watch.h.
  static constexpr Number kFirstLook = Number{1} << 62;
  struct Shown {
    std::uint64_t written = 0, changed = 0, bytes = 0;
    bool operator==(const Shown&) const = default;
  };
  struct File {
    SessionId session = 0;
    TreeId tree = 0;
    FileName name;
    bool directory = false;
    Shown shown;
    TimePoint due{};  // its entry of due_; others are of an earlier time
    bool looked_at = false;
  };
  struct Closing {
    SessionId session = 0;
    TreeId tree = 0;
    FileId file;
    OpenKey open;
    Number number = 0;  // behind which the client's requests on the file wait
  };
  void look_later(TimePoint now, const OpenKey& open, File& file);
  bool look(TimePoint now, const OpenKey& open, const File& file);
  void opened(TimePoint now, const Closing& closing, const Element& answer);
  void send_closes(TimePoint now);
  void compare(TimePoint now, const OpenKey& open, const CloseResponse& response);
  void drop_all(TimePoint now);
  std::chrono::nanoseconds apart() const { return std::chrono::nanoseconds(kPeriod) / kMostLooks; }

  FarSide& side_;
  Call changed_, gone_;
  std::unordered_map<OpenKey, File, OpenKeyHash> files_;
  std::deque<std::pair<TimePoint, OpenKey>> due_;  // in order; one for each file, and some that are void
  TimePoint next_look_{};                          // not before
  bool wants_ids_ = false;
  // The last look found no id, and if none does until then what is held of the files must be dropped.
  bool starved_ = false;
  std::optional<TimePoint> drops_at_;
  std::deque<Closing> closes_;  // that are to be sent
  Number last_ = kFirstLook;
};

}  // namespace longhaul::smb::smb2
