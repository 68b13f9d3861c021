// SPDX-License-Identifier: Apache-2.0
// The header of every SMB2 message, the compounds made of several ([MS-SMB2] sections 2.2.1, 3.2.4.1.4 and
// 3.3.5.2.7), and the transforms around them. records_*.h parse the requests and responses.
#pragma once
#include <boost/container/small_vector.hpp>

#include "codecs/byte_writer.h"
#include "proxy/modules/smb/errors.h"
#include "proxy/modules/smb/smb2/types.h"

namespace longhaul::smb::smb2 {

// 2.2.1: offsets of fields in a header, for code that reads or changes only one of them.
namespace header_at {
inline constexpr std::size_t command = 12, flags = 16, next_command = 20, message_id = 24, signature = 48;
}  // namespace header_at
inline constexpr std::uint32_t kProtocolId = 0x424D53FE;  // FE 'SMB', the first four bytes
// In a related element: the session of the previous element.
inline constexpr SessionId kPreviousSession = ~SessionId{0};

// Unused bits of Flags, in which the legs of seal/ mark messages between the halves (seal/form.h). The halves
// do not receive them.
inline constexpr std::uint32_t kArrivalFlags = 0x00700000;

// 2.2.1. `credits`: requested in a request, granted in a response. The signature stays in the bytes.
struct Header {
  std::uint16_t credit_charge = 0;     // 0 in 2.0.2, and from clients without multi-credit; see charge()
  Status status = Status::success;     // of a response
  std::uint16_t channel_sequence = 0;  // in a request, from 3.0 on: the low half of the same field
  Command command = Command::negotiate;
  std::uint16_t credits = 0;
  std::uint32_t flags = 0;    // without kArrivalFlags
  std::uint32_t arrival = 0;  // these bits; write_header() does not write them
  std::uint32_t next_command = 0;
  MessageId message_id{};
  AsyncId async_id = 0;          // only with header_flags::async
  std::uint32_t process_id = 0;  // without it
  TreeId tree_id = 0;            // without it
  SessionId session_id = 0;

  bool is_response() const { return flags & header_flags::response; }
  bool is_async() const { return flags & header_flags::async; }
  bool is_related() const { return flags & header_flags::related; }
  bool is_signed() const { return flags & header_flags::is_signed; }
  bool is_replay() const { return flags & header_flags::replay; }
  bool is_interim() const { return is_response() && is_async() && status == Status::pending; }
  bool is_unsolicited() const { return is_response() && message_id == kUnsolicited; }
  // The number of ids of a request: none for CANCEL, at least one for others (3.2.4.1.2, 3.3.5.2.3).
  std::uint16_t charge() const {
    return command == Command::cancel ? std::uint16_t{0}
           : credit_charge == 0       ? std::uint16_t{1}
                                      : credit_charge;
  }
};

// `message` begins with FE 'SMB'. Unknown commands are an error.
Result<Header> parse_header(Bytes message);
// 64 bytes; the signature is zero.
void write_header(const Header& header, Buffer& out);

// The number of ids of a payload: 1 + (bytes - 1) / 64 KiB (3.1.5.2), at most 65535; the larger of sent and
// requested bytes.
constexpr std::uint16_t charge_for(std::uint32_t payload_bytes) {
  const std::uint32_t charge = payload_bytes == 0 ? 1 : 1 + (payload_bytes - 1) / kCreditBytes;
  return static_cast<std::uint16_t>(charge < 0xFFFF ? charge : 0xFFFF);
}

// One request or response of a message, from which records are parsed. Offsets in SMB2 count from its first
// byte.
struct Element {
  Header header;
  Bytes bytes;             // header, body, and padding up to the next element
  std::size_t offset = 0;  // of `bytes` in the message

  Bytes body() const { return bytes.subspan(kHeaderBytes); }
};
using Elements = boost::container::small_vector<Element, 3>;

// All elements of `message` (a frame without its head of four bytes); at least one. A related element keeps
// the ids of its own header: if they are all ones, readers use session, tree and file of the previous
// element.
Result<Elements> parse_elements(Bytes message);
inline constexpr std::size_t kMaxElements = 1024;

// Whether a response has the body of its command; if not, it has that of an ERROR response. 3.3.4.4 lists the
// statuses other than success with such a body; an IOCTL may have any.
bool has_answer(const Element& response);

// 2.2.41: encrypted. The rest cannot be parsed here.
struct TransformHeader {
  std::uint32_t original_message_bytes = 0;
  std::uint16_t flags = 0;
  SessionId session_id = 0;
};
Result<TransformHeader> parse_transform_header(Bytes message);

// 2.2.42
struct CompressionHeader {
  std::uint32_t original_bytes = 0;
  std::uint16_t algorithm = 0;
  bool chained = false;
  std::uint32_t offset_or_length = 0;  // of the compressed part; its length if chained
};
Result<CompressionHeader> parse_compression_header(Bytes message);

}  // namespace longhaul::smb::smb2
