// SPDX-License-Identifier: Apache-2.0
// Stands before the real header in libraries without input and output (cmake/layers.cmake).
#error "this library does no input or output: pass bytes and time in; of Asio only <boost/asio/ip/address.hpp> may be used"
