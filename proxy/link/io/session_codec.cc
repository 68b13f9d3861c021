// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/session_codec.h"

#include <boost/asio/post.hpp>

#include "proxy/link/io/processor_time.h"

namespace longhaul::link {

void SessionCodec::begin(std::unique_ptr<reduction::Reduction> codec) {
  codec_ = std::move(codec);
  relief_ = {};
}

void SessionCodec::end() {
  if (codec_) totals_.add_ended(codec_->counters());
  codec_.reset();
}

void SessionCodec::work() {
  if (!codec_ || !codec_->has_work() || std::exchange(works_, true)) return;
  boost::asio::post(io_, [self = self_] {
    if (!*self) return;
    SessionCodec& here = **self;
    here.works_ = false;
    if (!here.codec_) return;
    here.codec_->work();
    if (here.codec_->has_message()) here.kick_();
    here.work();
  });
}

// Other work of the event loop counts, too, and so does the time in which other processes used the processor,
// because compression needs the same one.
void SessionCodec::relieve_processor() {
  const TimePoint now = Clock::now();
  if (!codec_ || !relief_.due(now)) return;
  if (relief_.update(now, processor_wanted(), codec_->counters().encoder.compressed_bytes))
    codec_->set_relief(relief_.steps());
}

void SessionCodec::on_second() {
  if (!codec_) return;
  const std::uint64_t blocks = codec_->counters().encoder.blocks;
  if (blocks != std::exchange(blocks_at_last_second_, blocks)) return;
  codec_->on_quiet();
  if (codec_->has_message()) kick_();
  work();
}

void SessionCodec::finish() {
  if (!codec_) return;
  codec_->finish();
  kick_();
  work();
}

std::uint64_t SessionCodec::clear() {
  if (!codec_) return 0;
  const reduction::Counters counters = codec_->counters();
  codec_->clear();
  kick_();
  return counters.encoder.ring_filled_bytes + counters.decoder.ring_filled_bytes;
}

std::optional<std::uint64_t> SessionCodec::cleared_by_peer() const {
  return codec_ ? codec_->cleared_by_twin() : std::optional<std::uint64_t>(0);
}

void SessionCodec::set_rights(reduction::SegmentRights rights) {
  if (!codec_) return;
  codec_->set_rights(std::move(rights));
  kick_();
}

void SessionCodec::fill(LinkStatus& status) const {
  status.reduces = codec_ != nullptr;
  status.reduction = totals_.with(codec_ ? codec_->counters() : reduction::Counters{});
}

}  // namespace longhaul::link
