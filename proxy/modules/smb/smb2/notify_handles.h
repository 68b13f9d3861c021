// SPDX-License-Identifier: Apache-2.0
// Our own handles on folders of the server, each with a CHANGE_NOTIFY that is sent again after every
// response: opens, listens and closes. far_watch.h selects the folders, and determines what a change
// concerns.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "proxy/modules/smb/smb2/parts.h"
#include "proxy/modules/smb/smb2/watched_opens.h"

namespace longhaul::smb::smb2 {

class NotifyHandles {
 public:
  using Number = std::uint64_t;
  using Call = std::function<void(TimePoint now, Number number)>;
  // `names`: in the format of concerned_by(); nullopt if the server does not remember all.
  using Changed = std::function<void(TimePoint now, Number number, std::optional<Bytes> names)>;
  // `begun`: the server records changes from now on. `failed`: it does not, or no longer.
  NotifyHandles(FarSide& side, Call begun, Changed changed, Call failed)
      : side_(side), begun_(std::move(begun)), changed_(std::move(changed)), failed_(std::move(failed)) {}

  void open(TimePoint now, Number number, const FolderPath& path);
  // From now on it counts as failed, without a call; close() follows.
  void stop(Number number);
  void close(TimePoint now, Number number);

  // Whether the server records changes, also between two CHANGE_NOTIFYs.
  bool watches(Number number) const;
  bool has_failed(Number number) const;
  bool has_ended() const { return ended_; }

  // Sends CLOSEs that waited for ids; on_ids_freed() also sends the other requests.
  void send_closes(TimePoint now);
  void on_ids_freed(TimePoint now);
  void stream_ended() { ended_ = true; }
  void on_timeout(TimePoint now);
  std::optional<TimePoint> next_timeout() const;

 private:
  struct Handle {
    enum class State : std::uint8_t {
      to_open,    // its CREATE waits for an id
      opening,    // or its response
      to_listen,  // its CHANGE_NOTIFY waits for an id, or for `due`
      listening,
      failed,  // the server does not allow to watch it
    };
    FolderPath path;
    State state = State::to_open;
    bool watches = false;
    FileId file;
    TimePoint due{};  // for to_listen; in state listening: the server must have confirmed by then
  };
  struct Closing {
    FolderPath path;
    FileId file;
    Number number = 0;  // behind which the client's requests for the folder wait
  };
  static bool is_unconfirmed(const Handle& handle) {
    return handle.state == Handle::State::listening && !handle.watches;
  }
  void go_on(TimePoint now, Number number);
  void send_create(TimePoint now, Number number, Handle& handle);
  void listen(TimePoint now, Number number, Handle& handle);
  void wait_for_id(TimePoint now, Number number);
  void answered(TimePoint now, Number number, const Element& answer);
  void fail(TimePoint now, Number number);
  void close_file(TimePoint now, const FolderPath& path, const FileId& file);

  // Differs from those of far_opens.h.
  static constexpr Number kFirstClose = Number{1} << 63;
  // Changes in quick succession are reported together.
  static constexpr std::chrono::milliseconds kRest{100};
  // A listing waits for the server's confirmation: without one the folder counts as not watchable.
  static constexpr std::chrono::seconds kPatience{5};

  FarSide& side_;
  Call begun_;
  Changed changed_;
  Call failed_;
  std::map<Number, Handle> handles_;
  std::set<Number> wanting_ids_;
  std::vector<Closing> closes_;  // CLOSEs to be sent
  Number last_close_ = kFirstClose;
  bool ended_ = false;
};

}  // namespace longhaul::smb::smb2
