#include "engine/engines.h"

#include "support/device.h"
#include "support/golden.h"

namespace tandem::test {

const std::string atlas_folder = std::string(TANDEM_SOURCE_DIR) + "/models/atlas";

EngineOptions small_gpu() {
  return {.adapter = adapter_name(), .context = 256, .input_bound = 64, .drafts = 0};
}

Engine& gpu_engine() {
  static Engine engine = expect_value(Engine::open(atlas_folder, small_gpu()));
  return engine;
}

Engine& cpu_engine() {
  static Engine engine =
      expect_value(Engine::open(atlas_folder, {.place = Place::cpu, .context = 256, .drafts = 0}));
  return engine;
}

Engine& mtp_engine(Place place) {
  const auto open = [](EngineOptions options) {
    options.drafts = 2;
    return expect_value(Engine::open(atlas_folder, options));
  };
  if (place == Place::cpu) {
    static Engine on_cpu = open({.place = Place::cpu, .context = 256});
    return on_cpu;
  }
  static Engine on_gpu = open(small_gpu());
  return on_gpu;
}

std::vector<uint32_t> question(const Engine& engine, const std::string& text) {
  const Message message{"user", text};
  return expect_value(engine.encode_chat({&message, 1}));
}

std::vector<uint32_t> capital_of_france() {
  return question(gpu_engine(), "What is the capital of France?");
}

Result<Generation> generate(Engine& engine, std::span<const uint32_t> prompt,
                            const GenerateOptions& options, const TextSink& sink) {
  auto session = engine.session();
  if (!session) return tl::unexpected<Error>(session.error());
  return session->generate(prompt, options, sink);
}

}  // namespace tandem::test
