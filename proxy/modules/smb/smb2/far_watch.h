// SPDX-License-Identifier: Apache-2.0
// The far half's part for changes that no oplock shows: others change a file beside the SMB server, or a
// folder that is being listed. Keeps a handle and a CHANGE_NOTIFY of its own on each folder with data cached
// for the client, and reports which opens are watched in this way (Watched). Other parts fetch, keep and drop
// the data. A server may accept the CHANGE_NOTIFY and report nothing: far_times.h looks at the files as well.
#pragma once
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "proxy/modules/smb/smb2/far_times.h"
#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class FarWatch final : public FarPart {
 public:
  explicit FarWatch(FarSide& side)
      : side_(side),
        times_(
            side, [this](TimePoint now, const OpenKey& open) { changed(now, Keys{open}); },
            [this](TimePoint now, const OpenKey& open) { gone(now, open); },
            [this](TimePoint now, const OpenKey& open) { drop_kept(now, open); }) {}

  // Begins to watch a file, or the names in a directory, or goes on. `later`: FarSide::on_watched() follows.
  // A file under the client's own oplock is looked at in any case.
  Watching watch(TimePoint now, Open& open);

  void before_request(TimePoint now, const Message& message, const Changes& changes) override;
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_request(TimePoint, const Message&, const Changes&) override { return Taken::no; }
  Taken on_response(TimePoint, const Message&, const Connection::Outcome&) override { return Taken::no; }
  void after_response(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  void on_ids_freed(TimePoint now) override;
  void stream_ended(TimePoint) override { ended_ = true; }
  void on_timeout(TimePoint now) override;
  std::optional<TimePoint> next_timeout() const override;

 private:
  using Number = std::uint64_t;
  using Path = std::tuple<SessionId, TreeId, std::u16string>;
  using Keys = std::unordered_set<OpenKey, OpenKeyHash>;
  struct Folder {
    enum class State : std::uint8_t {
      to_open,    // its CREATE waits for an id
      opening,    // or for its answer
      to_listen,  // its CHANGE_NOTIFY waits for an id, or for `due`
      listening,
      failed,  // the server does not allow watching it
    };
    Path path;
    State state = State::to_open;
    bool watches = false;  // the server records changes, also between two CHANGE_NOTIFYs
    FileId file;
    TimePoint due{};    // of to_listen; of listening: the server must have confirmed it
    TimePoint since{};  // when the last of its opens was closed
    std::size_t opens = 0;
    Keys listings;                                       // of these: the folder itself
    std::unordered_map<const FileGroup*, Keys> of_file;  // the others
  };
  struct Watched {
    Number folder = 0;
    FileGroupRef file;  // none: a listing
  };
  using Folders = std::map<Number, Folder>;

  void go_on(TimePoint now, Number number);
  void open(Number number, Folder& folder, TimePoint now);
  void listen(Number number, Folder& folder, TimePoint now);
  void told(TimePoint now, Number number, const Element& answer);
  void fail(TimePoint now, Number number);
  static bool is_unconfirmed(const Folder& folder) {
    return folder.state == Folder::State::listening && !folder.watches;
  }
  void tell(TimePoint now, const OpenKey& key, bool watched);
  void changed(TimePoint now, Folder& folder, Bytes names);
  void changed(TimePoint now, const Keys& opens);
  bool drop_kept(TimePoint now, const OpenKey& open);
  void used(TimePoint now, const Open& open);
  void gone(TimePoint now, const OpenKey& open);
  std::vector<OpenKey> all_of(const Folder& folder) const;
  void forget(TimePoint now, const OpenKey& open);
  void release(TimePoint now, Folders::iterator folder);
  void release_all(TimePoint now);
  void close(TimePoint now, const Path& path, const FileId& file);
  void send_closes(TimePoint now);

  // Other than those of far_opens.h.
  static constexpr Number kFirstClose = Number{1} << 63;
  // Limits of handles at the server and of watched opens: the cost of a message grows with them.
  static constexpr std::size_t kMostFolders = 64, kMostOpens = 4096;
  // Changes in quick succession are reported together.
  static constexpr std::chrono::milliseconds kRest{100};
  // A client that opens one file after the other needs only one handle of ours.
  static constexpr std::chrono::seconds kLinger{1};
  // A listing waits for the server's confirmation: one that gives none is taken for one that cannot watch.
  static constexpr std::chrono::seconds kPatience{5};

  FarSide& side_;
  Folders folders_;
  std::map<Path, Number> by_path_;
  std::unordered_map<OpenKey, Watched, OpenKeyHash> opens_;
  std::set<Number> wanting_ids_;
  struct Closing {
    Path path;
    FileId file;
    Number number = 0;  // behind which the client's requests on the folder wait
  };
  std::vector<Closing> closes_;  // that are to be sent
  Number last_ = 0;
  Number last_close_ = kFirstClose;
  FarTimes times_;
  bool ended_ = false;
};

}  // namespace longhaul::smb::smb2
