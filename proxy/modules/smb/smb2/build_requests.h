// SPDX-License-Identifier: Apache-2.0
// Builds the SMB2 requests that a proxy sends itself, as whole frames with their head of four bytes. They are
// neither signed nor in compounds: seal/ signs and encrypts them if a session requires that.
#pragma once
#include <span>
#include <string_view>

#include "codecs/slice.h"
#include "proxy/modules/smb/smb2/header.h"
#include "proxy/modules/smb/smb2/records_break.h"
#include "proxy/modules/smb/smb2/records_create.h"
#include "proxy/modules/smb/smb2/records_file.h"
#include "proxy/modules/smb/smb2/records_query.h"

namespace longhaul::smb::smb2 {

// The fields of our own requests other than their body.
struct RequestHead {
  MessageId message_id{};
  std::uint16_t credit_charge = 1;  // number of ids; see charge_for()
  std::uint16_t credit_request = 1;
  std::uint16_t credit_wish = 1;  // widens the window for many requests of ours
  TreeId tree_id = 0;
  SessionId session_id = 0;
  std::uint16_t channel_sequence = 0;
  std::uint32_t process_id = 0xFEFF;  // as in Windows; reserved in the specification
};

// The head of one of many requests of ours, which widens the server's window. Other requests ask for only as
// many ids as they use: a server grants a limited total, and ours reduce the client's share.
inline RequestHead widening(RequestHead head) {
  head.credit_request = head.credit_wish;
  return head;
}

// For a request of ours that is sent to the server instead of this one, under its ids.
RequestHead head_of(const Header& request);

Slice build_create_request(const RequestHead& head,
                           const CreateRequest& request);  // contexts in the given order
// A CREATE request, without the contexts of these names; otherwise unchanged. `element` is whole and alone in
// its frame.
Slice without_contexts(Bytes element, std::span<const std::string_view> names);
Slice build_close_request(const RequestHead& head, const CloseRequest& request);
Slice build_read_request(const RequestHead& head, const ReadRequest& request);
Slice build_query_directory_request(const RequestHead& head, const QueryDirectoryRequest& request);
Slice build_query_info_request(const RequestHead& head, const QueryInfoRequest& request);
Slice build_change_notify_request(const RequestHead& head, const ChangeNotifyRequest& request);
Slice build_echo_request(const RequestHead& head);
Slice build_query_interfaces_request(const RequestHead& head);  // FSCTL_QUERY_NETWORK_INTERFACE_INFO
Slice build_oplock_acknowledgement(const RequestHead& head, const OplockBreak& acknowledgement);
Slice build_lease_acknowledgement(const RequestHead& head, const LeaseBreakAcknowledgement& acknowledgement);

}  // namespace longhaul::smb::smb2
