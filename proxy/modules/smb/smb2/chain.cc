// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/chain.h"

namespace longhaul::smb::smb2 {
namespace {

constexpr TreeId kPreviousTree = ~TreeId{0};

}  // namespace

void Chain::begin(const Header& header) {
  if (!header.is_related()) {
    file_.reset();
    create_.reset();
  }
  if (!header.is_related() || header.session_id != kPreviousSession) session_ = header.session_id;
  if (!header.is_related() || header.tree_id != kPreviousTree) tree_ = header.tree_id;
}

void Chain::names(const FileId& file) {
  if (file == kPreviousFile) return;
  create_.reset();
  file_ = file;
}

void Chain::creates(MessageId id) {
  file_.reset();
  create_ = id;
}

}  // namespace longhaul::smb::smb2
