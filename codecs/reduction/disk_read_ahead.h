// SPDX-License-Identifier: Apache-2.0
// Loads the encoder's history from disk: a stream whose blocks are found in a segment reads along it, ahead
// of its next blocks. common_segments.h has the segments that can be read; twin_loads.h loads the same bytes
// at the twin.
#pragma once
#include <deque>
#include <unordered_map>

#include "codecs/keyed_hash.h"
#include "codecs/reduction/block_encoder.h"
#include "codecs/reduction/common_segments.h"
#include "codecs/reduction/loaded_history.h"
#include "codecs/reduction/peer_segments.h"

namespace longhaul::reduction {

class DiskReadAhead {
 public:
  // Identifies the encoder's own history.
  struct History {
    SiteId writer{};
    std::uint64_t epoch = 0;
  };

  // All outlive this object.
  DiskReadAhead(PeerSegments& store, const CommonSegments& common, const History& own, BlockEncoder& encoder)
      : store_(store), common_(common), own_(own), encoder_(encoder) {}

  // The stream's next block is about to be encoded: data read for it enters the history.
  void before_encoding(std::uint64_t stream, const ReductionStages& stages);
  // The block was just encoded. It may use no disk, or no history.
  enum class Disk { unused, used };
  void on_encoded(std::uint64_t stream, const BlockHeader& header, Disk disk);
  void on_loaded(LoadId load, std::optional<Slice> bytes);
  // The twin cannot perform a load that a block requested.
  void on_cannot(const Load& load);

  void forget(std::uint64_t stream);
  // Nothing was sent for a while: data that waits for blocks is dropped. A stream that continues later finds
  // its position again.
  void on_quiet();
  // The history is restarted.
  void clear();

  // Data from disk that waits for a block of its stream, at most an eighth of the history.
  std::uint64_t memory_bytes() const { return come_bytes_; }

 private:
  struct Piece {  // of the data that a cursor has loaded
    std::uint64_t ring_offset;
    std::uint64_t position;  // relative to the cursor's start
    std::uint64_t length;
  };
  // The position of a stream that reads along segments.
  struct Cursor {
    std::uint64_t serial = 0;
    SegmentName segment;
    std::uint32_t begin = 0, next = 0;               // of the segment: requested
    std::uint64_t asked = 0, brought = 0, used = 0;  // positions
    std::uint64_t ahead = 0;
    std::deque<Piece> pieces;
    bool over = false;  // no more data follows
  };
  struct Asked {
    std::uint64_t stream, serial;
    SegmentId segment;
    std::uint32_t offset, length;
  };
  struct Come {
    Asked asked;
    std::optional<Slice> bytes;
  };
  struct Flow {
    std::optional<Cursor> cursor;
    unsigned useless = 0;   // consecutive cursors without use
    std::size_t asked = 0;  // loads in progress
    // Completed loads, in order. They enter the history with a block that names them and not earlier: history
    // that the twin is not informed about is useless, and would only replace useful history.
    std::deque<Come> come;
    std::uint64_t latest_block = 0;  // in the order of all streams' blocks
    // Loads for the next block, whichever cursor requested them: at most kMaxLoads, of kMaxLoadedBytes.
    std::size_t announced = 0;
    std::uint64_t announced_bytes = 0;
  };

  void look_up(std::uint64_t stream, Flow& flow, Bytes plain);
  bool in_memory(SegmentId id, const HookHit& hit) const;
  void follow(Cursor& cursor);
  void ask_ahead(std::uint64_t stream, Flow& flow);
  static bool wanted(const Flow& flow, const Asked& asked);
  void drop_come(Flow& flow);
  void make_room(const Flow& flow, std::uint64_t bytes);
  std::uint64_t most_waiting() const { return encoder_.ring()->size() / 8; }
  void append_loaded(const Asked& asked, Flow& flow, Bytes bytes);

  PeerSegments& store_;
  const CommonSegments& common_;
  History own_;
  BlockEncoder& encoder_;

  KeyedMap<std::uint64_t, Flow> flows_;
  std::unordered_map<LoadId, Asked> asked_;
  std::uint64_t come_bytes_ = 0;  // in all flows
  std::uint64_t blocks_ = 0;
  std::uint64_t serial_ = 0;
  LoadedHistory loaded_;
  std::vector<Hook> hooks_;
  std::vector<std::uint64_t> fingerprints_;
  std::vector<HookHit> hits_;
};

}  // namespace longhaul::reduction
