// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/records_break.h"

#include "proxy/modules/smb/smb2/body_reader.h"

namespace longhaul::smb::smb2 {

// The three layouts of 2.2.23 to 2.2.25 differ in their size.
Result<AnyBreak> parse_break(Bytes element) {
  if (BodyReader in(element, 24); in.ok()) {
    OplockBreak oplock;
    oplock.level = static_cast<OplockLevel>(in.u8());
    in.skip(5);
    oplock.file = in.file_id();
    return in.finish(AnyBreak(oplock));
  }
  if (BodyReader in(element, 44); in.ok()) {
    LeaseBreakNotification lease;
    lease.new_epoch = in.u16();
    lease.needs_acknowledgement = in.u32() & 1;
    lease.key = in.id16();
    lease.current_state = in.u32();
    lease.new_state = in.u32();
    in.skip(12);  // BreakReason, AccessMaskHint, ShareMaskHint: reserved
    return in.finish(AnyBreak(lease));
  }
  BodyReader in(element, 36);
  LeaseBreakAcknowledgement lease;
  in.skip(2);
  lease.flags = in.u32();
  lease.key = in.id16();
  lease.state = in.u32();
  in.skip(8);  // LeaseDuration
  return in.finish(AnyBreak(lease));
}

}  // namespace longhaul::smb::smb2
