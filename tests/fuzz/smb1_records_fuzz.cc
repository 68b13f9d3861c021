// SPDX-License-Identifier: Apache-2.0
// SMB1 messages of any bytes: what the parsers give lies inside the message, and they end.
#include "choices.h"
#include "fuzz/target.h"
#include "proxy/modules/smb/smb1/builders.h"
#include "proxy/modules/smb/smb1/file_name.h"
#include "proxy/modules/smb/smb1/questions.h"
#include "proxy/modules/smb/smb1/transactions.h"

namespace longhaul::fuzz::smb1_records_target {
using namespace longhaul::smb::smb1;

namespace {

void inside(Bytes part, Bytes whole) {
  if (part.empty()) return;
  fuzz::require(part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void look_at(const Message& message, const Block& block) {
  inside(block.words, message.all);
  inside(block.bytes, message.all);
  (void)parse_negotiate_request(block);
  (void)parse_negotiate_reply(block);
  (void)parse_session_setup_request(block);
  (void)parse_tree_connect_reply(block);
  if (const auto create = parse_nt_create_request(block, message.header)) {
    inside(create->name, message.all);
    const FileName name = file_name(1, create->name, message.header.is_unicode());
    fuzz::require(may_be_same_file(name, name));
  }
  (void)parse_nt_create_reply(block);
  (void)parse_open_request(block);
  (void)parse_open_reply(block, 6);
  (void)parse_close_request(block);
  (void)parse_read_request(block);
  if (const auto reply = parse_read_reply(message, block)) inside(reply->data, message.all);
  if (const auto write = parse_write_request(message, block)) inside(write->data, message.all);
  (void)parse_write_reply(block);
  (void)parse_locking_request(block);
  (void)fid_of(block);
  const auto part = parse_transaction(message, block);
  if (!part) return;
  inside(part->parameters, message.all);
  inside(part->data, message.all);
  inside(part->setup, message.all);
  (void)fid_of(static_cast<NtTransact>(part->function), *part);
  (void)parse_find_first(part->parameters);
  (void)parse_find_first_reply(part->parameters);
  (void)parse_find_next_reply(part->parameters);
  (void)parse_find_next(part->parameters);
  (void)parse_file_information(part->parameters);
  for (std::uint16_t level = 0x101; level <= 0x106; ++level)
    if (const auto last = last_entry(level, part->data, message.header.is_unicode()))
      inside(last->name, part->data);
  if (const auto question = question_of(*part))
    fuzz::require(question->size() == kQuestionBytes &&
                  function_of(*question) == static_cast<Trans2>(part->function));
  const Slice answer = joined_answer(part->parameters, part->data);
  const auto split = split_answer(answer.bytes());
  fuzz::require(split && as_text(split->parameters) == as_text(part->parameters) &&
                as_text(split->data) == as_text(part->data));
  if (const auto told = split_answer(message.all)) inside(told->data, message.all);
  Assembly assembly;
  if (assembly.add(*part) && !assembly.is_complete()) (void)assembly.add(*part);
}

}  // namespace

FUZZ_TARGET(smb1_records) {
  const Bytes input = std::as_bytes(std::span(data, size));
  const auto message = parse_message(input);
  if (!message) return 0;
  for (const Block& block : message->blocks) look_at(*message, block);
  return 0;
}

}  // namespace longhaul::fuzz::smb1_records_target
