// SPDX-License-Identifier: Apache-2.0
// A file whose promised writes were lost, what was lost of it, and why. The names of files between the same addresses.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codecs/interval_set.h"
#include "proxy/modules/module.h"

namespace longhaul::promises {

// Why a promise was not kept. One row of kCauseNames for each.
enum class Cause : std::uint8_t {
  refused,        // the server answered the WRITE with an error
  server_gone,    // the server or the far proxy ended the connection
  client_gone,    // the client reset its connection before the WRITE was done
  link_lost,      // the link or the far proxy failed
  flow_cut,       // one of the proxies reset the flow, or this daemon stopped
  near_vanished,  // the near proxy failed: it may have promised writes that never arrived
  interrupted,    // this daemon was killed or its host failed while writes may have been promised (marks.h)
};
inline constexpr std::array<std::string_view, 7> kCauseNames{
    "refused", "server_gone", "client_gone", "link_lost", "flow_cut", "near_vanished", "interrupted"};
// How the client was told.
enum class Told : std::uint8_t {
  late_error,  // in the answer to a later WRITE, FLUSH or CLOSE
  next_open,   // in answer to an open of the file
  reset,       // only CLOSE could have told: its answer is withheld, and the connection is reset
};
inline constexpr std::array<std::string_view, 3> kToldNames{"late_error", "next_open", "reset"};

// Why nothing is left to report of a loss, although the client was not told.
enum class Ended : std::uint8_t {
  replaced,  // the client replaced or deleted the content
  not_lost,  // only suspected by a far half: the near daemon knows better
};
inline constexpr std::array<std::string_view, 2> kEndedNames{"replaced", "not_lost"};

// Addresses in IPv6 form. Ports do not count: clients try several (SMB: 445 and 139).
inline modules::Ends any_port(modules::Ends ends) {
  ends.server_port = 0;
  return ends;
}

struct LostFile {
  modules::Ends ends;
  // In the form in which the protocol compares names, so that each file has one.
  std::u16string share;  // what contains the file at the server
  std::u16string path;   // in the share
  // The path letter by letter. Empty: not known. Where a server tells names apart that compare equal, they
  // are two files: a client is told by either name, and only the very file's loss ends.
  std::u16string spelled;
  bool operator==(const LostFile& other) const {
    return any_port(ends) == any_port(other.ends) && share == other.share && path == other.path;
  }
  // Certainly the same file, or not known to be another.
  bool is_exactly(const LostFile& other) const {
    return *this == other && (spelled.empty() || other.spelled.empty() || spelled == other.spelled);
  }
  std::size_t name_bytes() const { return (share.size() + path.size() + spelled.size()) * sizeof(char16_t); }
};

// The name of `file` after `from`, which it is or which contains it, was renamed; none: it stays.
std::optional<LostFile> name_after(const LostFile& file, const LostFile& from, const LostFile& to);

struct Loss {
  static constexpr std::size_t kMostRanges = 16;

  Cause cause = Cause::flow_cut;
  std::uint32_t status = 0;      // of Cause::refused: the protocol's
  std::vector<Interval> ranges;  // of the file, at most kMostRanges; none: unknown
  std::uint64_t near = 0;        // not zero: only suspected by a far half; the near daemon's number
  // Nobody who knows has said that anything is lost.
  bool is_suspected() const { return near != 0 || cause == Cause::interrupted; }
  // Joins ranges that touch; too many become one that spans them all.
  void bound_ranges();
};

}  // namespace longhaul::promises
