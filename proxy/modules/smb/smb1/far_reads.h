// SPDX-License-Identifier: Apache-2.0
// The far half's reads: fetches data from the server that clients will request, and pushes it to the near
// half. Every READ that the near half could not answer completely arrives after Asked and is swallowed:
// missing data is fetched and pushed, or, if that is not allowed (a change of the file, an oplock break), the
// READ is sent to the server under ids of ours and the response is sent to the near half as an Answer. Asked
// carries a number that is never reused, unlike MIDs: whichever response comes first counts.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <set>

#include "codecs/interval_set.h"
#include "proxy/modules/ahead/counted_read_ahead.h"
#include "proxy/modules/ahead/fetches.h"
#include "proxy/modules/ahead/pushes.h"
#include "proxy/modules/ahead/swallowed.h"
#include "proxy/modules/smb/smb1/server_leg.h"

namespace longhaul::smb::smb1 {

class FarReads {
 public:
  FarReads(Outputs& out, ServerLeg& leg, Connection& connection, modules::Counters& counters)
      : out_(out), leg_(leg), connection_(connection), counters_(counters) {}

  void on_surroundings(const Surroundings& surroundings) { surroundings_ = surroundings; }

  // An open was answered, and the response passed on.
  void opened(const Open& open);
  // The open is closed, or about to be.
  void closed(const OpenKey& key);
  // A READ of the client after Asked.
  void asked(const Asked& asked, const Slice& frame, const ReadRequest& read);
  // A READ that passes unchanged.
  void passed(const OpenKey& key, const ReadRequest& read);
  // A READ that the near half answered.
  void used(const Used& used);
  void near_dropped(const Drop& drop);
  // Limit of unread bytes of all files.
  void may_be_ahead(std::uint64_t bytes) { most_ahead_bytes_ = bytes; }
  // Cached data of this file is void.
  void drop(const OpenKey& key);
  // The same for every file that this request may have changed: it has been answered, and data read at the
  // same time may be older.
  void changed_by(const Pending& request);
  // The client sends nothing more, or can no longer be parsed: stops fetching ahead.
  void stop() { stopped_ = true; }
  void pump();
  bool is_idle() const { return swallowed_ == 0; }

 private:
  struct Read {  // to be sent to the server after all
    Slice frame;
    MessageNumber number{};
  };
  struct File {
    File(std::uint64_t& ahead_bytes, std::size_t& swallowed_reads)
        : policy(ahead_bytes), swallowed(swallowed_reads) {}
    Stamp stamp;
    CountedReadAhead policy;
    std::deque<Interval> wanted;  // for swallowed READs: served before data that is read ahead
    Fetches fetches;
    Pushes pushes;
    std::optional<std::uint64_t> end_of_file;
    Swallowed<Read> swallowed;
    bool may_plan = true;  // false: not until the client's next READ
    bool is_void = true;   // nothing was fetched under this stamp
  };
  void changed(const OpenKey& key);
  void fetch(const Open& open, File& file, Interval range);
  void fetched(const OpenKey& key, std::uint64_t id, Stamp stamp, Interval range, const Message& answer);
  void push(const OpenKey& key, File& file, Interval range, Bytes data, std::optional<std::uint64_t> end);
  void give_up(const OpenKey& key, File& file);
  void read_through(const OpenKey& key, MessageNumber number, Slice frame);
  void make_void(File& file);
  bool may_fetch(const Open& open) const;
  void fetch_wanted(const OpenKey& key, File& file);
  std::optional<Interval> next(const Open& open, File& file);
  ReadAheadLimits limits() const;

  Outputs& out_;
  ServerLeg& leg_;
  Connection& connection_;
  modules::Counters& counters_;
  Surroundings surroundings_;
  void pump(const OpenKey& key, File& file);

  // Limits: READs swallowed per file, and files examined each time that there may be room.
  static constexpr std::size_t kMostSwallowed = 32, kMostAtOnce = 16;

  std::uint64_t ahead_bytes_ = 0;  // of all files: fetched, and not read
  std::size_t swallowed_ = 0;      // READs of all files
  std::map<OpenKey, File> files_;
  std::set<OpenKey> waiting_;  // files for which a READ waits
  OpenKey looked_at_;          // most recently
  std::uint64_t fetches_ = 0;
  std::uint64_t most_ahead_bytes_ = 64 << 20;
  bool stopped_ = false;
  bool client_reads_ = false;  // the client has read something on this connection
};

}  // namespace longhaul::smb::smb1
