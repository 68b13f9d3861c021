// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/records_query.h"

#include "proxy/modules/smb/smb2/body_reader.h"

namespace longhaul::smb::smb2 {

// 2.2.33
Result<QueryDirectoryRequest> parse_query_directory_request(Bytes element) {
  BodyReader in(element, 33);
  QueryDirectoryRequest request;
  request.info_class = in.u8();
  request.flags = in.u8();
  request.file_index = in.u32();
  request.file = in.file_id();
  const std::uint16_t pattern_offset = in.u16(), pattern_bytes = in.u16();
  request.output_bytes = in.u32();
  request.pattern = in.buffer(pattern_offset, pattern_bytes);
  return in.finish(std::move(request));
}

// 2.2.34, 2.2.36, 2.2.38
Result<BufferResponse> parse_buffer_response(Bytes element) {
  BodyReader in(element, 9);
  const std::uint16_t offset = in.u16();
  const std::uint32_t length = in.u32();
  BufferResponse response{in.buffer(offset, length)};
  return in.finish(std::move(response));
}

// 2.2.35
Result<ChangeNotifyRequest> parse_change_notify_request(Bytes element) {
  BodyReader in(element, 32);
  ChangeNotifyRequest request;
  request.watch_tree = in.u16() & 1;
  request.output_bytes = in.u32();
  request.file = in.file_id();
  request.filter = in.u32();
  in.skip(4);
  return in.finish(std::move(request));
}

// 2.2.37
Result<QueryInfoRequest> parse_query_info_request(Bytes element) {
  BodyReader in(element, 41);
  QueryInfoRequest request;
  request.type = static_cast<InfoType>(in.u8());
  request.info_class = in.u8();
  request.output_bytes = in.u32();
  const std::uint16_t input_offset = in.u16();
  in.skip(2);
  const std::uint32_t input_bytes = in.u32();
  request.additional = in.u32();
  request.flags = in.u32();
  request.file = in.file_id();
  request.input = in.buffer(input_offset, input_bytes);
  return in.finish(std::move(request));
}

// 2.2.39
Result<SetInfoRequest> parse_set_info_request(Bytes element) {
  BodyReader in(element, 33);
  SetInfoRequest request;
  request.type = static_cast<InfoType>(in.u8());
  request.info_class = in.u8();
  const std::uint32_t length = in.u32();
  const std::uint16_t offset = in.u16();
  in.skip(2);
  request.additional = in.u32();
  request.file = in.file_id();
  request.buffer = in.buffer(offset, length);
  return in.finish(std::move(request));
}

namespace {

// The offset of an optional field in a class; 0: the class lacks it.
struct EntryLayout {
  bool attributes = true;  // times, sizes and attributes before the name's length
  std::uint8_t file_id = 0;
  std::uint8_t name = 0;
};

// [MS-FSCC] 2.4.10, 2.4.17, 2.4.18, 2.4.8, 2.4.14, 2.4.33, 2.4.21, 2.4.22
std::optional<EntryLayout> layout_of(std::uint8_t info_class) {
  switch (info_class) {
    case file_info::directory:
      return EntryLayout{.name = 64};
    case file_info::full_directory:
      return EntryLayout{.name = 68};
    case file_info::id_full_directory:
      return EntryLayout{.file_id = 72, .name = 80};
    case file_info::both_directory:
      return EntryLayout{.name = 94};
    case file_info::id_both_directory:
      return EntryLayout{.file_id = 96, .name = 104};
    case file_info::names:
      return EntryLayout{.attributes = false, .name = 12};
    case file_info::id_extd_directory:
      return EntryLayout{.file_id = 72, .name = 88};
    case file_info::id_extd_both_directory:
      return EntryLayout{.file_id = 72, .name = 114};
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<std::optional<DirectoryEntry>> take_directory_entry(std::uint8_t info_class, Bytes& listing) {
  if (listing.empty()) return std::optional<DirectoryEntry>{};
  const auto layout = layout_of(info_class);
  if (!layout || listing.size() < layout->name) return Error::malformed_record;
  LittleEndianReader in(listing);
  const std::uint32_t next = in.u32();
  if (next > listing.size() || (next != 0 && next < layout->name)) return Error::malformed_record;
  const Bytes bytes = next == 0 ? listing : listing.first(next);
  in.skip(4);  // FileIndex
  DirectoryEntry entry;
  if (layout->attributes) {
    entry.creation = in.u64();
    entry.last_access = in.u64();
    entry.last_write = in.u64();
    entry.change = in.u64();
    entry.end_of_file = in.u64();
    entry.allocation_bytes = in.u64();
    entry.file_attributes = in.u32();
  }
  const std::uint32_t name_bytes = in.u32();
  if (name_bytes > bytes.size() - layout->name) return Error::malformed_record;
  entry.name = bytes.subspan(layout->name, name_bytes);
  if (layout->file_id != 0) entry.file_id = load_le<std::uint64_t>(bytes, layout->file_id);
  listing = next == 0 ? Bytes{} : listing.subspan(next);
  return std::optional(entry);
}

}  // namespace longhaul::smb::smb2
