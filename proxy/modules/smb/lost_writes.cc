// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/lost_writes.h"

#include <algorithm>

namespace longhaul::smb {

void LostWrites::add(const File& file) {
  if (file.client == Client{}) return;
  if (std::find(files_.begin(), files_.end(), file) != files_.end()) return;
  if (files_.size() == kMost) files_.pop_front();
  files_.push_back(file);
}

bool LostWrites::take(const File& file) {
  const auto found = std::find(files_.begin(), files_.end(), file);
  if (found == files_.end()) return false;
  files_.erase(found);
  return true;
}

}  // namespace longhaul::smb
