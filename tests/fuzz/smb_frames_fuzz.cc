// SPDX-License-Identifier: Apache-2.0
// Cuts a stream into SMB frames: the first byte of the input chooses port, bound and whether raw data are
// expected, the second how the stream is split. However it is split, the same frames come out, and every byte
// comes out once.
#include <random>
#include <string>
#include <vector>

#include "fuzz/choices.h"
#include "fuzz/target.h"
#include "proxy/modules/smb/smb2/records.h"

namespace longhaul::fuzz::smb_frames_target {
using namespace longhaul::smb;

namespace {

struct Cut {
  std::string bytes;  // of frames
  std::vector<std::size_t> ends;
  std::vector<FrameKind> kinds;
  bool error = false;
  bool operator==(const Cut&) const = default;
};

Cut cut(Bytes stream, unsigned options, std::size_t most, unsigned seed) {
  const Bare bare = options & 2 ? Bare::expected : Bare::unexpected;
  FrameSplitter splitter(options & 1 ? Framing::netbios : Framing::direct_tcp, most);
  std::minstd_rand random(seed + 1);
  Cut result;
  const Bytes all = stream;
  while (!stream.empty() && !result.error) {
    const std::size_t piece =
        seed == 0 ? stream.size() : std::min<std::size_t>(stream.size(), 1 + random() % (seed * 4));
    splitter.push(Slice::copy_of(stream.first(piece)));
    stream = stream.subspan(piece);
    while (random() % 4 != 0 || stream.empty()) {
      auto frame = splitter.next(bare);
      if (!frame) {
        require(!splitter.next(bare));
        result.error = true;
        break;
      }
      if (!*frame) break;
      const Bytes bytes = (*frame)->bytes.bytes();
      require(bytes.size() >= kFrameHeadBytes && (bytes.size() <= most || is_session_packet((*frame)->kind)));
      require(bare == Bare::expected || (*frame)->kind != FrameKind::bare);
      result.bytes += as_text(bytes);
      result.ends.push_back(result.bytes.size());
      result.kinds.push_back((*frame)->kind);
      require(!smb2::describe(**frame).empty());
    }
  }
  std::string joined = result.bytes;
  const std::size_t held = splitter.held_bytes();
  for (const Slice& slice : splitter.take_rest()) joined += as_text(slice.bytes());
  require(joined.size() == result.bytes.size() + held);
  require(joined.append(as_text(stream)) == as_text(all));
  return result;
}

}  // namespace

FUZZ_TARGET(smb_frames) {
  const Bytes input = std::as_bytes(std::span(data, size));
  if (size < 2) return 0;
  const std::size_t most = data[0] & 4 ? 2'000 : kMaxFrameBytes;
  const Cut whole = cut(input.subspan(2), data[0], most, 0);
  const Cut split = cut(input.subspan(2), data[0], most, 1u + data[1]);
  require(whole == split);
  return 0;
}

}  // namespace longhaul::fuzz::smb_frames_target
