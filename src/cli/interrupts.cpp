// Handlers that only note the signal.
#include "cli/interrupts.h"

namespace tandem::cli {
namespace {

std::atomic<int> last_signal = 0;

void note(int signal) {
  last_signal = signal;
  interrupted = true;
}

}  // namespace

CancelFlag interrupted = false;

int interrupting_signal() { return last_signal; }

Interrupts::Interrupts(std::initializer_list<int> signals) {
  struct sigaction action = {}, before = {};
  action.sa_handler = note;
  for (const int signal : signals) {
    if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    if (sigaction(signal, &action, nullptr) == 0) before_.emplace_back(signal, before);
  }
}

Interrupts::~Interrupts() {
  for (const auto& [signal, before] : before_) sigaction(signal, &before, nullptr);
}

}  // namespace tandem::cli
