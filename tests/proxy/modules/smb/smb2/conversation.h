// SPDX-License-Identifier: Apache-2.0
// Messages of clients and servers, for tests of their readers: requests and answers of SMB2 as messages, with
// no more in them than a test tells. What we send ourselves is made by build.h.
#pragma once
#include <concepts>
#include <initializer_list>
#include <string>
#include <utility>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb2/build.h"
#include "proxy/modules/smb/smb2/connection.h"
#include "tests/proxy/modules/smb/smb2/ids.h"

namespace longhaul::smb::smb2::test {

inline constexpr SessionId kSession = 0x51;
inline constexpr TreeId kTree = 0x7;

inline Message message_of(const Slice& frame) { return parse_message({FrameKind::smb2, frame}).value(); }

inline std::string utf16(std::string_view ascii) {
  std::string text;
  for (const char letter : ascii) text.append({letter, '\0'});
  return text;
}

// ---- bodies

struct Body {
  Buffer bytes;
  template <std::invocable<LittleEndianWriter&> Write>
  explicit Body(Write&& write) {
    LittleEndianWriter out(bytes);
    write(out);
  }
};
inline void put(LittleEndianWriter& out, const FileId& file) {
  out.u64(file.persistent_part);
  out.u64(file.volatile_part);
}

inline Body empty_body() {
  return Body([](auto& out) { out.u16(4), out.u16(0); });
}
inline Body error_body() {
  return Body([](auto& out) { out.u16(9), out.zeros(7); });
}
inline Body negotiate_request_body() {
  return Body([](auto& out) { out.u16(36), out.u16(1), out.zeros(32), out.u16(0x0302); });
}
inline Body negotiate_answer_body(Dialect dialect, std::uint32_t capabilities = capabilities::large_mtu,
                                  std::uint16_t mode = security_mode::signing_enabled,
                                  std::uint32_t most_bytes = 1 << 20) {
  return Body([&](auto& out) {
    out.u16(65), out.u16(mode), out.u16(static_cast<std::uint16_t>(dialect)), out.u16(0), out.zeros(16);
    out.u32(capabilities), out.u32(most_bytes), out.u32(most_bytes), out.u32(most_bytes);
    out.zeros(16 + 4 + 4);
  });
}
inline Body session_setup_request_body(bool binding = false) {
  return Body([&](auto& out) { out.u16(25), out.u8(binding), out.zeros(21), out.zeros(1); });
}
inline Body session_setup_answer_body(std::uint16_t flags = 0) {
  return Body([&](auto& out) { out.u16(9), out.u16(flags), out.zeros(5); });
}
inline Body tree_connect_request_body() {
  return Body([](auto& out) { out.u16(9), out.zeros(7); });
}
inline Body tree_connect_answer_body(ShareType type = ShareType::disk, std::uint32_t flags = 0) {
  return Body([&](auto& out) {
    out.u16(16), out.u8(static_cast<std::uint8_t>(type)), out.u8(0), out.u32(flags), out.u32(0),
        out.u32(0x1f01ff);
  });
}
inline Body close_request_body(const FileId& file) {
  return Body([&](auto& out) { out.u16(24), out.zeros(6), put(out, file); });
}
inline Body close_answer_body() {
  return Body([](auto& out) { out.u16(60), out.zeros(58); });
}
inline Body close_answer_body(std::uint64_t written, std::uint64_t size) {
  return Body([&](auto& out) {
    out.u16(60), out.u16(kClosePostQueryAttributes), out.zeros(4 + 16), out.u64(written), out.u64(written);
    out.u64(size), out.u64(size), out.u32(0x80);
  });
}
inline Body flush_request_body(const FileId& file) { return close_request_body(file); }
inline Body read_request_body(const FileId& file, std::uint64_t offset, std::uint32_t length) {
  return Body([&](auto& out) {
    out.u16(49), out.u16(0), out.u32(length), out.u64(offset), put(out, file), out.zeros(16), out.u8(0);
  });
}
inline Body read_answer_body(std::string_view data) {
  return Body([&](auto& out) {
    out.u16(17), out.u16(kHeaderBytes + 16), out.u32(static_cast<std::uint32_t>(data.size())), out.zeros(8);
    out.bytes(as_bytes(data));
  });
}
inline Body write_request_body(const FileId& file, std::uint64_t offset, std::string_view data,
                               std::uint32_t flags = 0) {
  return Body([&](auto& out) {
    out.u16(49), out.u16(kHeaderBytes + 48), out.u32(static_cast<std::uint32_t>(data.size())),
        out.u64(offset);
    put(out, file), out.zeros(12), out.u32(flags), out.bytes(as_bytes(data));
  });
}
inline Body write_answer_body(std::uint32_t count) {
  return Body([&](auto& out) { out.u16(17), out.u16(0), out.u32(count), out.zeros(8); });
}
inline Body lock_request_body(const FileId& file) {
  return Body([&](auto& out) {
    out.u16(48), out.u16(1), out.u32(0), put(out, file);
    out.u64(0), out.u64(10), out.u32(lock_flags::exclusive), out.u32(0);
  });
}
inline Body ioctl_request_body(std::uint32_t code, const FileId& file = kPreviousFile) {
  return Body([&](auto& out) {
    out.u16(57), out.u16(0), out.u32(code), put(out, file), out.zeros(24), out.u32(kIoctlIsFsctl), out.u32(0);
  });
}
inline Body query_info_request_body(const FileId& file, std::uint8_t info_class) {
  return Body([&](auto& out) {
    out.u16(41), out.u8(static_cast<std::uint8_t>(InfoType::file)), out.u8(info_class), out.u32(4096),
        out.zeros(16);
    put(out, file), out.u8(0);
  });
}
inline Body query_directory_request_body(const FileId& file, std::uint8_t info_class = file_info::names,
                                         std::uint8_t flags = 0) {
  return Body([&](auto& out) {
    out.u16(33), out.u8(info_class), out.u8(flags), out.u32(0), put(out, file);
    out.u16(kHeaderBytes + 32), out.u16(2), out.u32(4096), out.u16('*');
  });
}
inline Body set_info_request_body(const FileId& file, std::uint8_t info_class) {
  return Body([&](auto& out) {
    out.u16(33), out.u8(static_cast<std::uint8_t>(InfoType::file)), out.u8(info_class), out.u32(8);
    out.u16(kHeaderBytes + 32), out.zeros(6), put(out, file), out.zeros(8);
  });
}
// An answer of QUERY_INFO, QUERY_DIRECTORY or CHANGE_NOTIFY.
inline Body buffer_answer_body(std::string_view buffer) {
  return Body([&](auto& out) {
    out.u16(9), out.u16(kHeaderBytes + 8), out.u32(static_cast<std::uint32_t>(buffer.size()));
    out.bytes(as_bytes(buffer));
  });
}

// FileNamesInformation of these files ([MS-FSCC] 2.4.33).
inline Body names_answer_body(std::initializer_list<std::string_view> names) {
  std::string buffer;
  for (const std::string_view& name : names) {
    const bool is_last = &name == names.end() - 1;
    const std::string wide = utf16(name);
    Buffer entry;
    LittleEndianWriter out(entry);
    const std::size_t bytes = (12 + wide.size() + 7) / 8 * 8;
    out.u32(is_last ? 0 : static_cast<std::uint32_t>(bytes)), out.u32(0);
    out.u32(static_cast<std::uint32_t>(wide.size())), out.bytes(as_bytes(wide));
    if (!is_last) entry.resize(bytes);
    buffer += as_text(entry);
  }
  return buffer_answer_body(buffer);
}

struct Granted {
  FileId file;
  OplockLevel oplock = OplockLevel::none;
  std::uint64_t end_of_file = 0;
  std::uint32_t attributes = 0x80;
  std::optional<Lease> lease = {};
  std::uint32_t lease_flags = 0;
  bool durable = false;       // instead of a lease
  std::uint64_t written = 0;  // the time of that
};
inline Body create_answer_body(const Granted& granted) {
  return Body([&](auto& out) {
    out.u16(89), out.u8(static_cast<std::uint8_t>(granted.oplock)), out.u8(0), out.u32(1);
    out.zeros(16), out.u64(granted.written), out.u64(granted.written);
    out.u64(granted.end_of_file), out.u64(granted.end_of_file), out.u32(granted.attributes), out.u32(0);
    put(out, granted.file);
    if (granted.durable) {
      out.u32(kHeaderBytes + 88), out.u32(24 + 8);
      out.u32(0), out.u16(16), out.u16(4), out.u16(0), out.u16(24), out.u32(8), out.bytes(as_bytes("DHnQ"));
      out.zeros(12);
      return;
    }
    out.u32(granted.lease ? std::uint32_t{kHeaderBytes + 88} : 0u), out.u32(granted.lease ? 24u + 32u : 0u);
    if (!granted.lease) return;
    out.u32(0), out.u16(16), out.u16(4), out.u16(0), out.u16(24), out.u32(32), out.bytes(as_bytes("RqLs")),
        out.u32(0);
    out.bytes(granted.lease->key), out.u32(granted.lease->state), out.u32(granted.lease_flags), out.u64(0);
  });
}

// ---- messages

struct Of {
  SessionId session = kSession;
  TreeId tree = kTree;
  std::uint16_t charge = 1;
  std::uint32_t flags = 0;
};
inline Header request_header(Command command, AnyId id, const Of& of = {}) {
  Header header;
  header.command = command;
  header.message_id = id;
  header.session_id = of.session;
  header.tree_id = of.tree;
  header.credit_charge = of.charge;
  header.credits = of.charge;
  header.flags = of.flags;
  return header;
}
inline Message request(Command command, AnyId id, const Body& body, const Of& of = {}) {
  return message_of(build_message(request_header(command, id, of), body.bytes));
}
inline Message create_request(AnyId id, std::string_view name, CreateRequest create = {}, const Of& of = {}) {
  if (create.desired_access == 0) create.desired_access = access::read_data | access::write_data;
  const std::string wide = utf16(name);
  create.name = as_bytes(wide);
  const Slice frame =
      build_create_request({.message_id = id, .tree_id = of.tree, .session_id = of.session}, create);
  Header header = request_header(Command::create, id, of);
  return message_of(build_message(header, frame.bytes().subspan(kFrameHeadBytes + kHeaderBytes)));
}
inline Message answer(Command command, AnyId id, const Body& body, Status status = Status::success,
                      const Of& of = {}) {
  return message_of(build_message(answer_to(request_header(command, id, of), status), body.bytes));
}
inline Message error(Command command, AnyId id, Status status, const Of& of = {}) {
  return answer(command, id, error_body(), status, of);
}
inline Message interim(Command command, AnyId id, AsyncId async_id) {
  Header header = answer_to(request_header(command, id), Status::pending);
  header.flags |= header_flags::async;
  header.async_id = async_id;
  return message_of(build_message(header, error_body().bytes));
}

inline Message unsolicited(const Body& body) {
  Header header = answer_to({}, Status::success);
  header.command = Command::oplock_break;
  header.message_id = kUnsolicited;
  return message_of(build_message(header, body.bytes));
}
inline Message oplock_break(const FileId& file, OplockLevel level) {
  return unsolicited(Body([&](auto& out) {
    out.u16(24), out.u8(static_cast<std::uint8_t>(level)), out.zeros(5), put(out, file);
  }));
}
inline Message lease_break(const LeaseKey& key, std::uint32_t now, std::uint32_t then) {
  return unsolicited(Body([&](auto& out) {
    out.u16(44), out.u16(0), out.u32(now != lease_state::read), out.bytes(key), out.u32(now), out.u32(then);
    out.zeros(12);
  }));
}

// Several elements in one message, each with its own header.
inline Message compound(std::initializer_list<std::pair<Header, Body>> elements) {
  Buffer message;
  std::size_t left = elements.size();
  for (auto [header, body] : elements) {
    const std::size_t bytes = kHeaderBytes + body.bytes.size(), padded = (bytes + 7) / 8 * 8;
    header.next_command = --left == 0 ? 0 : static_cast<std::uint32_t>(padded);
    write_header(header, message);
    append(message, body.bytes);
    if (left > 0) message.resize(message.size() + padded - bytes, std::byte{0});
  }
  std::byte head[kFrameHeadBytes];
  write_frame_head(message.size(), head);
  return message_of(Slice::joined(head, message));
}

// Opens a directory and lists its beginning, as Linux does.
inline Message create_and_list_request(AnyId create, AnyId query, std::uint8_t info_class = file_info::names,
                                       std::uint8_t flags = 0) {
  const Slice opens = create_request(create, "dir").frame.bytes;
  return compound({{request_header(Command::create, create), Body([&](auto& out) {
                      out.bytes(opens.bytes().subspan(kFrameHeadBytes + kHeaderBytes));
                    })},
                   {request_header(Command::query_directory, query, {.flags = header_flags::related}),
                    query_directory_request_body(kPreviousFile, info_class, flags)}});
}

// ---- the usual beginning: ids 0 to 2

inline void connect(Connection& connection, Dialect dialect = Dialect::smb_3_0_2,
                    ShareType type = ShareType::disk) {
  connection.on_request(request(Command::negotiate, 0, negotiate_request_body(), {.session = 0, .tree = 0}));
  connection.on_response(answer(Command::negotiate, 0, negotiate_answer_body(dialect)));
  connection.on_request(
      request(Command::session_setup, 1, session_setup_request_body(), {.session = 0, .tree = 0}));
  connection.on_response(answer(Command::session_setup, 1, session_setup_answer_body()));
  connection.on_request(request(Command::tree_connect, 2, tree_connect_request_body(), {.tree = 0}));
  connection.on_response(answer(Command::tree_connect, 2, tree_connect_answer_body(type)));
}
// Answered as `granted` says; the file's id is its own.
inline Open& open_file(Connection& connection, AnyId id, std::string_view name, const Granted& granted,
                       CreateRequest create = {}) {
  connection.on_request(create_request(id, name, std::move(create)));
  connection.on_response(answer(Command::create, id, create_answer_body(granted)));
  return *connection.open(granted.file);
}

}  // namespace longhaul::smb::smb2::test
