// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/opening.h"

#include <algorithm>

#include "proxy/modules/smb/lost_names.h"
#include "proxy/modules/smb/smb1/effects.h"

namespace longhaul::smb::smb1 {
namespace {

bool only_reads_behind(const Message& request, const Block& open) {
  return std::all_of(request.blocks.begin(), request.blocks.end(), [&](const Block& block) {
    return block.at <= open.at || block.command == Command::read_andx;
  });
}

Opening opening_of(const Header& header, const NtCreateRequest& request) {
  Opening opening;
  opening.is_nt_create = true;
  opening.use = smb::use_of(request.access, request.disposition);
  Open& open = opening.open;
  open.name = file_name(header, request.name);
  if (request.root_fid != 0) open.name.exact = false;
  open.unnamed = open.name.stream || request.root_fid != 0;
  open.may_read = (request.access & (kReadData | kGenericRead | kGenericAll | kMaximumAllowed)) != 0;
  open.may_write = (request.access & (kWriteData | kGenericWrite | kGenericAll)) != 0;
  open.write_through = (request.options & (kOptionWriteThrough | kOptionNoBuffering)) != 0;
  open.random = (request.options & kOptionRandom) != 0;
  open.delete_on_close = (request.options & kOptionDeleteOnClose) != 0;
  open.looks = only_looks(request);
  return opening;
}

Opening opening_of(const Header& header, const Block& block, const OpenRequest& request) {
  Opening opening;
  opening.open_andx_flags = request.flags;
  using Use = LostWrites::Use;
  const bool keeps_data = (request.mode & 3) == 1;  // 2: truncated
  opening.use = !keeps_data ? Use::replaces : request.writes() ? Use::writes : Use::reads;
  Open& open = opening.open;
  const std::size_t pad = header.is_unicode() && block.bytes_at % 2 ? 1 : 0;
  open.name = file_name(header, block.bytes.subspan(std::min(pad, block.bytes.size())));
  open.unnamed = open.name.stream;
  open.may_read = request.reads();
  open.may_write = request.writes();
  open.write_through = request.write_through();
  return opening;
}

}  // namespace

std::optional<Opening> opening_of(const Message& request, const Block& block) {
  const Header& header = request.header;
  if (block.command == Command::nt_create_andx) {
    const auto create = parse_nt_create_request(block, header);
    if (create && only_reads_behind(request, block)) return opening_of(header, *create);
  }
  if (block.command == Command::open_andx) {
    const auto open = parse_open_request(block);
    if (open && only_reads_behind(request, block)) return opening_of(header, block, *open);
  }
  return std::nullopt;
}

}  // namespace longhaul::smb::smb1
