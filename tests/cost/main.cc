// SPDX-License-Identifier: Apache-2.0
// Holds what inputs cost to the bounds that the machines' READMEs state: named cases first, then the fuzz
// targets' corpora and mutations of them. An input that costs more is a finding as a crash is, and is left in
// a file.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "codecs/keyed_hash.h"
#include "cost/cases.h"
#include "cost/counter.h"
#include "fuzz/target.h"

namespace longhaul::cost {
namespace {

// A run of a fuzz target may cost `once`, for what it makes before it reads, and `per_byte` for each byte
// that it hands to the machine (fuzz::paid_bytes), or of its input where it does not say.
struct Bound {
  std::string_view target;
  std::uint64_t once, per_byte;
};
constexpr Bound kBounds[] = {
    {"fuzz_frames", 20'000, 200},        {"fuzz_records", 20'000, 150},
    {"fuzz_references", 200'000, 3'000}, {"fuzz_reduction", 2'000'000, 400},
    {"fuzz_session", 100'000, 200},      {"fuzz_udp_carrier", 2'000'000, 750},
    {"fuzz_twin_records", 50'000, 100},  {"fuzz_smb2_module", 500'000, 500},
    {"fuzz_smb1_halves", 300'000, 300},   {"fuzz_fec", 2'000'000, 200},
};
constexpr std::uint64_t kOnce = 20'000'000;  // of a named case: the machine is made, its tables, its rings
constexpr std::size_t kLongestInput = 16 * 1024;  // as the fuzz driver

using Input = std::vector<std::uint8_t>;

Input read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Input(std::istreambuf_iterator<char>(file), {});
}

// Larger ones, mostly: parts again and again, where sums and tables grow.
Input mutated(const std::vector<Input>& corpus, std::mt19937_64& random) {
  Input input = corpus[random() % corpus.size()];
  for (int changes = 1 + static_cast<int>(random() % 4); changes > 0 && !input.empty(); --changes) {
    const std::size_t at = random() % input.size();
    const std::size_t size = 1 + random() % std::min<std::size_t>(input.size() - at, 64);
    const Input part(input.begin() + static_cast<std::ptrdiff_t>(at),
                     input.begin() + static_cast<std::ptrdiff_t>(at + size));
    switch (random() % 4) {
      case 0:
        input[at] = static_cast<std::uint8_t>(random());
        break;
      case 1:
        for (std::size_t times = random() % 1000; times > 0 && input.size() < kLongestInput; --times)
          input.insert(input.end(), part.begin(), part.end());
        break;
      default: {
        const Input& other = corpus[random() % corpus.size()];
        input.resize(at);
        input.insert(input.end(), other.begin(), other.end());
      }
    }
  }
  input.resize(std::min(input.size(), kLongestInput));
  return input;
}

// What is being run, for an input that ends the program.
const Input* current = nullptr;

void save(std::string_view name, const Input& input) {
  std::ofstream(std::string(name), std::ios::binary)
      .write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
}

void on_abort(int number) {
  if (current) save("cost.crash", *current);
  std::fprintf(stderr, "cost: the input is in ./cost.crash\n");
  std::signal(number, SIG_DFL);
  std::raise(number);
}

class Measured {
 public:
  // False: it costs more than the bound.
  bool holds(const Bound& bound, fuzz::Target* target, const Input& input) {
    fuzz::paid_bytes = 0;
    current = &input;
    const std::uint64_t before = steps();
    target(input.data(), input.size());
    const std::uint64_t cost = steps() - before;
    const std::uint64_t paid = std::max<std::uint64_t>(fuzz::paid_bytes, input.size());
    const std::uint64_t most = bound.once + bound.per_byte * paid;
    worst_per_mille_ = std::max(worst_per_mille_, 1000 * cost / most);
    if (cost <= most) return true;
    const std::string name = std::string(bound.target) + ".cost";
    save(name, input);
    std::printf("cost: %s: %llu steps for %llu bytes, the bound is %llu; the input is in ./%s\n",
                bound.target.data(), static_cast<unsigned long long>(cost),
                static_cast<unsigned long long>(paid), static_cast<unsigned long long>(most), name.c_str());
    return false;
  }
  unsigned long long worst_per_mille() const { return worst_per_mille_; }

 private:
  std::uint64_t worst_per_mille_ = 0;
};

bool holds(const Case& one) {
  const std::uint64_t before = steps();
  const std::uint64_t paid = one.play(one.size);
  const std::uint64_t cost = steps() - before, most = kOnce + one.steps_per_byte * paid;
  std::printf("cost: %-70s %6.1f of %llu steps a byte, %llu bytes\n", std::string(one.name).c_str(),
              static_cast<double>(cost) / static_cast<double>(std::max<std::uint64_t>(paid, 1)),
              static_cast<unsigned long long>(one.steps_per_byte), static_cast<unsigned long long>(paid));
  if (cost > most) std::printf("cost: that is more than its bound\n");
  return cost <= most;
}

bool holds(const TurnCase& one) {
  const std::uint64_t longest = one.play(one.size);
  std::printf("cost: %-70s %6llu of %llu steps a turn\n", std::string(one.name).c_str(),
              static_cast<unsigned long long>(longest), static_cast<unsigned long long>(one.steps_per_turn));
  if (longest > one.steps_per_turn) std::printf("cost: that is more than its bound\n");
  return longest <= one.steps_per_turn;
}

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace
}  // namespace longhaul::cost

// Arguments: the folder with a corpus for each target, and the names of targets or parts of the names of
// cases to run; none: all.
int main(int argc, char** argv) {
  using namespace longhaul;
  using namespace longhaul::cost;
  if (argc < 2) {
    std::fprintf(stderr, "usage: cost CORPORA [NAME...]\n");
    return 2;
  }
  // The same tables in each run.
  HashSecret::of_process() = HashSecret::from(1);
  const auto wanted = [&](std::string_view name) {
    return argc == 2 || std::any_of(argv + 2, argv + argc, [&](const char* word) {
             return name.find(word) != std::string_view::npos;
           });
  };
  for (const int number : {SIGABRT, SIGSEGV}) std::signal(number, on_abort);
  bool good = true;
  for (const auto* cases : {&link_cases(), &codec_cases()})
    for (const Case& one : *cases)
      if (wanted(one.name)) good &= holds(one);
  for (const auto* cases : {&turn_cases(), &history_turn_cases()})
    for (const TurnCase& one : *cases)
      if (wanted(one.name)) good &= holds(one);
  const std::uint64_t runs = number_from_environment("LONGHAUL_COST_RUNS", 300);
  for (const Bound& bound : kBounds) {
    fuzz::Target* target = fuzz::Listed::named(bound.target);
    if (!target || !wanted(bound.target)) continue;
    std::vector<std::filesystem::path> files;
    const std::filesystem::path folder =
        std::filesystem::path(argv[1]) / bound.target.substr(std::strlen("fuzz_"));
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::vector<Input> corpus;
    for (const auto& file : files) corpus.push_back(read_file(file));
    corpus.push_back({});
    Measured measured;
    std::mt19937_64 random(1);
    for (const Input& input : corpus) good &= measured.holds(bound, target, input);
    for (std::uint64_t i = 0; i < runs && good; ++i)
      good &= measured.holds(bound, target, mutated(corpus, random));
    std::printf("cost: %s: %zu files and %llu mutations, at most %llu per mille of the bound\n",
                bound.target.data(), corpus.size(), static_cast<unsigned long long>(runs),
                measured.worst_per_mille());
  }
  return good ? 0 : 1;
}
