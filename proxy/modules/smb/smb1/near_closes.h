// SPDX-License-Identifier: Apache-2.0
// The near half's CLOSEs that are answered before the server has answered them: under a batch oplock a client
// may keep a file open that its program has closed ([MS-CIFS] 3.2.4.18). No response can report the error of
// such a CLOSE any more: its losses are recorded, and the connection is reset.
#pragma once
#include <optional>

#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/smb1/connection.h"
#include "proxy/modules/smb/smb1/lost_files.h"

namespace longhaul::smb::smb1 {

// Every condition of the open and the request themselves: no loss that the CLOSE could report may be
// outstanding, not even of data that the server has only accepted. Unless a FLUSH has reported it already, a
// CLOSE may be the first to report that the disk is full or has failed. Pure, so that each condition can be
// tested.
bool may_be_closed_early(const Open& open, const Header& header, const CloseRequest& close);
// Under a batch oplock: its own, or that of another open of the name, which this handle cannot break.
bool keeps_handle(const Open& open, const OpenTable::ByFid& opens);

class NearCloses {
 public:
  // All outlive this object.
  NearCloses(Outputs& out, LostWrites& lost, const LostFiles& files)
      : out_(out), lost_(lost), files_(files) {}

  // Passes the CLOSE on after Promised, under this number.
  void pass(const Frame& frame, const Open& open, MessageNumber number);
  enum class Outcome : std::uint8_t {
    kept,
    failed,  // recorded; the connection must be reset
  };
  // Returns nullopt if it does not belong to a CLOSE.
  std::optional<Outcome> kept(const Kept& kept);
  // Whether a CLOSE of this file is in progress.
  bool is_closing(std::uint16_t fid) const;
  bool is_idle() const { return closes_.empty(); }

 private:
  struct Closing {
    std::uint16_t fid = 0;
    Interval range;                           // ranges that a failure may have lost
    std::optional<LostWrites::File> written;  // set if anything was written
  };

  Outputs& out_;
  LostWrites& lost_;
  const LostFiles& files_;
  KeyedMap<MessageNumber, Closing> closes_;
};

}  // namespace longhaul::smb::smb1
