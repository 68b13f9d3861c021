// SPDX-License-Identifier: Apache-2.0
// The requests of an SMB1 client, for the tests of the halves. Written from the specification apart from the
// code under test, but for the constants.
#pragma once
#include <string>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/smb1/records.h"
#include "proxy/modules/smb/twin_messages.h"

namespace longhaul::smb::smb1::testing {

struct Head {
  std::uint8_t command = 0;
  std::uint32_t status = 0;
  std::uint8_t flags = 0;
  std::uint16_t flags2 = 0x4001;  // NT status codes, OEM names
  std::uint32_t pid = 0x1234;
  std::uint16_t tid = 0, uid = 0, mid = 0;
};

// Of the client's request with this MID.
constexpr MessageNumber number_of(std::uint16_t mid) {
  return MessageNumber{std::uint64_t{Head{}.pid} << 16 | mid};
}

inline Slice make_frame(const Head& head, const Buffer& words, const Buffer& bytes) {
  Buffer out;
  LittleEndianWriter w(out);
  w.u32(0);
  w.u32(0x424D53FF);
  w.u8(head.command);
  w.u32(head.status);
  w.u8(head.flags);
  w.u16(head.flags2);
  w.u16(static_cast<std::uint16_t>(head.pid >> 16));
  w.u64(0);
  w.u16(0);
  w.u16(head.tid);
  w.u16(static_cast<std::uint16_t>(head.pid));
  w.u16(head.uid);
  w.u16(head.mid);
  w.u8(static_cast<std::uint8_t>(words.size() / 2));
  w.bytes(words);
  w.u16(static_cast<std::uint16_t>(bytes.size()));
  w.bytes(bytes);
  write_frame_head(out.size() - 4, out.data());
  return Slice::copy_of(out);
}

struct Fields {
  Buffer bytes;
  template <class T>
  Fields& put(T value) {
    LittleEndianWriter w(bytes);
    if constexpr (sizeof(T) == 1) w.u8(static_cast<std::uint8_t>(value));
    if constexpr (sizeof(T) == 2) w.u16(static_cast<std::uint16_t>(value));
    if constexpr (sizeof(T) == 4) w.u32(static_cast<std::uint32_t>(value));
    if constexpr (sizeof(T) == 8) w.u64(static_cast<std::uint64_t>(value));
    return *this;
  }
  Fields& u8(unsigned v) { return put(static_cast<std::uint8_t>(v)); }
  Fields& u16(unsigned v) { return put(static_cast<std::uint16_t>(v)); }
  Fields& u32(std::uint64_t v) { return put(static_cast<std::uint32_t>(v)); }
  Fields& u64(std::uint64_t v) { return put(v); }
  Fields& text(std::string_view t) {
    append(bytes, as_bytes(t));
    return *this;
  }
  Fields& raw(Bytes b) {
    append(bytes, b);
    return *this;
  }
  Fields& andx() { return u32(0xFF); }
};

inline constexpr std::uint16_t kUid = 100, kTid = 7;
inline constexpr std::uint8_t kRead = 0x2E, kWrite = 0x2F;  // commands

inline Slice negotiate(std::uint16_t mid = 1) {
  return make_frame({.command = 0x72, .mid = mid}, {},
                    Fields{}.u8(2).text("LANMAN2.1").u8(0).u8(2).text("NT LM 0.12").u8(0).bytes);
}
inline Slice session_setup(std::uint16_t mid = 2, std::string_view lan_man = "") {
  return make_frame({.command = 0x73, .mid = mid},
                    Fields{}.andx().u16(65000).u16(50).u16(1).u32(0).u16(0).u16(0).u32(0).u32(0x40D4).bytes,
                    Fields{}.u8(0).u8(0).u8(0).text(lan_man).u8(0).bytes);
}
inline Slice tree_connect(std::uint16_t mid = 3) {
  return make_frame({.command = 0x75, .uid = kUid, .mid = mid}, Fields{}.andx().u16(0).u16(1).bytes,
                    Fields{}.u8(0).text("\\\\S\\T").u8(0).text("?????").u8(0).bytes);
}
struct CreateOptions {
  std::uint32_t flags = 0, access = 0x3, disposition = 1, options = 0;
};
inline Slice create(std::string_view name, std::uint16_t mid, CreateOptions o = {}) {
  return make_frame({.command = 0xA2, .tid = kTid, .uid = kUid, .mid = mid},
                    Fields{}
                        .andx()
                        .u8(0)
                        .u16(static_cast<unsigned>(name.size()))
                        .u32(o.flags)
                        .u32(0)
                        .u32(o.access)
                        .u64(0)
                        .u32(0)
                        .u32(7)
                        .u32(o.disposition)
                        .u32(o.options)
                        .u32(2)
                        .u8(0)
                        .bytes,
                    Fields{}.text(name).u8(0).bytes);
}
// The same request, with names in UTF-16.
inline Slice unicode(const Slice& frame) {
  Buffer out;
  append(out, frame.bytes());
  out[kFrameHeadBytes + 11] |= std::byte{0x80};
  return Slice::copy_of(out);
}
inline Slice read(std::uint16_t fid, std::uint64_t offset, std::uint32_t length, std::uint16_t mid) {
  return make_frame({.command = 0x2E, .tid = kTid, .uid = kUid, .mid = mid},
                    Fields{}
                        .andx()
                        .u16(fid)
                        .u32(offset & 0xFFFFFFFF)
                        .u16(length & 0xFFFF)
                        .u16(0)
                        .u32(length >> 16)
                        .u16(0)
                        .u32(offset >> 32)
                        .bytes,
                    {});
}
inline Slice write(std::uint16_t fid, std::uint64_t offset, Bytes data, std::uint16_t mid,
                   std::uint16_t mode = 0) {
  return make_frame({.command = 0x2F, .tid = kTid, .uid = kUid, .mid = mid},
                    Fields{}
                        .andx()
                        .u16(fid)
                        .u32(offset & 0xFFFFFFFF)
                        .u32(0)
                        .u16(mode)
                        .u16(0)
                        .u16(static_cast<unsigned>(data.size() >> 16))
                        .u16(data.size() & 0xFFFF)
                        .u16(64)
                        .u32(offset >> 32)
                        .bytes,
                    Fields{}.u8(0).raw(data).bytes);
}
inline Slice close(std::uint16_t fid, std::uint16_t mid) {
  return make_frame({.command = 0x04, .tid = kTid, .uid = kUid, .mid = mid}, Fields{}.u16(fid).u32(0).bytes,
                    {});
}
inline Slice flush(std::uint16_t fid, std::uint16_t mid) {
  return make_frame({.command = 0x05, .tid = kTid, .uid = kUid, .mid = mid}, Fields{}.u16(fid).bytes, {});
}
// FID, count, offset, time ([MS-CIFS] 2.2.4.40.1)
inline Slice write_and_close(std::uint16_t fid, std::uint32_t offset, Bytes data, std::uint16_t mid) {
  return make_frame({.command = 0x2C, .tid = kTid, .uid = kUid, .mid = mid},
                    Fields{}.u16(fid).u16(static_cast<unsigned>(data.size())).u32(offset).u32(0).bytes,
                    Fields{}.u8(0).raw(data).bytes);
}
// By name: of a command whose words are given, behind the byte that announces a name.
inline Slice by_name(std::uint8_t command, const Buffer& words, std::string_view name, std::uint16_t mid,
                     std::string_view to = {}) {
  Fields names;
  names.u8(4).text(name).u8(0);
  if (!to.empty()) names.u8(4).text(to).u8(0);
  return make_frame({.command = command, .tid = kTid, .uid = kUid, .mid = mid}, words, names.bytes);
}
inline Slice oplock_ack(std::uint16_t fid, std::uint8_t level) {
  return make_frame({.command = 0x24, .tid = kTid, .uid = kUid, .mid = 0},
                    Fields{}.andx().u16(fid).u8(2).u8(level).u32(0).u16(0).u16(0).bytes, {});
}
struct Trans2Limits {
  std::uint16_t parameters = 16, data = 60000;  // of the answer
};
inline Slice trans2(std::uint16_t function, const Buffer& parameters, std::uint16_t mid,
                    Trans2Limits most = {}, const Buffer& data = {}) {
  const unsigned size = static_cast<unsigned>(parameters.size());
  const unsigned data_size = static_cast<unsigned>(data.size());
  return make_frame({.command = 0x32, .tid = kTid, .uid = kUid, .mid = mid},
                    Fields{}
                        .u16(size)
                        .u16(data_size)
                        .u16(most.parameters)
                        .u16(most.data)
                        .u16(0)
                        .u16(0)
                        .u32(0)
                        .u16(0)
                        .u16(size)
                        .u16(68)
                        .u16(data_size)
                        .u16(68 + size)
                        .u16(1)
                        .u16(function)
                        .bytes,
                    Fields{}.u8(0).u8(0).u8(0).raw(parameters).raw(data).bytes);
}
// By path.
inline Slice query_path(std::string_view name, std::uint16_t level, std::uint16_t mid,
                        Trans2Limits most = {}) {
  return trans2(5, Fields{}.u16(level).u32(0).text(name).u8(0).bytes, mid, most);
}
inline Slice set_end_of_file(std::uint16_t fid, std::uint64_t end, std::uint16_t mid,
                             std::uint16_t level = 0x104) {
  return trans2(8, Fields{}.u16(fid).u16(level).u16(0).bytes, mid, {.parameters = 2},
                Fields{}.u64(end).bytes);
}
inline Slice set_times(std::uint16_t fid, std::uint64_t written, std::uint16_t mid,
                       std::uint32_t attributes = 0, std::uint16_t level = 1004) {
  return trans2(8, Fields{}.u16(fid).u16(level).u16(0).bytes, mid, {.parameters = 2},
                Fields{}.u64(0).u64(0).u64(written).u64(0).u32(attributes).u32(0).bytes);
}

// A frame without a header.
inline Slice bare(std::string_view data) {
  Buffer out(kFrameHeadBytes);
  write_frame_head(data.size(), out.data());
  append(out, as_bytes(data));
  return Slice::copy_of(out);
}
inline Slice read_raw(std::uint16_t fid, std::uint32_t offset, std::uint16_t length, std::uint16_t mid) {
  return make_frame({.command = 0x1A, .tid = kTid, .uid = kUid, .mid = mid},
                    Fields{}.u16(fid).u32(offset).u16(length).u16(0).u32(0).u16(0).bytes, {});
}
// All data come behind the server's go-ahead.
inline Slice write_raw(std::uint16_t fid, std::uint32_t offset, std::uint16_t length, std::uint16_t mode,
                       std::uint16_t mid) {
  return make_frame(
      {.command = 0x1D, .tid = kTid, .uid = kUid, .mid = mid},
      Fields{}.u16(fid).u16(length).u16(0).u32(offset).u32(0).u16(mode).u32(0).u16(0).u16(0).bytes, {});
}

}  // namespace longhaul::smb::smb1::testing
