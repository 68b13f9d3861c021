// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/builders.h"

#include <algorithm>

#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/smb1/fields.h"
#include "proxy/modules/smb/smb1/transactions.h"

namespace longhaul::smb::smb1 {

namespace {

// Appends a message to a frame whose length is filled in at the end.
class FrameBuilder {
 public:
  FrameBuilder(Command command, std::uint8_t flags, std::uint32_t status, const Ids& ids) {
    bytes_.reserve(256);
    bytes_.resize(kFrameHeadBytes);
    put<std::uint32_t>(0x424D53FF);
    put(static_cast<std::uint8_t>(command));
    put(status);
    put(flags);
    put(ids.flags2);
    put(static_cast<std::uint16_t>(ids.pid >> 16));
    put<std::uint64_t>(0);  // SecurityFeatures: not signed
    put<std::uint16_t>(0);
    put(ids.tid);
    put(static_cast<std::uint16_t>(ids.pid));
    put(ids.uid);
    put(ids.mid);
  }

  template <class T>
  FrameBuilder& put(T value) {
    append_field<T>(bytes_, value);
    return *this;
  }
  FrameBuilder& words(std::size_t count) { return put(static_cast<std::uint8_t>(count)); }
  FrameBuilder& no_chain() { return put<std::uint32_t>(0xFF); }
  FrameBuilder& bytes(Bytes bytes) {
    append(bytes_, bytes);
    return *this;
  }
  // Offset of the next byte from the header's start.
  std::size_t at() const { return bytes_.size() - kFrameHeadBytes; }

  Slice done(const std::vector<Slice>& body, std::size_t size) {
    write_frame_head(at() + size, bytes_.data());
    std::byte* room = nullptr;
    Slice whole = Slice::with_room(bytes_, bytes_.size() + size, room);
    for (const Slice& piece : body) {
      if (piece.empty()) continue;
      std::memcpy(room, piece.bytes().data(), piece.size());
      room += piece.size();
    }
    whole.extend(size);
    return whole;
  }
  Slice done(Bytes body = {}) {
    write_frame_head(at() + body.size(), bytes_.data());
    return Slice::joined(bytes_, body);
  }

 private:
  Buffer bytes_;
};

constexpr std::uint8_t kCanonicalPaths = 0x10;

FrameBuilder request(Command command, const Ids& ids) {
  return FrameBuilder(command, kCaseInsensitive | kCanonicalPaths, 0, ids);
}

FrameBuilder reply(const Header& to, std::uint32_t status) {
  const auto flags = static_cast<std::uint8_t>(kReply | (to.flags & kCaseInsensitive));
  const auto flags2 =
      static_cast<std::uint16_t>(kLongNames | (to.flags2 & (kUnicode | kNtStatus | kExtendedSecurity)));
  return FrameBuilder(to.command, flags, status, {to.pid, to.uid, to.tid, to.mid, flags2});
}

std::uint16_t low16(std::size_t value) { return static_cast<std::uint16_t>(value & 0xFFFF); }

template <class Change>
Slice changed(Bytes frame, Change&& change) {
  std::byte* memory = nullptr;
  Slice copy = Slice::unfilled(frame.size(), memory);
  std::memcpy(memory, frame.data(), frame.size());
  change(MutableBytes(memory, frame.size()));
  return copy;
}

constexpr std::size_t kTrans2ReplyHead = kHeaderBytes + 1 + 20 + 2 + 1;  // with a pad byte
constexpr std::size_t kFirstWords = kFrameHeadBytes + kHeaderBytes + 1;

}  // namespace

Slice read_request(const Ids& ids, std::uint16_t fid, std::uint64_t offset, std::uint32_t length) {
  return request(Command::read_andx, ids)
      .words(12)
      .no_chain()
      .put(fid)
      .put(static_cast<std::uint32_t>(offset & 0xFFFFFFFF))
      .put(low16(length))
      .put<std::uint16_t>(0)             // MinCount: for pipes
      .put<std::uint32_t>(length >> 16)  // MaxCountHigh
      .put<std::uint16_t>(0)             // Remaining
      .put(static_cast<std::uint32_t>(offset >> 32))
      .put<std::uint16_t>(0)
      .done();
}

Slice oplock_release(const Ids& ids, std::uint16_t fid, std::uint8_t level) {
  return request(Command::locking_andx, ids)
      .words(8)
      .no_chain()
      .put(fid)
      .put(kOplockRelease)
      .put(level)  // 0: nothing is kept, 1: level II
      .put<std::uint32_t>(0)
      .put<std::uint32_t>(0)  // no unlocks, no locks
      .put<std::uint16_t>(0)
      .done();
}

Slice close_request(const Ids& ids, std::uint16_t fid) {
  constexpr std::uint32_t kTimeIsTheServers = 0xFFFFFFFF;
  return request(Command::close, ids).words(3).put(fid).put(kTimeIsTheServers).put<std::uint16_t>(0).done();
}

Slice query_information2_request(const Ids& ids, std::uint16_t fid) {
  return request(Command::query_information2, ids).words(1).put(fid).put<std::uint16_t>(0).done();
}

Slice find_close2_request(const Ids& ids, std::uint16_t sid) {
  return request(Command::find_close2, ids).words(1).put(sid).put<std::uint16_t>(0).done();
}

Slice trans2_request(const Ids& ids, std::uint16_t function, Bytes parameters, std::uint16_t max_parameters,
                     std::uint16_t max_data) {
  FrameBuilder frame = request(Command::trans2, ids);
  constexpr std::size_t kWords = 15,
                        kPad = 3;  // Name, one byte, and what brings the parameters to a multiple of four
  const std::size_t parameters_at = kHeaderBytes + 1 + 2 * kWords + 2 + kPad;
  frame.words(kWords)
      .put(low16(parameters.size()))
      .put<std::uint16_t>(0)
      .put(max_parameters)
      .put(max_data)
      .put<std::uint16_t>(0)  // MaxSetupCount
      .put<std::uint16_t>(0)
      .put<std::uint32_t>(0)
      .put<std::uint16_t>(0)
      .put(low16(parameters.size()))
      .put(low16(parameters_at))
      .put<std::uint16_t>(0)
      .put(low16(parameters_at + parameters.size()))
      .put<std::uint16_t>(1)  // SetupCount
      .put(function)
      .put(low16(kPad + parameters.size()));
  for (std::size_t i = 0; i < kPad; ++i) frame.put<std::uint8_t>(0);
  assert(frame.at() == parameters_at);
  return frame.done(parameters);
}

Slice open_directory_request(const Ids& ids, std::u16string_view path) {
  constexpr std::uint32_t kShareAll = 7, kOpen = 1, kImpersonation = 2;
  FrameBuilder frame = request(Command::nt_create_andx, ids);
  frame.words(24)
      .no_chain()
      .put<std::uint8_t>(0)
      .put(low16(2 * path.size()))
      .put<std::uint32_t>(0)  // Flags: no oplock
      .put<std::uint32_t>(0)  // RootDirectoryFID
      .put(kReadData | kReadAttributes)
      .put<std::uint64_t>(0)  // AllocationSize
      .put<std::uint32_t>(0)  // ExtFileAttributes
      .put(kShareAll)
      .put(kOpen)
      .put(kOptionDirectory)
      .put(kImpersonation)
      .put<std::uint8_t>(0)
      .put(low16(1 + 2 * path.size() + 2))
      .put<std::uint8_t>(0);
  for (const char16_t letter : path) frame.put(static_cast<std::uint16_t>(letter));
  return frame.put<std::uint16_t>(0).done();
}

Slice notify_change_request(const Ids& ids, std::uint16_t fid, std::uint32_t filter,
                            std::uint32_t max_bytes) {
  constexpr std::size_t kWords = 23;
  constexpr std::uint32_t kNothingAt = kHeaderBytes + 1 + 2 * kWords + 2;
  return request(Command::nt_transact, ids)
      .words(kWords)
      .put<std::uint8_t>(0)  // MaxSetupCount
      .put<std::uint16_t>(0)
      .put<std::uint32_t>(0)  // TotalParameterCount
      .put<std::uint32_t>(0)  // TotalDataCount
      .put(max_bytes)         // MaxParameterCount
      .put<std::uint32_t>(0)
      .put<std::uint32_t>(0)
      .put(kNothingAt)
      .put<std::uint32_t>(0)
      .put(kNothingAt)
      .put<std::uint8_t>(4)  // SetupCount
      .put(static_cast<std::uint16_t>(NtTransact::notify_change))
      .put(filter)
      .put(fid)
      .put<std::uint16_t>(0)  // without the folders below
      .put<std::uint16_t>(0)
      .done();
}

Slice read_reply(const Header& to, const std::vector<Slice>& data) {
  std::size_t size = 0;
  for (const Slice& piece : data) size += piece.size();
  FrameBuilder frame = reply(to, 0);
  constexpr std::size_t kWords = 12, kPad = 1;
  const std::size_t data_at = kHeaderBytes + 1 + 2 * kWords + 2 + kPad;
  frame.words(kWords)
      .no_chain()
      .put<std::uint16_t>(0xFFFF)  // Available: for pipes; servers send -1 for files
      .put<std::uint16_t>(0)
      .put<std::uint16_t>(0)
      .put(low16(size))
      .put(low16(data_at))
      .put<std::uint32_t>(static_cast<std::uint32_t>(size >> 16))  // DataLengthHigh
      .put<std::uint32_t>(0)
      .put<std::uint16_t>(0)
      .put(low16(kPad + size))
      .put<std::uint8_t>(0);
  assert(frame.at() == data_at);
  return frame.done(data, size);
}

Slice write_reply(const Header& to, std::uint32_t count) {
  return reply(to, 0)
      .words(6)
      .no_chain()
      .put(low16(count))
      .put<std::uint16_t>(0xFFFF)
      .put<std::uint16_t>(low16(count >> 16))
      .put<std::uint16_t>(0)
      .put<std::uint16_t>(0)
      .done();
}

Slice empty_reply(const Header& to, std::uint32_t status) {
  return reply(to, status).words(0).put<std::uint16_t>(0).done();
}

namespace {

struct Part {
  std::size_t at = 0, size = 0;
};

Slice trans2_part(const Header& to, std::uint32_t status, Bytes parameters, Part of_parameters, Bytes data,
                  Part of_data) {
  FrameBuilder frame = reply(to, status);
  const std::size_t parameters_at = kTrans2ReplyHead;
  const std::size_t pad = (4 - (parameters_at + of_parameters.size) % 4) % 4;
  const std::size_t data_at = parameters_at + of_parameters.size + pad;
  frame.words(10)
      .put(low16(parameters.size()))
      .put(low16(data.size()))
      .put<std::uint16_t>(0)
      .put(low16(of_parameters.size))
      .put(low16(parameters_at))
      .put(low16(of_parameters.at))
      .put(low16(of_data.size))
      .put(low16(data_at))
      .put(low16(of_data.at))
      .put<std::uint16_t>(0)  // SetupCount
      .put(low16(1 + of_parameters.size + pad + of_data.size))
      .put<std::uint8_t>(0);
  assert(frame.at() == kTrans2ReplyHead);
  frame.bytes(parameters.subspan(of_parameters.at, of_parameters.size));
  for (std::size_t i = 0; i < pad; ++i) frame.put<std::uint8_t>(0);
  return frame.done(data.subspan(of_data.at, of_data.size));
}

}  // namespace

std::vector<Slice> trans2_reply(const Header& to, std::uint32_t status, Bytes parameters, Bytes data,
                                std::size_t max_message) {
  assert(parameters.size() <= 0xFFFF && data.size() <= 0xFFFF);
  constexpr std::size_t kPadding = 4, kLeastRoom = 512;
  const std::size_t head = kTrans2ReplyHead + kPadding;
  const std::size_t room = std::max(max_message > head ? max_message - head : 0, kLeastRoom);
  std::vector<Slice> parts;
  std::size_t parameters_done = 0, data_done = 0;
  do {
    const Part first{parameters_done, std::min(room, parameters.size() - parameters_done)};
    const Part second{data_done, std::min(room - first.size, data.size() - data_done)};
    parts.push_back(trans2_part(to, status, parameters, first, data, second));
    parameters_done += first.size;
    data_done += second.size;
  } while (parameters_done < parameters.size() || data_done < data.size());
  return parts;
}

Slice with_create_flags(const Slice& frame, std::uint32_t flags) {
  return changed(frame.bytes(), [&](MutableBytes copy) {
    set_field<std::uint32_t>(copy, kFirstWords + kNtCreateFlagsAt, flags);
  });
}

Slice with_oplock(const Slice& frame, Oplock oplock) {
  return changed(frame.bytes(), [&](MutableBytes copy) {
    set_field<std::uint8_t>(copy, kFirstWords + kNtCreateOplockAt, static_cast<std::uint8_t>(oplock));
  });
}

Renumbered renumbered(const Slice& frame, std::uint32_t pid, std::uint16_t mid) {
  constexpr std::size_t kHead = kFrameHeadBytes + kHeaderBytes;
  const Slice head = changed(frame.bytes().first(kHead), [&](MutableBytes copy) {
    set_field<std::uint16_t>(copy, kFrameHeadBytes + 12, static_cast<std::uint16_t>(pid >> 16));
    set_field<std::uint16_t>(copy, kFrameHeadBytes + 26, static_cast<std::uint16_t>(pid & 0xFFFF));
    set_field<std::uint16_t>(copy, kFrameHeadBytes + 30, mid);
  });
  return {head, frame.from(kHead)};
}

}  // namespace longhaul::smb::smb1
