// SPDX-License-Identifier: Apache-2.0
// Connect, send, receive a byte, close; every byte is looked at.
#include "tools/txn/tcp_script.h"

#include <algorithm>

#include "tools/measuring/trouble.h"
#include "tools/txn/content.h"
#include "tools/txn/exchange.h"

namespace longhaul::txn {
namespace {

using measuring::Trouble;

constexpr std::size_t kReadAtOnce = 64 * 1024;

ByteSource source_of(const Workload& workload, std::uint64_t transaction, Direction direction) {
  return {workload.key, workload.content == Content::same ? 0 : transaction, direction};
}

void require_match(const ByteSource& source, std::uint64_t offset, Bytes bytes, std::uint64_t transaction) {
  if (source.matches(offset, bytes)) return;
  throw Trouble("wrong bytes arrived near offset " + std::to_string(offset) + " of transaction " +
                std::to_string(transaction));
}

// What is left of a file after its first `arrived` bytes. False: the other side has ended, before the first.
bool receive_file(const Workload& workload, Socket& socket, std::uint64_t transaction, std::uint32_t arrived,
                  Buffer& buffer) {
  const ByteSource source = source_of(workload, transaction, Direction::request);
  while (arrived < workload.file_bytes) {
    const auto most = std::min<std::size_t>(buffer.size(), workload.file_bytes - arrived);
    const auto got = socket.receive(MutableBytes(buffer).first(most));
    if (got == 0 && arrived == 0) return false;
    if (got == 0)
      throw Trouble("the connection ended after " + std::to_string(arrived) + " of " +
                    std::to_string(workload.file_bytes) + " bytes of transaction " +
                    std::to_string(transaction));
    require_match(source, arrived, Bytes(buffer).first(got), transaction);
    arrived += static_cast<std::uint32_t>(got);
  }
  return true;
}

}  // namespace

TcpClient::TcpClient(const Workload& workload, SocketAddress to, const measuring::Pass& pass,
                     const std::atomic<bool>& stop)
    : workload_(workload), to_(to), pass_(pass), stop_(stop) {
  buffer_.resize(std::min(workload.send_buffer, workload.file_bytes));
  if (workload.script != Script::eft_short) connect();
}

void TcpClient::connect() {
  socket_.emplace(workload_, to_.storage.ss_family, stop_);
  socket_->connect(to_);
  shows_pass_ = true;
}

void TcpClient::fill(std::uint32_t transaction, std::uint32_t offset, MutableBytes out) {
  source_of(workload_, transaction, Direction::request).fill(offset, out);
  if (!shows_pass_ || offset >= measuring::kPassBytes) return;
  const Bytes shown = pass_.bytes().subspan(offset);
  std::ranges::copy(shown.first(std::min(shown.size(), out.size())), out.begin());
}

void TcpClient::transact(std::uint32_t transaction) {
  if (workload_.script == Script::eft_short) connect();
  for (std::uint32_t sent = 0; sent < workload_.file_bytes;) {
    const auto size = std::min<std::uint32_t>(workload_.send_buffer, workload_.file_bytes - sent);
    fill(transaction, sent, MutableBytes(buffer_).first(size));
    socket_->send(Bytes(buffer_).first(size));
    sent += size;
  }
  shows_pass_ = false;
  std::byte answer{};
  if (socket_->receive({&answer, kAnswerBytes}) == 0)
    throw Trouble("the connection ended before transaction " + std::to_string(transaction) + " was answered");
  require_match(source_of(workload_, transaction, Direction::response), 0, {&answer, kAnswerBytes},
                transaction);
  if (workload_.script == Script::eft_short) socket_.reset();
}

void serve_tcp(const Workload& workload, Socket& listener, const measuring::Pass& pass, Tally& tally) {
  Buffer buffer(kReadAtOnce);
  measuring::Door door = listener.door(pass);
  std::uint64_t transaction = 0;
  for (;;) {
    Socket socket = listener.accept(door);
    std::uint32_t arrived = measuring::kPassBytes;
    while (receive_file(workload, socket, transaction, std::exchange(arrived, 0), buffer)) {
      std::byte answer{};
      source_of(workload, transaction, Direction::response).fill(0, {&answer, kAnswerBytes});
      socket.send({&answer, kAnswerBytes});
      tally.count(++transaction, {});
    }
  }
}

}  // namespace longhaul::txn
