// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/wan_side.h"

#include <utility>

namespace longhaul::flows {

void WanSide::count() {
  if (!stream_) return;
  record_.bytes.wan_out = stream_->writer().output().sending().end_offset().number();
  record_.bytes.wan_in = stream_->reader().wire_received().number();
  record_.blocks = stream_->blocks();
}

void WanSide::count_everything() {
  if (stream_) stream_->writer().output().encode_all();
  count();
}

void WanSide::release() {
  if (stream_) link_.release(std::exchange(stream_, nullptr)->id());
}

void WanSide::on_features() {
  record_.features = stream_->request().features;
  if (is_private_) leave_dictionaries();
}

void WanSide::keep_private() {
  is_private_ = true;
  if (stream_) leave_dictionaries();
}

// Each side does this for the bytes that it sends. The near side's decision applies to both, and may arrive
// later.
void WanSide::leave_dictionaries() {
  config::Features features = stream_->request().features;
  if (!features.dedup_memory && !features.dedup_disk) return;
  features.dedup_memory = features.dedup_disk = false;
  record_.features = features;
  record_.far_side ? stream_->use_features(features)
                   : link_.session().change_features(stream_->id(), features);
}

}  // namespace longhaul::flows
