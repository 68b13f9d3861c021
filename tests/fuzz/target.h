// SPDX-License-Identifier: Apache-2.0
// What every fuzz target needs: its entry and a check that ends the run.
//
// FUZZ_TARGET(NAME) { … return 0; } reads `size` bytes at `data`. Built for libFuzzer it is that program's
// entry; else it is one of the targets of the one program that holds all, which driver.cc finds as fuzz_NAME.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace longhaul::fuzz {

using Target = int(const std::uint8_t* data, std::size_t size);

// A target in the list of all that are linked, which it enters before main() begins.
class Listed {
 public:
  Listed(std::string_view name, Target* target) : name_(name), target_(target), next_(first_) {
    first_ = this;
  }
  // Null: there is none of that name.
  static Target* named(std::string_view name) {
    for (const Listed* listed = first_; listed; listed = listed->next_) {
      if (listed->name_ == name) return listed->target_;
    }
    return nullptr;
  }

 private:
  std::string_view name_;
  Target* target_;
  const Listed* next_;
  static inline constinit const Listed* first_ = nullptr;
};

// What the run has handed to the machine under test in all, where an input is choices and not the bytes
// themselves: tests/cost holds what it costs to that.
inline std::uint64_t paid_bytes = 0;

inline void require(bool holds, int line = __builtin_LINE()) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: what line %d requires does not hold\n", line);
  std::abort();
}

}  // namespace longhaul::fuzz

#ifdef LONGHAUL_LIBFUZZER
#define FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
#else
#define FUZZ_TARGET(name)                                                        \
  static longhaul::fuzz::Target fuzz_##name;                                     \
  static const longhaul::fuzz::Listed listed_##name("fuzz_" #name, fuzz_##name); \
  static int fuzz_##name([[maybe_unused]] const std::uint8_t* data, std::size_t size)
#endif
