// SPDX-License-Identifier: Apache-2.0
// What a client's request names and may change, judged by its bytes alone, as far as a connection tracks it.
// CREATE (open.h), CANCEL, and requests that begin or end sessions and trees have no such effects.
#pragma once
#include <optional>

#include "proxy/modules/smb/smb2/records.h"

namespace longhaul::smb::smb2 {

struct RequestEffects {
  // The file that it names, possibly kPreviousFile; nullopt if requests of this command name none. An error
  // if the request cannot be parsed.
  std::optional<Result<FileId>> file;
  // READ, WRITE
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  // SET_INFO, QUERY_INFO; the class also of QUERY_DIRECTORY
  InfoType info_type = InfoType::file;
  std::uint8_t info_class = 0;
  bool lists_afresh = false;  // QUERY_DIRECTORY: from the beginning
  // Data read from the file before is void. Also in doubt: a request that cannot be parsed, an unknown IOCTL.
  bool changes_file = false;
  bool locks = false;          // locks byte ranges of the file
  bool makes_durable = false;  // makes its handle durable
  bool renames = false;        // renames the file, or adds a name
};
RequestEffects effects_of(const Element& request);

// Whether the request is signed if and only if its session is: not those of 3.2.4.1.1, 3.2.5.5 and 3.1.4.1,
// whose signature does not depend on it.
bool is_ordinary(const Element& request);

}  // namespace longhaul::smb::smb2
