// SPDX-License-Identifier: Apache-2.0
#include "proxy/identity/token_key.h"

#include <openssl/err.h>

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "proxy/identity/token.h"
#include "proxy/identity/token_mechanisms.h"
#include "proxy/identity/token_method.h"
#include "proxy/log/log.h"

namespace longhaul::identity {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::minutes kTryOut{1};

// Never destroyed: threads that a token blocks may outlive everything else.
struct Threads {
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t count = 0;
};
Threads& threads() {
  static auto& all = *new Threads;
  return all;
}

}  // namespace

struct TokenKey::Shared final : Signer {
  Shared(TokenUri named, SecretBytes secret) : uri(std::move(named)), pin(std::move(secret)) {}

  const TokenUri uri;
  const SecretBytes pin;
  EvpKey public_key;  // not changed after the thread's start

  std::mutex mutex;  // guards the next four members
  std::condition_variable asked;
  std::deque<Work> waiting;
  bool has_thread = false;
  bool closed = false;  // nothing is logged or run from now on

  // Used only by the thread.
  std::unique_ptr<Token> token;
  EvpKey key;
  Token::Failure failure;
  std::optional<Clock::time_point> tried;  // when it was last opened
  std::string logged;                      // the failure last logged

  bool sign(Kind kind, int hash, Bytes data, std::span<unsigned char> out, std::size_t& size) override {
    failure.why = token ? sign_with(*token, kind, hash, data, out, size) : "the token is not open";
    return failure.why.empty();
  }

  void open() {
    if (token && failure.why.empty()) return;
    const auto now = Clock::now();
    if (tried && (failure.is_final || now - *tried < kRetryAfter)) return;
    tried = now;
    token.reset();
    key.reset();
    token = Token::open(uri, pin, failure);
    if (!token) return;
    // Tokens that pad themselves often refuse to sign padded data, and the other way round.
    if (makes_key(RsaInput::digests) || makes_key(RsaInput::padded) || makes_key(RsaInput::texts)) {
      failure = {};
      return;
    }
    failure.why = why_unfit(failure.why);
    key.reset(), token.reset();
  }

  bool makes_key(RsaInput input) {
    key = key_of(*this, public_key.get(), input);
    return key && fits(key.get(), public_key.get());
  }

  std::string why_unfit(const std::string& of_signature) const {
    if (of_signature.empty()) return "it is not the key of the certificate";
    const std::string missing = missing_mechanisms(*token, EVP_PKEY_is_a(public_key.get(), "RSA") == 1);
    if (!missing.empty()) return "the token does not sign as TLS needs: " + missing;
    return "it is not the key of the certificate, or not one for TLS: " + of_signature;
  }

  void note() {
    const std::lock_guard lock(mutex);
    if (closed || failure.why == logged) return;
    logged = failure.why;
    if (logged.empty()) return log::info("server_key_available", {{"key", uri.text()}});
    log::error("server_key_unavailable",
               {{"key", uri.text()},
                {"reason", failure.why},
                {"effect", "connections to its servers are not decrypted"},
                {"remedy", failure.is_final
                               ? "correct the PIN, then run longhaul reload; until then the token is not used"
                               : "none needed if the token becomes available again: it is tried again for "
                                 "the next connection"}});
  }

  static void work(std::shared_ptr<Shared> self) {
    std::unique_lock lock(self->mutex);
    for (;;) {
      self->asked.wait(lock, [&] { return self->closed || !self->waiting.empty(); });
      if (self->closed) break;
      Work work = std::move(self->waiting.front());
      self->waiting.pop_front();
      lock.unlock();
      self->open();
      const bool is_open = self->token && self->failure.why.empty();
      work(is_open ? self->key.get() : nullptr, self->failure.why);
      work = {};  // without the lock: it may hold the last reference to the TokenKey
      ERR_clear_error();
      self->note();
      lock.lock();
    }
    lock.unlock();
    self->key.reset();
    self->token.reset();
    self.reset();
    const std::lock_guard ended(threads().mutex);
    --threads().count;
    threads().ended.notify_all();
  }
};

TokenKey::TokenKey(TokenUri uri, SecretBytes pin)
    : shared_(std::make_shared<Shared>(std::move(uri), std::move(pin))) {}

TokenKey::~TokenKey() {
  std::deque<Work> never_run;
  const std::lock_guard lock(shared_->mutex);
  shared_->closed = true;
  never_run.swap(shared_->waiting);
  shared_->asked.notify_all();
}

void TokenKey::belongs_to(EVP_PKEY* public_key) {
  EVP_PKEY_up_ref(public_key);
  shared_->public_key.reset(public_key);
}

void TokenKey::begin() {
  (void)run([](EVP_PKEY*, const std::string&) {});
}

bool TokenKey::run(Work work) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->waiting.size() >= kMostWaiting) return false;
  shared_->waiting.push_back(std::move(work));
  shared_->asked.notify_one();
  if (std::exchange(shared_->has_thread, true)) return true;
  {
    const std::lock_guard one_more(threads().mutex);
    ++threads().count;
  }
  try {
    std::thread(Shared::work, shared_)
        .detach();  // a call to a token cannot be interrupted, so the thread is not joined
    return true;
  } catch (const std::system_error&) {  // the host allows no more threads
    const std::lock_guard one_less(threads().mutex);
    --threads().count;
    shared_->waiting.clear();
    return shared_->has_thread = false;
  }
}

std::string TokenKey::try_out() {
  auto promise = std::make_shared<std::promise<std::string>>();
  auto said = promise->get_future();
  (void)run([promise](EVP_PKEY*, const std::string& failure) { promise->set_value(failure); });
  return said.wait_for(kTryOut) == std::future_status::ready ? said.get() : "the token does not answer";
}

bool wait_for_token_threads(std::chrono::milliseconds limit) {
  std::unique_lock lock(threads().mutex);
  return threads().ended.wait_for(lock, limit, [] { return threads().count == 0; });
}

}  // namespace longhaul::identity
