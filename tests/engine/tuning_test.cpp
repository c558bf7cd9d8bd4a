// What is kept of an adapter's measurements: read back as written, by that adapter alone, and
// ignored where it is anything else.
#include "engine/tuning.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/json.h"
#include "engine/engines.h"
#include "engine/tuning_file.h"
#include "support/checkpoint.h"
#include "support/device.h"
#include "support/refusal.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using engine::read_tuning;
using engine::tuning_file;
using engine::write_tuning;

const gpu::AdapterInfo adapter{.name = "GPU 7",
                               .driver = "7.1",
                               .backend = "Vulkan",
                               .library = "libwebgpu.so",
                               .timestamps = true};

const ops::TunedProducts tuned = {
    {"q4_0 2560x1536 none lanes",
     {{{.lanes = 128, .workgroup = 128, .ahead = 2}, {4.25, 5.5}},
      {{.lanes = 16, .workgroup = 64, .ahead = 1, .units = true}, {3.75, 5}}}},
    {"f32 64x32 softcap columns", {{{.lanes = 4}, {1, 2}}, {{.lanes = 4}, {1, 2}}}}};

bool same(const ops::TimedTiling& a, const ops::TimedTiling& b) {
  return a.tiling == b.tiling && a.time.one == b.time.one && a.time.few == b.time.few;
}

class TuningFile : public ::testing::Test {
 protected:
  fs::path folder() const { return folder_.path() / "cache" / "tuning"; }
  fs::path file() const { return tuning_file(folder(), adapter); }
  void write() const { ASSERT_TRUE(accepted(write_tuning(file(), adapter, tuned))); }
  // Writes the file with a change.
  void write_changed(const std::function<void(Json&)>& change) const {
    write();
    Json json = Json::parse(read_file(file()));
    change(json);
    std::ofstream(file()) << json.dump();
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(TuningFile, IsReadBackAsItWasWritten) {
  write();
  const auto read = read_tuning(file(), adapter);
  ASSERT_TRUE(accepted(read));
  ASSERT_EQ(read->size(), tuned.size());
  for (const auto& [shape, product] : tuned) {
    const auto found = read->find(shape);
    ASSERT_NE(found, read->end()) << shape;
    EXPECT_TRUE(same(found->second.rules, product.rules)) << shape;
    EXPECT_TRUE(same(found->second.chosen, product.chosen)) << shape;
  }
}

TEST_F(TuningFile, IsReplacedAndLeavesNothingElse) {
  write();
  ASSERT_TRUE(accepted(write_tuning(file(), adapter, {})));
  EXPECT_TRUE(read_tuning(file(), adapter)->empty());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder()), fs::directory_iterator()), 1);
}

TEST_F(TuningFile, IsAnotherOneForAnotherAdapterDriverLibraryOrTier) {
  const std::function<void(gpu::AdapterInfo&)> changes[] = {
      [](auto& info) { info.name = "GPU 8"; }, [](auto& info) { info.driver = "7.2"; },
      [](auto& info) { info.backend = "D3D12"; }, [](auto& info) { info.library = "other.so"; },
      [](auto& info) { info.tiers.dp4a = true; }};
  write();
  for (const auto& change : changes) {
    gpu::AdapterInfo other = adapter;
    change(other);
    EXPECT_NE(tuning_file(folder(), other), file());
    // Where somebody gave it that name.
    EXPECT_TRUE(refused(read_tuning(file(), other), ErrorCode::bad_value, {"measured_on"}));
  }
}

TEST_F(TuningFile, OfOtherKernelsIsRefused) {
  write_changed([](Json& json) { json["measured_on"]["kernel_closure"] = std::string(64, '0'); });
  EXPECT_TRUE(refused(read_tuning(file(), adapter), ErrorCode::bad_value, {"measured_on"}));
}

TEST_F(TuningFile, WhatIsNoTuningIsRefused) {
  EXPECT_TRUE(refused(read_tuning(file(), adapter), ErrorCode::not_found));
  const auto chosen = [](Json& json) -> Json& {
    return json["products"]["f32 64x32 softcap columns"]["chosen"];
  };
  struct Case {
    std::function<void(Json&)> change;
    ErrorCode code;
    std::string_view word;
  };
  const Case cases[] = {
      {[](Json& json) { json["schema"] = "tandem.receipt"; }, ErrorCode::bad_value, "schema"},
      {[](Json& json) { json["version"] = 2; }, ErrorCode::bad_value, "tandem.tuning 1"},
      {[](Json& json) { json.erase("measured_on"); }, ErrorCode::missing_key, "measured_on"},
      {[](Json& json) { json["more"] = 1; }, ErrorCode::unknown_key, "more"},
      {[](Json& json) { json["products"] = Json::array(); }, ErrorCode::wrong_type, "products"},
      {[&](Json& json) { chosen(json)["lanes"] = 3; }, ErrorCode::bad_value, "3 lanes"},
      {[&](Json& json) { chosen(json)["lanes"] = 0; }, ErrorCode::bad_value, "0 lanes"},
      {[&](Json& json) { chosen(json)["lanes"] = 128; }, ErrorCode::bad_value, "128 lanes"},
      {[&](Json& json) { chosen(json)["workgroup"] = 512; }, ErrorCode::bad_value, "of 512"},
      {[&](Json& json) { chosen(json)["ahead"] = 5; }, ErrorCode::bad_value, "5 ahead"},
      {[&](Json& json) { chosen(json)["ahead"] = -1; }, ErrorCode::wrong_type, "ahead"},
      {[&](Json& json) { chosen(json)["units"] = 1; }, ErrorCode::wrong_type, "units"},
      {[&](Json& json) { chosen(json).erase("one_us"); }, ErrorCode::missing_key, "one_us"},
      {[&](Json& json) { chosen(json)["tile"] = 1; }, ErrorCode::unknown_key, "tile"}};
  for (const Case& c : cases) {
    write_changed(c.change);
    EXPECT_TRUE(refused(read_tuning(file(), adapter), c.code, {c.word, file().string()}));
  }
  write();
  std::string text = read_file(file());
  text.resize(text.size() / 2);
  std::ofstream(file()) << text;
  EXPECT_TRUE(refused(read_tuning(file(), adapter), ErrorCode::malformed_json, {file().string()}));
}

TEST_F(TuningFile, AFolderThatCannotBeMadeIsAnError) {
  fs::create_directories(folder().parent_path());
  std::ofstream(folder()) << "a file";
  EXPECT_TRUE(refused(write_tuning(file(), adapter, tuned), ErrorCode::io, {folder().string()}));
}

TEST(Tuning, SoftwareAdaptersAndThoseWithoutTimestampsAreNotTuned) {
  EXPECT_TRUE(accepted(engine::check_tunable(adapter)));
  gpu::AdapterInfo software = adapter, timeless = adapter;
  software.software = true;
  timeless.timestamps = false;
  EXPECT_TRUE(refused(engine::check_tunable(software), ErrorCode::unsupported, {"software"}));
  EXPECT_TRUE(refused(engine::check_tunable(timeless), ErrorCode::unsupported, {"timestamps"}));
}

// The atlas on the test device, with a folder that has what `write` puts into the file.
struct Opened {
  TemporaryFolder folder;
  std::vector<std::string> notes;
  engine::OpenedModel model;
  ops::TunedProducts taken;

  explicit Opened(const std::function<void(const fs::path&, const gpu::AdapterInfo&)>& put) {
    EngineOptions options = small_gpu();
    options.tuning_folder = folder.path().string();
    options.on_note = [this](std::string_view line) { notes.emplace_back(line); };
    const auto source = expect_value(engine::open_artifact(atlas_folder, options));
    model = expect_value(engine::open_model(source.artifact, options));
    const gpu::AdapterInfo& info = model.device->info();
    put(tuning_file(options.tuning_folder, info), info);
    taken = engine::take_tuning(model, options);
    EXPECT_TRUE(accepted(model.model->new_sequence()));
  }
};

TEST(Tuning, WhatIsKeptIsTaken) {
  const Opened opened([](const fs::path& file, const gpu::AdapterInfo& info) {
    const ops::TimedTiling cut{{.lanes = 2, .workgroup = 128, .ahead = 1}, {1, 2}};
    const ops::TunedProducts kept = {{"q4_0 8192x256 none lanes", {cut, cut}},
                                     {"q4_0 8192x256 softcap lanes", {cut, cut}},
                                     {"q4_0 1x32 none columns", {cut, cut}}};
    expect_success(write_tuning(file, info, kept));
  });
  EXPECT_EQ(opened.taken.size(), 3u);
  EXPECT_EQ(opened.model.target->shapes_tuned(), 1u) << "the head's, of one of these";
  EXPECT_TRUE(opened.notes.empty());
}

TEST(Tuning, AFileThatIsNotUsableIsNoted) {
  const Opened opened(
      [](const fs::path& file, const gpu::AdapterInfo&) { std::ofstream(file) << "{"; });
  EXPECT_TRUE(opened.taken.empty());
  EXPECT_EQ(opened.model.target->shapes_tuned(), 0u);
  ASSERT_EQ(opened.notes.size(), 1u);
  EXPECT_NE(opened.notes[0].find(".json"), std::string::npos) << opened.notes[0];
  EXPECT_NE(opened.notes[0].find("ignored"), std::string::npos) << opened.notes[0];
}

TEST(Tuning, WithoutAFileNothingIsNoted) {
  const Opened opened([](const fs::path&, const gpu::AdapterInfo&) {});
  EXPECT_TRUE(opened.taken.empty());
  EXPECT_TRUE(opened.notes.empty());
}

TEST(Tuning, ASoftwareAdapterWritesNothing) {
  const TemporaryFolder folder;
  EngineOptions options = small_gpu();
  options.adapter = "software";
  options.tuning_folder = (folder.path() / "tuning").string();
  std::vector<std::string> notes;
  options.on_note = [&](std::string_view line) { notes.emplace_back(line); };
  const auto opened = Engine::open(atlas_folder, options);
  ASSERT_TRUE(accepted(opened));
  EXPECT_EQ(opened->info().tuned_shapes, 0u);
  EXPECT_TRUE(notes.empty());
  EXPECT_FALSE(fs::exists(options.tuning_folder));
}

}  // namespace
}  // namespace tandem::test
