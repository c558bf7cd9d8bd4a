// Runs the program as a user does.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "support/checkpoint.h"
#include "support/device.h"
#include "support/golden.h"

namespace tandem::test {

const std::string atlas_folder = std::string(TANDEM_SOURCE_DIR) + "/models/atlas";

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

// Runs `tandem ARGUMENTS` in a shell.
inline Outcome tandem(const std::string& arguments) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "out").string(), err = (folder.path() / "err").string();
  const std::string command =
      std::string("'") + TANDEM_PROGRAM + "' >'" + out + "' 2>'" + err + "' " + arguments;
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(out), read_text(err)};
}

// The arguments of a command that runs the atlas on the test adapter.
inline std::string on_gpu(const std::string& command, const std::string& rest) {
  return command + " '" + atlas_folder + "' --adapter '" + adapter_name() +
         "' --context 128 --input-bound 32 " + rest;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tandem::test
