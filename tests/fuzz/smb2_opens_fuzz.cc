// SPDX-License-Identifier: Apache-2.0
// Opens made ahead, under a twin that says anything about them: a client that lists a folder and opens its
// files in many ways, a server that answers or refuses, breaks oplocks and uses its numbers again. Nothing
// may crash.
#include <deque>

#include "choices.h"
#include "fuzz/target.h"
#include "proxy/modules/smb/smb2/compound.h"
#include "proxy/modules/smb/smb2/look.h"
#include "tests/proxy/modules/smb/smb2/pair.h"

namespace longhaul::fuzz::smb2_opens_target {
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

namespace {

constexpr unsigned kNames = 6;

std::string path_of(unsigned name) { return "d\\" + std::string(1, static_cast<char>('a' + name)); }

CreateRequest plainly(std::uint32_t access) {
  return {.desired_access = access, .share_access = 7, .disposition = Disposition::open};
}

Message look_at(MessageId id, std::string_view path) {
  const Slice opens = create_request(id, path, plainly(access::read_attributes)).frame.bytes;
  const Of related{.flags = header_flags::related};
  return compound({{request_header(Command::create, id), Body([&](auto& out) {
                      out.bytes(opens.bytes().subspan(kFrameHeadBytes + kHeaderBytes));
                    })},
                   {request_header(Command::query_info, id + 1, related),
                    query_info_request_body(kPreviousFile, file_info::all)},
                   {request_header(Command::close, id + 2, related), close_request_body(kPreviousFile)}});
}

// [MS-FSCC] 2.4.26, FileNamesInformation
std::string listing() {
  std::string text;
  for (unsigned name = 0; name < kNames; ++name) {
    std::string entry(16, '\0');
    if (name + 1 < kNames) entry[0] = 16;
    entry[8] = 2;
    entry[12] = static_cast<char>('a' + name);
    text += entry;
  }
  return text;
}

class World {
 public:
  explicit World(fuzz::Choices& choices) : choices_(choices) {
    for (kit::Watched& half : halves_) half.module.on_surroundings(now_, as_told(Pair::usual()));
  }

  void run() {
    ask(request(Command::negotiate, next(), negotiate_request_body(), {.session = 0, .tree = 0}));
    ask(request(Command::session_setup, next(), session_setup_request_body(), {.session = 0, .tree = 0}));
    ask(request(Command::tree_connect, next(), tree_connect_request_body(), {.tree = 0}));
    CreateRequest folder = plainly(access::read_data);
    folder.options = create_options::directory_file;
    ask(create_request(next(), "d", folder));
    ask(request(Command::query_directory, next(), Body([](auto& out) {
                  out.u16(33), out.u8(file_info::names), out.u8(0), out.u32(0), put(out, FileId{1, 1});
                  out.u16(96), out.u16(2), out.u32(60'000), out.u16('*');
                })));
    open(0), open(1);
    look(path_of(0)), look(path_of(1));
    for (unsigned step = 0; step < 200 && !choices_.empty(); ++step) one_step();
  }

 private:
  MessageId next() { return take_next(next_); }
  // Client, twins and server at once, as long as something is under way.
  void ask(const Message& message) {
    say(0, message.frame.bytes);
    for (int i = 0; i < 50; ++i) deliver(0), answer_one(0), deliver(1);
  }
  void open(unsigned name) {
    const MessageId id = next();
    ask(create_request(id, path_of(name), plainly(access::read_data)));
    ask(request(Command::read, next(), read_request_body({1, last_file_}, 0, 100)));
  }

  void look(std::string_view path) {
    const Message message = look_at(next_, path);
    next_ += 3;
    say(0, message.frame.bytes);
  }

  void one_step() {
    now_ += std::chrono::milliseconds(choices_.below(8) == 7 ? 3000 : 10);
    switch (choices_.below(14)) {
      case 0:
      case 1:
      case 2: {
        static constexpr std::uint32_t kAccess[] = {access::read_data, access::read_data, access::read_data,
                                                    access::write_data, access::read_attributes};
        std::string path = path_of(choices_.below(kNames));
        const unsigned chosen = choices_.byte();
        if (chosen >= 250) path.append(fuzz::size_number(chosen) / 10, 'n');  // to 30,000 letters, and beyond
        path.resize(std::min<std::size_t>(path.size(), 0x7FFF));
        if (chosen % 5 == 4 && chosen >= 100) return look(path);
        return say(0, create_request(next(), path, plainly(kAccess[chosen % 5])).frame.bytes);
      }
      case 3: {
        const unsigned chosen = choices_.byte();
        const auto length = static_cast<std::uint32_t>(100 + fuzz::size_number(chosen / 16));
        return say(
            0, request(Command::read, next(), read_request_body({1, chosen % 16}, 0, length)).frame.bytes);
      }
      case 4:
        return say(0,
                   request(Command::close, next(), close_request_body({1, choices_.below(16)})).frame.bytes);
      case 5:
        return say(0, request(Command::set_info, next(),
                              set_info_request_body({1, choices_.below(16)}, file_info::rename))
                          .frame.bytes);
      case 6:
        return say(1, oplock_break({1, choices_.below(16)},
                                   choices_.below(2) ? OplockLevel::none : OplockLevel::level_ii)
                          .frame.bytes);
      case 7: {
        const unsigned side = choices_.below(2);
        const TwinMessage told = twin_message();
        if (halves_[side].done()) return;
        halves_[side].module.from_twin(now_, encode(told));
        if (const auto bytes = attached_bytes(told)) {
          Buffer attached(bytes);
          halves_[side].module.from_stream(now_, Slice::copy_of(attached));
        }
        return collect(side);
      }
      case 8:
        halves_[choices_.below(2)].module.on_timeout(now_);
        return collect(0), collect(1);
      case 9:
      case 10:
        return answer_one(choices_.below(4));
      default:
        return deliver(choices_.below(2));
    }
  }

  TwinMessage twin_message() {
    const OpenKey key = key_of(kSession, kTree, {1, choices_.below(16)});
    const std::uint64_t number = choices_.below(6);
    switch (choices_.below(6)) {
      case 0: {
        const std::string wide = utf16(path_of(choices_.below(kNames)));
        CreateRequest create = plainly(access::read_data);
        create.name = as_bytes(wide);
        return Offer{number, key, encode(*plain_open({}, create)), Slice::copy_of(choices_.some(30)),
                     some_attached_size()};
      }
      case 1: {
        const PlainOpen look = *look_in(look_at(MessageId{}, path_of(choices_.below(kNames))));
        const Slice questions = Slice::copy_of(as_bytes(*look.queries));
        return Offer{number, key, encode(look), questions, some_attached_size()};
      }
      case 2:
        return Revoke{number};
      case 3:
        return Took{number};
      case 4:
        return GaveUp{number};
      default: {
        if (choices_.below(2)) return Held{key, 9};
        const PlainOpen look = *look_in(look_at(MessageId{}, "d\\a"));
        return Answer{key, static_cast<std::uint16_t>(Command::query_info), 0,
                      Slice::copy_of(as_bytes(*look.queries)), some_attached_size()};
      }
    }
  }

  std::uint32_t some_attached_size() {
    const unsigned chosen = choices_.byte();
    return static_cast<std::uint32_t>(chosen < 200 ? chosen % 100 : fuzz::size_number(chosen));
  }

  void say(unsigned side, const Slice& bytes) {
    halves_[side].from_lan(now_, bytes);
    collect(side);
  }
  void deliver(unsigned side) {
    if (kit::deliver(halves_[side], halves_[1 - side], now_)) collect(1 - side);
  }
  void collect(unsigned side) {
    halves_[side].collect();
    for (Slice& bytes : halves_[side].to_lan) {
      fuzz::require(!bytes.empty());
      if (side == 1) from_far_.push(std::move(bytes));
    }
    halves_[side].to_lan.clear();
    while (auto frame = from_far_.next()) {
      if (!*frame) break;
      if (auto message = parse_message(**frame)) at_server_.push_back(std::move(*message));
    }
  }
  void answer_one(unsigned how) {
    if (at_server_.empty()) return;
    const Message message = std::move(at_server_.front());
    at_server_.pop_front();
    if (!message.single()) return answer_look(message);
    const Header& asked = message.header();
    Header header = answer_to(asked, Status::success);
    header.session_id = kSession;
    header.tree_id = kTree;
    header.credits = 40;
    const auto reply = [&](const Body& body) { say(1, build_message(header, body.bytes)); };
    switch (asked.command) {
      case Command::negotiate:
        return reply(negotiate_answer_body(Dialect::smb_2_1));
      case Command::session_setup:
        return reply(session_setup_answer_body());
      case Command::tree_connect:
        return reply(tree_connect_answer_body());
      case Command::create: {
        if (how == 3) {
          header.status = Status::access_denied;
          return reply(test::error_body());
        }
        const auto create = parse_create_request(message.first().bytes);
        const bool folder = create && create->options & create_options::directory_file;
        if (!folder) last_file_ = 2 + files_++ % 14;
        return reply(
            create_answer_body({.file = {1, folder ? 1 : last_file_},
                                .oplock = how < 2 && !folder ? OplockLevel::batch : OplockLevel::none,
                                .end_of_file = 10,
                                .attributes = folder ? file_attributes::directory : 0x80}));
      }
      case Command::query_directory:
        if (listed_++ == 0) return reply(buffer_answer_body(listing()));
        header.status = Status::no_more_files;
        return reply(test::error_body());
      case Command::read:
        return reply(read_answer_body("0123456789"));
      case Command::close:
        return reply(close_answer_body());
      default:
        return reply(empty_body());
    }
  }

  void answer_look(const Message& message) {
    std::vector<CompoundPart> parts;
    std::vector<Slice> bodies;
    for (const Element& element : message.elements) {
      if (element.header.command == Command::create && ++files_) last_file_ = 2 + files_ % 14;
      const Body body = element.header.command == Command::create
                            ? create_answer_body({.file = {1, last_file_}})
                        : element.header.command == Command::close ? close_answer_body()
                                                                   : buffer_answer_body("information");
      bodies.push_back(Slice::copy_of(body.bytes));
      Header header = answer_to(element.header, Status::success);
      header.session_id = kSession, header.tree_id = kTree, header.credits = 4;
      parts.push_back({header, bodies.back().bytes()});
    }
    say(1, build_compound(parts));
  }

  fuzz::Choices& choices_;
  TimePoint now_{};
  static kit::Watched half(Side side) {
    return kit::Watched(std::make_unique<SmbModule>(side, modules::Ends{.server_port = 445}, Site{}));
  }
  kit::Watched halves_[2] = {half(Side::near), half(Side::far)};
  FrameSplitter from_far_{Framing::direct_tcp};
  std::deque<Message> at_server_;
  MessageId next_{};
  std::uint64_t files_ = 0, last_file_ = 0;
  unsigned listed_ = 0;
};

}  // namespace

FUZZ_TARGET(smb2_opens) {
  fuzz::Choices choices(std::as_bytes(std::span(data, size)));
  World(choices).run();
  return 0;
}

}  // namespace longhaul::fuzz::smb2_opens_target
