// SPDX-License-Identifier: Apache-2.0
// The counters of reduction for one peer since the daemon started: sums over ended sessions and the current
// one.
#pragma once
#include "codecs/reduction/counters.h"

namespace longhaul::link {

class ReductionTotals {
 public:
  void add_ended(const reduction::Counters& session) { add(ended_, session); }
  // Sizes and fill levels are those of `living`; all other counters are added to the earlier sums.
  reduction::Counters with(const reduction::Counters& living) const {
    reduction::Counters sum = ended_;
    add(sum, living);
    sum.encoder.ring_bytes = living.encoder.ring_bytes;
    sum.encoder.ring_filled_bytes = living.encoder.ring_filled_bytes;
    sum.encoder.unanswered_bytes = living.encoder.unanswered_bytes;
    sum.encoder.zstd_level = living.encoder.zstd_level;
    sum.encoder.zstd_relief = living.encoder.zstd_relief;
    sum.common_segments = living.common_segments;
    sum.decoder.ring_bytes = living.decoder.ring_bytes;
    sum.decoder.ring_filled_bytes = living.decoder.ring_filled_bytes;
    return sum;
  }

 private:
  static void add(reduction::BlockFigures& to, const reduction::BlockFigures& from) {
    to.plain_bytes += from.plain_bytes;
    to.after_dedup_bytes += from.after_dedup_bytes;
    to.encoded_bytes += from.encoded_bytes;
    to.copies += from.copies;
    to.copied_bytes += from.copied_bytes;
    to.disk_bytes += from.disk_bytes;
  }
  static void add(reduction::Counters& to, const reduction::Counters& from) {
    reduction::EncoderCounters& out = to.encoder;
    out.blocks += from.encoder.blocks;
    add(out.bytes, from.encoder.bytes);
    for (std::size_t i = 0; i < out.hits.size(); ++i) out.hits[i] += from.encoder.hits[i];
    out.compressed_bytes += from.encoder.compressed_bytes;
    out.passed_bytes += from.encoder.passed_bytes;
    out.opened_bytes += from.encoder.opened_bytes;
    out.incompressible_blocks += from.encoder.incompressible_blocks;
    out.horizon_stalls += from.encoder.horizon_stalls;
    out.needs += from.encoder.needs;
    out.mismatches += from.encoder.mismatches;
    out.gone += from.encoder.gone;
    out.restarts += from.encoder.restarts;
    out.loaded_bytes += from.encoder.loaded_bytes;
    reduction::DecoderCounters& in = to.decoder;
    in.blocks += from.decoder.blocks;
    add(in.bytes, from.decoder.bytes);
    in.needs += from.decoder.needs;
    in.mismatches += from.decoder.mismatches;
    in.recovered += from.decoder.recovered;
    in.failed += from.decoder.failed;
    in.loaded_bytes += from.decoder.loaded_bytes;
    in.segments_refused += from.decoder.segments_refused;
  }

  reduction::Counters ended_;
};

}  // namespace longhaul::link
