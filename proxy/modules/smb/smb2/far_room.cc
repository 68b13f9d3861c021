// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/far_room.h"

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb2/near_writes.h"

namespace longhaul::smb::smb2 {
namespace {

// [MS-FSCC] 2.5.4, FileFsFullSizeInformation: TotalAllocationUnits, CallerAvailableAllocationUnits,
// ActualAvailableAllocationUnits, SectorsPerAllocationUnit, BytesPerSector.
constexpr std::uint32_t kFullSizeBytes = 32;

std::optional<std::uint64_t> available_bytes(Bytes full_size) {
  if (full_size.size() < kFullSizeBytes) return std::nullopt;
  const std::uint64_t units = load_le<std::uint64_t>(full_size, 8);
  const std::uint64_t unit_bytes =
      std::uint64_t{load_le<std::uint32_t>(full_size, 24)} * load_le<std::uint32_t>(full_size, 28);
  if (unit_bytes == 0) return std::nullopt;
  return units > ~std::uint64_t{0} / unit_bytes ? ~std::uint64_t{0} : units * unit_bytes;
}

}  // namespace

void FarRoom::ask(TimePoint now, const Open& open) {
  const Features& features = side_.surroundings().features;
  if (!features.write_behind || !open.disk_file || !open.may_write() || open.durable) return;
  if (!open.on_behalf && !features.write_behind_cached) return;
  if (open.closing || open.may_be_replayed || !(open.caching & lease_state::write)) return;
  const DiskTree disk = disk_tree(open.session, open.tree);
  if (!side_.has_only_path(open)) return;  // nothing is promised
  if (!side_.server().can_inject(1) || !questions_.ask_for(disk, now)) return;
  const QueryInfoRequest question{.type = InfoType::file_system,
                                  .info_class = fs_info::full_size,
                                  .output_bytes = kFullSizeBytes,
                                  .file = open.file};
  const bool sent = side_.server().inject(
      open.session, open.tree, 1,
      [question](const RequestHead& head) { return build_query_info_request(head, question); },
      [this, disk](TimePoint, const Frame&, const Element& answer) {
        if (answer.header.status == Status::file_closed) return questions_.not_asked(disk);
        const auto response = parse_buffer_response(answer.bytes);
        const bool good = answer.header.status == Status::success && response;
        if (const auto told =
                questions_.answered(disk, good ? available_bytes(response->buffer) : std::nullopt)) {
          side_.out().tell(Room{.session = disk.session,
                                .tree = disk.tree,
                                .available_bytes = told->available_bytes,
                                .counted_bytes = told->counted_bytes});
        }
      });
  if (!sent) questions_.not_asked(disk);
}

void FarRoom::written(const OpenKey& open, std::uint32_t length) {
  questions_.written(disk_tree(open.session, open.tree), length);
}

}  // namespace longhaul::smb::smb2
