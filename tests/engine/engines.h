// Engines of the atlas for the engine tests, opened once, and what is asked of them.
#pragma once

#include <string>
#include <vector>

#include "tandem/engine.h"

namespace tandem::test {

extern const std::string atlas_folder;

EngineOptions small_gpu();  // a context of 256, chunks of 64, no assistant
Engine& gpu_engine();
Engine& cpu_engine();
Engine& mtp_engine(Place place);  // as these, with two drafts a round

std::vector<uint32_t> question(const Engine& engine, const std::string& text);
std::vector<uint32_t> capital_of_france();

// In a session of its own.
Result<Generation> generate(Engine& engine, std::span<const uint32_t> prompt,
                            const GenerateOptions& options = {}, const TextSink& sink = {});

}  // namespace tandem::test
