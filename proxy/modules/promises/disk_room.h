// SPDX-License-Identifier: Apache-2.0
// How much may still be promised to the disks behind a connection: near the end of the space (or of the
// user's quota) writes wait for their real answers, as a client that caches writes would have them wait. Both
// sides count the bytes of promised writes per tree; what the server says (FileFsFullSizeInformation:
// CallerAvailableAllocationUnits, which heeds quotas, [MS-FSCC] 2.5.4) holds for what it had not been given
// when it was asked. Every promised byte counts, also one inside a file's size: a file set to its size
// beforehand may be all holes.
#pragma once
#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>

#include "proxy/link/types.h"

namespace longhaul::promises {

// A tree connect of one session: what the space is asked for.
struct DiskTree {
  std::uint64_t session = 0;
  std::uint32_t tree = 0;
  auto operator<=>(const DiskTree&) const = default;
};

// Near side: may these bytes be promised?
class DiskRoom {
 public:
  // `available_bytes` are left for writes after the first `counted_bytes` that were promised to this tree.
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

// Far side: when must the server be asked (again)?
class DiskQuestions {
 public:
  // An open that may write has come or a promised write was answered. True: ask now; one question at a time.
  bool ask_for(DiskTree tree, link::TimePoint now);
  // Bytes of a promised write were answered by the server, well or not.
  void written(DiskTree tree, std::uint64_t length);
  // The question's answer; `available_bytes` is none when the server refused. What to tell the near side, if
  // anything: of a server that does not say, once, that there is no room.
  struct Told {
    std::uint64_t available_bytes = 0, counted_bytes = 0;
  };
  std::optional<Told> answered(DiskTree tree, std::optional<std::uint64_t> available_bytes);
  // It could not be sent, or its file was closed meanwhile: ask again when there is cause.
  void not_asked(DiskTree tree);
  void forget(DiskTree tree) { trees_.erase(tree); }

 private:
  // Asked again when this much of what was left has been used: seldom on a large disk, each write on a full
  // one.
  static constexpr std::uint64_t kUsedShare = 8;
  static constexpr std::uint64_t kMostUsedBytes = 1 << 30;
  // Others write to the disk too.
  static constexpr std::chrono::seconds kOldAfter{5};
  struct State {
    link::TimePoint asked_at{};
    bool asking = false, known = false, refused = false;
    std::uint64_t written_bytes = 0, asked_at_bytes = 0, available_bytes = 0;
  };
  std::map<DiskTree, State> trees_;
};

}  // namespace longhaul::promises
