// SPDX-License-Identifier: Apache-2.0
// Builds the SMB2 responses that a proxy sends itself, as whole frames with their head of four bytes, and
// frames from stored bodies. They are neither signed nor in compounds: seal/ signs and encrypts them if a
// session requires that.
#pragma once
#include "codecs/slice.h"
#include "proxy/modules/smb/smb2/header.h"
#include "proxy/modules/smb/smb2/records_create.h"
#include "proxy/modules/smb/smb2/records_file.h"

namespace longhaul::smb::smb2 {

// The header of a final response to `request` that succeeds or fails with `status`, granting as many credits
// as the request used. The caller must first resolve the ids of a related element.
Header answer_to(const Header& request, Status status);

// Any message from its header and a stored body. The body of a response must not hold offsets into a
// compound, so it is taken from an element's body() (offsets count from the element's header).
Slice build_message(const Header& header, Bytes body);

Slice build_error_response(const Header& head);  // status and ids from the header; no error data
Slice build_read_response(const Header& head, Bytes data);
// The same without a copy: the start of the frame, to be followed by exactly `data_bytes` of data.
Slice build_read_response_head(const Header& head, std::uint32_t data_bytes);
Slice build_write_response(const Header& head, std::uint32_t count);
Slice build_create_response(const Header& head, const CreateResponse& response);  // no contexts
Slice build_close_response(const Header& head, const CloseResponse& response);
Slice build_empty_response(
    const Header& head);  // FLUSH, LOCK, ECHO, LOGOFF, TREE_DISCONNECT: body of four bytes
// QUERY_DIRECTORY, CHANGE_NOTIFY, QUERY_INFO
Slice build_buffer_response(const Header& head, Bytes buffer);

}  // namespace longhaul::smb::smb2
