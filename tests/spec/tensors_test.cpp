// The registry against real checkpoints' tensor lists, and what may be left out.
#include "spec/tensors.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "spec/data.h"

namespace tandem::spec {
namespace {

using test::golden_models;
using test::read_good;
using test::test_json;

using Shapes = std::map<std::string, std::vector<uint64_t>>;

// What the registry asks a checkpoint for, with the prefix of a text model.
Shapes sources(const Config& config) {
  Shapes shapes;
  for (const Tensor& tensor : tensors(config)) {
    for (const Source& source : tensor.sources) {
      std::vector<uint64_t> shape = {source.rows, source.columns};
      if (tensor.tensor_class == TensorClass::vector) shape.erase(shape.begin());
      EXPECT_TRUE(shapes.emplace("model." + source.name, shape).second) << source.name;
    }
  }
  return shapes;
}

std::map<std::string, Tensor> by_name(const Config& config) {
  std::map<std::string, Tensor> map;
  for (const Tensor& tensor : tensors(config)) map.emplace(tensor.name, tensor);
  return map;
}

TEST(Tensors, AtlasHasExactlyTheTensorsOfItsCheckpoint) {
  Shapes expected;
  std::istringstream lines(test::test_text("spec/data/atlas_tensors.txt"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (uint64_t size = 0; words >> size;) expected[name].push_back(size);
  }
  ASSERT_EQ(expected.size(), 163u);
  EXPECT_EQ(sources(read_good(test_json("spec/data/atlas.json"))), expected);
}

TEST(Tensors, GoldenGeometriesHaveExactlyTransformersTensors) {
  for (const Json& model : golden_models()) {
    SCOPED_TRACE(model["name"]);
    EXPECT_EQ(sources(read_good(model["config"])), model["tensors"].get<Shapes>());
  }
}

// Counted from the geometry by hand: tensors of the artifact, of the checkpoint, and weights.
TEST(Tensors, OfficialModelsHaveTheirSize) {
  struct Case {
    std::string_view file;
    size_t tensors, sources;
    uint64_t weights;
  };
  const Case cases[] = {
      {"spec/data/e2b.json", 475, 540, 4628569379},
      {"spec/data/e4b.json", 575, 665, 7463013418},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.file);
    const std::vector<Tensor> all = tensors(read_good(test_json(c.file)));
    size_t source_count = 0;
    uint64_t weights = 0;
    for (const Tensor& tensor : all) {
      source_count += tensor.sources.size();
      weights += uint64_t{tensor.rows} * tensor.columns;
    }
    EXPECT_EQ(all.size(), c.tensors);
    EXPECT_EQ(source_count, c.sources);
    EXPECT_EQ(weights, c.weights);
  }
}

TEST(Tensors, JoinedMatricesAreTheirSourcesTogether) {
  for (const std::string_view file : {"spec/data/e2b.json", "spec/data/e4b.json"}) {
    std::set<std::string> names;
    for (const Tensor& tensor : tensors(read_good(test_json(file)))) {
      EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
      uint64_t rows = 0;
      for (const Source& source : tensor.sources) {
        rows += source.rows;
        EXPECT_EQ(source.columns, tensor.columns) << tensor.name;
        if (tensor.join == Join::interleave) {
          EXPECT_EQ(source.rows, tensor.sources[0].rows) << tensor.name;
        }
      }
      EXPECT_EQ(rows, tensor.rows) << tensor.name;
      EXPECT_GT(rows, 0u) << tensor.name;
    }
  }
}

TEST(Tensors, QkvOfOwningSharingAndKeyIsValueLayers) {
  const auto names = [](const Tensor& tensor) {
    std::vector<std::string> result;
    for (const Source& source : tensor.sources) result.push_back(source.name);
    return result;
  };
  using Names = std::vector<std::string>;
  auto e4b = by_name(read_good(test_json("spec/data/e4b.json")));
  EXPECT_EQ(names(e4b["layers.5.qkv"]),
            (Names{"layers.5.self_attn.q_proj.weight", "layers.5.self_attn.k_proj.weight",
                   "layers.5.self_attn.v_proj.weight"}));
  EXPECT_EQ(e4b["layers.5.qkv"].rows, (8 + 2 + 2) * 512u);
  EXPECT_EQ(e4b["layers.4.qkv"].rows, (8 + 2 + 2) * 256u);
  EXPECT_EQ(names(e4b["layers.41.qkv"]), Names{"layers.41.self_attn.q_proj.weight"});
  EXPECT_FALSE(e4b.contains("layers.41.k_norm"));
  EXPECT_TRUE(e4b.contains("layers.23.k_norm"));

  auto k_eq_v = by_name(read_good(golden_models()[2]["config"]));
  EXPECT_EQ(names(k_eq_v["layers.1.qkv"]),
            (Names{"layers.1.self_attn.q_proj.weight", "layers.1.self_attn.k_proj.weight"}));
  EXPECT_EQ(k_eq_v["layers.1.qkv"].rows, (8 + 2) * 64u);
  EXPECT_FALSE(k_eq_v.contains("per_layer_embedding"));
  EXPECT_FALSE(k_eq_v.contains("layers.0.per_layer_gate"));
}

TEST(Tensors, TablesComeFirst) {
  const std::vector<Tensor> all = tensors(read_good(test_json("spec/data/e2b.json")));
  EXPECT_EQ(all[0].name, "embedding");
  EXPECT_EQ(all[1].name, "per_layer_embedding");
  EXPECT_EQ(all[1].columns, 35 * 256u);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].tensor_class == TensorClass::table, i < 2) << all[i].name;
  }
}

TEST(Tensors, PrefixesOfBothKindsOfCheckpoint) {
  EXPECT_EQ(without_prefix("model.language_model.norm.weight"), "norm.weight");
  EXPECT_EQ(without_prefix("model.norm.weight"), "norm.weight");
  EXPECT_EQ(without_prefix("norm.weight"), "norm.weight");
  EXPECT_EQ(without_prefix("language_model.norm.weight"), "language_model.norm.weight");
}

TEST(Tensors, IgnoredByRuleAndNothingElse) {
  const Config config = read_good(test_json("spec/data/e2b.json"));  // layers 15 to 34 share K/V
  for (const std::string_view name :
       {"lm_head.weight", "model.language_model.layers.15.self_attn.k_proj.weight",
        "model.layers.34.self_attn.v_proj.weight", "model.layers.20.self_attn.k_norm.weight",
        "model.layers.20.self_attn.v_norm.weight",
        "model.vision_tower.encoder.layers.0.mlp.down_proj.linear.weight",
        "model.audio_tower.layers.0.norm_out.weight",
        "model.embed_vision.embedding_projection.weight",
        "model.embed_audio.embedding_projection.weight",
        "model.layers.0.self_attn.rotary_emb.inv_freq",
        "model.language_model.rotary_emb.full_attention_inv_freq"}) {
    EXPECT_NE(ignored_by_rule(config, name), "") << name;
  }
  for (const std::string_view name :
       {"model.layers.14.self_attn.k_proj.weight", "model.layers.35.self_attn.k_proj.weight",
        "model.layers.15.self_attn.q_proj.weight", "model.layers.15.self_attn.k_proj.bias",
        "model.layers.15.self_attn.k_proj", "model.layers..self_attn.k_proj.weight",
        "model.layers.99999999999999.self_attn.k_proj.weight", "model.norm.weight",
        "model.lm_head.weight", "lm_head.bias", "model.layers.0.vision_tower.weight",
        "vision_towers.weight", "", "model.layers.15.mlp.experts.gate_up_proj",
        "model.layers.0.inv_freq"}) {
    EXPECT_EQ(ignored_by_rule(config, name), "") << name;
  }
}

// No tensor that the registry needs is ever left out.
TEST(Tensors, NoRuleIgnoresARegisteredTensor) {
  for (const std::string_view file :
       {"spec/data/e2b.json", "spec/data/e4b.json", "spec/data/atlas.json"}) {
    const Config config = read_good(test_json(file));
    for (const auto& [name, shape] : sources(config)) {
      EXPECT_EQ(ignored_by_rule(config, name), "") << name;
    }
  }
}

}  // namespace
}  // namespace tandem::spec
