// SPDX-License-Identifier: Apache-2.0
// A main() for fuzz targets where libFuzzer is not linked: replays a corpus, then feeds mutations of it for a
// few seconds. Blind, without coverage; what it is for is to run everywhere under ASan, not to replace
// libFuzzer. Which target it is is its own name: fuzz_NAME is a link to the one program that holds all.
#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "codecs/keyed_hash.h"
#include "fuzz/target.h"

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

using Input = std::vector<std::uint8_t>;
constexpr std::size_t kLongestInput = 16 * 1024;
constexpr std::chrono::seconds kOneInputMayTake{10};  // of the processor: others may keep it busy

longhaul::fuzz::Target* target = nullptr;
Input current;  // what is being run, for the crash handler
bool saved = false;

// Async-signal-safe as far as it must be: the process is about to end.
void save_current() {
  if (saved) return;
  saved = true;
  const std::string name = std::string(program_invocation_short_name) + ".crash";
  if (std::FILE* file = std::fopen(name.c_str(), "wb")) {
    if (!current.empty()) std::fwrite(current.data(), 1, current.size(), file);
    std::fclose(file);
  }
  std::fprintf(stderr, "fuzz: the input, %zu bytes, is in ./%s; hex of its head:", current.size(),
               name.c_str());
  for (std::size_t i = 0; i < current.size() && i < 256; ++i) std::fprintf(stderr, " %02x", current[i]);
  std::fprintf(stderr, "\n");
}

void on_signal(int number) {
  if (number == SIGPROF) std::fprintf(stderr, "fuzz: one input took too long\n");
  save_current();
  signal(number, SIG_DFL);
  raise(number);
}

void alarm_after(std::chrono::seconds time) {
  const itimerval timer{.it_interval = {}, .it_value = {.tv_sec = time.count(), .tv_usec = 0}};
  setitimer(ITIMER_PROF, &timer, nullptr);
}

// The target gets a heap block of exactly the input's size, so that ASan sees a read one byte past its end.
void run(const Input& input) {
  current = input;
  const auto exact = std::make_unique<std::uint8_t[]>(input.size());
  std::copy(input.begin(), input.end(), exact.get());
  alarm_after(kOneInputMayTake);
  target(exact.get(), input.size());
  alarm_after(std::chrono::seconds(0));
}

class Mutator {
 public:
  Mutator(std::uint64_t seed, const std::vector<Input>& corpus) : random_(seed), corpus_(corpus) {}

  Input next() {
    Input input = corpus_.empty() || one_in(20) ? noise() : corpus_[below(corpus_.size())];
    for (std::size_t changes = 1 + below(one_in(4) ? 16 : 3); changes > 0; --changes) change(input);
    if (input.size() > kLongestInput) input.resize(kLongestInput);
    return input;
  }

 private:
  std::size_t below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }
  bool one_in(std::size_t n) { return below(n) == 0; }
  std::uint8_t byte() { return static_cast<std::uint8_t>(below(256)); }

  Input noise() {
    Input input(below(one_in(4) ? 4096 : 64));
    std::generate(input.begin(), input.end(), [this] { return byte(); });
    return input;
  }

  void change(Input& input) {
    const std::size_t at = below(input.size() + 1);
    const auto offset = [](std::size_t n) { return static_cast<std::ptrdiff_t>(n); };
    const std::size_t rest = input.size() - at;
    switch (below(8)) {
      case 0:  // a flipped bit
        if (rest > 0) input[at] ^= static_cast<std::uint8_t>(1u << below(8));
        break;
      case 1:  // another byte
        if (rest > 0) input[at] = byte();
        break;
      case 2:  // cut short
        input.resize(at);
        break;
      case 3:  // bytes taken out
        if (rest > 0)
          input.erase(input.begin() + offset(at),
                      input.begin() + offset(at + 1 + below(std::min<std::size_t>(rest, 32))));
        break;
      case 4: {  // bytes put in
        const Input extra = noise();
        input.insert(input.begin() + offset(at), extra.begin(), extra.end());
        break;
      }
      case 5:  // a number where lengths break: 0, 1, largest, sign bits, of 1 to 8 bytes, either byte order
        interesting_number(input, at);
        break;
      case 6:  // a part repeated
        if (rest > 0) {
          const Input part(input.begin() + offset(at),
                           input.begin() + offset(at + 1 + below(std::min<std::size_t>(rest, 256))));
          input.insert(input.begin() + offset(below(input.size() + 1)), part.begin(), part.end());
        }
        break;
      default:  // the tail of another seed
        if (!corpus_.empty()) {
          const Input& other = corpus_[below(corpus_.size())];
          input.resize(at);
          input.insert(input.end(), other.begin() + offset(below(other.size() + 1)), other.end());
        }
    }
  }

  void interesting_number(Input& input, std::size_t at) {
    static constexpr std::uint64_t numbers[] = {0,          1,          0x3f,       0x40,
                                                0x7f,       0x80,       0xff,       0x3fff,
                                                0x7fff,     0x8000,     0xffff,     0x10000,
                                                0x3fffffff, 0x7fffffff, 0x80000000, 0xffffffff,
                                                ~0ull,      ~0ull >> 1, 1ull << 63, (1ull << 62) - 1};
    const std::uint64_t number = numbers[below(std::size(numbers))];
    const std::size_t width = std::size_t{1} << below(4);
    if (input.size() < at + width) input.resize(at + width);
    const bool big_endian = one_in(2);
    for (std::size_t i = 0; i < width; ++i) {
      const std::size_t shift = 8 * (big_endian ? width - 1 - i : i);
      input[at + i] = static_cast<std::uint8_t>(number >> shift);
    }
  }

  std::mt19937_64 random_;
  const std::vector<Input>& corpus_;
};

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

Input read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Input(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

// Arguments: corpus folders, or single files to replay only (fuzz_NAME.crash, for instance).
int main(int argc, char** argv) {
  target = longhaul::fuzz::Listed::named(program_invocation_short_name);
  if (target == nullptr) {
    std::fprintf(stderr, "fuzz: run as one of the links fuzz_NAME beside it; there is no target '%s'\n",
                 program_invocation_short_name);
    return 2;
  }
  std::vector<Input> corpus;
  bool files_only = argc > 1;
  for (int i = 1; i < argc; ++i) {
    const std::filesystem::path path = argv[i];
    if (std::filesystem::is_directory(path)) {
      files_only = false;
      std::vector<std::filesystem::path> files;
      for (const auto& entry : std::filesystem::directory_iterator(path))
        if (entry.is_regular_file()) files.push_back(entry.path());
      std::sort(files.begin(), files.end());  // so that a seed gives the same run everywhere
      for (const auto& file : files) corpus.push_back(read_file(file));
    } else if (std::filesystem::is_regular_file(path)) {
      corpus.push_back(read_file(path));
    } else {
      files_only = false;  // a target whose corpus is still empty
    }
  }
  // Bad accesses are the sanitizer's to report; it tells us through the callback.
  for (const int number : {SIGPROF, SIGABRT}) signal(number, on_signal);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(save_current);

  const std::uint64_t seed = number_from_environment("LONGHAUL_FUZZ_SEED", std::random_device{}());
  longhaul::HashSecret::of_process() = longhaul::HashSecret::from(seed);  // tables follow the seed, too
  const std::chrono::seconds seconds{number_from_environment("LONGHAUL_FUZZ_SECONDS", 4)};
  std::printf("fuzz: %zu corpus files, then %lld s with LONGHAUL_FUZZ_SEED=%llu\n", corpus.size(),
              files_only ? 0ll : static_cast<long long>(seconds.count()),
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);

  for (const Input& input : corpus) run(input);
  std::uint64_t runs = 0;
  if (!files_only) {
    run({});
    Mutator mutator(seed, corpus);
    for (const auto end = std::chrono::steady_clock::now() + seconds; std::chrono::steady_clock::now() < end;
         ++runs)
      run(mutator.next());
  }
  std::printf("fuzz: %llu mutations, nothing found\n", static_cast<unsigned long long>(runs));
}
