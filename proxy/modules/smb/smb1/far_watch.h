// SPDX-License-Identifier: Apache-2.0
// The far half's part for changes that are made beside the SMB server: keeps a handle and a NOTIFY_CHANGE of
// its own on the folders of files whose oplock was asked on the client's behalf (smb2/far_watch.h says why
// timestamps do not do). The client's own listings are not watched.
//
// SMB1 does not tell that a server listens. It does from when the request was read: the folder is opened before
// the file that lies in it, and what is fetched of the file is asked behind the NOTIFY_CHANGE.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

#include "proxy/modules/smb/smb1/server_leg.h"

namespace longhaul::smb::smb1 {

class FarWatch {
 public:
  // `changed`: by others, or by the client, of which the server tells as well.
  using OnChange = std::function<void(const OpenKey& open)>;
  FarWatch(Outputs& out, ServerLeg& leg, Connection& connection, modules::Counters& counters, OnChange changed)
      : out_(out), leg_(leg), connection_(connection), counters_(counters), changed_(std::move(changed)) {}

  // A file is about to be opened that is to be watched.
  void opening(const Header& header, const FileName& name);
  // It was opened. What others change in it is told from here on, or `open` is not watched.
  void opened(TimePoint now, Open& open);
  void closed(TimePoint now, const OpenKey& key);
  // A request of the client for which nothing of ours may be open in folders, or wait for an answer.
  void before(TimePoint now, const Message& message);
  void stop() { stopped_ = true; }
  void on_timeout(TimePoint now);
  std::optional<TimePoint> next_timeout() const;

 private:
  using Number = std::uint64_t;
  using Path = std::tuple<std::uint16_t, std::uint16_t, std::u16string>;  // UID, TID
  struct Folder {
    Path path;
    std::uint16_t flags2 = 0;
    std::optional<std::uint16_t> fid;
    bool watches = false, failed = false;
    std::optional<TimePoint> listens_at;  // again
    TimePoint since{};                    // when the last of its opens was closed
    std::unordered_map<OpenKey, FileName, OpenKeyHash> opens;
  };
  using Folders = std::map<Number, Folder>;

  void listen(Number number, Folder& folder);
  void told(Number number, const Message& answer);
  void fail(Folder& folder);
  void release(Folders::iterator folder);
  void release_all();
  void set_watched(const OpenKey& key, bool watched);

  // Each takes one of the requests that a server allows at a time.
  static constexpr std::size_t kMostFolders = 4;
  static constexpr std::chrono::milliseconds kRest{100};
  static constexpr std::chrono::seconds kLinger{1};

  Outputs& out_;
  ServerLeg& leg_;
  Connection& connection_;
  modules::Counters& counters_;
  OnChange changed_;
  Folders folders_;
  std::map<Path, Number> by_path_;
  std::unordered_map<OpenKey, Number, OpenKeyHash> opens_;
  Number last_ = 0;
  TimePoint now_{};  // as of the last call
  bool stopped_ = false;
};

}  // namespace longhaul::smb::smb1
