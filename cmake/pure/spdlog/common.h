// SPDX-License-Identifier: Apache-2.0
// Stands before the real header in libraries without input and output (cmake/layers.cmake).
#error "this library does not log: return what happened, and let the code that uses it log"
