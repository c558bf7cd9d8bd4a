// Generates tokens with a WebGPU that computes nothing, for counting the instructions of the
// host's part:  host_path ARTIFACT TOKENS plain|mtp
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "host_path/webgpu_stub.h"
#include "tandem/engine.h"

namespace {

using namespace tandem;

Result<Generation> generate(const std::string& artifact, uint32_t tokens, Mtp mtp) {
  auto engine = Engine::open(artifact, {.context = 512});
  if (!engine) return tl::unexpected(engine.error());
  auto session = engine->session();
  if (!session) return tl::unexpected(session.error());
  test::stub_rounds(tokens);
  const std::vector<uint32_t> prompt{2, 10, 11, 12, 13, 14, 15, 16};
  return session->generate(prompt, {.max_tokens = tokens,
                                    .ignore_eos = true,
                                    .sampling = SampleOptions{.temperature = 0},
                                    .mtp = mtp});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto tokens = static_cast<uint32_t>(std::atoi(argv[2]));
  const bool mtp = std::string(argv[3]) == "mtp";
  const auto generation = generate(argv[1], tokens, mtp ? Mtp::on : Mtp::off);
  if (!generation) {
    fmt::print(stderr, "{}\n", generation.error().message);
    return 1;
  }
  fmt::print("{} tokens\n", generation->ids.size());
  return generation->ids.size() == tokens ? 0 : 1;
}
