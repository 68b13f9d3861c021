// SPDX-License-Identifier: Apache-2.0
// A file whose promised writes were lost, which of its ranges, and why. Files are named within a pair of
// addresses.
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

// Why a promise was not kept. Each has a row in kCauseNames.
enum class Cause : std::uint8_t {
  refused,        // the server answered the WRITE with an error
  server_gone,    // the server or the far proxy ended the connection
  client_gone,    // the client reset its connection before the WRITE was completed
  link_lost,      // the link or the far proxy failed
  flow_cut,       // one of the proxies reset the flow, or this daemon stopped
  near_vanished,  // the near proxy failed: it may have promised writes that never arrived
  interrupted,    // this daemon was killed or its host failed while writes may have been promised (marks.h)
};
inline constexpr std::array<std::string_view, 7> kCauseNames{
    "refused", "server_gone", "client_gone", "link_lost", "flow_cut", "near_vanished", "interrupted"};
// How the client was informed.
enum class Told : std::uint8_t {
  late_error,  // in the response to a later WRITE, FLUSH or CLOSE
  next_open,   // in the response to an open of the file
  reset,       // only CLOSE could have reported it: its response is withheld, and the connection is reset
};
inline constexpr std::array<std::string_view, 3> kToldNames{"late_error", "next_open", "reset"};

// Why a loss no longer needs a report, although the client was not informed.
enum class Ended : std::uint8_t {
  replaced,  // the client replaced or deleted the content
  not_lost,  // only suspected by a far half; the near daemon has better information
};
inline constexpr std::array<std::string_view, 2> kEndedNames{"replaced", "not_lost"};

// Addresses in IPv6 form. Ports are ignored: clients try several (SMB: 445 and 139).
inline modules::Ends any_port(modules::Ends ends) {
  ends.server_port = 0;
  return ends;
}

struct LostFile {
  modules::Ends ends;
  // In the form in which the protocol compares names, so that each file has only one.
  std::u16string share;  // the file's container on the server
  std::u16string path;   // in the share
  // The path with its original spelling. Empty: not known. If a server distinguishes names that compare
  // equal, they are two files: a client is informed for either name, and only an exact match ends the loss.
  std::u16string spelled;
  bool operator==(const LostFile& other) const {
    return any_port(ends) == any_port(other.ends) && share == other.share && path == other.path;
  }
  // Whether it is certainly the same file, or not known to be another.
  bool is_exactly(const LostFile& other) const {
    return *this == other && (spelled.empty() || other.spelled.empty() || spelled == other.spelled);
  }
  std::size_t name_bytes() const { return (share.size() + path.size() + spelled.size()) * sizeof(char16_t); }
};

// The new name of `file` after `from`, which is the file or contains it, was renamed; nullopt if it keeps its
// name.
std::optional<LostFile> name_after(const LostFile& file, const LostFile& from, const LostFile& to);

struct Loss {
  static constexpr std::size_t kMostRanges = 16;

  Cause cause = Cause::flow_cut;
  std::uint32_t status = 0;      // for Cause::refused: the protocol's status
  std::vector<Interval> ranges;  // of the file, at most kMostRanges; empty: unknown
  std::uint64_t near = 0;        // not zero: only suspected by a far half; the number of the near daemon
  // Whether the loss is not confirmed by a half that knows.
  bool is_suspected() const { return near != 0 || cause == Cause::interrupted; }
  // Joins ranges that touch; too many are replaced by one that spans them all.
  void bound_ranges();
};

}  // namespace longhaul::promises
