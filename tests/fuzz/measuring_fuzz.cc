// SPDX-License-Identifier: Apache-2.0
// Any bytes on the control connection of the measuring tools, in any split, are messages or an error; any
// message is a greeting, or Trouble with a sentence. Any bytes on a data connection are the pass or not,
// whatever the split; any text is a pass or Trouble.
#include "choices.h"
#include "fuzz/target.h"
#include "tools/measuring/greeting.h"
#include "tools/measuring/messages.h"
#include "tools/measuring/pass.h"
#include "tools/measuring/trouble.h"

namespace longhaul::fuzz::measuring_target {
using namespace longhaul::measuring;

namespace {

constexpr std::size_t kLongest = 512;

template <class Read>
void try_to(Read read) {
  try {
    read();
  } catch (const Trouble& trouble) {
    fuzz::require(*trouble.what() != '\0');
  }
}

void take(const boost::json::object& message) {
  fuzz::require(encode(message).size() <= 4 + kLongestMessage);
  const Identity identity{"longhaul-txn", 1, "secret"};
  Greeting greeting{identity, Side::listens};
  try_to([&] { greeting.read_hello(message, "it"); });
  bool believed = true;
  try {
    greeting.read_proof(message, "it");
  } catch (const Trouble&) {
    believed = false;
  }
  fuzz::require(!believed);  // without the token
  try_to([&] { (void)number(message, "version", -5, 5); });
  try_to([&] { (void)array(message, "list", 3); });
  try_to([&] { (void)truth(object(message, "object"), "truth"); });
}

void show_pass(Bytes input) {
  fuzz::Choices choices{input};
  const Pass pass;  // zeros, which a fuzzer finds
  PassReader reader;
  Buffer shown;
  while (!choices.empty() && reader.wanted() > 0) {
    const Bytes piece = choices.some(reader.wanted());
    append(shown, piece);
    const auto verdict = reader.feed(piece, pass);
    fuzz::require((verdict == PassReader::Verdict::more) == (shown.size() < kPassBytes));
    fuzz::require((verdict == PassReader::Verdict::right) == pass.is(shown));
  }
  const std::string_view text = as_text(input).substr(0, 40);
  try {
    const Pass read = Pass::of_text(text);
    fuzz::require(text.size() == 2 * kPassBytes && Pass::of_text(read.text()).is(read.bytes()));
  } catch (const Trouble&) {
  }
  for (const char c : fit_to_print(as_text(input))) fuzz::require(c >= 0x20 && c <= 0x7e);
}

}  // namespace

FUZZ_TARGET(measuring) {
  show_pass(std::as_bytes(std::span(data, size)));
  fuzz::Choices choices{std::as_bytes(std::span(data, size))};
  MessageReader reader{kLongest};
  while (!choices.empty()) {
    reader.feed(choices.some(200));
    for (;;) {
      const auto next = reader.next();
      if (!next) return 0;
      if (!*next) break;
      take(**next);
    }
  }
  return 0;
}

}  // namespace longhaul::fuzz::measuring_target
