// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "codecs/little_endian.h"

namespace longhaul::smb::smb2 {
namespace {

// For log lines, not a conversion: characters other than printable ASCII become question marks, long names
// are cut.
std::string printable(Bytes utf16) {
  constexpr std::size_t kMostCharacters = 60;
  std::string text;
  for (std::size_t at = 0; at + 2 <= utf16.size(); at += 2) {
    if (text.size() == kMostCharacters) return text + "...";
    const auto unit = load_le<std::uint16_t>(utf16, at);
    text += unit >= 0x20 && unit < 0x7f ? static_cast<char>(unit) : '?';
  }
  return text;
}

std::string text_of(const FileId& file) {
  if (file == kPreviousFile) return "file=previous";
  return fmt::format("file={:x}.{:x}", file.persistent_part, file.volatile_part);
}

std::string_view caching_text(std::uint32_t state) {
  static constexpr std::string_view texts[] = {"none", "R", "H", "RH", "W", "RW", "WH", "RWH"};
  return texts[state & 7];
}

std::string oplock_text(OplockLevel level, const std::optional<Lease>& lease) {
  switch (level) {
    case OplockLevel::none:
      return "oplock=none";
    case OplockLevel::level_ii:
      return "oplock=II";
    case OplockLevel::exclusive:
      return "oplock=exclusive";
    case OplockLevel::batch:
      return "oplock=batch";
    case OplockLevel::lease:
      return fmt::format("lease={}", lease ? caching_text(lease->state) : "?");
  }
  return fmt::format("oplock={:#x}", static_cast<unsigned>(level));
}

std::string text_of(const NegotiateRequest& r) {
  std::string dialects;
  for (const Dialect dialect : r.dialects)
    dialects += fmt::format("{}{:x}", dialects.empty() ? "" : ",", static_cast<unsigned>(dialect));
  return fmt::format("dialects={} mode={} capabilities={:#x}", dialects, r.security_mode, r.capabilities);
}
std::string text_of(const NegotiateResponse& r) {
  return fmt::format("dialect={:x} mode={} capabilities={:#x} read={} write={} transact={}",
                     static_cast<unsigned>(r.dialect), r.security_mode, r.capabilities, r.max_read_bytes,
                     r.max_write_bytes, r.max_transact_bytes);
}
std::string text_of(const SessionSetupRequest& r) {
  return fmt::format("{}blob={}", r.binding ? "binding " : "", r.security.size());
}
std::string text_of(const SessionSetupResponse& r) {
  return fmt::format("flags={} blob={}", r.flags, r.security.size());
}
std::string text_of(const TreeConnectRequest& r) { return printable(r.path); }
std::string text_of(const TreeConnectResponse& r) {
  return fmt::format("type={} flags={:#x} capabilities={:#x}", static_cast<unsigned>(r.type), r.flags,
                     r.capabilities);
}
std::string text_of(const CreateRequest& r) {
  std::string contexts;
  for (const CreateContext& context : r.contexts)
    contexts.append(" ").append(as_text(context.name.first(std::min<std::size_t>(context.name.size(), 4))));
  return fmt::format("'{}' {} access={:#x} share={} disposition={} options={:#x}{}", printable(r.name),
                     oplock_text(r.oplock, r.lease), r.desired_access, r.share_access,
                     static_cast<unsigned>(r.disposition), r.options, contexts);
}
std::string text_of(const CreateResponse& r) {
  return fmt::format("{} {} size={} attributes={:#x}", text_of(r.file), oplock_text(r.oplock, r.lease),
                     r.end_of_file, r.file_attributes);
}
std::string text_of(const CloseRequest& r) { return fmt::format("{} flags={}", text_of(r.file), r.flags); }
std::string text_of(const CloseResponse& r) {
  return fmt::format("flags={} size={}", r.flags, r.end_of_file);
}
std::string text_of(const FlushRequest& r) { return text_of(r.file); }
std::string text_of(const ReadRequest& r) {
  return fmt::format("{} offset={} length={}", text_of(r.file), r.offset, r.length);
}
std::string text_of(const ReadResponse& r) { return fmt::format("data={}", r.data.size()); }
std::string text_of(const WriteRequest& r) {
  return fmt::format("{} offset={} data={}{}", text_of(r.file), r.offset, r.data.size(),
                     r.flags & kWriteThrough ? " through" : "");
}
std::string text_of(const WriteResponse& r) { return fmt::format("count={}", r.count); }
std::string text_of(const LockRequest& r) {
  return fmt::format("{} ranges={}", text_of(r.file), r.ranges.size());
}
std::string text_of(const IoctlRequest& r) {
  return fmt::format("code={:#x} {} input={}", r.code, text_of(r.file), r.input.size());
}
std::string text_of(const IoctlResponse& r) {
  return fmt::format("code={:#x} output={}", r.code, r.output.size());
}
std::string text_of(const QueryDirectoryRequest& r) {
  return fmt::format("{} class={} flags={:#x} '{}' output={}", text_of(r.file), r.info_class, r.flags,
                     printable(r.pattern), r.output_bytes);
}
std::string text_of(const ChangeNotifyRequest& r) {
  return fmt::format("{} filter={:#x}{}", text_of(r.file), r.filter, r.watch_tree ? " tree" : "");
}
std::string text_of(const QueryInfoRequest& r) {
  return fmt::format("{} type={} class={} output={}", text_of(r.file), static_cast<unsigned>(r.type),
                     r.info_class, r.output_bytes);
}
std::string text_of(const SetInfoRequest& r) {
  return fmt::format("{} type={} class={} buffer={}", text_of(r.file), static_cast<unsigned>(r.type),
                     r.info_class, r.buffer.size());
}
std::string text_of(const BufferResponse& r) { return fmt::format("buffer={}", r.buffer.size()); }
std::string text_of(const OplockBreak& b) {
  return fmt::format("{} {}", text_of(b.file), oplock_text(b.level, {}));
}
std::string text_of(const LeaseBreakNotification& b) {
  return fmt::format("lease {}->{}{}", caching_text(b.current_state), caching_text(b.new_state),
                     b.needs_acknowledgement ? " acknowledge" : "");
}
std::string text_of(const LeaseBreakAcknowledgement& b) {
  return fmt::format("lease={}", caching_text(b.state));
}
std::string text_of(const AnyBreak& any) {
  return std::visit([](const auto& b) { return text_of(b); }, any);
}

template <class Record>
std::string line(const Result<Record>& record) {
  return record ? text_of(*record) : std::string("malformed");
}

std::string request_text(const Element& e) {
  switch (e.header.command) {
    case Command::negotiate:
      return line(parse_negotiate_request(e.bytes));
    case Command::session_setup:
      return line(parse_session_setup_request(e.bytes));
    case Command::tree_connect:
      return line(parse_tree_connect_request(e.bytes));
    case Command::create:
      return line(parse_create_request(e.bytes));
    case Command::close:
      return line(parse_close_request(e.bytes));
    case Command::flush:
      return line(parse_flush_request(e.bytes));
    case Command::read:
      return line(parse_read_request(e.bytes));
    case Command::write:
      return line(parse_write_request(e.bytes));
    case Command::lock:
      return line(parse_lock_request(e.bytes));
    case Command::ioctl:
      return line(parse_ioctl_request(e.bytes));
    case Command::query_directory:
      return line(parse_query_directory_request(e.bytes));
    case Command::change_notify:
      return line(parse_change_notify_request(e.bytes));
    case Command::query_info:
      return line(parse_query_info_request(e.bytes));
    case Command::set_info:
      return line(parse_set_info_request(e.bytes));
    case Command::oplock_break:
      return line(parse_break(e.bytes));
    case Command::logoff:
    case Command::tree_disconnect:
    case Command::cancel:
    case Command::echo:
    case Command::notification:
      return parse_empty(e.bytes) ? "" : "malformed";
  }
  return "";
}

std::string answer_text(const Element& e) {
  if (!has_answer(e)) return parse_error_response(e.bytes) ? "" : "malformed";
  switch (e.header.command) {
    case Command::negotiate:
      return line(parse_negotiate_response(e.bytes));
    case Command::session_setup:
      return line(parse_session_setup_response(e.bytes));
    case Command::tree_connect:
      return line(parse_tree_connect_response(e.bytes));
    case Command::create:
      return line(parse_create_response(e.bytes));
    case Command::close:
      return line(parse_close_response(e.bytes));
    case Command::read:
      return line(parse_read_response(e.bytes));
    case Command::write:
      return line(parse_write_response(e.bytes));
    case Command::ioctl:
      return line(parse_ioctl_response(e.bytes));
    case Command::query_directory:
    case Command::change_notify:
    case Command::query_info:
      return line(parse_buffer_response(e.bytes));
    case Command::oplock_break:
      return line(parse_break(e.bytes));
    case Command::logoff:
    case Command::tree_disconnect:
    case Command::flush:
    case Command::lock:
    case Command::set_info:
    case Command::cancel:
    case Command::echo:
      return parse_empty(e.bytes) ? "" : "malformed";
    case Command::notification:
      return "";
  }
  return "";
}

std::string describe(const Element& e) {
  const Header& h = e.header;
  std::string text(name_of(h.command));
  if (h.is_unsolicited()) {
    text += " unsolicited";
  } else {
    text += fmt::format("{} mid={}", h.is_response() ? " answer" : "", h.message_id.number());
  }
  if (h.is_response() && h.status != Status::success)
    text += fmt::format(" status={:#x}", static_cast<std::uint32_t>(h.status));
  text += fmt::format(" credits={}/{}", h.credit_charge, h.credits);
  if (h.is_async()) text += fmt::format(" async={}", h.async_id);
  if (h.is_signed()) text += " signed";
  if (h.is_related()) text += " related";
  if (h.is_replay()) text += " replay";
  const std::string record = h.is_response() ? answer_text(e) : request_text(e);
  if (!record.empty()) text += " " + record;
  return text;
}

}  // namespace

std::string_view name_of(Command command) {
  static constexpr std::string_view names[] = {
      "NEGOTIATE",     "SESSION_SETUP", "LOGOFF",   "TREE_CONNECT", "TREE_DISCONNECT",
      "CREATE",        "CLOSE",         "FLUSH",    "READ",         "WRITE",
      "LOCK",          "IOCTL",         "CANCEL",   "ECHO",         "QUERY_DIRECTORY",
      "CHANGE_NOTIFY", "QUERY_INFO",    "SET_INFO", "OPLOCK_BREAK", "NOTIFICATION"};
  const auto index = static_cast<std::size_t>(command);
  return index < std::size(names) ? names[index] : "?";
}

std::string describe(Bytes message) {
  if (auto transform = parse_transform_header(message))
    return fmt::format("encrypted session={:x} ({} bytes)", transform->session_id, message.size());
  if (auto compressed = parse_compression_header(message))
    return fmt::format("compressed algorithm={} ({} of {} bytes)", compressed->algorithm, message.size(),
                       compressed->original_bytes);
  const auto elements = parse_elements(message);
  if (!elements) return fmt::format("not SMB2 ({} bytes)", message.size());
  std::string text;
  for (const Element& element : *elements) text += (text.empty() ? "" : " | ") + describe(element);
  return text + fmt::format(" ({} bytes)", message.size());
}

std::string describe(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::smb2:
    case FrameKind::smb2_transform:
    case FrameKind::smb2_compressed:
      return describe(frame.message());
    case FrameKind::smb1: {
      const Bytes message = frame.message();
      const int command = message.size() > 4 ? std::to_integer<int>(message[4]) : -1;
      return fmt::format("SMB1 command={:#x} ({} bytes)", command, message.size());
    }
    case FrameKind::bare:
      return fmt::format("bare data ({} bytes)", frame.message().size());
    case FrameKind::session_request:
      return "session request";
    case FrameKind::session_accepted:
      return "session accepted";
    case FrameKind::session_refused:
      return "session refused";
    case FrameKind::session_retarget:
      return "session retarget";
    case FrameKind::keep_alive:
      return "keep-alive";
  }
  return "";
}

}  // namespace longhaul::smb::smb2
