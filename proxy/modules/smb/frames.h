// SPDX-License-Identifier: Apache-2.0
// Splits the bytes of one direction of a connection into frames: the NetBIOS session service on port 139 (RFC
// 1002, section 4.3) and direct TCP on port 445 ([MS-SMB2] section 2.1), both with a head of four bytes. The
// records of the dialects parse the contents.
#pragma once
#include <optional>
#include <vector>

#include "codecs/slice.h"
#include "proxy/modules/smb/errors.h"

namespace longhaul::smb {

inline constexpr std::size_t kFrameHeadBytes = 4;
// A frame is stored whole: the largest transfer that servers grant, with its head. A larger frame makes the
// connection opaque.
inline constexpr std::size_t kMaxFrameBytes = (8u << 20) + (64u << 10);

enum class Framing : std::uint8_t {
  netbios,     // port 139: 17 bits of length
  direct_tcp,  // port 445: 24 bits of length; Samba accepts session packets there too, so they are parsed as
               // well
};
constexpr Framing framing_of_port(std::uint16_t port) {
  return port == 139 ? Framing::netbios : Framing::direct_tcp;
}

enum class FrameKind : std::uint8_t {
  smb1,              // FF 'SMB'
  smb2,              // FE 'SMB'
  smb2_transform,    // FD 'SMB': encrypted, [MS-SMB2] section 2.2.41
  smb2_compressed,   // FC 'SMB', [MS-SMB2] section 2.2.42
  bare,              // data of READ_RAW or WRITE_RAW, or nothing at all; only when the caller expects it
  session_request,   // RFC 1002, sections 4.3.2 to 4.3.6: 0x81
  session_accepted,  // 0x82
  session_refused,   // 0x83
  session_retarget,  // 0x84
  keep_alive,        // 0x85
};
constexpr bool is_session_packet(FrameKind kind) { return kind >= FrameKind::session_request; }

struct Frame {
  FrameKind kind = FrameKind::bare;
  Slice bytes;  // including the head of four bytes: the form in which it is passed on

  // The content after the head: an SMB message, or the body of a session packet.
  Bytes message() const { return bytes.bytes().subspan(kFrameHeadBytes); }
};

// [MS-CIFS] sections 2.2.4.22 and 2.2.4.25: the data of READ_RAW and WRITE_RAW has no SMB header. Only a half
// that received the request knows when it is due.
enum class Bare { unexpected, expected };

// Holds at most one incomplete frame, and the bytes after it.
class FrameSplitter {
 public:
  explicit FrameSplitter(Framing framing, std::size_t max_frame_bytes = kMaxFrameBytes)
      : framing_(framing), max_frame_bytes_(max_frame_bytes) {}
  FrameSplitter(const FrameSplitter&) = delete;  // two would fill the same frame
  FrameSplitter& operator=(const FrameSplitter&) = delete;

  // Pieces may have any size. A frame that is whole in one piece shares its memory; others are copied once.
  void push(Slice piece);

  // The next whole frame. Returns nullopt if more bytes are needed, and an error if the bytes cannot be
  // parsed from the first byte of this frame on. An error is returned as soon as a byte shows it, so that no
  // such bytes are held back, and again at every further call.
  Result<std::optional<Frame>> next(Bare bare = Bare::unexpected);

  // The bytes that belong to no complete frame yet, in order: for passing on when the connection becomes
  // opaque or ends within a frame. Leaves the splitter empty.
  std::vector<Slice> take_rest();
  std::size_t held_bytes() const { return held_bytes_; }

 private:
  struct Head {
    FrameKind kind;
    std::size_t frame_bytes;
  };
  Result<std::optional<Head>> read_head(Bare bare) const;
  std::size_t peek(MutableBytes into) const;
  void fill_joined(Bytes bytes);
  void drop(std::size_t bytes);

  Framing framing_;
  std::size_t max_frame_bytes_;
  std::size_t held_bytes_ = 0;  // joined_ and pieces_
  // The first frame, if it consists of several pieces: filled as they arrive, in memory of the frame's size.
  Slice joined_;
  std::byte* room_ = nullptr;
  std::size_t missing_ = 0;  // of the frame in joined_
  FrameKind joined_kind_ = FrameKind::bare;
  std::vector<Slice> pieces_;  // after it, from first_ on
  std::size_t first_ = 0;
};

// The four bytes before a message of this size. At most 2^24 - 1 (2^17 - 1 on port 139).
void write_frame_head(std::size_t message_bytes, std::byte* head);

}  // namespace longhaul::smb
