// SPDX-License-Identifier: Apache-2.0
// The responses of an SMB1 server, as frames: what requests.h is for the client. Which one, server.h decides.
// Written from the specification apart from the code under test, but for the constants.
#pragma once
#include <string>

#include "proxy/modules/smb/smb1/requests.h"

namespace longhaul::smb::smb1::testing {

inline constexpr unsigned kUnicodeFlag = 0x8000;  // of flags2

// When the server negotiates: at midnight (UTC) of 2020-01-01, and one o'clock at its place.
inline constexpr std::uint64_t kServerTime = (11'644'473'600 + 1'577'836'800) * 10'000'000;
inline constexpr unsigned kServerZone = 0x10000 - 60;

inline Slice negotiate_response(const Head& head, bool signing, std::uint16_t max_mpx) {
  return make_frame(head,
                    Fields{}
                        .u16(1)
                        .u8(signing ? 0xF : 3)
                        .u16(max_mpx)
                        .u16(1)
                        .u32(16644)
                        .u32(65536)
                        .u32(0)
                        .u32(0x80F3FD & ~0x800000)
                        .u64(kServerTime)
                        .u16(kServerZone)
                        .u8(0)
                        .bytes,
                    {});
}

inline Slice open_response(const Head& head, int oplock, std::uint16_t fid, std::uint64_t size) {
  return make_frame(head,
                    Fields{}
                        .andx()
                        .u8(static_cast<unsigned>(oplock))
                        .u16(fid)
                        .u32(1)
                        .u64(1)
                        .u64(2)
                        .u64(3)
                        .u64(4)
                        .u32(0x80)
                        .u64(size)
                        .u64(size)
                        .u16(0)
                        .u16(0)
                        .u8(0)
                        .bytes,
                    {});
}

inline Slice read_response(const Head& head, std::string_view data) {
  return make_frame(head,
                    Fields{}
                        .andx()
                        .u16(0xFFFF)
                        .u16(0)
                        .u16(0)
                        .u16(data.size() & 0xFFFF)
                        .u16(60)
                        .u16(static_cast<unsigned>(data.size() >> 16))
                        .u64(0)
                        .bytes,
                    Fields{}.u8(0).text(data).bytes);
}

inline Slice write_response(const Head& head, std::size_t length) {
  return make_frame(
      head, Fields{}.andx().u16(length & 0xFFFF).u16(0).u16(static_cast<unsigned>(length >> 16)).u16(0).bytes,
      {});
}

inline Slice oplock_break(std::uint16_t fid, std::uint8_t to_level) {
  return make_frame({.command = 0x24, .pid = 0xFFFF, .tid = kTid, .uid = kUid, .mid = 0xFFFF},
                    Fields{}.andx().u16(fid).u8(2).u8(to_level).u32(0).u16(0).u16(0).bytes, {});
}

// To NT_TRANSACT_NOTIFY_CHANGE: one entry.
inline Slice notify_response(const Head& head, std::string_view name, unsigned action) {
  Buffer letters;
  for (const char letter : name) letters.insert(letters.end(), {std::byte(letter), std::byte{0}});
  const Buffer entry = Fields{}.u32(0).u32(action).u32(letters.size()).raw(letters).bytes;
  const auto size = entry.size();
  return make_frame(
      head, Fields{}.u8(0).u16(0).u32(size).u32(0).u32(size).u32(72).u32(0).u32(0).u32(0).u32(0).u8(0).bytes,
      Fields{}.u8(0).raw(entry).bytes);
}

// ---- to TRANS2

inline Slice trans2_response(const Head& head, const Buffer& parameters, const Buffer& data) {
  const unsigned parameter_bytes = static_cast<unsigned>(parameters.size());
  const unsigned pad = (4 - parameter_bytes % 4) % 4;
  return make_frame(head,
                    Fields{}
                        .u16(parameter_bytes)
                        .u16(static_cast<unsigned>(data.size()))
                        .u16(0)
                        .u16(parameter_bytes)
                        .u16(56)
                        .u16(0)
                        .u16(static_cast<unsigned>(data.size()))
                        .u16(56 + parameter_bytes + pad)
                        .u16(0)
                        .u8(0)
                        .u8(0)
                        .bytes,
                    Fields{}.u8(0).raw(parameters).raw(Buffer(pad)).raw(data).bytes);
}

// SMB_QUERY_FILE_STANDARD_INFO, [MS-CIFS] 2.2.8.3.7.
inline Slice size_response(const Head& head, std::uint64_t size) {
  return trans2_response(head, Fields{}.u16(0).bytes, Fields{}.u64(size).u64(size).u32(1).u8(0).u8(0).bytes);
}

// A part of a listing: SMB_FIND_FILE_BOTH_DIRECTORY_INFO, [MS-CIFS] 2.2.8.1.7.
class Page {
 public:
  explicit Page(const Head& head) : head_(head) {}

  unsigned count() const { return count_; }
  void add(std::string_view name, std::uint64_t size) {
    const Buffer letters = as_sent(name);
    if (count_++) {
      while (data_.size() % 8) data_.push_back(std::byte{0});
      store_le<std::uint32_t>(data_.data() + last_at_, static_cast<std::uint32_t>(data_.size() - last_at_));
    }
    last_at_ = data_.size();
    append(data_, Fields{}
                      .u32(0)
                      .u32(count_)
                      .u64(0)
                      .u64(0)
                      .u64(0)
                      .u64(0)
                      .u64(size)
                      .u64(0)
                      .u32(0x80)
                      .u32(letters.size())
                      .u32(0)
                      .u8(0)
                      .u8(0)
                      .raw(Buffer(24))
                      .raw(letters)
                      .bytes);
  }
  // To FIND_FIRST2 with this search id, or to FIND_NEXT2.
  Slice response(std::optional<std::uint16_t> sid, bool is_last) const {
    Fields parameters;
    if (sid) parameters.u16(*sid);
    parameters.u16(count_).u16(is_last).u16(0).u16(static_cast<unsigned>(last_at_));
    return trans2_response(head_, parameters.bytes, data_);
  }

 private:
  Buffer as_sent(std::string_view name) const {
    Buffer letters;
    for (const char letter : name) {
      letters.push_back(std::byte(letter));
      if (head_.flags2 & kUnicodeFlag) letters.push_back(std::byte{0});
    }
    return letters;
  }

  Head head_;
  Buffer data_;
  std::size_t last_at_ = 0;
  unsigned count_ = 0;
};

}  // namespace longhaul::smb::smb1::testing
