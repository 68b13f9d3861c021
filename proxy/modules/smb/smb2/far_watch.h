// SPDX-License-Identifier: Apache-2.0
// The far half's part for changes that break no oplock: others change a file beside the SMB server, or a
// folder that is being listed. Watches each folder with data cached for the client (notify_handles.h), and
// reports which opens are watched in this way (Watched). Other parts fetch, cache and drop the data. A server
// may accept the CHANGE_NOTIFY and report nothing: therefore far_times.h queries the files as well.
#pragma once
#include "proxy/modules/smb/smb2/far_times.h"
#include "proxy/modules/smb/smb2/notify_handles.h"
#include "proxy/modules/smb/smb2/parts.h"
#include "proxy/modules/smb/smb2/watched_opens.h"

namespace longhaul::smb::smb2 {

class FarWatch final : public FarPart {
 public:
  explicit FarWatch(FarSide& side)
      : side_(side),
        handles_(
            side, [this](TimePoint now, Number folder) { tell_all(now, folder, true); },
            [this](TimePoint now, Number folder, std::optional<Bytes> names) { changed(now, folder, names); },
            [this](TimePoint now, Number folder) { tell_all(now, folder, false); }),
        times_(
            side, [this](TimePoint now, const OpenKey& open) { notice(now, open); },
            [this](TimePoint now, const OpenKey& open) { gone(now, open); },
            [this](TimePoint now, const OpenKey& open) { drop_kept(now, open); }) {}

  // Begins or continues to watch a file, or the names in a directory. `later`: FarSide::on_watched() follows.
  // A file under the client's own oplock is queried in any case.
  Watching watch(TimePoint now, Open& open);

  void before_request(TimePoint now, const Message& message, const Changes& changes) override;
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_request(TimePoint, const Message&, const Changes&) override { return Taken::no; }
  Taken on_response(TimePoint, const Message&, const Connection::Outcome&) override { return Taken::no; }
  void after_response(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  void on_ids_freed(TimePoint now) override;
  void stream_ended(TimePoint) override { handles_.stream_ended(); }
  void on_timeout(TimePoint now) override;
  std::optional<TimePoint> next_timeout() const override;

 private:
  using Number = WatchedOpens::Number;

  void tell(TimePoint now, const OpenKey& key, bool watched);
  void tell_all(TimePoint now, Number folder, bool watched);
  void changed(TimePoint now, Number folder, std::optional<Bytes> names);
  void notice(TimePoint now, const OpenKey& open);
  bool drop_kept(TimePoint now, const OpenKey& open);
  void used(TimePoint now, const Open& open);
  void gone(TimePoint now, const OpenKey& open);
  void forget(TimePoint now, const OpenKey& open);
  void release(TimePoint now, Number folder);
  void release_all(TimePoint now);

  // Limits of handles at the server and of watched opens: the cost of a message grows with them.
  static constexpr std::size_t kMostFolders = 64, kMostOpens = 4096;

  FarSide& side_;
  WatchedOpens opens_;
  NotifyHandles handles_;
  FarTimes times_;
};

}  // namespace longhaul::smb::smb2
