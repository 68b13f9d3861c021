// SPDX-License-Identifier: Apache-2.0
// What the twins do with files, one behind the other: bytes that would go over the line, and plain bytes per
// second of CPU time of one thread, for encoding and for decoding, with everything that a session would call.
// What was decoded is compared. Prints a line of JSON per file.
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "cli11.h"
#include "codecs/reduction/block_encoder.h"
#include "codecs/reduction/reduction.h"

using namespace longhaul;
using namespace longhaul::reduction;

namespace {

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::vector<std::byte> contents(const std::string& path, std::size_t most) {
  int file = open(path.c_str(), O_RDONLY);
  struct stat about {};
  if (file < 0 || fstat(file, &about) != 0) {
    std::fprintf(stderr, "reduction_speed: cannot read %s\n", path.c_str());
    std::exit(1);
  }
  std::vector<std::byte> bytes(std::min(most, static_cast<std::size_t>(about.st_size)));
  for (std::size_t at = 0; at < bytes.size();) {
    ssize_t got = read(file, bytes.data() + at, bytes.size() - at);
    if (got <= 0) std::exit(1);
    at += static_cast<std::size_t>(got);
  }
  close(file);
  return bytes;
}

// What a BLOCK record has before the encoded bytes: type, length, codec, plain_bytes, checksum, ring_offset.
std::size_t head_bytes(const BlockHeader& header, std::size_t encoded_bytes) {
  std::size_t body = 1 + varint_size(header.plain_bytes) + 8 + varint_size(header.ring_offset);
  return 1 + varint_size(body + encoded_bytes) + body;
}

struct Wire {
  std::optional<BlockHeader> header;
  Buffer bytes;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Encodes and decodes files, one behind the other, by a pair of twins.");
  std::vector<std::string> paths;
  std::size_t ring_mib = 1024, block = kMaxBlockPlainBytes, most_mib = 4096;
  std::uint64_t rate = 1'250'000'000;
  int level = 99;
  unsigned relief = 0;
  std::size_t context = 0, context_per_byte = 1;
  ReductionStages stages{.dedup_disk = false};
  app.add_option("files", paths, "a file may be named twice")->required();
  app.add_option("--ring", ring_mib, "history, MiB; 0: none");
  app.add_option("--block", block, "bytes");
  app.add_option("--most", most_mib, "of each file, MiB");
  app.add_option("--rate", rate, "of the line, bytes per second (10 Gbit/s); 0: not known");
  app.add_option("--relief", relief, "steps below what the rate gives: a processor that cannot keep up");
  app.add_option("--level", level, "of zstd, instead of what the rate gives");
  app.add_option("--context", context, "most context for a block, bytes, with --level");
  app.add_option("--context-per-byte", context_per_byte, "with --level");
  app.add_flag("!--no-dedup", stages.dedup_memory);
  app.add_flag("!--no-zstd", stages.compression);
  CLI11_PARSE(app, argc, argv);

  // As the daemon does; otherwise the kernel clears the same pages over and over.
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_MMAP_THRESHOLD, 4 << 20);

  Reduction from({.ring_bytes = ring_mib << 20, .peer_ring_bytes = 0, .epoch = 1});
  Reduction to({.ring_bytes = 0, .peer_ring_bytes = ring_mib << 20, .epoch = 2});
  std::uint64_t message_bytes = 0;
  auto exchange = [&] {
    while (auto message = from.poll_message()) (void)to.on_message(message->bytes());
    while (auto message = to.poll_message()) {
      message_bytes += message->size() + 3;
      (void)from.on_message(message->bytes());
    }
  };
  exchange();
  exchange();
  from.set_line_rate(rate);
  from.set_relief(relief);
  if (level != 99) {
    ZstdEffort effort = zstd_effort(rate, relief);
    effort.level = level;
    if (context) effort.context_bytes = context, effort.context_per_byte = context_per_byte;
    from.encoder().compression().set_effort(effort);
  }

  std::uint64_t stream = 1;
  for (const std::string& path : paths) {
    std::vector<std::byte> file = contents(path, most_mib << 20);
    double encoding = 0, decoding = 0;
    std::uint64_t wire_bytes = 0;
    EncoderCounters before = from.counters().encoder;
    message_bytes = 0;
    constexpr std::size_t kBatch = 1 << 20;  // so that the clock costs nothing
    std::vector<Wire> wire;
    std::vector<Slice> restored;
    for (std::size_t at = 0; at < file.size(); at += kBatch) {
      Bytes batch = Bytes(file).subspan(at, std::min(kBatch, file.size() - at));
      wire.resize((batch.size() + block - 1) / block);
      double began = cpu_seconds();
      for (std::size_t i = 0; i < wire.size(); ++i) {
        Bytes plain = batch.subspan(i * block, std::min(block, batch.size() - i * block));
        wire[i].bytes.clear();
        wire[i].header = from.encode(stream, stages, plain, wire[i].bytes);
        if (!wire[i].header) append(wire[i].bytes, plain);
      }
      double encoded = cpu_seconds();
      restored.clear();
      for (const Wire& w : wire) {
        if (!w.header) {
          restored.push_back(Slice::copy_of(w.bytes));
          continue;
        }
        auto plain = to.decode(stream, *w.header, w.bytes);
        if (!plain || !*plain) {
          std::fputs("reduction_speed: not restored\n", stderr);
          return 1;
        }
        restored.push_back(std::move(**plain));
      }
      decoding += cpu_seconds() - encoded;
      encoding += encoded - began;
      exchange();
      std::size_t done = 0;
      for (std::size_t i = 0; i < wire.size(); ++i) {
        wire_bytes +=
            wire[i].bytes.size() + (wire[i].header ? head_bytes(*wire[i].header, wire[i].bytes.size()) : 4);
        if (std::memcmp(batch.data() + done, restored[i].bytes().data(), restored[i].size()) != 0) {
          std::fputs("reduction_speed: WRONG BYTES\n", stderr);
          return 1;
        }
        done += restored[i].size();
      }
    }
    EncoderCounters after = from.counters().encoder;
    double size = static_cast<double>(file.size());
    std::printf(
        "{\"file\": \"%s\", \"bytes\": %zu, \"wire\": %llu, \"messages back\": %llu, \"percent\": %.4f, "
        "\"ratio\": %.3f, \"after dedup percent\": %.4f, \"copies\": %llu, \"encode GB/s\": %.3f, "
        "\"decode GB/s\": %.3f}\n",
        path.substr(path.rfind('/') + 1).c_str(), file.size(), static_cast<unsigned long long>(wire_bytes),
        static_cast<unsigned long long>(message_bytes), 100 * static_cast<double>(wire_bytes) / size,
        size / static_cast<double>(wire_bytes),
        100 * static_cast<double>(after.bytes.after_dedup_bytes - before.bytes.after_dedup_bytes) / size,
        static_cast<unsigned long long>(after.bytes.copies - before.bytes.copies), size / encoding / 1e9,
        size / decoding / 1e9);
    std::fflush(stdout);
    ++stream;
  }
}
