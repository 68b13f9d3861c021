// SPDX-License-Identifier: Apache-2.0
// Both halves of the SMB module between an honest server of SMB2, an orderly client and somebody else who
// rewrites the file, in any interleaving: every READ gives bytes that the file had, and nobody's rules of ids
// and credits are broken. Clients, servers and twins that are not honest are smb2_module_fuzz.cc's.
#include "fuzz/choices.h"
#include "fuzz/target.h"
#include "tests/proxy/modules/smb/smb2/pair.h"

namespace longhaul::fuzz::smb2_reads_target {
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

FUZZ_TARGET(smb2_reads) {
  fuzz::Choices choices(std::as_bytes(std::span(data, size)));
  Pair pair(choices.byte());
  pair.cut_bytes = choices.below(2);
  // Some of them large: what is read ahead is many READs then.
  const unsigned size_chosen = choices.byte();
  pair.server.files["f"] = {0, 1 + size_chosen * (size_chosen % 16 == 15 ? 8000u : 600u)};
  Client client(pair);
  client.begin();
  std::vector<FileId> files;
  std::map<MessageId, std::pair<std::uint64_t, unsigned>> reads;
  std::set<MessageId> opens;
  client.on_answer = [&](MessageId id, const Message& message) {
    if (message.header().status != Status::success) return;
    if (opens.contains(id)) files.push_back(parse_create_response(message.first().bytes)->file);
    if (!reads.contains(id)) return;
    const auto got = parse_read_response(message.first().bytes)->data;
    bool found = false;
    for (unsigned v = reads[id].second; v <= pair.server.version("f"); ++v)
      found = found || as_text(got) == bytes_of(v, reads[id].first, got.size());
    fuzz::require(found);
  };
  opens.insert(client.open("f", choices.below(3) ? OplockLevel::none : OplockLevel::level_ii));
  for (unsigned step = 0; step < 500 && !choices.empty() && !pair.reset; ++step) {
    const unsigned choice = choices.byte();
    const bool may_ask = client.credits() > 2 && !files.empty();
    if (choice < 40 && may_ask) {
      const std::uint64_t offset = choices.byte() * 600u;
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
  return 0;
}

}  // namespace longhaul::fuzz::smb2_reads_target
