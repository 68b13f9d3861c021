// SPDX-License-Identifier: Apache-2.0
// The loads by name. Each prints its findings as lines of JSON; who interprets them is the benchmark.
#pragma once
#include "words.h"

namespace bench {

// Servers: print {"ports": [...]} when they listen, and run until they are killed.
void sink(const Words& words);    // takes streams of `source`, answers with what it got and when
void echo(const Words& words);    // ports=N: sends back every byte
void stall(const Words& words);   // accepts and never reads; sends=1: sends without end instead
void blocks(const Words& words);  // answers what lock_step asks for

// Clients: end by themselves.
void source(const Words& words);     // to= port= size= seconds= flows=: streams of bytes that do not compress
void connects(const Words& words);   // to= ports= from= seconds= at_once=: connect, one byte each way, close
void exchanges(const Words& words);  // to= port= seconds= size=: so many bytes each way over one connection,
                                     // again and again
void lock_step(const Words& words);  // to= port= size= count= warm=: random bytes, block after block
void hold(const Words& words);       // to= ports= flows= exchange= fill=: held until the standard input ends

}  // namespace bench
