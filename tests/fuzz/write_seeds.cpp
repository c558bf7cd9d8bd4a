// Writes the fuzzers' seeds anew, after a format has changed:
//
//   write_fuzz_seeds tests/fuzz/seeds
//
// They are parts of tiny checkpoints and of the artifact that is made of them, and the same cut
// short.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "artifact/manifest.h"
#include "exporter/export.h"
#include "support/checkpoint.h"
#include "support/gguf.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Seeds {
 public:
  explicit Seeds(fs::path folder) : folder_(std::move(folder)) {}

  void add(std::string_view target, std::string_view name, std::string_view bytes) const {
    const fs::path folder = folder_ / target;
    fs::create_directories(folder);
    write(folder / ("accepted_" + std::string(name)), bytes);
    write(folder / ("refused_" + std::string(name)), bytes.substr(0, bytes.size() * 2 / 3));
  }

 private:
  static void write(const fs::path& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  fs::path folder_;
};

bool write_seeds(const Seeds& seeds) {
  const TinyShape shape{.layers = 2, .kv_shared = 0, .vocabulary = 400};
  const std::string config = tiny_config(shape), assistant = tiny_assistant_config(shape);
  const TemporaryFolder temporary;
  const fs::path target = temporary.path() / "target", drafter = temporary.path() / "assistant",
                 out = temporary.path() / "artifact";
  const std::vector<CheckpointTensor> tensors = random_tensors(config);
  write_checkpoint(target, config, tensors);
  write_checkpoint(drafter, assistant, random_assistant_tensors(assistant));
  const auto exported = exporter::export_checkpoint(target, out, {.assistant = drafter});
  if (!exported) {
    std::fprintf(stderr, "%s\n", exported.error().message.c_str());
    return false;
  }

  seeds.add("config", "gemma4.json", config);
  seeds.add("assistant_config", "ordered.json", assistant);
  seeds.add("generation_config", "greedy.json", read_file(target / "generation_config.json"));
  seeds.add("tokenizer", "letters.json", read_file(target / "tokenizer.json"));
  seeds.add("manifest", "pair.json", read_file(out / artifact::manifest_file));
  seeds.add("receipt", "pair.json", read_file(out / artifact::receipt_file));
  const std::vector<CheckpointTensor> few(tensors.end() - 3, tensors.end());
  write_safetensors(temporary.path() / "few", few);
  seeds.add("safetensors", "few", read_file(temporary.path() / "few"));
  GgufContent gguf = gguf_checkpoint(config, read_file(target / "tokenizer.json"), "{{ x }}", few);
  seeds.add("gguf", "few", write_gguf(gguf));
  const std::string tokenizer = read_file(target / "tokenizer.json");
  const auto add_source = [&](std::string_view name, const std::string& json,
                              const std::vector<CheckpointTensor>& weights) {
    seeds.add("gguf_source", name,
              write_gguf(gguf_checkpoint(json, tokenizer, "{{ x }}", in_blocks(weights, "Q4_0"))));
  };
  add_source("gemma4", config, tensors);
  add_source("assistant", assistant, random_assistant_tensors(assistant));
  const std::string gemma3 = tiny_gemma3_config();
  add_source("gemma3", gemma3, random_tensors(gemma3));
  seeds.add("sources", "built_in.json",
            read_file(fs::path(TANDEM_SOURCE_DIR) / "models/sources.json"));
  return true;
}

}  // namespace
}  // namespace tandem::test

int main(int count, char** arguments) {
  return count == 2 && tandem::test::write_seeds(tandem::test::Seeds(arguments[1])) ? 0 : 1;
}
