// SPDX-License-Identifier: Apache-2.0
// Both halves of the SMB module for SMB2. The first byte of the input chooses: a client and a server that do
// what they like and a twin that says anything, where nothing may crash; or an honest server, an orderly
// client and somebody else who rewrites the file, in any interleaving, where every READ has to give bytes
// that the file had.
#include "choices.h"
#include "tests/proxy/modules/smb/smb2/pair.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

namespace {

constexpr std::uint16_t kRequestSizes[] = {36, 25, 4, 9, 4,  57, 24, 24, 49, 49,
                                           48, 57, 4, 4, 33, 32, 41, 33, 24};
constexpr std::uint16_t kAnswerSizes[] = {65, 9, 4, 16, 4, 89, 60, 4, 17, 17, 4, 49, 4, 4, 9, 9, 9, 2, 24};

// A message of any command, its fields mostly zero, some of them chosen; small numbers so that messages meet.
Slice message(fuzz::Choices& choices, bool answer) {
  const unsigned command = choices.below(19);
  Header header;
  header.command = static_cast<Command>(command);
  header.message_id = choices.below(16) == 15 ? kUnsolicited : choices.below(12);
  header.session_id = choices.below(8) ? kSession : choices.below(3);
  header.tree_id = choices.below(8) ? kTree : choices.below(3);
  header.credits = static_cast<std::uint16_t>(choices.below(20));
  header.credit_charge = static_cast<std::uint16_t>(choices.below(4));
  const unsigned flags = choices.byte();
  if (flags > 200) header.flags = flags & 0x7f;
  if (answer) header.flags |= header_flags::response;
  if (answer && choices.below(5) == 4) header.status = static_cast<Status>(0xC0000000u | choices.byte());
  if (answer && choices.below(9) == 8) header.status = Status::pending;
  Buffer body;
  const std::uint16_t size =
      header.status == Status::success ? (answer ? kAnswerSizes : kRequestSizes)[command] : 9;
  body.resize(std::max<std::size_t>(size, 24) + choices.below(64));
  store_le<std::uint16_t>(body.data(), size);
  for (unsigned changes = choices.below(16); changes != 0; --changes)
    body[2 + choices.below(static_cast<unsigned>(body.size() - 2))] = std::byte(choices.byte());
  return build_message(header, body);
}

TwinMessage twin_message(fuzz::Choices& choices) {
  OpenKey key = key_of(kSession, kTree, {choices.below(3), 0});
  const Stamp stamp{choices.below(2), choices.below(2)};
  const std::uint64_t id = choices.below(12), offset = choices.number();
  const auto length = static_cast<std::uint32_t>(choices.below(200));
  switch (choices.below(12)) {
    case 0:
      return Ahead{key, stamp, offset, length,
                   choices.below(2) ? std::optional(choices.number()) : std::nullopt};
    case 1:
      return Used{key, offset, length, id, static_cast<std::uint16_t>(choices.below(4)), choices.below(4)};
    case 2:
      return Asked{key, stamp, id, offset, choices.number(), choices.below(4)};
    case 3:
      return Forwarded{id};
    case 4:
      return Drop{key, choices.below(4)};
    case 5:
      return Promised{key, id};
    case 6:
      return Kept{id, choices.byte(), length, static_cast<std::uint16_t>(choices.below(4))};
    case 7:
      return Held{key, static_cast<std::uint8_t>(choices.below(10))};
    case 8:
      return Break{key, static_cast<std::uint8_t>(choices.below(10))};
    case 9:
      return Broken{key};
    case 10:
      return Answer{key, static_cast<std::uint16_t>(choices.below(19)), choices.byte(),
                    Slice::copy_of(choices.some(20)), length};
    default:
      return Local{id, static_cast<std::uint16_t>(choices.below(4))};
  }
}

void anything(fuzz::Choices& choices) {
  SmbModule halves[] = {SmbModule(Side::near, 445, {}), SmbModule(Side::far, 445, {})};
  Way streams[2];
  for (SmbModule& half : halves) half.on_surroundings({}, Pair::usual());
  std::mt19937 whole;
  auto collect = [&](unsigned side) {
    while (auto output = halves[side].poll_output()) {
      if (auto* o = std::get_if<modules::ToStream>(&*output)) streams[side].push(o->bytes);
      if (auto* o = std::get_if<modules::ToTwin>(&*output)) streams[side].push(o->message, true);
      if (auto* o = std::get_if<modules::ToLan>(&*output)) fuzz::require(!o->bytes.empty());
    }
  };
  // A beginning that makes the rest worth something.
  auto say = [&](unsigned side, const Message& message) {
    halves[side].from_lan({}, message.frame.bytes), collect(side);
  };
  auto deliver = [&](unsigned side) {
    if (streams[side].empty()) return;
    Way::Item item = streams[side].pop(whole, false);
    item.message ? halves[1 - side].from_twin({}, item.slice) : halves[1 - side].from_stream({}, item.slice);
    collect(1 - side);
  };
  say(0, request(Command::negotiate, 0, negotiate_request_body(), {.session = 0, .tree = 0})), deliver(0);
  say(1, answer(Command::negotiate, 0, negotiate_answer_body(Dialect::smb_2_1))), deliver(1);
  say(0, request(Command::tree_connect, 1, tree_connect_request_body(), {.tree = 0})), deliver(0);
  say(1, answer(Command::tree_connect, 1, tree_connect_answer_body())), deliver(1);
  say(0, create_request(2, "f", {})), deliver(0);
  say(1, answer(Command::create, 2,
                create_answer_body({.file = {1, 0}, .oplock = OplockLevel::batch, .end_of_file = 300})));

  for (unsigned step = 0; step < 300 && !choices.empty(); ++step) {
    const unsigned side = choices.below(2);
    switch (choices.below(8)) {
      case 0:
      case 1:
        halves[side].from_lan({}, message(choices, side == 1));
        break;
      case 2: {  // a twin that is not ours
        const TwinMessage told = twin_message(choices);
        halves[side].from_twin({}, encode(told));
        if (auto bytes = attached_bytes(told)) {
          Buffer attached(bytes);
          halves[side].from_stream({}, Slice::copy_of(attached));
        }
        break;
      }
      case 3:
        halves[side].from_lan({}, Slice::copy_of(choices.some(40)));
        break;
      case 4:
        halves[side].on_timeout({});
        if (choices.below(16) == 0) halves[side].lan_ended({}, modules::Ending::closed);
        if (choices.below(16) == 0) halves[side].stream_ended({}, modules::Ending::reset);
        if (choices.below(16) == 0) halves[side].twin_stepped_aside({});
        break;
      default:
        deliver(side);
    }
    collect(side);
  }
}

void orderly(fuzz::Choices& choices) {
  Pair pair(choices.byte());
  pair.cut_bytes = choices.below(2);
  const std::uint64_t size = 1 + choices.byte() * 1500u;
  pair.server.files["f"] = {0, size};
  Client client(pair);
  client.begin();
  std::vector<FileId> files;
  std::map<MessageId, std::pair<std::uint64_t, unsigned>> reads;
  std::set<MessageId> opens;
  client.on_answer = [&](MessageId id, const Message& message) {
    if (message.header().status != Status::success) return;
    if (opens.contains(id)) files.push_back(parse_create_response(message.first().bytes)->file);
    if (!reads.contains(id)) return;
    const auto data = parse_read_response(message.first().bytes)->data;
    bool found = false;
    for (unsigned v = reads[id].second; v <= pair.server.version("f"); ++v)
      found = found || as_text(data) == bytes_of(v, reads[id].first, data.size());
    fuzz::require(found);
  };
  opens.insert(client.open("f", choices.below(3) ? OplockLevel::none : OplockLevel::level_ii));
  for (unsigned step = 0; step < 2000 && !choices.empty() && !pair.reset; ++step) {
    const unsigned choice = choices.byte();
    const bool may_ask = client.credits() > 2 && !files.empty();
    if (choice < 40 && may_ask) {
      const std::uint64_t offset = choices.byte() * 1500u;
      const unsigned oldest = pair.server.settled("f");
      reads[client.ask(Command::read, read_request_body(files[choice % files.size()], offset,
                                                        1 + choices.byte() * 256u))] = {offset, oldest};
    } else if (choice < 44 && may_ask) {
      client.ask(Command::write, write_request_body(files[choice % files.size()], 0, "next"));
    } else if (choice < 46 && client.credits() > 2 && opens.size() < 4) {
      opens.insert(client.open("f"));
    } else if (choice < 47 && may_ask) {
      client.ask(Command::close, close_request_body(files.back()));
      files.pop_back();
    } else if (choice < 49) {
      pair.server.write_from_outside("f");
    } else {
      pair.random.seed(choice);
      pair.step();
    }
  }
  pair.run();
  fuzz::require(pair.reset || (pair.server.violations.empty() && client.violations.empty()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size < 2) return 0;
  fuzz::Choices choices(std::as_bytes(std::span(data + 1, size - 1)));
  if (data[0] % 2)
    anything(choices);
  else
    orderly(choices);
  return 0;
}
