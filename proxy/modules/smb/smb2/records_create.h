// SPDX-License-Identifier: Apache-2.0
// Records of CREATE and its response. Without state: each function parses one element's bytes (including the
// header) and borrows from them.
#pragma once
#include <array>
#include <optional>

#include "proxy/modules/smb/smb2/create_contexts.h"

namespace longhaul::smb::smb2 {

// 2.2.13
struct CreateRequest {
  OplockLevel oplock = OplockLevel::none;  // RequestedOplockLevel
  std::uint32_t impersonation = 2;
  std::uint32_t desired_access = 0;
  std::uint32_t file_attributes = 0;
  std::uint32_t share_access = 0;
  Disposition disposition = Disposition::open;
  std::uint32_t options = 0;
  Bytes name;  // UTF-16LE, relative to the share; empty: its root
  CreateContexts contexts;

  // From the contexts.
  std::optional<Lease> lease;  // valid only with OplockLevel::lease
  Durable durable = Durable::none;
  bool persistent = false;  // requested, or reconnected to
  FileId reconnect_to;      // for a reconnect
  Guid create_guid{};       // for version 2
  std::optional<std::uint64_t> allocation_bytes;
  std::optional<std::uint64_t> snapshot;  // TWrp: a FILETIME
};
Result<CreateRequest> parse_create_request(Bytes element);

// 2.2.14
struct CreateResponse {
  OplockLevel oplock = OplockLevel::none;
  std::uint8_t flags = 0;  // 1: a reparse point, 3.x
  CreateAction action = CreateAction::opened;
  FileTimes times;
  std::uint64_t allocation_bytes = 0;
  std::uint64_t end_of_file = 0;
  std::uint32_t file_attributes = 0;
  FileId file;
  CreateContexts contexts;

  // From the contexts.
  std::optional<Lease> lease;  // with OplockLevel::lease
  bool durable = false;
  bool persistent = false;
  std::optional<std::uint32_t> maximal_access;          // MxAc, if its own status is success
  std::optional<std::array<std::byte, 32>> on_disk_id;  // QFid: file id, volume id, and zeros

  // The granted caching, an oplock expressed as a lease state: level II is R, exclusive RW, batch RWH.
  std::uint32_t caching() const;
};
Result<CreateResponse> parse_create_response(Bytes element);

}  // namespace longhaul::smb::smb2
