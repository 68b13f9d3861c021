// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/negotiated.h"

#include "proxy/modules/smb/smb1/conversation.h"

namespace longhaul::smb::smb1::testing {
namespace {

struct Negotiating {
  Server server;
  Negotiated negotiated;

  std::vector<std::uint16_t> offered = nt_lm_012_in(message_in(negotiate()).first());
  // The server's answer.
  void reply() {
    server.receive(negotiate().bytes().subspan(kFrameHeadBytes));
    negotiated.on_reply(message_in(server.out.front()), offered);
  }
  void set_up() { negotiated.on_session_setup(message_in(session_setup()).first()); }
};

Header header_of(Command command, bool is_signed) {
  Header header;
  header.command = command;
  header.flags2 = is_signed ? 0x4 : 0;
  return header;
}

TEST_CASE("SMB1: NT LM 0.12 is found among the offered dialects, by either name") {
  CHECK(nt_lm_012_in(message_in(negotiate()).first()) == std::vector<std::uint16_t>{1});
  const Slice others = make_frame(
      {.command = 0x72}, {}, Fields{}.u8(2).text("NT LANMAN 1.0").u8(0).u8(2).text("LANMAN2.1").u8(0).bytes);
  CHECK(nt_lm_012_in(message_in(others).first()) == std::vector<std::uint16_t>{0});
  CHECK(nt_lm_012_in(message_in(make_frame({.command = 0x72}, {}, {})).first()).empty());
}

TEST_CASE("SMB1: the sizes of a connection follow from both sides") {
  Negotiating both;
  CHECK_FALSE(both.negotiated.is_ready());
  CHECK(both.negotiated.max_mpx() == 1);
  both.reply();
  CHECK(both.negotiated.is_ready());
  CHECK(both.negotiated.max_mpx() == 50);
  CHECK(both.negotiated.max_read_bytes() == 0);  // nothing is known of the client's buffer
  both.set_up();
  CHECK(both.negotiated.max_answer_bytes() == 65'000);
  CHECK(both.negotiated.max_read_bytes() == 0x1FFFF - 64);  // both announce large reads
}

TEST_CASE("SMB1: why a connection is left alone") {
  Negotiating both;
  modules::Reason why = reasons::optimised;
  SECTION("nothing") { both.reply(); }
  SECTION("the server selects what was not offered as NT LM 0.12") {
    both.offered = {0};
    both.reply();
    why = reasons::smb_not_understood;
  }
  SECTION("the server requires signatures") {
    both.server.signing = true;
    both.reply();
    why = reasons::smb_signed;
  }
  SECTION("not where they end before this half") {
    both.server.signing = true;
    both.negotiated.seals();
    both.reply();
  }
  SECTION("a request is signed") {
    both.reply();
    both.negotiated.on_request(header_of(Command::read_andx, true));
    why = reasons::smb_signed;
  }
  SECTION("not while a session is set up") {
    both.reply();
    both.negotiated.on_request(header_of(Command::session_setup_andx, true));
    both.negotiated.on_request(header_of(Command::read_andx, false));
  }
  SECTION("the server's key is not known after all") {
    both.negotiated.seals();
    both.negotiated.cannot_open(reasons::smb_signed);
    both.server.signing = true;
    both.reply();
    why = reasons::smb_signed;
  }
  CHECK(both.negotiated.why_untouchable() == why);
  CHECK(both.negotiated.is_ready() == (why == reasons::optimised));
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
