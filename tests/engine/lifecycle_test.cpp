// Opening is all or nothing at every stage, engines come and go in one process, and a lost one is
// no obstacle to the next.

#include <gtest/gtest.h>

#include <filesystem>

#include "engine/open_model.h"
#include "exporter/export.h"
#include "support/checkpoint.h"
#include "support/device.h"
#include "support/memory.h"
#include "support/refusal.h"
#include "tandem/engine.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

const std::string atlas_folder = std::string(TANDEM_SOURCE_DIR) + "/models/atlas";

EngineOptions small() { return {.adapter = adapter_name(), .context = 64, .input_bound = 16}; }

// Delivers weights to a model, and loses its device before the write of this number.
class LosingSink : public artifact::WeightSink {
 public:
  LosingSink(engine::OpenedModel& opened, uint32_t lose_at) : opened_(opened), left_(lose_at) {}
  Result<void> write(std::string_view plane, uint64_t offset,
                     std::span<const std::byte> bytes) override {
    if (left_-- == 0) opened_.device->lose();
    return opened_.model->write(plane, offset, bytes);
  }

 private:
  engine::OpenedModel& opened_;
  uint32_t left_;
};
constexpr uint32_t never = UINT32_MAX;

// A copy of the atlas with the last byte of its last shard changed.
void write_damaged_atlas(const fs::path& folder) {
  fs::copy(atlas_folder, folder);
  const fs::path shard = folder / "shard-00000.safetensors";
  std::string bytes = read_file(shard);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file(shard, bytes);
}

TEST(EngineLifecycle, AFaultAtAnyStageLeavesNoBuffer) {
  const TemporaryFolder folder;
  write_damaged_atlas(folder.path() / "damaged");
  struct Case {
    std::string stage, artifact;
    uint32_t lose_at;
    ErrorCode code;
  };
  for (const Case& c : std::vector<Case>{
           {"lost before the first write", atlas_folder, 0, ErrorCode::device_lost},
           {"lost between writes", atlas_folder, 100, ErrorCode::device_lost},
           {"a damaged last piece", folder.path() / "damaged", never, ErrorCode::hash_mismatch}}) {
    const auto artifact = artifact::Artifact::open(c.artifact);
    ASSERT_TRUE(accepted(artifact)) << c.stage;
    auto opened = engine::open_model(*artifact, small());
    ASSERT_TRUE(accepted(opened)) << c.stage;
    EXPECT_GT(opened->device->census().buffers, 0u);
    LosingSink sink(*opened, c.lose_at);
    EXPECT_TRUE(refused(artifact::load(*artifact, sink, {}), c.code)) << c.stage;
    opened->model.reset();
    EXPECT_EQ(opened->device->census().buffers, 0u) << c.stage;
    EXPECT_EQ(opened->device->census().buffer_bytes, 0u) << c.stage;
  }
}

TEST(EngineLifecycle, ALossBeforeTheFirstSequenceLeavesNoBuffer) {
  const auto artifact = artifact::Artifact::open(atlas_folder);
  ASSERT_TRUE(accepted(artifact));
  auto opened = engine::open_model(*artifact, small());
  ASSERT_TRUE(accepted(opened));
  LosingSink sink(*opened, never);
  ASSERT_TRUE(accepted(artifact::load(*artifact, sink, {})));
  opened->device->lose();
  EXPECT_TRUE(refused(opened->model->sequence(), ErrorCode::device_lost));
  opened->model.reset();
  EXPECT_EQ(opened->device->census().buffers, 0u);
}

// Opens, generates and closes; the memory of the process may not grow much after the tenth.
void open_and_close(int cycles) {
  uint64_t gpu_bytes = 0, resident = 0;
  std::vector<uint32_t> expected;
  for (int cycle = 0; cycle < cycles; ++cycle) {
    auto engine = Engine::open(atlas_folder, small());
    ASSERT_TRUE(accepted(engine)) << cycle;
    auto session = engine->session();
    ASSERT_TRUE(accepted(session)) << cycle;
    const std::vector<uint32_t> prompt = {2, 4, 589, 262};
    const auto generation = session->generate(prompt, {.max_tokens = 3, .ignore_eos = true});
    ASSERT_TRUE(accepted(generation)) << cycle;
    if (cycle == 0) {
      gpu_bytes = engine->info().gpu_bytes;
      expected = generation->ids;
    }
    EXPECT_EQ(engine->info().gpu_bytes, gpu_bytes) << cycle;
    EXPECT_EQ(generation->ids, expected) << cycle;
    if (cycle == 10) resident = resident_bytes();
  }
  if (cycles > 10) {
    EXPECT_LT(resident_bytes(), resident + (32u << 20));
  }
}

TEST(EngineLifecycle, EnginesComeAndGo) { open_and_close(2); }

TEST(EngineLifecycleLong, FiftyEnginesComeAndGo) { open_and_close(50); }

// A checkpoint of a tiny model with so many stop ids in its generation config.
std::string tiny_with_stops(const fs::path& folder, uint32_t count) {
  write_checkpoint(folder / "checkpoint", tiny_config({.layers = 2, .kv_shared = 0}));
  std::string ids;
  for (uint32_t i = 0; i < count; ++i) ids += (i > 0 ? ", " : "") + std::to_string(300 + i);
  write_file(folder / "checkpoint" / "generation_config.json", "{\"eos_token_id\": [" + ids + "]}");
  return folder / "checkpoint";
}

TEST(EngineOnCpu, MoreStopIdsThanASequenceTakesAreNotExported) {
  const TemporaryFolder most, more;
  const fs::path artifact = most.path() / "artifact";
  ASSERT_TRUE(
      accepted(exporter::export_checkpoint(tiny_with_stops(most.path(), 63), artifact, {})));
  EXPECT_TRUE(accepted(Engine::open(artifact, {.place = Place::cpu, .context = 16})));
  EXPECT_TRUE(refused(
      exporter::export_checkpoint(tiny_with_stops(more.path(), 64), more.path() / "artifact", {}),
      ErrorCode::unsupported, {"generation_config.json", "eos_token_id", "63", "64"}));
}

}  // namespace
}  // namespace tandem::test
