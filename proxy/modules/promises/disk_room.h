// SPDX-License-Identifier: Apache-2.0
// How much may still be promised to the disks of a connection's server: near the end of the space (or of the
// user's quota) writes wait for their real responses, as in a client that caches writes. Both sides count the
// bytes of promised writes per tree; the server's figure (FileFsFullSizeInformation:
// CallerAvailableAllocationUnits, which includes quotas, [MS-FSCC] 2.5.4) excludes only the writes that it
// had received by the time of the query. Every promised byte counts, even within a file's size: a file that
// was extended beforehand may consist of holes.
#pragma once
#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>

#include "proxy/link/types.h"

namespace longhaul::promises {

// A tree connect of one session: the unit for which the space is queried.
struct DiskTree {
  std::uint64_t session = 0;
  std::uint32_t tree = 0;
  auto operator<=>(const DiskTree&) const = default;
};

// Near side: decides whether bytes may be promised.
class DiskRoom {
 public:
  // `available_bytes` remain for writes after the first `counted_bytes` promised to this tree.
  void told(DiskTree tree, std::uint64_t available_bytes, std::uint64_t counted_bytes);
  bool has_room(DiskTree tree, std::uint64_t length) const;  // false while nothing is known
  bool knows(DiskTree tree) const;
  void promised(DiskTree tree, std::uint64_t length);
  void forget(DiskTree tree) { trees_.erase(tree); }

 private:
  static constexpr std::size_t kMostTrees = 4096;
  struct State {
    std::optional<std::uint64_t> available_bytes;
    std::uint64_t counted_bytes = 0, promised_bytes = 0;
  };
  std::map<DiskTree, State> trees_;
};

// Far side: decides when the server must be queried.
class DiskQuestions {
 public:
  // To be called when an open that may write has arrived, or a promised write was answered. Returns whether
  // to send a query now; one at a time.
  bool ask_for(DiskTree tree, link::TimePoint now);
  // The server answered that many bytes of a promised write, successfully or not.
  void written(DiskTree tree, std::uint64_t length);
  // The response to the query; `available_bytes` is nullopt if the server refused. Returns the report for the
  // near side, if any; for a server that does not report its space, once, that there is no room.
  struct Told {
    std::uint64_t available_bytes = 0, counted_bytes = 0;
  };
  std::optional<Told> answered(DiskTree tree, std::optional<std::uint64_t> available_bytes);
  // The query could not be sent, or its file was closed meanwhile: query again when there is a reason.
  void not_asked(DiskTree tree);
  void forget(DiskTree tree) { trees_.erase(tree); }

 private:
  // Queried again when this share of the remaining space has been used: rarely on a large disk, at each write
  // on a full one.
  static constexpr std::uint64_t kUsedShare = 8;
  static constexpr std::uint64_t kMostUsedBytes = 1 << 30;
  // Other clients write to the disk too.
  static constexpr std::chrono::seconds kOldAfter{5};
  struct State {
    link::TimePoint asked_at{};
    bool asking = false, known = false, refused = false;
    std::uint64_t written_bytes = 0, asked_at_bytes = 0, available_bytes = 0;
  };
  std::map<DiskTree, State> trees_;
};

}  // namespace longhaul::promises
