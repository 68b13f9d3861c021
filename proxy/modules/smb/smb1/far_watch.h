// SPDX-License-Identifier: Apache-2.0
// Detects changes that bypass the SMB server's oplocks, at the far half: keeps a handle and a NOTIFY_CHANGE
// of its own on the folders of files whose oplock was requested on the client's behalf, and on those that the
// client lists (smb2/far_watch.h explains why timestamps do not suffice).
//
// An SMB1 server does not confirm that it watches. It watches once it has read the request: so the folder is
// opened before the file in it, and the data of the file, or of the listing, is requested after the
// NOTIFY_CHANGE.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "proxy/modules/smb/smb1/far_times.h"
#include "proxy/modules/smb/smb1/server_leg.h"

namespace longhaul::smb::smb1 {

class FarWatch {
 public:
  // `changed`: by others, or by the client, because the server reports both.
  using OnChange = std::function<void(const OpenKey& open)>;
  // `listing_void`: the folder was changed, or is no longer watched. The listing is dropped.
  FarWatch(Outputs& out, ServerLeg& leg, Connection& connection, modules::Counters& counters,
           OnChange changed, OnChange listing_void)
      : out_(out),
        leg_(leg),
        connection_(connection),
        counters_(counters),
        changed_(std::move(changed)),
        listing_void_(std::move(listing_void)),
        times_(leg, connection, counters, [this](const OpenKey& open) {
          ++counters_.changes_noticed;
          changed_(open);
        }) {}

  void negotiated(TimePoint now) { times_.negotiated(now); }
  // A file that should be watched is about to be opened.
  void opening(const Header& header, const FileName& name);
  // The file was opened. From now on changes by others are reported, or `open` is not watched.
  void opened(TimePoint now, Open& open);
  void closed(TimePoint now, const OpenKey& key);
  // A search with this pattern has more entries than its first response. Returns false if its folder cannot
  // be watched.
  bool listing(const OpenKey& search, const Header& header, const FileName& pattern);
  // Whether a change after a request sent from now on will be reported.
  bool listens(const OpenKey& search) const;
  void listed(const OpenKey& search);  // complete, or no entries are ahead any more
  // A request during which no handle of ours may be open in folders, and no query of ours be pending.
  void before(TimePoint now, const Message& message);
  void stop() {
    stopped_ = true;
    times_.stop();
  }
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
    std::optional<TimePoint> listens_at;  // when it will be watched again
    TimePoint since{};                    // when the last of its opens and listings was closed
    std::unordered_map<OpenKey, FileName, OpenKeyHash> opens;
    std::unordered_set<OpenKey, OpenKeyHash> listings;
    bool is_unused() const { return opens.empty() && listings.empty(); }
  };
  using Folders = std::map<Number, Folder>;

  bool has_or_opens(const Header& header, const FileName& name);
  bool makes_room();
  void listen(Number number, Folder& folder);
  void told(Number number, const Message& answer);
  void fail(Folder& folder);
  void leave(const OpenKey& key);
  void void_listings(Folder& folder);
  void release(Folders::iterator folder);
  void release_all();
  void set_watched(const OpenKey& key, bool watched);

  // Each uses one of the requests that a server allows at a time.
  static constexpr std::size_t kMostFolders = 4;
  static constexpr std::chrono::milliseconds kRest{100};
  static constexpr std::chrono::seconds kLinger{1};

  Outputs& out_;
  ServerLeg& leg_;
  Connection& connection_;
  modules::Counters& counters_;
  OnChange changed_, listing_void_;
  FarTimes times_;
  Folders folders_;
  std::map<Path, Number> by_path_;
  std::unordered_map<OpenKey, Number, OpenKeyHash> opens_, listings_;
  Number last_ = 0;
  TimePoint now_{};  // as of the last call
  bool stopped_ = false;
};

}  // namespace longhaul::smb::smb1
