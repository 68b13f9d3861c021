// SPDX-License-Identifier: Apache-2.0
// A client of SMB2 that sends each request under the next MessageId, with no more in it than tests need.
// Where the frames go, and what is answered, is left to model.h.
#pragma once
#include <functional>
#include <string>
#include <utility>

#include "proxy/modules/smb/smb2/storing_server.h"
#include "tests/proxy/modules/smb/smb2/ids.h"

namespace longhaul::smb::smb2::model {

inline constexpr auto kNone = OplockLevel::none, kBatch = OplockLevel::batch;

class Requester {
 public:
  virtual ~Requester() = default;

  std::uint32_t request_flags = 0;  // of the headers of requests
  std::int64_t credits = 1;         // that the client was granted and has not used
  int creates = 0;                  // CREATEs that it has sent

  // Returns its id.
  MessageId send(Header header, const std::function<void(LittleEndianWriter&)>& body) {
    header.message_id = next_id_;
    creates += header.command == Command::create;
    next_id_ += header.charge();
    credits -= header.charge();
    header.credits = static_cast<std::uint16_t>(header.charge() + 4);
    header.flags |= request_flags;
    if (header.command > Command::session_setup) header.session_id = kSession;
    if (header.command > Command::tree_disconnect) header.tree_id = kTree;
    put_out(message_of(header, body));
    return header.message_id;
  }
  // Authenticates the session again, or binds this connection to the session of another.
  MessageId send_session_setup(bool binds = false) {
    Header header{.credit_charge = 1, .command = Command::session_setup};
    header.session_id = kSession;
    return send(header, [binds](LittleEndianWriter& w) {
      w.u16(25), w.u8(binds), w.u8(1), w.u32(0), w.u32(0), w.u16(88), w.u16(0), w.u64(0);
    });
  }
  void send_cancel(MessageId of) {
    Header header{.command = Command::cancel, .message_id = of};
    header.session_id = kSession;
    put_out(message_of(header, [](LittleEndianWriter& w) { w.u16(4), w.u16(0); }));
  }
  MessageId send_query_interfaces() {
    return send({.credit_charge = 1, .command = Command::ioctl}, [](LittleEndianWriter& w) {
      w.u16(57), w.u16(0), w.u32(fsctl::query_network_interface_info), w.u64(~0ull), w.u64(~0ull), w.u32(120);
      w.u32(0), w.u32(0), w.u32(120), w.u32(0), w.u32(4096), w.u32(1), w.u32(0), w.u8(0);
    });
  }
  // Opens a directory and lists its beginning in one frame, as Linux does: the ids of both.
  std::pair<MessageId, MessageId> send_create_and_list(std::string_view name, std::uint32_t bytes) {
    const std::string pattern = utf16("*");
    return send_create_and(
        name, {.access = access::read_data, .options = create_options::directory_file},
        Command::query_directory, [&](LittleEndianWriter& w) {
          w.u16(33), w.u8(file_info::names), w.u8(0), w.u32(0), w.u64(~0ull), w.u64(~0ull), w.u16(96);
          w.u16(static_cast<std::uint16_t>(pattern.size())), w.u32(bytes), w.bytes(as_bytes(pattern));
        });
  }
  // Makes a new file and writes its beginning in one frame.
  std::pair<MessageId, MessageId> send_create_and_write(std::string_view name, std::string_view data) {
    return send_create_and(
        name, {.oplock = kBatch, .disposition = Disposition::overwrite_if}, Command::write,
        [&](LittleEndianWriter& w) {
          w.u16(49), w.u16(0x70), w.u32(static_cast<std::uint32_t>(data.size())), w.u64(0), w.u64(~0ull);
          w.u64(~0ull), w.u32(0), w.u32(0), w.u16(0), w.u16(0), w.u32(0), w.bytes(as_bytes(data));
        });
  }
  // Opens a file and asks about it, or renames it, in one frame.
  std::pair<MessageId, MessageId> send_create_and_query(std::string_view name) {
    return send_create_and(name, {}, Command::query_info, [](LittleEndianWriter& w) {
      w.u16(41), w.u8(1), w.u8(file_info::standard), w.u32(4096), w.zeros(16), w.u64(~0ull), w.u64(~0ull),
          w.u8(0);
    });
  }
  // Opens it only to query it, and closes it.
  std::pair<MessageId, MessageId> send_look(std::string_view name) {
    return send_create_and(
        name, {.access = access::read_attributes | access::synchronize}, Command::query_info,
        [](LittleEndianWriter& w) {
          w.u16(41), w.u8(1), w.u8(file_info::standard), w.u32(24), w.zeros(16), w.u64(~0ull), w.u64(~0ull);
        },
        true);
  }
  std::pair<MessageId, MessageId> send_create_and_rename(std::string_view name, bool closes = false) {
    const auto rename = [](LittleEndianWriter& w) {
      w.u16(33), w.u8(1), w.u8(file_info::rename), w.u32(24), w.u16(96), w.u16(0), w.u32(0), w.u64(~0ull);
      w.u64(~0ull), w.zeros(16), w.u32(2), w.u16('y'), w.u16(0);
    };
    return send_create_and(name, {.access = 0x10080}, Command::set_info, rename, closes);
  }
  MessageId send_create(std::string_view name, Disposition disposition, OplockLevel oplock,
                        std::uint32_t options = 0, std::uint32_t access = 0x1F01FF) {
    const std::string wide = utf16(name);
    return send({.credit_charge = 1, .command = Command::create}, [&](LittleEndianWriter& w) {
      w.u16(57), w.u8(0), w.u8(static_cast<std::uint8_t>(oplock)), w.u32(2), w.u64(0), w.u64(0);
      w.u32(access), w.u32(0x80), w.u32(7), w.u32(static_cast<std::uint32_t>(disposition)), w.u32(options);
      w.u16(120), w.u16(static_cast<std::uint16_t>(wide.size())), w.u32(0), w.u32(0), w.bytes(as_bytes(wide));
    });
  }
  MessageId send_write(const FileId& file, std::uint64_t offset, std::string_view data,
                       std::uint32_t flags = 0) {
    Header header{.credit_charge = charge_for(static_cast<std::uint32_t>(data.size())),
                  .command = Command::write};
    return send(header, [&](LittleEndianWriter& w) {
      w.u16(49), w.u16(0x70), w.u32(static_cast<std::uint32_t>(data.size())), w.u64(offset);
      put(w, file);
      w.u32(0), w.u32(0), w.u16(0), w.u16(0), w.u32(flags), w.bytes(as_bytes(data));
    });
  }
  MessageId send_flush(const FileId& file) {
    return send({.credit_charge = 1, .command = Command::flush}, [&](LittleEndianWriter& w) {
      w.u16(24), w.u16(0), w.u32(0);
      put(w, file);
    });
  }
  MessageId send_close(const FileId& file) {
    return send({.credit_charge = 1, .command = Command::close}, [&](LittleEndianWriter& w) {
      w.u16(24), w.u16(0), w.u32(0);
      put(w, file);
    });
  }
  MessageId send_read(const FileId& file, std::uint64_t offset, std::uint32_t length) {
    return send({.credit_charge = charge_for(length), .command = Command::read}, [&](LittleEndianWriter& w) {
      w.u16(49), w.u8(0x50), w.u8(0), w.u32(length), w.u64(offset);
      put(w, file);
      w.u32(0), w.u32(0), w.u32(0), w.u16(0), w.u16(0), w.u8(0);
    });
  }
  MessageId send_query_info(const FileId& file, std::uint8_t info_class) {
    return send({.credit_charge = 1, .command = Command::query_info}, [&](LittleEndianWriter& w) {
      w.u16(41), w.u8(1), w.u8(info_class), w.u32(4096), w.u16(0), w.u16(0), w.u32(0), w.u32(0), w.u32(0);
      put(w, file);
      w.u8(0);
    });
  }
  MessageId send_query_directory(const FileId& file, std::uint8_t flags, std::uint32_t bytes,
                                 std::uint8_t info_class = file_info::names) {
    const std::string pattern = utf16("*");
    return send({.credit_charge = 1, .command = Command::query_directory}, [&](LittleEndianWriter& w) {
      w.u16(33), w.u8(info_class), w.u8(flags), w.u32(0);
      put(w, file);
      w.u16(96), w.u16(static_cast<std::uint16_t>(pattern.size())), w.u32(bytes), w.bytes(as_bytes(pattern));
    });
  }
  MessageId send_rename(const FileId& file) {
    return send({.credit_charge = 1, .command = Command::set_info}, [&](LittleEndianWriter& w) {
      w.u16(33), w.u8(1), w.u8(file_info::rename), w.u32(24), w.u16(96), w.u16(0), w.u32(0);
      put(w, file);
      w.zeros(16), w.u32(2), w.u16('y'), w.u16(0);
    });
  }
  MessageId send_set_info(const FileId& file, std::uint8_t info_class, const Buffer& information) {
    return send({.credit_charge = 1, .command = Command::set_info}, [&](LittleEndianWriter& w) {
      w.u16(33), w.u8(1), w.u8(info_class), w.u32(static_cast<std::uint32_t>(information.size()));
      w.u16(96), w.u16(0), w.u32(0);
      put(w, file);
      w.bytes(information);
    });
  }
  MessageId send_end_of_file(const FileId& file, std::uint64_t end) {
    Buffer information;
    LittleEndianWriter(information).u64(end);
    return send_set_info(file, file_info::end_of_file, information);
  }
  MessageId send_times(const FileId& file, std::int64_t written = 5, std::uint32_t attributes = 0) {
    Buffer information;
    LittleEndianWriter w(information);
    w.u64(0), w.u64(0), w.u64(static_cast<std::uint64_t>(written)), w.u64(0), w.u32(attributes), w.u32(0);
    return send_set_info(file, file_info::basic, information);
  }
  MessageId acknowledge(const FileId& file, OplockLevel level) {
    return send({.credit_charge = 1, .command = Command::oplock_break}, [&](LittleEndianWriter& w) {
      w.u16(24), w.u8(static_cast<std::uint8_t>(level)), w.zeros(5);
      put(w, file);
    });
  }

 private:
  virtual void put_out(const Slice& frame) = 0;

  struct How {
    OplockLevel oplock = kNone;
    std::uint32_t access = 0x1F01FF;
    Disposition disposition = Disposition::open;
    std::uint32_t options = 0;
  };
  std::pair<MessageId, MessageId> send_create_and(std::string_view name, const How& how, Command command,
                                                  const std::function<void(LittleEndianWriter&)>& second,
                                                  bool closes = false) {
    const std::string wide = utf16(name);
    ++creates;
    Header head{.credit_charge = 1,
                .command = Command::create,
                .credits = 5,
                .message_id = test::take_next(next_id_)};
    head.session_id = kSession, head.tree_id = kTree;
    Buffer frame, body;
    LittleEndianWriter w(body);
    w.u16(57), w.u8(0), w.u8(static_cast<std::uint8_t>(how.oplock)), w.u32(2), w.u64(0), w.u64(0);
    w.u32(how.access), w.u32(0x80), w.u32(7), w.u32(static_cast<std::uint32_t>(how.disposition));
    w.u32(how.options), w.u16(120), w.u16(static_cast<std::uint16_t>(wide.size()));
    w.u32(0), w.u32(0), w.bytes(as_bytes(wide));
    while ((kHeaderBytes + body.size()) % 8 != 0) w.u8(0);
    head.next_command = static_cast<std::uint32_t>(kHeaderBytes + body.size());
    write_header(head, frame);
    append(frame, body);
    Header next{
        .credit_charge = 1, .command = command, .credits = 5, .message_id = test::take_next(next_id_)};
    next.flags = header_flags::related;
    next.session_id = kSession, next.tree_id = kTree;
    body.clear();
    second(w);
    if (closes) {
      while ((kHeaderBytes + body.size()) % 8 != 0) w.u8(0);
      next.next_command = static_cast<std::uint32_t>(kHeaderBytes + body.size());
    }
    write_header(next, frame);
    append(frame, body);
    if (closes) {
      Header last = next;
      last.command = Command::close, last.message_id = test::take_next(next_id_), last.next_command = 0;
      body.clear();
      w.u16(24), w.u16(0), w.u32(0), w.u64(~0ull), w.u64(~0ull);
      write_header(last, frame);
      append(frame, body);
    }
    std::byte front[kFrameHeadBytes];
    write_frame_head(frame.size(), front);
    put_out(Slice::joined(front, frame));
    return {head.message_id, next.message_id};
  }

  MessageId next_id_{};
};

}  // namespace longhaul::smb::smb2::model
