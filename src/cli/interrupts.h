// Signals that ask for an end, as a flag that is looked at between pieces of work.
#pragma once

#include <csignal>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/cancel.h"

namespace tandem::cli {

// Set by a signal while an Interrupts lives; who has seen it may clear it.
extern CancelFlag interrupted;

// The signal that has set it last; 0: none yet.
int interrupting_signal();

// While it lives, these signals set `interrupted` instead of ending the program, and reads of the
// terminal end with them. One that was ignored before, as under nohup, stays so.
class Interrupts {
 public:
  explicit Interrupts(std::initializer_list<int> signals);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

// What ends a program from outside: the terminal's Ctrl-C, its end, and kill.
inline constexpr std::initializer_list<int> ending_signals = {SIGINT, SIGTERM, SIGHUP};

}  // namespace tandem::cli
