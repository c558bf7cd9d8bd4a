// Every command of README.md, docs/reproduce.md and docs/artifact.md runs as it stands there, on
// what the test puts in the place of its capitals, and the targets of `make` that they name are
// there.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <vector>

#include "program.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

const fs::path source = TANDEM_SOURCE_DIR;

// The lines of a page's console blocks that begin with "$ ", without it and without comments.
std::vector<std::string> commands_of(const fs::path& page) {
  std::vector<std::string> commands;
  std::ifstream file(page);
  bool in_block = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) in_block = line == "```console";
    if (!in_block || !line.starts_with("$ ")) continue;
    const size_t comment = line.find("  #");
    commands.push_back(line.substr(2, comment == std::string::npos ? comment : comment - 2));
  }
  return commands;
}

std::string replace(std::string text, const std::string& word, const std::string& with) {
  return std::regex_replace(text, std::regex("\\b" + word + "\\b"), with);
}

class Readme : public ::testing::Test {
 protected:
  void SetUp() override {
    write_checkpoint(here() / "tiny", tiny_config());
    const std::string assistant = tiny_assistant_config();
    write_checkpoint(here() / "tiny-assistant", assistant, random_assistant_tensors(assistant));
    std::ofstream(here() / "text.txt") << "The capital of France is Paris.\n";
    fs::create_directory_symlink(source / "models", here() / "models");
    fs::create_symlink(TANDEM_PROGRAM, here() / "tandem");
  }

  fs::path here() const { return folder_.path(); }

  // What a reader would have put there; outputs get new names.
  std::string fill_in(std::string command) {
    const bool attached = command.find("ATTACHED") != std::string::npos;
    if (const size_t out = command.find("-o ARTIFACT"); out != std::string::npos)
      command.replace(out, 11, "-o made-" + std::to_string(++made_));
    std::map<std::string, std::string> words = {
        // An assistant is attached to the first artifact, which has none.
        {"ARTIFACT", attached ? "made-1" : "models/atlas"},
        {"ATTACHED", "attached"},
        {"CHECKPOINT", "tiny"},
        {"FOLDER", "tiny-assistant"},
        {"TEXT", "text.txt"},
        {"FILE", "file-" + std::to_string(++files_) + ".json"},
        {"H200", "'" + adapter_name() + "'"},
        {"e2b", "atlas"},
        // Of random weights nothing is pinned, and no chat template is known.
        {" --require-verified --chat", " -p"},
    };
    for (const auto& [word, with] : words) command = replace(command, word, with);
    return command + more_.at(command.substr(0, command.find(' ', 7)));
  }

 private:
  TemporaryFolder folder_;
  int made_ = 0;
  int files_ = 0;
  // What keeps a command short, and off adapters that the tests are not meant for.
  const std::string gpu_ = " --adapter '" + adapter_name() + "' --context 128 --input-bound 32";
  const std::string small_ = gpu_ + " --drafts 0 -n 2";
  const std::map<std::string, std::string> more_ = {
      {"tandem generate", " --device cpu"},
      {"tandem chat", " --device cpu </dev/null"},
      {"tandem logits", " --device cpu"},
      {"tandem score", " --device cpu"},
      {"tandem bench", small_ + " --depths 8 --prefill 8 --repeat 1"},
      {"tandem profile", small_ + " --prompt-tokens 8"},
      {"tandem export", ""},
      {"tandem verify", ""},
      {"tandem inspect", ""},
      {"tandem devices", ""},
      {"tandem synthesize", ""},
      {"tandem tokenize", ""},
  };
};

TEST_F(Readme, CommandsRun) {
  int programs = 0;
  for (const char* page : {"README.md", "docs/reproduce.md", "docs/artifact.md"}) {
    for (const std::string& command : commands_of(source / page)) {
      SCOPED_TRACE(std::string(page) + ": " + command);
      std::string line = command;
      if (command.starts_with("make ")) {
        line = "make --dry-run -C '" + source.string() + "' " + command.substr(5) + " >/dev/null";
      } else if (command.starts_with("tandem ")) {
        line = fill_in(command);
        ++programs;
      }
      const std::string log = (here() / "log").string();
      const std::string in_folder = "cd '" + here().string() + "' && PATH=\"$PWD:$PATH\" && { " +
                                    line + "; } >>'" + log + "' 2>&1";
      EXPECT_EQ(std::system(in_folder.c_str()), 0) << line << "\n" << read_text(log);
    }
  }
  EXPECT_GT(programs, 15);
}

}  // namespace
}  // namespace tandem::test
