// Whole exports of synthetic checkpoints, and of the atlas back from its own artifact.
#include "exporter/export.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "artifact/verify.h"
#include "base/json.h"
#include "exporter/artifact_weights.h"
#include "support/checkpoint.h"
#include "support/compare.h"
#include "support/refusal.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using exporter::export_checkpoint;
using exporter::ExportOptions;
using exporter::ExportReport;
using spec::WeightType;

const TinyShape two_layers{.layers = 2, .kv_shared = 0};

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename().string()] = read_file(entry.path());
  }
  return files;
}

CheckpointTensor& find(std::vector<CheckpointTensor>& tensors, std::string_view name) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
  if (found == tensors.end()) ADD_FAILURE() << "no tensor " << name;
  return *found;
}

std::vector<float> values(const CheckpointTensor& tensor) {
  std::vector<float> result(tensor.bytes.size() / exporter::value_bytes(tensor.dtype));
  exporter::widen(tensor.dtype, tensor.bytes.data(), result);
  return result;
}

void set_value(CheckpointTensor& bf16, size_t index, float value) {
  const uint16_t bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  std::memcpy(&bf16.bytes[index * 2], &bits, 2);
}

struct ExportTest : ::testing::Test {
  // Exports a folder "in" that holds these tensors to the folder "out".
  Result<ExportReport> run(const TinyShape& shape, const std::vector<CheckpointTensor>& tensors,
                           const ExportOptions& options = {}, uint32_t shards = 1) {
    fs::remove_all(in());
    fs::remove_all(out());
    write_checkpoint(in(), tiny_config(shape), tensors, shards);
    return export_checkpoint(in(), out(), options);
  }
  Result<ExportReport> run(const TinyShape& shape, const ExportOptions& options = {}) {
    return run(shape, random_tensors(tiny_config(shape)), options);
  }
  // The manifest, but for the digest of what it was made from.
  Json manifest_but_origin() const {
    Json manifest = Json::parse(read_file(out() / "manifest.json"));
    manifest.erase("origin_sha256");
    return manifest;
  }
  fs::path in() const { return folder.path() / "in"; }
  fs::path out() const { return folder.path() / "out"; }

  TemporaryFolder folder;
};

TEST_F(ExportTest, EveryTensorArrivesWhereTheRegistrySays) {
  ExportOptions options;
  options.weights.recipe.matrix = options.weights.recipe.table = WeightType::f32;
  for (const char* dtype : {"BF16", "F16", "F32"}) {
    const TinyShape shape;
    auto tensors = random_tensors(tiny_config(shape), {.dtype = dtype});
    ASSERT_TRUE(accepted(run(shape, tensors, options)));
    const Weights weights = read_weights(out());
    const auto opened = artifact::Artifact::open(out());
    ASSERT_TRUE(accepted(opened));
    for (const spec::Tensor& row : spec::tensors(opened->config())) {
      std::vector<std::vector<float>> sources;
      for (const spec::Source& source : row.sources)
        sources.push_back(values(find(tensors, "model." + source.name)));
      std::vector<size_t> next(sources.size());
      for (uint32_t r = 0; r < row.rows; ++r) {
        size_t source = row.join == spec::Join::interleave ? r % sources.size() : 0;
        while (next[source] == sources[source].size()) ++source;
        const std::span expected = std::span(sources[source]).subspan(next[source], row.columns);
        next[source] += row.columns;
        ASSERT_TRUE(same_bits(weights.at(row.name)[r], expected))
            << dtype << " " << row.name << " row " << r;
      }
    }
  }
}

// Gemma 3's norms multiply by 1 + w; the artifact has the sum, and all else as it is.
TEST_F(ExportTest, NormsOfGemma3AreFoldedWithTheirOffset) {
  const auto tensors = random_tensors(tiny_gemma3_config(), {.dtype = "F32"});
  write_checkpoint(in(), tiny_gemma3_config(), tensors);
  ExportOptions options;
  options.weights.recipe.matrix = options.weights.recipe.table = WeightType::f32;
  ASSERT_TRUE(accepted(export_checkpoint(in(), out(), options)));
  const Weights weights = read_weights(out());
  const auto config = spec::read_config(tiny_gemma3_config(), "config.json");
  ASSERT_TRUE(accepted(config));
  uint32_t norms = 0;
  for (const spec::Tensor& row : spec::tensors(*config)) {
    if (row.sources.size() != 1) continue;
    auto source = std::find_if(tensors.begin(), tensors.end(), [&](const CheckpointTensor& t) {
      return t.name == "model." + row.sources[0].name;
    });
    ASSERT_NE(source, tensors.end()) << row.name;
    std::vector<float> wanted = values(*source);
    if (row.tensor_class == spec::TensorClass::vector) {
      ++norms;
      for (float& value : wanted) value = 1.0f + value;
    }
    wanted.resize(row.columns);  // the first row
    EXPECT_EQ(weights.at(row.name)[0], wanted) << row.name;
  }
  EXPECT_EQ(norms, 1 + 7 * 6u);
}

TEST_F(ExportTest, DefaultRecipe) {
  const auto report = run(two_layers);
  ASSERT_TRUE(accepted(report));
  EXPECT_EQ(report->recipe.matrix, WeightType::q4_0);
  EXPECT_EQ(report->recipe.table, WeightType::q8_0);  // random weights lie on no grid
  EXPECT_TRUE(report->recipe.overrides.empty());
  for (const exporter::TensorReport& tensor : report->tensors) {
    EXPECT_EQ(tensor.exact, tensor.type == WeightType::f32) << tensor.name;
  }
  const auto verified = artifact::verify(out());
  ASSERT_TRUE(accepted(verified));
  EXPECT_EQ(verified->artifact.digest(), report->digest);
}

// The table on the grid: stored as Q4_0 and exactly; the other as Q8_0.
TEST_F(ExportTest, TablesOnTheGridAreKept) {
  auto tensors = random_tensors(tiny_config(two_layers));
  CheckpointTensor& table = find(tensors, "model.embed_tokens.weight");
  for (size_t i = 0; i < table.bytes.size() / 2; ++i) {
    set_value(table, i, 0.125f * (i % 32 == 0 ? -8 : static_cast<float>(i * 7 % 16) - 8));
  }
  const auto report = run(two_layers, tensors);
  ASSERT_TRUE(accepted(report));
  EXPECT_EQ(report->recipe.table, WeightType::q8_0);
  EXPECT_EQ(report->recipe.overrides,
            (std::map<std::string, WeightType>{{"embedding", WeightType::q4_0}}));
  EXPECT_TRUE(report->tensors[0].exact);
  const std::vector<float> expected = values(table);
  const Weights weights = read_weights(out());
  for (size_t row = 0; row < weights.at("embedding").size(); ++row) {
    ASSERT_TRUE(same_bits(weights.at("embedding")[row], std::span(expected).subspan(row * 64, 64)));
  }
  // One value off the grid, at the very end.
  set_value(table, table.bytes.size() / 2 - 1, 0.3f);
  const auto second = run(two_layers, tensors);
  ASSERT_TRUE(accepted(second));
  EXPECT_TRUE(second->recipe.overrides.empty());
}

TEST_F(ExportTest, RecipeOptions) {
  ExportOptions options;
  options.weights.recipe.matrix = WeightType::f16;
  options.weights.recipe.table = WeightType::q4_0;
  options.weights.recipe.tensors = {{"layers.0.qkv", WeightType::q8_0},
                                    {"layers.1.down", WeightType::f16}};
  const auto report = run(two_layers, options);
  ASSERT_TRUE(accepted(report));
  EXPECT_EQ(report->recipe.overrides,
            (std::map<std::string, WeightType>{{"layers.0.qkv", WeightType::q8_0}}));
  const auto opened = artifact::Artifact::open(out());
  ASSERT_TRUE(accepted(opened));
  EXPECT_EQ(opened->manifest().recipe, report->recipe);

  struct Case {
    const char* tensor;
    WeightType type;
    ErrorCode code;
  };
  for (const Case& c : {Case{"layers.7.qkv", WeightType::q8_0, ErrorCode::not_found},
                        Case{"final_norm", WeightType::f16, ErrorCode::invalid_argument}}) {
    ExportOptions wrong;
    wrong.weights.recipe.tensors = {{c.tensor, c.type}};
    EXPECT_TRUE(refused(run(two_layers, wrong), c.code, {c.tensor}));
    EXPECT_FALSE(fs::exists(out()));
  }
}

// 16 columns are no whole block.
TEST_F(ExportTest, ColumnsThatNoBlockDividesAreHalves) {
  TinyShape shape = two_layers;
  shape.per_layer_input = 16;
  const auto report = run(shape);
  ASSERT_TRUE(accepted(report));
  for (const char* tensor : {"layers.0.per_layer_output", "layers.1.per_layer_output"}) {
    EXPECT_EQ(report->recipe.overrides.at(tensor), WeightType::f16);
  }
  EXPECT_EQ(report->recipe.overrides.size(), 2u);
  ExportOptions options;
  options.weights.recipe.tensors = {{"layers.0.per_layer_output", WeightType::q4_0}};
  EXPECT_TRUE(refused(run(shape, options), ErrorCode::invalid_argument,
                      {"layers.0.per_layer_output", "16"}));
}

TEST_F(ExportTest, SameBytesWhateverTheThreadsAndTheMemory) {
  const TinyShape shape;
  ExportOptions options;
  options.weights.shard_bytes = 40'000;
  options.weights.threads = 1;
  ASSERT_TRUE(accepted(run(shape, options)));
  const auto expected = contents(out());
  EXPECT_GT(expected.size(), 8u);
  for (const unsigned threads : {2u, 3u, 4u}) {
    options.weights.threads = threads;
    ASSERT_TRUE(accepted(run(shape, options)));
    EXPECT_EQ(contents(out()), expected) << threads << " threads";
  }
  options.weights.scale_bytes = 0;  // scales in a pass of their own
  ASSERT_TRUE(accepted(run(shape, options)));
  EXPECT_EQ(contents(out()), expected);
}

TEST_F(ExportTest, ShardsAreCutBetweenTensors) {
  ExportOptions options;
  for (const uint64_t shard_bytes : {uint64_t{1}, uint64_t{20'000}, uint64_t{1} << 40}) {
    options.weights.shard_bytes = shard_bytes;
    ASSERT_TRUE(accepted(run(two_layers, options)));
    EXPECT_TRUE(accepted(artifact::verify(out())));
    const auto opened = artifact::Artifact::open(out());
    ASSERT_TRUE(accepted(opened));
    const artifact::Manifest& manifest = opened->manifest();
    size_t expected = manifest.shards.size();
    if (shard_bytes == 1) expected = manifest.tensors.size();
    if (shard_bytes == uint64_t{1} << 40) expected = 1;
    EXPECT_EQ(manifest.shards.size(), expected) << shard_bytes;
    for (const auto& tensor : manifest.tensors) {
      for (const auto& plane : tensor.planes) EXPECT_EQ(plane.offset % 16, 0u) << tensor.name;
    }
  }
}

TEST_F(ExportTest, AShardedCheckpointGivesTheSameWeights) {
  const TinyShape shape;
  const auto tensors = random_tensors(tiny_config(shape));
  ASSERT_TRUE(accepted(run(shape, tensors)));
  const Json single = manifest_but_origin();
  ASSERT_TRUE(accepted(run(shape, tensors, {}, 3)));
  EXPECT_EQ(manifest_but_origin(), single);
  const auto opened = artifact::Artifact::open(out());
  ASSERT_TRUE(accepted(opened));
  EXPECT_EQ(opened->receipt().target->sources.size(), 8u);
  for (const artifact::BoundFile& source : opened->receipt().target->sources) {
    EXPECT_EQ(source.sha256, sha256(read_file(in() / source.file))) << source.file;
    EXPECT_EQ(source.bytes, fs::file_size(in() / source.file)) << source.file;
  }
}

// A file of pins with the checkpoint in the folder "in", published or not.
TEST_F(ExportTest, APinThatMatchesSaysWhereTheSourcesWerePublished) {
  ASSERT_TRUE(accepted(run(two_layers)));
  const auto first = artifact::Artifact::open(out());
  ASSERT_TRUE(accepted(first));
  EXPECT_FALSE(first->receipt().target->published);
  const Json manifest = manifest_but_origin();
  Json files = Json::array();
  for (const artifact::BoundFile& source : first->receipt().target->sources)
    files.push_back(to_json(source));
  const Json pin = {{"name", "tiny"},
                    {"files", files},
                    {"role", "target"},
                    {"published", {{"repository", "us/tiny"}, {"revision", "1"}}}};
  const Json pins = {{"schema", "tandem.sources"}, {"schema_version", 2}, {"pins", {pin}}};
  ExportOptions options;
  options.sources = folder.path() / "pins.json";
  write_file(options.sources, canonical_json(pins));
  const auto export_again = [&] {
    fs::remove_all(out());
    return export_checkpoint(in(), out(), options);
  };
  auto report = export_again();
  ASSERT_TRUE(accepted(report));
  EXPECT_EQ(report->provenance.state, artifact::State::verified);
  EXPECT_EQ(artifact::Artifact::open(out())->receipt().target->published,
            (artifact::Published{"us/tiny", "1"}));
  EXPECT_EQ(manifest_but_origin(), manifest);

  options.published = artifact::Published{"us/tiny", "2"};
  report = export_again();
  ASSERT_TRUE(accepted(report));
  EXPECT_EQ(report->provenance.state, artifact::State::pending);
  EXPECT_EQ(report->provenance.reasons.size(), 1u);
  EXPECT_EQ(artifact::Artifact::open(out())->receipt().target->published, options.published);

  options.sources = folder.path() / "none.json";
  EXPECT_TRUE(refused(export_again(), ErrorCode::not_found, {"none.json"}));
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(ExportTest, TensorsIgnoredByRuleAreListed) {
  const TinyShape shape;
  auto tensors = random_tensors(tiny_config(shape), {.prefix = "model.language_model."});
  ASSERT_TRUE(accepted(run(shape, tensors)));
  const Json expected = manifest_but_origin();
  const std::vector<std::byte> byte(1);
  const char* surplus[] = {"model.language_model.layers.4.self_attn.k_proj.weight",
                           "model.language_model.layers.5.self_attn.v_proj.weight",
                           "model.vision_tower.patch.weight", "model.audio_tower.layer.weight"};
  for (const char* name : surplus) tensors.push_back({name, "I8", {1}, byte});
  const auto report = run(shape, tensors);
  ASSERT_TRUE(accepted(report));
  ASSERT_EQ(report->ignored.size(), 4u);
  for (const char* name : surplus) {
    EXPECT_TRUE(std::any_of(
        report->ignored.begin(), report->ignored.end(),
        [&](const auto& ignored) { return ignored.name == name && !ignored.rule.empty(); }))
        << name;
  }
  EXPECT_EQ(manifest_but_origin(), expected);
  const auto opened = artifact::Artifact::open(out());
  ASSERT_TRUE(accepted(opened));
  EXPECT_EQ(opened->receipt().target->ignored, report->ignored);
}

struct Damage {
  const char* why;
  std::function<void(std::vector<CheckpointTensor>&)> damage;
  ErrorCode code;
  std::vector<std::string> words;
};

TEST_F(ExportTest, TensorsThatAreNotTheModels) {
  const ErrorCode damaged = ErrorCode::malformed_checkpoint;
  constexpr const char* norm = "model.norm.weight";
  constexpr const char* down = "model.layers.0.mlp.down_proj.weight";
  const auto reshape = [](const char* name, std::vector<uint64_t> shape) {
    return [=](std::vector<CheckpointTensor>& tensors) { find(tensors, name).shape = shape; };
  };
  const auto retype = [](const char* name, const char* dtype) {
    return [=](std::vector<CheckpointTensor>& tensors) { find(tensors, name).dtype = dtype; };
  };
  const auto put = [](const char* name, size_t index, float value) {
    return [=](std::vector<CheckpointTensor>& tensors) {
      set_value(find(tensors, name), index, value);
    };
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Damage cases[] = {
      {"missing",
       [=](auto& tensors) {
         std::erase_if(tensors, [](const auto& t) { return t.name == "model.norm.weight"; });
       },
       damaged,
       {"missing: norm.weight"}},
      {"misnamed",
       [=](auto& tensors) { find(tensors, norm).name = "model.norm.weights"; },
       damaged,
       {"missing: norm.weight", "not part of the model: model.norm.weights"}},
      {"extra",
       [](auto& tensors) {
         tensors.push_back({"model.layers.0.bias", "U8", {1}, {std::byte{0}}});
       },
       damaged,
       {"missing: none", "model.layers.0.bias"}},
      {"a layer too many",
       [](auto& tensors) {
         tensors.push_back({"model.layers.2.layer_scalar", "U8", {1}, {std::byte{0}}});
       },
       damaged,
       {"model.layers.2.layer_scalar"}},
      {"under two prefixes",
       [=](auto& tensors) {
         CheckpointTensor copy = find(tensors, norm);
         copy.name = "model.language_model.norm.weight";
         tensors.push_back(copy);
       },
       damaged,
       {norm, "model.language_model.norm.weight"}},
      {"transposed", reshape(down, {96, 64}), damaged, {down, "[64, 96]", "[96, 64]"}},
      {"flat", reshape(down, {64 * 96}), damaged, {down, "[64, 96]", "[6144]"}},
      {"a vector as a matrix", reshape(norm, {1, 64}), damaged, {norm, "[64]", "[1, 64]"}},
      {"integers", retype(down, "I16"), ErrorCode::unsupported, {down, "I16"}},
      {"NaN in a matrix",
       put(down, 70, std::numeric_limits<float>::quiet_NaN()),
       damaged,
       {down, "row 0"}},
      {"infinity in a matrix", put(down, 96 * 63, infinity), damaged, {down, "row 63"}},
      {"infinity in a joined matrix",
       put("model.layers.1.mlp.up_proj.weight", 64 * 5, -infinity),
       damaged,
       {"model.layers.1.mlp.up_proj.weight", "row 5"}},
      {"infinity in a table",
       put("model.embed_tokens.weight", 3, infinity),
       damaged,
       {"model.embed_tokens.weight"}},
      {"infinity in a norm", put(norm, 3, infinity), damaged, {norm}},
      {"too large for its type", put(down, 5, 1e30f), damaged, {down, "q4_0"}},
  };
  for (const Damage& c : cases) {
    auto tensors = random_tensors(tiny_config(two_layers));
    c.damage(tensors);
    const auto result = run(two_layers, tensors);
    EXPECT_TRUE(refused(result, c.code)) << c.why;
    for (const std::string& word : c.words) EXPECT_TRUE(refused(result, c.code, {word})) << c.why;
    // Nothing is left of it, not even a hidden folder.
    EXPECT_EQ(contents(in()).size(), 5u);
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      EXPECT_EQ(entry.path().filename(), "in") << c.why;
    }
  }
}

TEST_F(ExportTest, FilesThatAreNotUsable) {
  struct Case {
    const char* file;
    const char* text;  // none: the file is removed
    ErrorCode code;
  };
  for (const Case& c : {Case{"config.json", nullptr, ErrorCode::not_found},
                        Case{"config.json", "{", ErrorCode::malformed_json},
                        Case{"tokenizer.json", nullptr, ErrorCode::not_found},
                        Case{"tokenizer.json", "{", ErrorCode::malformed_json},
                        Case{"generation_config.json", "]", ErrorCode::malformed_json},
                        Case{"model.safetensors", nullptr, ErrorCode::not_found}}) {
    fs::remove_all(in());
    write_checkpoint(in(), tiny_config(two_layers));
    if (c.text == nullptr) fs::remove(in() / c.file);
    if (c.text != nullptr) write_file(in() / c.file, c.text);
    EXPECT_TRUE(refused(export_checkpoint(in(), out()), c.code, {c.file})) << c.file;
    EXPECT_FALSE(fs::exists(out()));
  }
}

TEST_F(ExportTest, ATokenizerThatDoesNotFitTheModel) {
  TinyShape shape = two_layers;
  shape.vocabulary = 300;  // the tokenizer has more
  EXPECT_TRUE(refused(run(shape), ErrorCode::malformed_checkpoint, {"tokenizer.json", "300"}));
}

TEST_F(ExportTest, TemplateAndGenerationConfigAreOptional) {
  write_checkpoint(in(), tiny_config(two_layers));
  fs::remove(in() / "chat_template.jinja");
  fs::remove(in() / "generation_config.json");
  ASSERT_TRUE(accepted(export_checkpoint(in(), out())));
  EXPECT_TRUE(accepted(artifact::verify(out())));
  const auto opened = artifact::Artifact::open(out());
  ASSERT_TRUE(accepted(opened));
  EXPECT_FALSE(opened->chat_template());
  EXPECT_FALSE(opened->generation_config());
}

TEST_F(ExportTest, AnOutputIsNeverReplaced) {
  ASSERT_TRUE(accepted(run(two_layers)));
  const auto before = contents(out());
  EXPECT_TRUE(refused(export_checkpoint(in(), out()), ErrorCode::already_exists, {out().string()}));
  EXPECT_EQ(contents(out()), before);
}

TEST_F(ExportTest, AnOutputInsideWhatIsReadIsRefused) {
  ASSERT_TRUE(accepted(run(two_layers)));
  const auto before = contents(in());
  fs::create_directory(in() / "deep");
  fs::create_directory_symlink(in(), folder.path() / "link");
  for (const fs::path& inside : {in() / "out", in() / "deep" / "out", in() / "deep" / ".." / "out",
                                 folder.path() / "link" / "out", in()}) {
    EXPECT_TRUE(refused(export_checkpoint(in(), inside), ErrorCode::invalid_argument,
                        {inside.string(), "outside", in().string()}));
    ExportOptions options;
    options.assistant = in();
    EXPECT_FALSE(export_checkpoint(folder.path() / "none", inside, options));
    EXPECT_TRUE(refused(exporter::export_assistant(folder.path() / "none", in(), inside),
                        ErrorCode::invalid_argument, {"outside"}));
    EXPECT_TRUE(refused(exporter::export_assistant(in(), out(), inside),
                        ErrorCode::invalid_argument, {"outside"}));
  }
  EXPECT_TRUE(fs::is_empty(in() / "deep"));
  fs::remove(in() / "deep");
  EXPECT_EQ(contents(in()), before);
  EXPECT_TRUE(accepted(export_checkpoint(in(), in().string() + "side")));
}

TEST_F(ExportTest, BoundsAreIndependentAndWithinTheConfig) {
  ExportOptions options;
  options.input_bound = 1000;  // more than the context: one does not limit the other
  options.context_bound = 100;
  ASSERT_TRUE(accepted(run(two_layers, options)));
  auto opened = artifact::Artifact::open(out());
  ASSERT_TRUE(accepted(opened));
  EXPECT_EQ(opened->manifest().input_bound, 1000u);
  EXPECT_EQ(opened->manifest().context_bound, 100u);
  TinyShape long_context = two_layers;
  long_context.max_positions = 100'000;
  ASSERT_TRUE(accepted(run(long_context)));
  opened = artifact::Artifact::open(out());
  ASSERT_TRUE(accepted(opened));
  EXPECT_EQ(opened->manifest().input_bound, 512u);
  EXPECT_EQ(opened->manifest().context_bound, 8960u);
  options.context_bound = 257;
  EXPECT_TRUE(refused(run(two_layers, options), ErrorCode::invalid_argument, {"256", "257"}));
  options.context_bound = 0;
  EXPECT_TRUE(refused(run(two_layers, options), ErrorCode::invalid_argument, {"context"}));
  options = {};
  options.input_bound = 0;
  EXPECT_TRUE(refused(run(two_layers, options), ErrorCode::invalid_argument, {"input"}));
}

TEST_F(ExportTest, ProgressEndsAtTheTotal) {
  write_checkpoint(in(), tiny_config(two_layers));
  uint64_t last = 0;
  uint64_t total = 0;
  const auto progress = [&](uint64_t done, uint64_t all) {
    EXPECT_GE(done, last);
    last = done;
    total = all;
  };
  ASSERT_TRUE(accepted(export_checkpoint(in(), out(), {}, progress)));
  EXPECT_EQ(last, total);
  EXPECT_GT(total, 0u);
}

// The atlas's weights as a BF16 checkpoint again: its export must give the very same shard.
TEST_F(ExportTest, TheAtlasIsKeptExactly) {
  const fs::path atlas = fs::path(TANDEM_SOURCE_DIR) / "models" / "atlas";
  const auto original = artifact::Artifact::open(atlas);
  ASSERT_TRUE(accepted(original));
  Weights weights = read_weights(atlas);
  std::vector<CheckpointTensor> tensors;
  for (const spec::Tensor& row : spec::tensors(original->config())) {
    size_t first = 0;
    for (size_t s = 0; s < row.sources.size(); ++s) {
      const spec::Source& source = row.sources[s];
      CheckpointTensor tensor{"model." + source.name, "BF16", {source.rows, source.columns}, {}};
      if (row.tensor_class == spec::TensorClass::vector) tensor.shape = {source.columns};
      tensor.bytes.resize(uint64_t{source.rows} * source.columns * 2);
      const bool interleaved = row.join == spec::Join::interleave;
      for (uint32_t r = 0; r < source.rows; ++r) {
        const auto& values =
            weights.at(row.name)[interleaved ? r * row.sources.size() + s : first + r];
        for (uint32_t c = 0; c < source.columns; ++c)
          set_value(tensor, uint64_t{r} * source.columns + c, values[c]);
      }
      first += source.rows;
      tensors.push_back(std::move(tensor));
    }
  }
  write_checkpoint(in(), spec::canonical_config(original->config()), tensors);
  const auto report = export_checkpoint(in(), out());
  ASSERT_TRUE(accepted(report));
  for (const auto& tensor : report->tensors) EXPECT_TRUE(tensor.exact) << tensor.name;
  const auto again = artifact::Artifact::open(out());
  ASSERT_TRUE(accepted(again));
  EXPECT_EQ(again->manifest().recipe, original->manifest().recipe);
  std::vector<artifact::ReceiptShard> shards = original->receipt().shards;
  shards.pop_back();  // the assistant's
  EXPECT_EQ(again->receipt().shards, shards);
}

}  // namespace
}  // namespace tandem::test
