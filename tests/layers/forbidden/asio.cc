// SPDX-License-Identifier: Apache-2.0
#include <boost/asio.hpp>

int main() { boost::asio::io_context io; }
