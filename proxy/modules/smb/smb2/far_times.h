// SPDX-License-Identifier: Apache-2.0
// A part of far_watch.h, for servers that report no changes: repeatedly queries the times and the size of
// each file with cached data, and reports which have changed.
//
// A look is a CREATE for attributes only, which breaks no oplock, and its CLOSE, which requests the
// attributes: smbd 4.17 reports the times of an open file as they were at its open in response to every query
// and to a CREATE, but not to a CLOSE.
//
// Files that the client has not used for long, or longer than many others, are no longer queried: then
// nothing of them may be cached. So cached data is never older than a period. The same while a break is
// pending: smbd answers an open that waits for it anew after each look, and if the connection of that open is
// gone, no longer recognises its replay on another one.
#pragma once
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class FarTimes {
 public:
  using Call = std::function<void(TimePoint now, const OpenKey& open)>;
  // `changed`: the file has changed. `gone`: no file with its name can be queried. `rests`: it is no longer
  // queried, until it is added again.
  FarTimes(FarSide& side, Call changed, Call gone, Call rests)
      : side_(side), changed_(std::move(changed)), gone_(std::move(gone)), rests_(std::move(rests)) {}

  // Data of the file is requested, or will be cached. A file that was not queried before is compared with its
  // times at its open.
  void add(TimePoint now, const Open& open);
  void remove(const OpenKey& open);
  void on_ids_freed(TimePoint now);
  void on_timeout(TimePoint now);
  std::optional<TimePoint> next_timeout() const;

  // Each file is queried this long after the last time; all of them take a quarter of a second, so that none
  // waits for longer than a second.
  static constexpr std::chrono::milliseconds kPeriod{750}, kApart{4};
  static constexpr std::size_t kMostFiles = 64;
  static constexpr std::chrono::seconds kUnused{10};

 private:
  using Number = std::uint64_t;
  // Differ from those of far_opens.h and notify_handles.h.
  static constexpr Number kFirstLook = Number{1} << 62;
  struct Shown {
    std::uint64_t written = 0, changed = 0, bytes = 0;
    bool operator==(const Shown&) const = default;
  };
  using Keys = std::list<OpenKey>;
  struct File {
    SessionId session = 0;
    TreeId tree = 0;
    FileName name;
    std::u16string spelled;
    bool own = false;  // under the client's own oplock
    Shown shown;
    TimePoint due{};  // its entry in due_; other entries are outdated
    TimePoint used{};
    Keys::iterator place;
    bool looked_at = false;
  };
  struct Closing {
    SessionId session = 0;
    TreeId tree = 0;
    FileId file;
    OpenKey open;
    Number number = 0;  // behind which the client's requests for the file wait
  };
  void look_later(TimePoint now, const OpenKey& open, File& file);
  bool is_due(const std::pair<TimePoint, OpenKey>& due) const;
  bool look(const OpenKey& open, const File& file);
  void opened(TimePoint now, const Closing& closing, const Element& answer);
  void send_closes(TimePoint now);
  void compare(TimePoint now, const OpenKey& open, const CloseResponse& response);
  void drop_all(TimePoint now);
  void rest(TimePoint now, OpenKey open);

  FarSide& side_;
  Call changed_, gone_, rests_;
  std::unordered_map<OpenKey, File, OpenKeyHash> files_;
  Keys used_;                                      // the same, the last used first
  std::deque<std::pair<TimePoint, OpenKey>> due_;  // in order; one for each file, and some that are void
  TimePoint next_look_{};                          // not before
  // Files to be reported to the owner, but not within its call.
  std::vector<OpenKey> resting_;
  TimePoint resting_since_{};
  bool wants_ids_ = false;
  // No id was free for the last look. If none becomes free until then, cached data of the files must be
  // dropped.
  bool starved_ = false;
  std::optional<TimePoint> drops_at_;
  std::deque<Closing> closes_;  // CLOSEs to be sent
  Number last_ = kFirstLook;
};

}  // namespace longhaul::smb::smb2
