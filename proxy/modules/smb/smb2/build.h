// SPDX-License-Identifier: Apache-2.0
// Makes the SMB2 messages that a proxy sends itself, as whole frames with their head of four bytes, and
// changes copies of others' in place. Never signed, never in compounds: signed and encrypted sessions pass
// unchanged.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "codecs/slice.h"
#include "proxy/modules/smb/smb2/header.h"
#include "proxy/modules/smb/smb2/records_break.h"
#include "proxy/modules/smb/smb2/records_create.h"
#include "proxy/modules/smb/smb2/records_file.h"
#include "proxy/modules/smb/smb2/records_query.h"

namespace longhaul::smb::smb2 {

// The fields of our own requests besides their body.
struct RequestHead {
  MessageId message_id = 0;
  std::uint16_t credit_charge = 1;  // ids it takes; see charge_for()
  std::uint16_t credit_request = 1;
  std::uint16_t credit_wish = 1;  // that would widen the window for many requests of ours
  TreeId tree_id = 0;
  SessionId session_id = 0;
  std::uint16_t channel_sequence = 0;
  std::uint32_t process_id = 0xFEFF;  // as Windows fills it; reserved in the specification
};

// The head of one of many requests of ours, which widens the server's window. Others request only as many ids
// as they use: a server grants a limited total, and ours reduce the client's share.
inline RequestHead widening(RequestHead head) {
  head.credit_request = head.credit_wish;
  return head;
}

// Of a request of ours that goes to the server in place of this one, under its ids.
RequestHead head_of(const Header& request);

// The header of a final response to `request` that succeeds or fails with `status`, granting as many credits
// as the request used. The caller must first resolve the ids of a related element.
Header answer_to(const Header& request, Status status);

// Any message from its header and its body: for stored bodies. The body of a response must not hold offsets
// into a compound, so it is taken from an element's body() (offsets count from the element's header).
Slice build_message(const Header& header, Bytes body);

Slice build_create_request(const RequestHead& head,
                           const CreateRequest& request);  // contexts as they are listed
// A CREATE request, `element` whole and alone in its frame, without the contexts of these names; otherwise
// unchanged.
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

Slice build_error_response(const Header& head);  // status and ids from the header; no error data
Slice build_read_response(const Header& head, Bytes data);
// The same without a copy: the frame's beginning, behind which exactly `data_bytes` of data are to be sent.
Slice build_read_response_head(const Header& head, std::uint32_t data_bytes);
Slice build_write_response(const Header& head, std::uint32_t count);
Slice build_create_response(const Header& head, const CreateResponse& response);  // no contexts
Slice build_close_response(const Header& head, const CloseResponse& response);
Slice build_empty_response(
    const Header& head);  // FLUSH, LOCK, ECHO, LOGOFF, TREE_DISCONNECT: four bytes of body
// QUERY_DIRECTORY, CHANGE_NOTIFY, QUERY_INFO
Slice build_buffer_response(const Header& head, Bytes buffer);

// The position of the FileId in a request of this command, counted from the element's first byte; none if it
// has no FileId.
std::optional<std::size_t> file_id_at(Command command);
// The file that a request names, if the request is long enough to contain the name.
std::optional<FileId> named_file(const Element& request);

// A copy of a frame that may be changed before it is sent. Of a long frame only the front is copied, so it
// goes out as two slices.
class EditedFrame {
 public:
  // `frame` with its head of four bytes. `element` below: Element::offset of the element to change.
  explicit EditedFrame(const Slice& frame);
  EditedFrame(const EditedFrame&) = delete;  // two would write into the same memory
  EditedFrame& operator=(const EditedFrame&) = delete;

  void set_message_id(MessageId id, std::size_t element = 0);
  void set_credits(std::uint16_t credits, std::size_t element = 0);  // CreditRequest or CreditResponse
  void set_status(Status status, std::size_t element = 0);
  // RequestedOplockLevel of a CREATE request, OplockLevel of a CREATE response.
  void set_requested_oplock(OplockLevel level, std::size_t element = 0);
  void set_granted_oplock(OplockLevel level, std::size_t element = 0);
  // `at` as file_id_at() has it.
  void set_file_id(const FileId& file, std::size_t at, std::size_t element = 0);

  struct Parts {
    Slice front;
    Slice back;  // empty unless the frame is long
  };
  Parts take() &&;
  Slice whole() &&;  // in one piece: copies a long frame

 private:
  std::byte* at(std::size_t element, std::size_t offset, std::size_t bytes);

  Slice front_;
  Slice back_;
  std::byte* memory_ = nullptr;  // of front_, which no other slice shares yet
};

}  // namespace longhaul::smb::smb2
