// SPDX-License-Identifier: Apache-2.0
// Records of SMB2 that query or set information about files and directories: QUERY_DIRECTORY, CHANGE_NOTIFY,
// QUERY_INFO, SET_INFO. Without state: each function parses one element's bytes (including the header) and
// borrows from them.
#pragma once
#include <optional>

#include "proxy/modules/smb/smb2/header.h"

namespace longhaul::smb::smb2 {

// 2.2.33
struct QueryDirectoryRequest {
  std::uint8_t info_class = 0;  // file_info
  std::uint8_t flags = 0;       // query_directory_flags
  std::uint32_t file_index = 0;
  FileId file;
  Bytes pattern;  // UTF-16LE
  std::uint32_t output_bytes = 0;
};
Result<QueryDirectoryRequest> parse_query_directory_request(Bytes element);

// 2.2.34, 2.2.36, 2.2.38: QUERY_DIRECTORY, CHANGE_NOTIFY and QUERY_INFO have the same response.
struct BufferResponse {
  Bytes buffer;
};
Result<BufferResponse> parse_buffer_response(Bytes element);

// 2.2.35
struct ChangeNotifyRequest {
  bool watch_tree = false;
  std::uint32_t output_bytes = 0;
  FileId file;
  std::uint32_t filter = 0;
};
Result<ChangeNotifyRequest> parse_change_notify_request(Bytes element);

// 2.2.37
struct QueryInfoRequest {
  InfoType type = InfoType::file;
  std::uint8_t info_class = 0;  // file_info or fs_info
  std::uint32_t output_bytes = 0;
  std::uint32_t additional = 0;  // which parts of a security descriptor
  std::uint32_t flags = 0;       // how extended attributes are listed
  FileId file;
  Bytes input;
};
Result<QueryInfoRequest> parse_query_info_request(Bytes element);

// 2.2.39. Its response is empty.
struct SetInfoRequest {
  InfoType type = InfoType::file;
  std::uint8_t info_class = 0;
  std::uint32_t additional = 0;
  FileId file;
  Bytes buffer;
};
Result<SetInfoRequest> parse_set_info_request(Bytes element);

// [MS-FSCC] 2.4: one entry of a directory's listing, of any class. Fields that the class lacks are zero.
struct DirectoryEntry {
  Bytes name;                                                               // UTF-16LE
  std::uint64_t creation = 0, last_access = 0, last_write = 0, change = 0;  // FILETIMEs
  std::uint64_t end_of_file = 0;
  std::uint64_t allocation_bytes = 0;
  std::uint32_t file_attributes = 0;
  std::uint64_t file_id = 0;
};
// Removes the first entry from `listing` (a response's buffer); returns nullopt if it is empty.
Result<std::optional<DirectoryEntry>> take_directory_entry(std::uint8_t info_class, Bytes& listing);

}  // namespace longhaul::smb::smb2
