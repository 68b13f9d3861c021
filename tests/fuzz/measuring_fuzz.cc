// SPDX-License-Identifier: Apache-2.0
// Any bytes on the control connection of the measuring tools, in any split, are messages or an error; any
// message is a greeting, or Trouble with a sentence.
#include "choices.h"
#include "tools/measuring/greeting.h"
#include "tools/measuring/messages.h"
#include "tools/measuring/trouble.h"

using namespace longhaul;
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
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
