// SPDX-License-Identifier: Apache-2.0
// What the memory dictionary costs and saves on one core, without compression: the two files named on the
// command line one after the other, or random bytes and the same again. Encoding is the copy into the ring,
// the search, the tokens and the checksum; decoding is the same back, checksum verified, every byte compared.
// Prints a line of JSON per pass; speeds are plain bytes per second of CPU time.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "codecs/block_codec.h"
#include "codecs/dedup/match_finder.h"

using namespace longhaul;
using namespace longhaul::dedup;

namespace {

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "dedup_speed: %s\n", why.c_str());
  std::exit(1);
}

struct Arguments {
  std::vector<std::string> files;
  std::size_t ring_mib = 1024;
  std::size_t block_bytes = kRingStep;
  std::size_t random_mib = 0;
  std::size_t first_mib = ~std::size_t{0} >> 20;  // of each file
  bool continuation = true;
  bool fresh = false;
  bool thinner = false;
  const Kernels* kernels = nullptr;
  std::string dump;  // encoded blocks of each pass, for compressors to be tried on
};

Arguments parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&]() -> std::string {
      if (++i == argc) fail(word + " wants a value");
      return argv[i];
    };
    if (word == "--ring-mib") {
      a.ring_mib = std::stoul(value());
    } else if (word == "--block") {
      a.block_bytes = std::stoul(value());
    } else if (word == "--first-mib") {
      a.first_mib = std::stoul(value());
    } else if (word == "--fresh") {
      a.fresh = true;
    } else if (word == "--thinner") {
      a.thinner = true;
    } else if (word == "--no-continuation") {
      a.continuation = false;
    } else if (word == "--dump") {
      a.dump = value();
    } else if (word == "--vectors") {
      const std::string name = value();
      const Vectors v = name == "avx512" ? Vectors::avx512 : name == "avx2" ? Vectors::avx2 : Vectors::none;
      if (!available(v)) fail("this machine has no " + name);
      a.kernels = &kernels(v);
    } else if (word == "random") {
      a.random_mib = std::stoul(value());
    } else {
      a.files.push_back(word);
    }
  }
  if (a.files.empty() == (a.random_mib == 0) || a.block_bytes == 0 || a.block_bytes > kRingStep)
    fail(
        "FILE FILE... | random MIB, and --ring-mib N --block BYTES --first-mib N --fresh --thinner "
        "--no-continuation "
        "--vectors none|avx2|avx512 --dump PREFIX");
  return a;
}

std::string read_file(const std::string& name, std::size_t most) {
  std::ifstream file(name, std::ios::binary | std::ios::ate);
  if (!file) fail("cannot read " + name);
  std::string content(std::min<std::size_t>(static_cast<std::size_t>(file.tellg()), most), '\0');
  file.seekg(0);
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (!file) fail("cannot read all of " + name);
  return content;
}

struct Block {
  std::uint64_t offset, checksum;
  std::size_t plain, encoded;
  bool references;
};

class Pair {
 public:
  explicit Pair(const Arguments& a)
      : a_(a),
        here_(HistoryRing::make(a.ring_mib << 20).value()),
        there_(HistoryRing::make(a.ring_mib << 20).value()),
        finder_(MatchFinder::make({a.ring_mib << 20, a.kernels}).value()) {
    out_.reserve(4 << 20);
    finder_.set_thinner(a.thinner);
    // A ring that has been around once: its pages are there. They come from the kernel at about 5 GB/s.
    if (!a.fresh)
      for (HistoryRing* ring : {&here_, &there_})
        for (std::size_t at = 0; at < ring->size(); at += kRingStep)
          std::memset(ring->reserve(ring->place(kRingStep), kRingStep).data(), 1, kRingStep);
  }

  void pass(const std::string& name, Bytes input) {
    // What stands between the two halves stays in the caches, as it would in the daemon.
    constexpr std::size_t kPiece = 1 << 20;
    double encoding = 0, decoding = 0;
    std::size_t encoded_bytes = 0, copies = 0, copied = 0;
    std::FILE* dump = nullptr;
    if (!a_.dump.empty()) dump = std::fopen((a_.dump + "." + std::to_string(passes_)).c_str(), "wb");
    ++passes_;
    std::uint64_t continuation = 0;
    std::vector<Block> blocks;
    for (std::size_t at = 0; at < input.size();) {
      const Bytes piece = input.subspan(at, std::min<std::size_t>(input.size() - at, kPiece));
      at += piece.size();
      out_.clear();
      blocks.clear();
      double began = cpu_seconds();
      for (std::size_t i = 0; i < piece.size(); i += a_.block_bytes) {
        const Bytes plain = piece.subspan(i, std::min(a_.block_bytes, piece.size() - i));
        const std::uint64_t checksum = BlockChecksum().of(plain);
        const std::uint64_t offset = here_.place(plain.size());
        std::memcpy(here_.reserve(offset, plain.size()).data(), plain.data(), plain.size());
        finder_.find(
            here_, offset, plain.size(),
            [this](std::uint64_t) {
              return Interval{here_.floor(), here_.head()};
            },
            copies_, a_.continuation ? &continuation : nullptr);
        const std::size_t filled = out_.size();
        if (copies_.empty()) {
          append(out_, plain);
        } else {
          encode_references(offset, plain, copies_, out_);
        }
        blocks.push_back({offset, checksum, plain.size(), out_.size() - filled, !copies_.empty()});
        copies += copies_.size();
        for (const Copy& copy : copies_) copied += copy.length;
      }
      encoding += cpu_seconds() - began;
      if (dump) {
        for (std::size_t i = 0, from = 0; i < blocks.size(); from += blocks[i++].encoded) {
          const auto size = static_cast<std::uint32_t>(blocks[i].encoded);
          std::fwrite(&size, sizeof size, 1, dump);
          std::fwrite(out_.data() + from, 1, size, dump);
        }
      }
      encoded_bytes += out_.size();
      std::size_t from = 0;
      began = cpu_seconds();
      for (const Block& block : blocks) {
        const Bytes encoded = Bytes(out_).subspan(from, block.encoded);
        from += block.encoded;
        const MutableBytes plain = there_.reserve(block.offset, block.plain);
        if (!block.references) {
          std::memcpy(plain.data(), encoded.data(), plain.size());
        } else if (!decode_references(there_, encoded, block.offset, plain)) {
          fail("a block cannot be decoded");
        }
        if (BlockChecksum().of(plain) != block.checksum) fail("wrong bytes");
      }
      decoding += cpu_seconds() - began;
    }
    if (dump) std::fclose(dump);
    const auto bytes = static_cast<double>(input.size());
    std::printf(
        "{\"pass\": \"%s\", \"mb\": %.1f, \"encode_mb_s\": %.0f, \"decode_mb_s\": %.0f, "
        "\"share_percent\": %.4f, \"tokens_percent\": %.4f, \"copies\": %zu, \"mean_copy\": %.0f, "
        "\"index_mib\": %.1f}\n",
        name.c_str(), bytes / 1e6, bytes / 1e6 / encoding, bytes / 1e6 / decoding,
        100 * static_cast<double>(encoded_bytes) / bytes,
        100 * static_cast<double>(encoded_bytes - (input.size() - copied)) / bytes, copies,
        copies ? static_cast<double>(copied) / static_cast<double>(copies) : 0,
        static_cast<double>(finder_.index_bytes()) / (1 << 20));
    std::fflush(stdout);
  }

 private:
  const Arguments& a_;
  HistoryRing here_, there_;
  MatchFinder finder_;
  std::vector<Copy> copies_;
  Buffer out_;
  unsigned passes_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments a = parse(argc, argv);
  Pair pair(a);
  for (const std::string& name : a.files) {
    const std::string content = read_file(name, a.first_mib << 20);
    pair.pass(name.substr(name.rfind('/') + 1), as_bytes(content));
  }
  if (a.random_mib) {
    std::string content(a.random_mib << 20, '\0');
    std::mt19937_64 random(1);
    for (std::size_t i = 0; i < content.size(); i += 8) {
      const std::uint64_t word = random();
      std::memcpy(&content[i], &word, 8);
    }
    pair.pass("random", as_bytes(content));
    pair.pass("random again", as_bytes(content));
  }
}
