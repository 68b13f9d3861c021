// SPDX-License-Identifier: Apache-2.0
// See plain_open.h.
#include "proxy/modules/smb/smb2/plain_open.h"

#include "codecs/little_endian.h"

namespace longhaul::smb::smb2 {
namespace {

constexpr std::uint32_t kReading = access::read_data | access::read_ea | access::execute |
                                   access::read_attributes | access::read_control | access::synchronize |
                                   access::generic_read | access::generic_execute;
// Hints, and options without effect on the wire (2.2.13): synchronous I/O, no knowledge of EAs.
constexpr std::uint32_t kKnownOptions = create_options::non_directory_file | create_options::sequential_only |
                                        create_options::random_access | 0x10 | 0x20 | 0x200;
constexpr std::string_view kBackslash("\\\0", 2);
// Only two that query, and one that is ignored. Longer names are sent to the server.
constexpr std::size_t kMostContexts = 3, kMostPlainNameBytes = 2048;
// In the length of `how`, when encoded.
constexpr std::uint32_t kHasQueries = 0x8000'0000;

// 2.2.13.2.5 and 2.2.13.2.9: queries that the CREATE's response contains. MxAc with a time requests something
// else.
bool only_asks(const CreateContext& context) {
  const std::string_view name = as_text(context.name);
  return context.data.empty() && (name == create_context::maximal_access || name == create_context::file_id);
}

// 3.3.5.9.6: without an oplock or a lease no durable handle is granted, and the response does not mention it.
// One of version 2 may be persistent, and in any case the server needs its id to recognise a replay.
bool is_ignored(const CreateContext& context) { return as_text(context.name) == create_context::durable; }

std::size_t behind_last_backslash(std::string_view name) {
  for (std::size_t at = name.size(); at >= 2; at -= 2)
    if (name.substr(at - 2, 2) == kBackslash) return at;
  return 0;
}

bool is_plain_name(Bytes name) {
  if (name.empty() || name.size() % 2 != 0) return false;
  for (std::size_t at = 0; at < name.size(); at += 2) {
    const auto letter = load_le<char16_t>(name, at);
    // Streams; snapshots (@GMT); names that servers normalise in their own ways.
    if (letter == u':' || letter == u'@' || letter == u'/' || letter == 0) return false;
  }
  const std::string_view text = as_text(name);
  return behind_last_backslash(text) < text.size();
}

// What plain_open() demands of everything but access and options.
std::optional<PlainOpen> plain_otherwise(const Header& header, const CreateRequest& request) {
  if ((header.flags & ~header_flags::priority_mask) != 0 || header.channel_sequence != 0) return std::nullopt;
  if (request.disposition != Disposition::open || request.oplock != OplockLevel::none || request.lease)
    return std::nullopt;
  if (request.contexts.size() > kMostContexts || request.name.size() > kMostPlainNameBytes ||
      !is_plain_name(request.name))
    return std::nullopt;
  Buffer how;
  LittleEndianWriter writer(how);
  writer.u32(request.impersonation);
  writer.u32(request.desired_access);
  writer.u32(request.file_attributes);
  writer.u32(request.share_access);
  writer.u32(request.options);
  for (const CreateContext& context : request.contexts) {
    if (is_ignored(context)) continue;
    if (!only_asks(context)) return std::nullopt;
    writer.bytes(context.name);  // four letters
  }
  return PlainOpen{.how = std::string(as_text(how)), .name = std::string(as_text(request.name))};
}

}  // namespace

std::string_view PlainOpen::folder() const {
  return std::string_view(name).substr(0, behind_last_backslash(name));
}
std::string_view PlainOpen::last() const {
  return std::string_view(name).substr(behind_last_backslash(name));
}

std::optional<PlainOpen> plain_open(const Header& header, const CreateRequest& request) {
  constexpr std::uint32_t kData = access::read_data | access::generic_read;
  if ((request.desired_access & ~kReading) != 0 || !(request.desired_access & kData)) return std::nullopt;
  if ((request.options & ~kKnownOptions) != 0) return std::nullopt;
  return plain_otherwise(header, request);
}

std::optional<PlainOpen> looking_open(const Header& header, const CreateRequest& request) {
  constexpr std::uint32_t kLooking = access::read_attributes | access::synchronize;
  if ((request.desired_access & ~kLooking) != 0 || !(request.desired_access & access::read_attributes))
    return std::nullopt;
  if ((request.options & ~(kKnownOptions | create_options::open_reparse_point)) != 0) return std::nullopt;
  return plain_otherwise(header, request);
}

std::optional<CreateRequest> request_of(const PlainOpen& open) {
  LittleEndianReader reader(as_bytes(open.how));
  CreateRequest request;
  request.impersonation = reader.u32();
  request.desired_access = reader.u32();
  request.file_attributes = reader.u32();
  request.share_access = reader.u32();
  request.options = reader.u32();
  request.name = as_bytes(open.name);
  while (reader.ok() && reader.remaining() != 0)
    request.contexts.push_back({.name = reader.bytes(4), .data = {}});
  if (!reader.ok()) return std::nullopt;
  return request;
}

Slice encode(const PlainOpen& open) {
  Buffer out;
  LittleEndianWriter writer(out);
  writer.u32(static_cast<std::uint32_t>(open.how.size()) | (open.queries ? kHasQueries : 0));
  writer.bytes(as_bytes(open.how));
  if (open.queries) {
    writer.u32(static_cast<std::uint32_t>(open.queries->size()));
    writer.bytes(as_bytes(*open.queries));
  }
  writer.bytes(as_bytes(open.name));
  return Slice::copy_of(out);
}

std::optional<PlainOpen> decode_plain_open(Bytes bytes) {
  LittleEndianReader reader(bytes);
  const std::uint32_t head = reader.u32();
  PlainOpen open;
  open.how = std::string(as_text(reader.bytes(head & ~kHasQueries)));
  if (head & kHasQueries) {
    const std::uint32_t size = reader.u32();
    open.queries = std::string(as_text(reader.bytes(size)));
  }
  if (!reader.ok()) return std::nullopt;
  open.name = std::string(as_text(reader.rest()));
  return open;
}

bool only_looks(const Open& opening) {
  constexpr std::uint32_t kAttributes =
      access::read_attributes | access::write_attributes | access::synchronize;
  return (opening.access & ~kAttributes) == 0 && opening.disposition == Disposition::open &&
         !(opening.options & create_options::delete_on_close);
}

bool unsettles_names(const Message& message) {
  for (const Element& element : message.elements) {
    switch (element.header.command) {
      case Command::session_setup:
      case Command::logoff:
      case Command::tree_disconnect:
        return true;
      case Command::set_info: {
        const auto set = parse_set_info_request(element.bytes);
        if (!set || set->info_class == file_info::rename || set->info_class == file_info::rename_ex ||
            set->info_class == file_info::link) {
          return true;
        }
        break;
      }
      default:
        break;
    }
  }
  return false;
}

}  // namespace longhaul::smb::smb2
