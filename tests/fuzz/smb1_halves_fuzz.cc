// SPDX-License-Identifier: Apache-2.0
// Both halves for SMB1 against a client, a server and a line that do what they like: requests and answers of
// every kind with any fields, in any order and any interleaving; and a twin that says anything. Nothing
// crashes, nothing grows without end, and every frame that a half makes itself can be parsed.
#include <deque>

#include "choices.h"
#include "fuzz/target.h"
#include "proxy/modules/smb/smb1/far.h"
#include "proxy/modules/smb/smb1/near.h"
#include "proxy/modules/smb/smb1/server.h"

namespace longhaul::fuzz::smb1_halves_target {
using namespace longhaul::smb;
using namespace longhaul::smb::smb1;

namespace {

constexpr Command kCommands[] = {Command::negotiate,
                                 Command::session_setup_andx,
                                 Command::tree_connect_andx,
                                 Command::nt_create_andx,
                                 Command::open_andx,
                                 Command::read_andx,
                                 Command::write_andx,
                                 Command::close,
                                 Command::flush,
                                 Command::locking_andx,
                                 Command::trans2,
                                 Command::nt_transact,
                                 Command::echo,
                                 Command::find_close2,
                                 Command::tree_disconnect,
                                 Command::logoff_andx,
                                 Command::process_exit,
                                 Command::read_raw,
                                 Command::trans2_secondary,
                                 Command::write_raw,
                                 Command::write_mpx};
constexpr std::uint8_t kWords[] = {17, 13, 4, 24, 15, 12, 14, 3, 1, 8, 15, 19, 1, 1, 0, 2, 0, 8, 9, 12, 12};
constexpr std::uint8_t kReplyWords[] = {17, 3, 3, 34, 15, 12, 6, 0, 0, 2, 10, 18, 1, 0, 0, 2, 0, 0, 10, 1, 2};

// A message of a kind, its words mostly zero, some of them chosen; small ids so that messages meet.
Slice message(fuzz::Choices& choices, bool reply) {
  const unsigned kind = choices.below(sizeof kWords);
  Buffer out;
  LittleEndianWriter w(out);
  w.u32(0);
  w.u32(0x424D53FF);
  w.u8(static_cast<std::uint8_t>(kCommands[kind]));
  w.u32(choices.below(8) == 7 ? 0xC000007F : 0);
  const bool breaks = reply && choices.below(16) == 15;
  w.u8(reply && !breaks ? 0x80 : 0);
  w.u16(static_cast<std::uint16_t>(choices.below(32) == 31 ? 0x4005 : 0x4001));
  w.u16(0);
  w.u64(0);
  w.u16(0);
  w.u16(choices.below(8) ? testing::kTid : 2);
  w.u16(choices.below(8) == 7 ? static_cast<std::uint16_t>(kOwnPid) : 1);
  w.u16(testing::kUid);
  w.u16(static_cast<std::uint16_t>(choices.below(4)));
  const std::size_t words = reply ? kReplyWords[kind] : kWords[kind];
  w.u8(static_cast<std::uint8_t>(words));
  const std::size_t at = out.size();
  w.zeros(2 * words);
  if (is_andx(kCommands[kind]) && words != 0) out[at] = std::byte{0xFF};
  // The FID where most commands have it: one of the server's first.
  if (words >= 3 && choices.below(8) != 0) {
    const std::size_t fid_at =
        at + (is_andx(kCommands[kind]) ? kCommands[kind] == Command::nt_create_andx ? 5 : 4 : 0);
    store_le<std::uint16_t>(out.data() + fid_at, static_cast<std::uint16_t>(0x4000 + choices.below(3)));
  }
  for (unsigned changes = choices.below(12); changes != 0 && words != 0; --changes)
    out[at + choices.below(static_cast<unsigned>(2 * words))] = std::byte(choices.byte());
  constexpr std::size_t kMostChosen = 80, kMostBytes = 0xFFFF;
  const Bytes bytes = choices.some(kMostChosen);
  const std::size_t filled =
      bytes.size() == kMostChosen ? std::min(some_size(choices), kMostBytes - kMostChosen) : 0;
  w.u16(static_cast<std::uint16_t>(bytes.size() + filled));
  w.bytes(bytes);
  w.zeros(filled);
  write_frame_head(out.size() - kFrameHeadBytes, out.data());
  return Slice::copy_of(out);
}

// What a raw transfer brings, a frame without a header.
Slice some_raw(fuzz::Choices& choices) {
  constexpr std::size_t kMostRaw = 0x1FFFF;
  return testing::bare("data" + std::string(std::min(some_size(choices), kMostRaw), 'd'));
}

struct Half1 {
  Outputs out;
  std::deque<modules::Output> to_twin;
  std::optional<TwinMessage> attached;
  bool aborted = false;

  void drain() {
    while (auto output = out.poll()) {
      if (std::holds_alternative<modules::Abort>(*output)) aborted = true;
      if (std::holds_alternative<modules::ToStream>(*output) ||
          std::holds_alternative<modules::ToTwin>(*output))
        to_twin.push_back(std::move(*output));
    }
  }
};

// As the module cuts it: without a header where that may be.
Frame frame_of(Bare bare, Slice bytes) {
  const bool has_header = bytes.size() >= 8 && bytes.bytes()[4] == std::byte{0xFF};
  return {bare == Bare::expected && !has_header ? FrameKind::bare : FrameKind::smb1, std::move(bytes)};
}

template <class Half>
void move(Half1& from, Half1& to, Half& half) {
  if (from.to_twin.empty()) return;
  modules::Output output = std::move(from.to_twin.front());
  from.to_twin.pop_front();
  if (auto* told = std::get_if<modules::ToTwin>(&output)) {
    auto decoded = decode(told->message.bytes());
    fuzz::require(decoded.has_value());
    if (attached_bytes(*decoded) != 0) {
      from.attached = std::move(*decoded);
    } else {
      half.from_twin({}, *decoded, {});
    }
  } else if (auto* raw = std::get_if<modules::ToStream>(&output)) {
    if (from.attached) {
      fuzz::require(raw->bytes.size() == attached_bytes(*from.attached));
      const TwinMessage attached = std::move(*from.attached);
      from.attached.reset();
      half.from_twin({}, attached, raw->bytes);
    } else {
      half.frame_from_stream({}, frame_of(half.bare_from_stream(), raw->bytes));
    }
  }
  to.drain();
}

}  // namespace

FUZZ_TARGET(smb1_halves) {
  fuzz::Choices choices(std::as_bytes(std::span(data, size)));
  Half1 near_side, far_side;
  Near near(near_side.out, std::make_shared<AheadAccount>());
  Far far(far_side.out);
  near.on_surroundings({}, {});
  far.on_surroundings({}, {});
  // Mostly with a session and two open files: one whose oplock the client asked for, one where we ask.
  if (choices.below(8) != 7) {
    testing::Server server;
    server.files["F"] = server.files["G"] = std::string(100, 'x');
    for (const Slice& frame : {testing::negotiate(), testing::session_setup(), testing::tree_connect(),
                               testing::create("F", 4), testing::create("G", 5, {.flags = 6})}) {
      near.frame_from_lan({}, {FrameKind::smb1, frame});
      near_side.drain();
      move(near_side, far_side, far);
      while (auto output = far_side.out.poll()) {
        if (const auto* to = std::get_if<modules::ToLan>(&*output))
          server.receive(to->bytes.bytes().subspan(4));
      }
      for (; !server.out.empty(); server.out.pop_front()) {
        far.frame_from_lan({}, {FrameKind::smb1, server.out.front()});
        while (auto output = far_side.out.poll()) {
          if (const auto* to = std::get_if<modules::ToLan>(&*output)) {
            server.receive(to->bytes.bytes().subspan(4));
          } else {
            far_side.to_twin.push_back(std::move(*output));
          }
        }
      }
      while (!far_side.to_twin.empty()) move(far_side, near_side, near);
    }
    fuzz::require(near.leave_alone() == smb::reasons::optimised);
  }
  while (!choices.empty() && !near_side.aborted && !far_side.aborted) {
    switch (choices.below(8)) {
      case 0:
      case 1:
        near.frame_from_lan(
            {}, frame_of(near.bare_from_lan(), near.bare_from_lan() == Bare::expected && choices.below(2)
                                                   ? some_raw(choices)
                                                   : message(choices, false)));
        break;
      case 2:
      case 3:
        far.frame_from_lan(
            {}, frame_of(far.bare_from_lan(), far.bare_from_lan() == Bare::expected && choices.below(2)
                                                  ? some_raw(choices)
                                                  : message(choices, true)));
        break;
      case 4:
      case 5:
        move(near_side, far_side, far);
        break;
      case 6:
        move(far_side, near_side, near);
        break;
      default: {
        const auto told = decode(choices.some(60));
        if (!told) break;
        const Slice attached = Slice::copy_of(Buffer(std::min<std::size_t>(attached_bytes(*told), 8 << 20)));
        if (attached.size() != attached_bytes(*told)) break;
        if (choices.below(2)) {
          near.from_twin({}, *told, attached);
        } else {
          far.from_twin({}, *told, attached);
        }
      }
    }
    near_side.drain();
    far_side.drain();
    (void)near.quiet();
    (void)far.leave_alone();
  }
  if (!near_side.aborted) near.lan_ended({}, modules::Ending::closed);
  far.stream_ended({}, modules::Ending::closed);
  return 0;
}

}  // namespace longhaul::fuzz::smb1_halves_target
