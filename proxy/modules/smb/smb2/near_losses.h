// SPDX-License-Identifier: Apache-2.0
// How the near half tells its client of promised writes that were lost: a request that goes on with such a
// file is answered with the error for that; where nothing may be answered, the client's connection is reset.
// near_writes.h makes the promises, lost_files.h knows the files, far_losses.h tells if another near half
// made them.
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

  // What this message does with files as if their writes had been kept.
  std::vector<GoesOn> gone_on_with(const Message& message) const {
    return files_.gone_on_with(message, side_.connection());
  }
  // Before any part may answer it: true if one of those files has lost promised writes, so that the whole
  // message was answered with the error for that, or the flow aborted where nothing may be answered.
  bool refuses(TimePoint now, const Message& message);
  // Answers of the server, or the far half, that report a loss.
  void on_outcome(const Connection::Outcome& outcome);
  // A frame of the client has come, whether or not it must wait here, or its end in order.
  void client_goes_on();
  // What the client sends may open any file, and nothing can answer it: it is reset for all that was lost.
  void goes_unread();
  // From here on none of its frames is read.
  void goes_unguarded() { unguarded_.begin(); }

  // The client has lost writes, or may lose some that are promised: `has_records`, what is lost already.
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
