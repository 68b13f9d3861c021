// SPDX-License-Identifier: Apache-2.0
// Opens made ahead that no client receives: closes them at the server. The client's requests that depend on
// such a name wait behind its number (FarSide::hold_behind) until the CLOSE is answered. far_opens.h decides
// which.
#pragma once
#include <map>
#include <unordered_set>

#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class UnusedOpens {
 public:
  using Number = std::uint64_t;
  struct Handle {
    SessionId session = 0;
    TreeId tree = 0;
    FileId file;
    std::uint64_t bytes = 0;  // approximate number of bytes fetched with it
  };
  explicit UnusedOpens(FarSide& side) : side_(side) {}

  void close(TimePoint now, Number number, const Handle& handle);
  void on_ids_freed(TimePoint now);
  // No more requests of ours may be sent to the server: nothing waits for one.
  void let_go_of_unsent(TimePoint now);

  // The CLOSE of such a file is the acknowledgement of its break.
  bool has(const FileId& file) const { return files_.contains(file); }
  std::size_t size() const { return closing_.size(); }
  std::uint64_t bytes() const;

 private:
  struct Closing {
    Handle handle;
    bool is_sent = false;
  };
  bool send(TimePoint now, Number number, const Handle& handle);

  FarSide& side_;
  std::map<Number, Closing> closing_;
  std::unordered_set<FileId, FileIdHash> files_;  // of these
};

}  // namespace longhaul::smb::smb2
