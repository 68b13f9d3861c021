// SPDX-License-Identifier: Apache-2.0
// The SMB1 messages that the halves build, each a whole frame including its length: requests to the server
// under ids of our own, responses to the client, and small changes of passing messages.
#pragma once
#include <optional>
#include <string_view>

#include "codecs/slice.h"
#include "proxy/modules/smb/smb1/records.h"

namespace longhaul::smb::smb1 {

// The ids of a request: the server copies them to the response.
struct Ids {
  std::uint32_t pid = 0;
  std::uint16_t uid = 0, tid = 0, mid = 0;
  std::uint16_t flags2 = 0;
};

// [MS-SMB] 2.2.4.2.1: 12 words; `length` up to 65,535, or more if the server has CAP_LARGE_READX.
Slice read_request(const Ids& ids, std::uint16_t fid, std::uint64_t offset, std::uint32_t length);
// [MS-CIFS] 2.2.4.32.1 without locks: acknowledges an oplock break.
Slice oplock_release(const Ids& ids, std::uint16_t fid, std::uint8_t level);
// [MS-CIFS] 2.2.4.5.1
Slice close_request(const Ids& ids, std::uint16_t fid);
// [MS-CIFS] 2.2.4.31.1
Slice query_information2_request(const Ids& ids, std::uint16_t fid);
// [MS-CIFS] 2.2.4.48.1
Slice find_close2_request(const Ids& ids, std::uint16_t sid);
// [MS-CIFS] 2.2.4.46.1 with one setup word.
Slice trans2_request(const Ids& ids, std::uint16_t function, Bytes parameters, std::uint16_t max_parameters,
                     std::uint16_t max_data);

// [MS-CIFS] 2.2.4.64.1: opens a directory for listing; its path is in UTF-16, as the ids must state (flags2).
Slice open_directory_request(const Ids& ids, std::u16string_view path);
// [MS-CIFS] 2.2.7.4.1
Slice notify_change_request(const Ids& ids, std::uint16_t fid, std::uint32_t filter, std::uint32_t max_bytes);

// Responses to `request`.
Slice read_reply(const Header& request, const std::vector<Slice>& data);  // [MS-SMB] 2.2.4.2.2
Slice write_reply(const Header& request, std::uint32_t count);            // [MS-SMB] 2.2.4.3.2
Slice empty_reply(const Header& request,
                  std::uint32_t status);  // no words, no bytes: success of CLOSE and FLUSH, errors
// [MS-CIFS] 2.2.4.46.2: in as many messages as the client's buffer requires. NT_TRANSACT is never answered
// here.
std::vector<Slice> trans2_reply(const Header& request, std::uint32_t status, Bytes parameters, Bytes data,
                                std::size_t max_message);

// Copies of a frame with a field changed. The first block must have been parsed as an NT_CREATE_ANDX of that
// kind.
Slice with_create_flags(const Slice& frame, std::uint32_t flags);
Slice with_oplock(const Slice& frame, Oplock oplock);
// A client's request under ids of our own, in two pieces: the second shares the frame's memory.
struct Renumbered {
  Slice head, rest;
};
Renumbered renumbered(const Slice& frame, std::uint32_t pid, std::uint16_t mid);

}  // namespace longhaul::smb::smb1
