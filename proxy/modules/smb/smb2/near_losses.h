// SPDX-License-Identifier: Apache-2.0
// Informs the near half's client of promised writes that were lost: a request that continues with such a file
// is answered with the error for lost writes; if no response is possible, the client's connection is reset.
// near_writes.h makes the promises, lost_files.h knows the files, far_losses.h informs the client if another
// near half made them.
#pragma once
#include <memory>
#include <vector>

#include "proxy/modules/guard.h"
#include "proxy/modules/promises/telling.h"
#include "proxy/modules/smb/smb2/lost_files.h"
#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class NearLosses {
 public:
  // `files` outlives this object.
  NearLosses(NearSide& side, std::shared_ptr<LostWrites> lost, const LostWrites::Ends& ends,
             const LostFiles& files)
      : side_(side), lost_(std::move(lost)), ends_(ends), files_(files) {}
  NearLosses(const NearLosses&) = delete;
  NearLosses& operator=(const NearLosses&) = delete;

  // Files that this message uses as if their writes had been kept.
  std::vector<GoesOn> gone_on_with(const Message& message) const {
    return files_.gone_on_with(message, side_.connection());
  }
  // To be called before any part may answer it. Returns true if one of those files has lost promised writes;
  // then the whole message was answered with the error for lost writes, or the flow was aborted because no
  // response was possible.
  bool refuses(TimePoint now, const Message& message);
  // Responses of the server, or the far half, that report a loss.
  void on_outcome(const Connection::Outcome& outcome);
  // A frame of the client has arrived, whether or not it must wait here, or its end in order.
  void client_goes_on();
  // The client may send an open of any file that cannot be answered: it is reset for all its losses.
  void goes_unread();
  // From now on none of its frames is parsed.
  void goes_unguarded() { unguarded_.begin(); }

  // Whether the client has lost writes, or may lose promised ones; has_records(): only the former.
  bool any() const { return lost_->any(ends_); }
  bool has_records() const { return lost_->has_records(ends_); }
  // As Half::awaited(), Half::arrived().
  std::uint64_t awaited() const { return telling_.awaited(); }
  void arrived(std::uint64_t outputs) { telling_.arrived(outputs); }

 private:
  NearSide& side_;
  std::shared_ptr<LostWrites> lost_;
  LostWrites::Ends ends_;
  const LostFiles& files_;
  Telling telling_{*lost_};
  Unguarded unguarded_{lost_, ends_};
};

}  // namespace longhaul::smb::smb2
