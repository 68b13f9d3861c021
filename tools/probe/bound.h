// SPDX-License-Identifier: Apache-2.0
// A time after which a socket or acceptor is closed, so that nothing that waits on it waits for ever.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <memory>

namespace longhaul::probe {

template <class Socket>
class Bound {
 public:
  Bound(Socket& socket, std::chrono::steady_clock::duration most)
      : socket_(socket), timer_(socket.get_executor()), state_(std::make_shared<State>()) {
    renew(most);
  }
  ~Bound() { state_->gone = true; }  // a handler that already waits to run must not touch the socket any more
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  void renew(std::chrono::steady_clock::duration most) {
    timer_.expires_after(most);
    timer_.async_wait([this, state = state_, turn = ++state_->turn](const boost::system::error_code& error) {
      if (error || state->gone || state->turn != turn) return;
      state->over = true;
      boost::system::error_code ignored;
      socket_.close(ignored);
    });
  }
  bool over() const { return state_->over; }

 private:
  struct State {
    unsigned turn = 0;
    bool over = false;
    bool gone = false;
  };
  Socket& socket_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<State> state_;
};

}  // namespace longhaul::probe
